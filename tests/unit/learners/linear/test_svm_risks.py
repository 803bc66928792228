"""The risks of the linear SVMs against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.learners.base.label_levels import label_levels, pair_counts
from gradrank.learners.linear.map_risk import AveragePrecisionOracle, MixedOracle, OrderOracle
from gradrank.learners.linear.pair_risk import PairOracle

# Multiples of 1/8: sums are exact, and ties and margins of exactly 1 occur.
eighths = st.integers(-16, 16).map(lambda number: number / 8)


@st.composite
def queries(
    draw: st.DrawFn, longest: int, labels: st.SearchStrategy[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = draw(st.lists(st.integers(1, longest), min_size=1, max_size=3))
    total = sum(sizes)
    grades = draw(st.lists(labels, min_size=total, max_size=total))
    scores = draw(st.lists(eighths, min_size=total, max_size=total))
    return np.array(grades, dtype=np.float32), np.concatenate(([0], np.cumsum(sizes))), np.array(scores)


grades = st.sampled_from([0.0, 1.0, 2.0, 5.0, np.nan])


# ---------------------------------------------------------------------- pairs
def hinge_by_pairs(
    labels: np.ndarray, indptr: np.ndarray, scores: np.ndarray, mean: bool, weight: np.ndarray | None = None
) -> float:
    total = 0.0
    for start, end in itertools.pairwise(indptr):
        losses = [
            (1.0 if weight is None else weight[u]) * max(0.0, 1.0 - (scores[u] - scores[v]))
            for u, v in itertools.permutations(range(start, end), 2)
            if labels[u] > labels[v]
        ]
        total += sum(losses) / (len(losses) if mean and losses else 1)
    return total


@pytest.mark.kernel
@given(queries(9, grades), st.booleans())
def test_hinge_is_the_sum_over_all_pairs(query: tuple[np.ndarray, ...], mean: bool) -> None:
    labels, indptr, scores = query
    value, _ = PairOracle(labels, indptr, pairs="mean" if mean else "sum")(scores)
    assert value[0] == pytest.approx(hinge_by_pairs(labels, indptr, scores, mean), abs=1e-9)


@pytest.mark.kernel
@given(queries(9, grades), st.booleans(), st.integers(0, 1000))
def test_weighted_hinge_and_its_planes(query: tuple[np.ndarray, ...], mean: bool, random_state: int) -> None:
    """A pair counts with the weight of its better document; the mean divides by the number of pairs."""
    labels, indptr, scores = query
    rng = np.random.default_rng(random_state)
    weight = rng.choice([0.0, 0.5, 1.0, 4.0], len(scores))
    oracle = PairOracle(labels, indptr, pairs="mean" if mean else "sum", document_weight=weight)
    value, gradient = oracle(scores)
    assert value[0] == pytest.approx(hinge_by_pairs(labels, indptr, scores, mean, weight), abs=1e-9)
    other = rng.normal(size=len(scores), scale=2.0)
    beyond = hinge_by_pairs(labels, indptr, other, mean, weight)
    assert beyond >= value[0] + gradient[0] @ (other - scores) - 1e-9
    assert not oracle.can_be_smoothed


@given(queries(9, grades), st.integers(0, 1000))
def test_planes_of_the_hinge_lie_below_it(query: tuple[np.ndarray, ...], random_state: int) -> None:
    labels, indptr, scores = query
    oracle = PairOracle(labels, indptr, pairs="sum")
    value, gradient = oracle(scores)
    other = np.random.default_rng(random_state).normal(size=len(scores), scale=2.0)
    assert oracle(other)[0][0] >= value[0] + gradient[0] @ (other - scores) - 1e-9


def rounded_by_pairs(labels: np.ndarray, indptr: np.ndarray, scores: np.ndarray, width: float):  # type: ignore[no-untyped-def]
    """Value, gradient and Σα of the rounded hinge, and its pairs at the corner, from the definition."""
    value, mass, gradient, corner = 0.0, 0.0, np.zeros(len(scores)), []
    for start, end in itertools.pairwise(indptr):
        for u, v in itertools.permutations(range(start, end), 2):
            if labels[u] > labels[v]:
                short = 1.0 - (scores[u] - scores[v])
                alpha = min(max(0.5 + short / width, 0.0), 1.0)
                # The integral of α over the margin, from where it is 0.
                value += short if short >= width / 2 else 0.5 * width * alpha**2
                mass += alpha
                gradient[u] -= alpha
                gradient[v] += alpha
                if -width / 2 < short <= width / 2:
                    corner.append((u, v))
    return value, gradient, mass, corner


widths = st.sampled_from([0.25, 0.5, 1.0, 4.0])


@pytest.mark.kernel
@given(queries(9, grades), widths)
def test_rounded_hinge_is_that_of_all_pairs(query: tuple[np.ndarray, ...], width: float) -> None:
    labels, indptr, scores = query
    value, gradient, mass, corner = rounded_by_pairs(labels, indptr, scores, width)
    oracle = PairOracle(labels, indptr, pairs="sum")
    smooth = oracle.smoothed(scores, width)
    assert smooth.value == pytest.approx(value, abs=1e-9)
    assert smooth.gradient == pytest.approx(gradient, abs=1e-9)
    assert smooth.offset == pytest.approx(mass, abs=1e-9)
    assert smooth.at_corner == len(corner)
    found = oracle.corner(scores, width, smooth.at_corner, 10_000)
    assert sorted(zip(found.better.tolist(), found.worse.tolist(), strict=True)) == sorted(corner)
    assert found.curvature == pytest.approx(np.full(len(corner), 1.0 / width))


@given(queries(12, grades), widths, st.integers(1, 10))
def test_a_sample_of_the_corner_stands_for_all_of_it(query: tuple[np.ndarray, ...], width: float, at_most: int) -> None:
    labels, indptr, scores = query
    oracle = PairOracle(labels, indptr, pairs="sum")
    pairs = oracle.smoothed(scores, width).at_corner
    corner = set(rounded_by_pairs(labels, indptr, scores, width)[-1])
    sample = oracle.corner(scores, width, pairs, at_most)
    chosen = list(zip(sample.better.tolist(), sample.worse.tolist(), strict=True))
    assert len(set(chosen)) == len(chosen) <= at_most
    assert set(chosen) <= corner
    stride = -(-pairs // at_most)
    assert abs(sample.curvature.sum() * width - pairs) <= stride / 2 + 0.5


@given(queries(9, grades), widths, st.integers(0, 1000))
def test_planes_of_the_rounded_hinge_lie_below_the_hinge(
    query: tuple[np.ndarray, ...], width: float, random_state: int
) -> None:
    labels, indptr, scores = query
    oracle = PairOracle(labels, indptr)
    smooth = oracle.smoothed(scores, width)
    other = np.random.default_rng(random_state).normal(size=len(scores), scale=2.0)
    for at in (scores, other):
        assert oracle(at)[0][0] >= smooth.offset + smooth.gradient @ at - 1e-9


def test_labels_of_many_levels_are_not_smoothed() -> None:
    indptr = np.array([0, 17])
    assert not PairOracle(np.arange(17, dtype=np.float32), indptr).can_be_smoothed
    assert PairOracle(np.minimum(np.arange(17), 15).astype(np.float32), indptr).can_be_smoothed


def test_scores_far_from_zero_lose_no_digits() -> None:
    labels, indptr = np.array([1, 0], dtype=np.float32), np.array([0, 2])
    assert PairOracle(labels, indptr)(np.array([1e12, 1e12]))[0][0] == 1.0


def test_levels_and_pair_counts() -> None:
    labels = np.array([5, 0, 5, np.nan, 7, 1, 2, 3], dtype=np.float32)
    indptr = np.array([0, 4, 5, 8])
    assert label_levels(labels, indptr).tolist() == [1, 0, 1, -1, 0, 0, 1, 2]
    assert pair_counts(label_levels(labels, indptr), indptr).tolist() == [2, 0, 3]


# ---------------------------------------------------------------------- average precision
def violation_by_enumeration(relevant: np.ndarray, scores: np.ndarray) -> float:
    """max over all rankings z of 1 − AP(z) + wΨ(z) − wΨ(y)."""
    good, bad = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    best = -np.inf
    for ranking in itertools.permutations(range(len(scores))):
        place = {document: rank for rank, document in enumerate(ranking)}
        hits = [rank for rank, document in enumerate(ranking) if relevant[document]]
        precision = np.mean([(number + 1) / (rank + 1) for number, rank in enumerate(hits)])
        # wΨ(z) − wΨ(y): pairs in wrong order count twice.
        swapped = sum(scores[i] - scores[j] for i in good for j in bad if place[j] < place[i])
        best = max(best, 1.0 - precision - 2.0 * swapped / (len(good) * len(bad)))
    return best


@pytest.mark.kernel
@settings(max_examples=40)
@given(st.lists(st.tuples(st.booleans(), eighths), min_size=2, max_size=6))
def test_most_violated_ranking_is_found(documents: list[tuple[bool, float]]) -> None:
    relevant, scores = np.array([item[0] for item in documents]), np.array([item[1] for item in documents])
    oracle = AveragePrecisionOracle(relevant.astype(np.float32), np.array([0, len(scores)]))
    value, gradient = oracle(scores)
    if relevant.all() or not relevant.any():
        assert value[0] == 0.0
        assert not gradient.any()
        assert not oracle.counted.any()
    else:
        assert value[0] == pytest.approx(violation_by_enumeration(relevant, scores), abs=1e-12)


def greedy_violation(relevant: np.ndarray, scores: np.ndarray) -> float:
    """Yue's search as published: every place of every other document is tried."""
    good = np.sort(scores[relevant])[::-1]
    bad = np.sort(scores[~relevant])[::-1]
    n_good, n_bad = len(good), len(bad)
    above = []
    for j in range(1, n_bad + 1):
        gains = [0.0]
        for i in range(n_good, 0, -1):
            delta = (j / (j + i) - (j - 1) / (j + i - 1)) / n_good - 2 * (good[i - 1] - bad[j - 1]) / (n_good * n_bad)
            gains.append(gains[-1] + delta)
        above.append(n_good - int(np.argmax(gains)))
    places = np.array(above)
    precision = np.mean([(k + 1) / (k + 1 + (places <= k).sum()) for k in range(n_good)])
    swapped = sum((good[place:] - bad[j]).sum() for j, place in enumerate(places))
    return float(1.0 - precision - 2.0 * swapped / (n_good * n_bad))


