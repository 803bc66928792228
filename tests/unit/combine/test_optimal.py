"""The exact combination of two rankers against brute force in rational arithmetic and direct evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.combine import Combiner, optimal_combination
from gradrank.combine.path import Lines, mean_path
from gradrank.combine.walk import sort_crossings
from gradrank.data import RankingData
from gradrank.errors import DataError, MeasureError
from gradrank.measures import CNDCG, ERR, MAP, MRR, NDCG, REGISTRY, Graded, Measure
from gradrank.measures.swaps import SwapKernels
from tests.support.measures import measure

NAMES = [
    "NDCG@3", "NDCG", "NDCG(convention=letor4)@3", "DCG(gain=[1, 0, 5, 6, 7])@2", "MeanNDCG", "MAP", "MAP@3",
    "MAP(denominator=cutoff)@2", "MRR", "MRR(rel=2)@2", "WTA(target=top)", "P@3", "Recall(rel=2)@3", "RBP(p=0.5)@3",
    "ERR", "ERR(top=query)@3", "CNDCG@2", "KappaNDCG@2", "KappaERR@3", "KendallTau", "KendallTau(variant=b)", "Bpref",
    "NDCG(unjudged=skip)@3", "ERR(empty=skip)",
]  # fmt: skip
OTHER_TIES = ["NDCG(ties=file)@3", "MAP(ties=pessimistic)", "ERR(ties=optimistic)", "Bpref(ties=docid)",
              "KendallTau(ties=file)", "NDCG(convention=trec_eval)@3", "MRR(ties=optimistic)"]  # fmt: skip
# A measure that is not named here is tested as it is.
NAMES += [name for name in REGISTRY if name not in {measure(known).name for known in NAMES}]
RANGES = [("convex", 0, 1), ("additive", 0, 3), ("additive", -2, 2), ("additive", Fraction(1, 10), 100)]


def data_of(labels: list[float | None], sizes: list[int]) -> RankingData:
    column = np.array([np.nan if label is None else label for label in labels], dtype=np.float32)
    return RankingData.from_arrays(
        np.zeros((len(labels), 1)),
        {"label": column, "clicks": column / 4},
        group=sizes,
        docid=[f"d{(7 * row) % 11}" for row in range(len(labels))],
    )


@st.composite
def problems(draw: st.DrawFn, top: int = 3) -> tuple[RankingData, np.ndarray, np.ndarray]:
    """Whole-number scores: many ties, identical lines, lines that meet in one point, crossings at the ends."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    n = sum(sizes)
    labels = draw(st.lists(st.one_of(st.integers(0, 4), st.none()), min_size=n, max_size=n))
    scores = [draw(st.lists(st.integers(0, top), min_size=n, max_size=n)) for _ in range(2)]
    return data_of(labels, sizes), np.array(scores[0], float), np.array(scores[1], float)


def exact_edges(data: RankingData, one: np.ndarray, two: np.ndarray, form: str, low: Fraction, high: Fraction) -> list:
    """The ends and every crossing between them, as fractions."""
    at = set()
    for start, stop in pairwise(data.indptr.tolist()):
        for i, j in combinations(range(start, stop), 2):
            gap, slope = Fraction(one[i]) - Fraction(one[j]), Fraction(two[i]) - Fraction(two[j])
            slope -= gap if form == "convex" else 0
            if slope != 0 and low < -gap / slope < high:
                at.add(-gap / slope)
    return [low, *sorted(at), high]


def value_at(m: Measure, data: RankingData, one: np.ndarray, two: np.ndarray, form: str, alpha: Fraction) -> float:
    """The mean at α with scores that are exact: a common denominator makes them whole numbers."""
    first = alpha.denominator - (alpha.numerator if form == "convex" else 0)
    return m.mean(first * one + alpha.numerator * two, data)


