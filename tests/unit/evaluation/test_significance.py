"""Paired tests against SciPy, full enumeration and hand-worked values."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gradrank.errors import DataError
from gradrank.evaluation.significance import (
    bootstrap_test,
    differences,
    holm,
    randomization_test,
    standard_error,
    t_interval,
    t_test,
)

ALL_TESTS = [t_test, randomization_test, bootstrap_test]
values = st.lists(st.integers(0, 20), min_size=2, max_size=10)


def two_systems(n: int, shift: float = 0.0, random_state: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(random_state)
    a = rng.random(n)
    return a, a + rng.normal(shift, 0.2, n)


def brute_force_p(d: np.ndarray) -> float:
    """All sign assignments of integer differences, in exact arithmetic."""
    d = [int(x) for x in d]
    sums = [sum(s * x for s, x in zip(signs, d, strict=True)) for signs in itertools.product((1, -1), repeat=len(d))]
    return sum(abs(s) >= abs(sum(d)) for s in sums) / len(sums)


# ---------------------------------------------------------------- t-test
@pytest.mark.parametrize("n", [2, 3, 50, 1000])
def test_t_test_is_scipys(n: int) -> None:
    a, b = two_systems(n, 0.02)
    ours, theirs = t_test(a, b), stats.ttest_rel(a, b)
    interval = theirs.confidence_interval(0.95)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-10)
    assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high), rel=1e-10)
    assert ours.difference == pytest.approx(np.mean(a - b))


def test_t_interval_follows_the_level() -> None:
    a, b = two_systems(30)
    interval = stats.ttest_rel(a, b).confidence_interval(0.99)
    ours = t_test(a, b, level=0.01)
    assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high), rel=1e-10)


def test_t_test_drops_pairs_with_nan_on_either_side() -> None:
    a, b = two_systems(20)
    a_gap, b_gap = a.copy(), b.copy()
    a_gap[3] = b_gap[7] = np.nan
    kept = [i for i in range(20) if i not in (3, 7)]
    assert t_test(a_gap, b_gap) == t_test(a[kept], b[kept])
    assert t_test(a_gap, b_gap).n == 18


def test_large_sample_is_the_papers_criterion() -> None:
    # Ratio 1.96 is p = 0.05 for the papers' thousands of queries.
    n = 100_000
    d = np.tile([1.0, -1.0], n // 2)
    ratio = 1.96
    d += ratio / math.sqrt(n)
    result = t_test(d, np.zeros(n))
    assert result.statistic == pytest.approx(ratio, rel=1e-4)
    assert result.p == pytest.approx(0.05, abs=1e-4)


def test_integer_weights_give_the_mean_of_repeated_queries() -> None:
    a, b = two_systems(12)
    w = np.arange(12) % 4
    repeated = np.repeat(a - b, w)
    for test in ALL_TESTS:
        assert test(a, b, weights=w).difference == pytest.approx(repeated.mean())
        assert test(a, b, weights=w).n == 9


def test_equal_weights_change_nothing() -> None:
    a, b = two_systems(40, 0.03)
    for test in ALL_TESTS:
        plain, weighted = test(a, b), test(a, b, weights=np.full(40, 3.0))
        assert weighted.p == pytest.approx(plain.p, abs=1e-9)
        assert (weighted.low, weighted.high) == pytest.approx((plain.low, plain.high))


# ---------------------------------------------------------------- randomization test
@settings(deadline=None, max_examples=60)
@given(values, st.randoms())
def test_exact_randomization_is_full_enumeration(d: list[int], random) -> None:
    d = np.array([x * random.choice((1, -1)) for x in d], dtype=float)
    # Tenths make the sums inexact, so that ties of sums depend on the tolerance.
    result = randomization_test(0.1 * d, np.zeros(len(d)))
    assert result.p == brute_force_p(d)


def test_randomization_agrees_with_scipy() -> None:
    a, b = two_systems(9, 0.1)
    theirs = stats.permutation_test((a - b,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert randomization_test(a, b).p == pytest.approx(theirs.pvalue)


def test_zero_differences_do_not_count_towards_the_exact_limit() -> None:
    d = np.concatenate((np.arange(1.0, 13.0), np.zeros(500)))
    result = randomization_test(d, np.zeros(512))
    assert (result.note, result.p) == ("exact", 2 / 4096)


def test_sampled_randomization_is_near_the_exact_p() -> None:
    d = np.array([3, 1, -2, 5, 4, -1, 2, 2, -3, 1, 4, -2, 1, 3.0])  # 14: beyond enumeration
    exact = brute_force_p(d)
    resamples = 20_000
    sampled = randomization_test(d, np.zeros(14), resamples=resamples, random_state=1).p
    five_sigma = 5 * math.sqrt(exact * (1 - exact) / resamples)
    assert sampled == pytest.approx(exact, abs=five_sigma)


def test_sampled_p_is_never_zero() -> None:
    assert randomization_test(np.arange(1.0, 101.0), np.zeros(100), resamples=999).p == 1 / 1000


@pytest.mark.parametrize("test", [randomization_test, bootstrap_test])
def test_blocks_do_not_change_the_result(test, monkeypatch) -> None:
    # 16 differences fill whole random words, so the stream does not depend on where blocks end.
    a, b = two_systems(16, 0.05)
    whole = test(a, b, resamples=500)
    monkeypatch.setattr("gradrank.evaluation.significance._BLOCK_ELEMENTS", 64)
    assert test(a, b, resamples=500).p == whole.p


@pytest.mark.parametrize("test", [randomization_test, bootstrap_test])
def test_memory_is_bounded(test) -> None:
    a, b = two_systems(100_000)
    tracemalloc.start()
    try:
        test(a, b, resamples=50)  # 50 × 100,000 doubles at once would be 40 MB
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6


@pytest.mark.parametrize("test", [randomization_test, bootstrap_test])
def test_seed_decides(test) -> None:
    a, b = two_systems(100, 0.02)
    assert test(a, b, random_state=3) == test(a, b, random_state=3)
    assert test(a, b, random_state=3).p != test(a, b, random_state=4).p


# ---------------------------------------------------------------- bootstrap
def test_bootstrap_interval_agrees_with_scipy() -> None:
    a, b = two_systems(200, 0.03)
    d = a - b
    theirs = stats.bootstrap((d,), np.mean, n_resamples=20_000, method="percentile", rng=5).confidence_interval
    ours = bootstrap_test(a, b, resamples=20_000)
    # Monte Carlo error of a percentile end at 20,000 resamples is about 2 % of the standard error.
    error = standard_error(d)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.1 * error)


def test_bootstrap_p_agrees_with_its_interval() -> None:
    for random_state in range(20):
        a, b = two_systems(60, 0.05, random_state)
        result = bootstrap_test(a, b, resamples=2000)
        if abs(result.p - 0.05) > 0.005:
            assert (result.p < 0.05) == (not result.low <= 0 <= result.high)


def test_bootstrap_p_is_near_the_t_tests_for_many_queries() -> None:
    a, b = two_systems(2000, 0.01)
    assert bootstrap_test(a, b).p == pytest.approx(t_test(a, b).p, abs=0.02)


# ---------------------------------------------------------------- edge cases
@pytest.mark.parametrize("test", ALL_TESTS)
class TestEdges:
    def test_equal_systems(self, test) -> None:
        result = test([0.5, 0.25, 0.75], [0.5, 0.25, 0.75])
        assert (result.p, result.difference, result.low, result.high) == (1.0, 0.0, 0.0, 0.0)
        assert result.note == "no query differs"

    def test_rounding_is_no_difference(self, test) -> None:
        assert test([0.1 + 0.2, 0.5], [0.3, 0.5]).p == 1.0

    def test_one_query_is_no_test(self, test) -> None:
        result = test([0.5], [0.25])
        assert result.n == 1
        assert result.difference == 0.25
        assert math.isnan(result.p) or result.p == 1.0
        assert math.isnan(result.low)
        assert result.note == "only one query: no test is possible"

    def test_no_common_query(self, test) -> None:
        result = test([0.5, np.nan], [np.nan, 0.5])
        assert result.n == 0
        assert math.isnan(result.p)
        assert math.isnan(result.difference)

    def test_swapping_the_systems_changes_the_sign_only(self, test) -> None:
        a, b = two_systems(25, 0.05)
        one, other = test(a, b), test(b, a)
        assert one.difference == pytest.approx(-other.difference)
        assert one.p == pytest.approx(other.p, abs=1e-3)

    def test_wrong_input(self, test) -> None:
        with pytest.raises(DataError, match=r"shapes \(2,\) and \(3,\)"):
            test([1, 2], [1, 2, 3])
        with pytest.raises(DataError, match="infinite"):
            test([1, np.inf], [1, 2])
        with pytest.raises(DataError, match=r"level is 1\.5"):
            test([1, 2], [1, 3], level=1.5)
        with pytest.raises(DataError, match="weights"):
            test([1, 2], [1, 3], weights=[1, -1])
        with pytest.raises(DataError, match="a holds something that is not a number"):
            test(["x", "y"], [1, 2])
        with pytest.raises(DataError, match="b holds rows of different lengths"):
            test([1, 2], [[1], [1, 2]])
        with pytest.raises(DataError, match="a holds values under a mask"):
            test(np.ma.masked_array([1.0, 2.0], mask=[True, False]), [1, 2])

    def test_values_of_the_same_queries_in_another_order(self, test) -> None:
        a, b = two_systems(12, 0.1)
        one, other = pd.Series(a, index=list("abcdefghijkl")), pd.Series(b, index=list("abcdefghijkl"))
        assert test(one, other) == test(a, b)
        with pytest.raises(DataError, match="b has the rows of a in another order"):
            test(one, other[::-1])
        with pytest.raises(DataError, match="weights has the rows of a in another order"):
            test(one, other, weights=pd.Series(1.0, index=one.index[::-1]))


@pytest.mark.parametrize("p", [0.01, [[0.01, 0.02]], [0.5, 1.5], [-0.1], ["x"], [0.1, np.inf]])
def test_what_are_no_p_values(p) -> None:
    with pytest.raises(DataError, match="p-values"):
        holm(p)


def test_the_same_difference_everywhere_is_certain_for_the_t_test() -> None:
    result = t_test([0.75, 0.5], [0.5, 0.25])
    assert (result.p, result.statistic, result.low, result.high) == (0.0, math.inf, 0.25, 0.25)


def test_resamples_must_be_positive() -> None:
    with pytest.raises(DataError, match="resamples is 0"):
        randomization_test([1, 2], [1, 3], resamples=0)


def test_differences_keep_small_values_that_are_not_noise() -> None:
    assert differences([1e-15, 1.0], [0.0, 1.0]).tolist() == [1e-15, 0.0]


def test_interval_of_a_mean_is_scipys() -> None:
    sample = np.array([0.2, 0.4, 0.9, 0.3, 0.7])
    expected = stats.t.interval(0.95, 4, sample.mean(), stats.sem(sample))
    assert t_interval(sample.mean(), standard_error(sample), 5) == pytest.approx(expected)


# ---------------------------------------------------------------- Holm
def test_holm_hand_worked() -> None:
    # Sorted .005 .01 .03 .04 → ×4 ×3 ×2 ×1 = .02 .03 .06 .04, the last lifted to .06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_caps_at_one_and_skips_nan() -> None:
    assert holm([0.6, np.nan, 0.7, 0.01]) == pytest.approx([1.0, np.nan, 1.0, 0.03], nan_ok=True)
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 0.5))
def test_holm_rejects_as_the_step_down_procedure(p_values: list[float], level: float) -> None:
    rejected = set()
    for step, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] * (len(p_values) - step) > level:
            break
        rejected.add(index)
    assert {i for i, p in enumerate(holm(p_values)) if p <= level} == rejected