@given(st.integers(0, 10_000), st.integers(2, 400))
@settings(max_examples=30)
def test_halving_finds_what_the_full_search_finds(random_state: int, n: int) -> None:
    rng = np.random.default_rng(random_state)
    relevant = rng.random(n) < rng.random()
    if relevant.all() or not relevant.any():
        relevant[0] = not relevant[0]
    scores = rng.normal(size=n) * rng.choice([0.01, 0.1, 1.0])
    value, _ = AveragePrecisionOracle(relevant.astype(np.float32), np.array([0, n]))(scores)
    assert value[0] == pytest.approx(greedy_violation(relevant, scores), abs=1e-9)


@given(queries(7, grades), st.integers(0, 1000))
def test_planes_of_the_map_risk_lie_below_it(query: tuple[np.ndarray, ...], random_state: int) -> None:
    labels, indptr, scores = query
    oracle = AveragePrecisionOracle(labels, indptr, rel=2.0)
    value, gradient = oracle(scores)
    other = np.random.default_rng(random_state).normal(size=len(scores))
    assert oracle(other)[0][0] >= value[0] + gradient[0] @ (other - scores) - 1e-9


@given(queries(6, st.just(0.0)), st.integers(1, 6), st.integers(0, 99))
def test_order_risk_is_the_mean_over_the_cuts(query: tuple[np.ndarray, ...], k: int, random_state: int) -> None:
    _, indptr, scores = query
    rng = np.random.default_rng(random_state)
    labels = np.zeros(len(scores), dtype=np.float32)
    expected = np.zeros(len(scores))
    total = 0.0
    for start, end in itertools.pairwise(indptr):
        top = start + rng.permutation(end - start)[:k]
        labels[top] = k - np.arange(len(top))
        for cut in range(1, len(top)):
            sides = np.full(len(scores), np.nan, dtype=np.float32)
            sides[top] = np.arange(len(top)) < cut
            value, gradient = AveragePrecisionOracle(sides, indptr)(scores)
            total += value[0] / (len(top) - 1)
            expected += gradient[0] / (len(top) - 1)
    value, gradient = OrderOracle(labels, indptr)(scores)
    assert value[0] == pytest.approx(total, abs=1e-12)
    assert gradient[0] == pytest.approx(expected, abs=1e-12)


def test_query_weights_and_threads_change_nothing_else() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 60, 500)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    labels = rng.integers(0, 3, indptr[-1]).astype(np.float32)
    scores = rng.normal(size=indptr[-1])
    weight = rng.integers(0, 3, 500).astype(float)
    for make in (PairOracle, AveragePrecisionOracle):
        one, many = make(labels, indptr, n_jobs=1)(scores), make(labels, indptr, n_jobs=3)(scores)
        assert one[0] == many[0]
        assert np.array_equal(one[1], many[1])
        _, plain = make(labels, indptr)(scores)
        _, weighted = make(labels, indptr, weight=weight)(scores)
        assert weighted[0] == pytest.approx(plain[0] * np.repeat(weight, sizes))


def test_parts_of_a_mixture() -> None:
    labels, indptr, scores = np.array([2, 1, 0], dtype=np.float32), np.array([0, 3]), np.zeros(3)
    parts = OrderOracle(labels, indptr), PairOracle(labels, indptr)
    value, gradient = MixedOracle(*parts)(scores)
    assert value.tolist() == [part(scores)[0][0] for part in parts]
    assert gradient.shape == (2, 3)