@pytest.mark.kernel
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("form", "low", "high"), RANGES)
@settings(max_examples=12)
@given(problem=problems())
def test_the_path_is_brute_force_in_every_interval(
    name: str, form: str, low: float, high: float, problem: tuple[RankingData, np.ndarray, np.ndarray]
) -> None:
    data, one, two = problem
    m = measure(name)
    path = mean_path(m.bind(data), Lines(one, two, form == "convex", float(low), float(high)))
    edges = exact_edges(data, one, two, form, Fraction(low), Fraction(high))
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    expected = [value_at(m, data, one, two, form, middle) for middle in middles]
    np.testing.assert_allclose(path(np.array([float(middle) for middle in middles])), expected, rtol=0, atol=1e-13)
    crossings = np.array([float(edge) for edge in edges])
    assert np.isclose(path.at[:, None], crossings[None, :], rtol=1e-14, atol=0).any(axis=1).all()


@pytest.mark.parametrize("name", ["NDCG@3", "MAP", "ERR", "KendallTau"])
@pytest.mark.parametrize(("form", "low", "high"), RANGES)
@settings(max_examples=30)
@given(problem=problems())
def test_the_best_of_all_intervals_and_ends_is_found(
    name: str, form: str, low: float, high: float, problem: tuple[RankingData, np.ndarray, np.ndarray]
) -> None:
    data, one, two = problem
    m = measure(name)
    edges = exact_edges(data, one, two, form, Fraction(low), Fraction(high))
    points = [edges[0], *((a + b) / 2 for a, b in pairwise(edges)), edges[-1]]
    values = [value_at(m, data, one, two, form, point) for point in points]
    if np.isnan(values[0]):
        with pytest.raises(MeasureError, match="no query is judged"):
            optimal_combination(one, two, data, m, form=form, low=float(low), high=float(high))
        return
    found = optimal_combination(one, two, data, m, form=form, low=float(low), high=float(high))
    # An end that is no whole number is rounded, and lines that meet there then do not: no more than that is lost.
    if isinstance(low, int):
        # The middle of an interval may be a crossing at which nothing changes but the ties, which count for themselves.
        best = max(value_at(m, data, one, two, form, point) for point in (*points, *edges))
        assert max(values) - 1e-13 <= found.value <= best + 1e-13
    first, second = found.weights
    assert found.value == m.mean(first * one + second * two, data)
    assert found.interval[0] <= found.alpha <= found.interval[1]


@pytest.mark.parametrize("name", ["NDCG@3", "MAP", "Bpref"])
@given(problem=problems())
def test_never_worse_than_either_ranker(name: str, problem: tuple[RankingData, np.ndarray, np.ndarray]) -> None:
    data, one, two = problem
    m = measure(name)
    alone = [m.mean(scores, data) for scores in (one, two)]
    if np.isnan(alone).any():
        return
    for form in ("convex", "additive"):
        found = optimal_combination(one, two, data, m, form=form)
        assert found.value >= max(alone)
        assert [part[name] for part in found.values_of_parts] == alone


