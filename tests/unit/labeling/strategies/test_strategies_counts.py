"""How many judgments the strategies take, against known bounds, plain code and an independent simulation."""

from __future__ import annotations

from functools import cache
from math import ceil, log2, sqrt
from random import Random
from statistics import mean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.labeling import Pair, strategy
from gradrank.labeling.strategies.base import shuffled

RUNS = 150


def count(name: str, grade: dict[str, int], k: int, order: list[str]) -> int:
    race = strategy(name).start(order, k)
    judgments = 0
    while (request := next(race.requests(), None)) is not None:
        assert isinstance(request, Pair)
        first, second = grade[request.first], grade[request.second]
        race.answer(request, (first > second) - (first < second))
        judgments += 1
    return judgments


@cache
def counts(name: str, levels: int | None, n: int = 50, k: int = 10) -> list[int]:
    found = []
    for run in range(RUNS):
        random = Random(run)
        grade = {f"d{index}": index if levels is None else random.randrange(levels) for index in range(n)}
        found.append(count(name, grade, k, shuffled(list(grade), run)))
    return found


@pytest.mark.parametrize(
    ("name", "levels", "expected"),
    [
        # Means of an independent simulation: 2,000 runs of strict orders, 800 of grades drawn uniformly.
        ("heap", None, 150.5),
        ("heap-infer", None, 129.9),
        ("tournament", None, 90.6),
        ("heap", 5, 119.8),
        ("heap-infer", 5, 73.7),
        ("tournament", 5, 55.2),
        ("heap", 20, 144.7),
        ("heap-infer", 20, 101.7),
        ("tournament", 20, 73.9),
    ],
)
def test_mean_counts_at_n_50_and_k_10(name: str, levels: int | None, expected: float) -> None:
    found = counts(name, levels)
    # Four standard errors, of our runs and as much again for the other simulation's.
    assert mean(found) == pytest.approx(expected, abs=4 * sqrt(2) * stdev(found) / sqrt(RUNS))


def test_the_tournament_never_takes_more_than_94_at_n_50_and_k_10() -> None:
    assert max(counts("tournament", None)) <= 94


@settings(max_examples=150, deadline=None)
@given(order=st.integers(1, 64).flatmap(lambda n: st.permutations(range(n))), k=st.integers(1, 64))
def test_the_bound_of_the_tournament_holds_for_any_order(order: list[int], k: int) -> None:
    n = len(order)
    k = min(k, n)
    grade = {f"d{value}": value for value in order}
    bound = n - 1 + (k - 1) * max(0, ceil(log2(n)) - 1)
    assert n - 1 <= count("tournament", grade, k, list(grade)) <= bound


def test_the_bound_of_the_tournament_holds_against_an_adversary() -> None:
    # The adversary lets the one win that has won more often so far, which makes the longest paths.
    documents = [f"d{index}" for index in range(50)]
    race = strategy("tournament").start(documents, 10)
    wins = dict.fromkeys(documents, 0)
    judgments = 0
    while (request := next(race.requests(), None)) is not None:
        assert isinstance(request, Pair)
        value = 1 if wins[request.first] >= wins[request.second] else -1
        wins[request.first if value > 0 else request.second] += 1
        race.answer(request, value)
        judgments += 1
    assert judgments == 94


@pytest.mark.parametrize(("n", "k", "expected"), [(20, 5, 32), (30, 10, 63), (100, 10, 150)])
def test_mean_counts_of_the_tournament_at_other_sizes(n: int, k: int, expected: float) -> None:
    assert mean(counts("tournament", None, n, k)) == pytest.approx(expected, abs=1)


def test_insertion_takes_n_minus_1_if_the_prior_is_right() -> None:
    grade = {f"d{index}": -index for index in range(50)}
    assert count("insertion", grade, 10, list(grade)) == 49


def test_insertion_behind_a_trusted_prior() -> None:
    found = []
    for run in range(RUNS):
        random = Random(run)
        # Noise of 10 ranks leaves Kendall's tau at 0.64.
        noisy = sorted(range(50), key=lambda index: index + random.gauss(0, 10))
        grade = {f"d{index}": -index for index in range(50)}
        found.append(count("insertion", grade, 10, [f"d{index}" for index in noisy]))
    # 78 with merge insertion of the first ten, which a perfect prior makes ten judgments dearer.
    assert 76 <= mean(found) <= 82


def test_heap_asks_what_algorithm_1_asks() -> None:
    for seed in range(5):
        random = Random(seed)
        grade = {f"d{index}": random.randrange(40) for index in range(30)}
        order = shuffled(list(grade), seed)
        asked: list[Pair] = []
        race = strategy("heap").start(order, 8)
        while (request := next(race.requests(), None)) is not None:
            assert isinstance(request, Pair)
            asked.append(request)
            first, second = grade[request.first], grade[request.second]
            race.answer(request, (first > second) - (first < second))
        expected, result = algorithm_1(order, 8, grade)
        assert asked == expected
        assert [document for group in race.top() for document in group] == result


def algorithm_1(order: list[str], k: int, grade: dict[str, int]) -> tuple[list[Pair], list[str]]:
    """The paper's algorithm as plain code over known grades."""
    asked: list[Pair] = []

    def less(first: str, second: str) -> bool:
        asked.append(Pair(first, second))
        return grade[first] < grade[second]

    def sink(heap: list[str], place: int) -> None:
        left, right = 2 * place + 1, 2 * place + 2
        if left >= len(heap):
            return
        smaller = right if right < len(heap) and less(heap[right], heap[left]) else left
        if less(heap[smaller], heap[place]):
            heap[smaller], heap[place] = heap[place], heap[smaller]
            sink(heap, smaller)

    heap = order[:k]
    for place in range(k // 2 - 1, -1, -1):
        sink(heap, place)
    for newcomer in order[k:]:
        asked.append(Pair(newcomer, heap[0]))
        if grade[newcomer] > grade[heap[0]]:
            heap[0] = newcomer
            sink(heap, 0)
    result: list[str] = []
    while heap:
        result.insert(0, heap[0])
        heap[0] = heap[-1]
        heap.pop()
        sink(heap, 0)
    return asked, result