@pytest.mark.parametrize("name", OTHER_TIES)
@settings(max_examples=20)
@given(problem=problems())
def test_other_tie_policies(name: str, problem: tuple[RankingData, np.ndarray, np.ndarray]) -> None:
    data, one, two = problem
    m = measure(name)
    path = mean_path(m.bind(data), Lines(one, two, convex=True))
    edges = exact_edges(data, one, two, "convex", Fraction(0), Fraction(1))
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    expected = [value_at(m, data, one, two, "convex", middle) for middle in middles]
    np.testing.assert_allclose(path(np.array([float(middle) for middle in middles])), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_distinct_scores_by_direct_evaluation(name: str) -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 40, 8).tolist()
    n = sum(sizes)
    data = data_of(rng.integers(0, 5, n).tolist(), sizes)
    bound = measure(name).bind(data)
    # Leaf values of a small tree: many parallel lines.
    for two in (rng.normal(size=n), rng.normal(size=7)[rng.integers(0, 7, n)]):
        lines = Lines(rng.normal(size=n), two, False, 0.1, 100.0)
        path = mean_path(bound, lines)
        edges = np.concatenate(([lines.low], path.at, [lines.high]))
        chosen = np.flatnonzero(np.diff(edges) > 1e-9)[:: max(1, len(edges) // 60)]
        middles = (edges[chosen] + edges[chosen + 1]) / 2
        direct = [bound.mean(lines.scores(middle)) for middle in middles]
        np.testing.assert_allclose(path.values[chosen], direct, rtol=0, atol=1e-12)


@dataclass(frozen=True, repr=False)
class Unknown(MAP):
    """A measure that brings no swap kernels."""

    swap: ClassVar[SwapKernels | None] = None


@settings(max_examples=20)
@given(problem=problems())
def test_measures_without_kernels_are_evaluated_in_every_interval(
    problem: tuple[RankingData, np.ndarray, np.ndarray],
) -> None:
    data, one, two = problem
    lines = Lines(one, two, convex=True)
    slow, fast = (mean_path(kind().bind(data), lines) for kind in (Unknown, MAP))
    edges = np.concatenate(([0.0], slow.at, [1.0]))
    middles = (edges[:-1] + edges[1:]) / 2
    np.testing.assert_allclose(slow.values, fast(middles), rtol=0, atol=1e-13)


def test_identical_and_constant_rankers() -> None:
    data = data_of([0, 1, 2, 1, 0], [3, 2])
    one, flat = np.array([0.0, 2, 1, 1, 0]), np.zeros(5)
    for two in (one, flat, 2 * one):
        found = optimal_combination(one, two, data, NDCG(3))
        assert found.value == NDCG(3).mean(one, data)
        assert found.curve.n_intervals == 1
        assert found.interval == (0.0, 1.0)
    # Any little bit of the ranker orders what the constant leaves tied.
    assert optimal_combination(flat, -one, data, NDCG(3)).value == NDCG(3).mean(flat, data)


def test_lists_of_one_document() -> None:
    data = data_of([1, 2, 0], [1, 1, 1])
    found = optimal_combination([1, 2, 3], [3, 2, 1], data, NDCG(10))
    assert found.value == pytest.approx(2 / 3)
    assert found.interval == (0.0, 1.0)


def test_second_ranker_alone() -> None:
    # The first ranker puts the relevant document last, and any bit of it breaks the second one's tie that way.
    data = data_of([1, 0, 0], [3])
    found = optimal_combination([0, 1, 1], [1, 1, 0], data, MRR(), form="additive")
    assert (found.alpha, found.weights, found.value) == (np.inf, (0.0, 1.0), 0.75)


def test_a_meeting_point_that_rounding_tears_apart() -> None:
    """Lines through one point cross at many numbers close together; what is told of them is what scores have there."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        n = 12
        slopes = rng.normal(size=n)
        one = 1.0 - 0.3 * slopes
        data = data_of(rng.integers(0, 3, n).tolist(), [n])
        found = optimal_combination(one, slopes, data, NDCG(3), form="additive", low=0.0, high=1.0)
        assert found.value == NDCG(3).mean(one + found.alpha * slopes, data)
        assert found.value >= max(NDCG(3).mean(one + alpha * slopes, data) for alpha in (0.0, 0.15, 0.65, 1.0))
        assert found.interval[0] < found.alpha < found.interval[1]


def test_a_crossing_in_the_middle_of_the_best_interval_is_avoided() -> None:
    # Lines of three documents meet at 1/2, where the first rank is a lottery; before and after it is the middle one.
    data = data_of([0, 1, 0, 0], [4])
    one, two = np.array([0.0, 3.0, 2.0, 4.0]), np.array([4.0, 3.0, 2.0, 0.0])
    found = optimal_combination(one, two, data, measure("WTA"))
    assert found.value == value_at(measure("WTA"), data, one, two, "convex", Fraction(found.alpha))
    assert found.value == 1.0


def test_graded_measures_are_compared_part_by_part() -> None:
    rng = np.random.default_rng(2)
    sizes = [6] * 10
    data = data_of(rng.integers(0, 2, 60).tolist(), sizes)
    data = data.with_label("clicks", rng.random(60))
    one, two = rng.integers(0, 5, 60).astype(float), rng.integers(0, 5, 60).astype(float)
    edges = exact_edges(data, one, two, "convex", Fraction(0), Fraction(1))
    points = [Fraction(0), *((a + b) / 2 for a, b in pairwise(edges)), Fraction(1)]
    for tolerance in (0.0, 0.02):
        graded = Graded((NDCG(1), CNDCG(3)), tolerance)
        rows = [[value_at(part, data, one, two, "convex", point) for part in graded.parts] for point in points]
        found = optimal_combination(one, two, data, graded)
        # Summing in another order moves the first measure by less than 1e-12.
        best = rows[replace(graded, tolerance=tolerance + 1e-12).best(rows)]
        np.testing.assert_allclose(list(found.values.values()), best, rtol=0, atol=1e-12)
    assert optimal_combination(one, two, data, NDCG(1)).value >= rows[0][0]


@pytest.mark.parametrize("m", [NDCG(5), Graded((ERR(3), MAP()))], ids=str)
def test_little_memory_gives_the_same_result(m: Measure | Graded) -> None:
    rng = np.random.default_rng(5)
    data = data_of(rng.integers(0, 5, 400).tolist(), [20] * 20)
    one, two = rng.normal(size=400), rng.normal(size=400)
    whole = Combiner(data, m).search(one, two)
    pieces = Combiner(data, m, most_changes=100).search(one, two)
    assert (pieces.alpha, pieces.interval) == (whole.alpha, whole.interval)
    for low, high, *expected in zip(whole.curve.edges, whole.curve.edges[1:], *whole.curve.values, strict=False):
        assert pieces.curve.at((low + high) / 2) == pytest.approx(expected, abs=1e-12)


def test_the_number_of_threads_changes_nothing() -> None:
    rng = np.random.default_rng(6)
    n = 30_000
    data = RankingData.from_arrays(np.zeros((n, 1)), rng.integers(0, 5, n), group=[30] * (n // 30))
    one, two = rng.normal(size=n), rng.normal(size=n)
    single, several = (optimal_combination(one, two, data, NDCG(5), n_jobs=n_jobs) for n_jobs in (1, 3))
    assert single.alpha == several.alpha
    np.testing.assert_array_equal(single.curve.values, several.curve.values)


def test_a_choice_of_queries() -> None:
    rng = np.random.default_rng(7)
    data = data_of(rng.integers(0, 5, 60).tolist(), [6] * 10)
    one, two = rng.normal(size=60), rng.normal(size=60)
    chosen = np.arange(10) % 3 == 0
    rows = np.repeat(chosen, 6)
    part = Combiner(data, NDCG(3)).only(chosen).search(one, two)
    alone = Combiner(data.take_queries(chosen), NDCG(3)).search(one[rows], two[rows])
    assert (part.alpha, part.value) == (alone.alpha, alone.value)


@pytest.mark.kernel
@given(st.lists(st.floats(-10, 10), max_size=150))
def test_sorting(numbers: list[float]) -> None:
    at, other = np.array(numbers), np.arange(len(numbers))
    sort_crossings(len(at), at, other, np.empty(len(at)), np.empty(len(at), np.int64))
    np.testing.assert_array_equal(other, np.argsort(numbers, kind="stable"))
    np.testing.assert_array_equal(at, np.sort(numbers))


def test_wrong_input() -> None:
    data = data_of([1, 0], [2])
    with pytest.raises(DataError, match="document 2 is -inf, expected a finite number"):
        optimal_combination([1.0, -np.inf], [1.0, 2.0], data, MRR())
    with pytest.raises(DataError, match="shape"):
        optimal_combination([1.0], [1.0, 2.0], data, MRR())
    with pytest.raises(DataError, match="within 0…1"):
        optimal_combination([1.0, 2.0], [1.0, 2.0], data, MRR(), low=-1.0)
    with pytest.raises(DataError, match="ascending order"):
        optimal_combination([1.0, 2.0], [1.0, 2.0], data, MRR(), form="additive", low=2.0, high=1.0)
    with pytest.raises(MeasureError, match="no query is judged"):
        optimal_combination([1.0, 2.0], [1.0, 2.0], data_of([None, None], [2]), MRR())
