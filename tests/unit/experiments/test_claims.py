"""Claims of papers: tests over queries and runs against SciPy's and against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gradrank.experiments.claims import (
    Claim,
    Sample,
    alike,
    estimate,
    gains_less,
    higher,
    joined,
    not_lower,
    number,
    overall,
    verdict_table,
    verdicts,
)

RNG = np.random.default_rng(5)
A, B = RNG.normal(0.5, 0.2, 200), RNG.normal(0.45, 0.2, 200)


def test_one_run_is_the_paired_t_test() -> None:
    claim = higher("NDCG", "a", "b", A, B)
    expected = stats.ttest_rel(A, B)
    assert claim.p_values()[0] == pytest.approx(expected.pvalue)
    assert claim.interval() == pytest.approx(tuple(expected.confidence_interval()))
    # The other way round it speaks against the claim with the same strength.
    assert higher("NDCG", "b", "a", B, A).p_values() == pytest.approx((1.0, expected.pvalue))


def test_numbers_of_several_runs_are_a_t_test_over_runs() -> None:
    values = [0.7, 0.75, 0.72, 0.78]
    claim = joined([number("high", "share", value, above=0.6) for value in values])
    assert claim.p_values()[0] == pytest.approx(stats.ttest_1samp(values, 0.6).pvalue)


def test_a_single_number_is_simply_compared() -> None:
    assert verdicts([number("high", "share", 0.7, above=0.6)]) == [("holds", 0.0)]
    assert verdicts([number("low", "share", 0.7, below=0.6)]) == [("does not hold", 0.0)]


def test_runs_that_differ_count_as_observations_and_runs_that_do_not_are_pooled() -> None:
    # Means far apart for what their queries say: only the three runs count.
    apart = [Sample(0.1, 0.001, 500), Sample(0.2, 0.001, 500), Sample(0.3, 0.001, 500)]
    found = estimate(apart)
    assert (found.mean, found.degrees) == (pytest.approx(0.2), 2.0)
    assert found.standard_error == pytest.approx(0.1 / np.sqrt(3))
    # Equal means: (2·0 + 1497·0.01²)/1499 is the pooled variance of a run's mean.
    alike_runs = [Sample(0.2, 0.01, 500)] * 3
    found = estimate(alike_runs)
    assert found.degrees == 1499.0
    assert found.standard_error == pytest.approx(np.sqrt(1497 * 0.01**2 / 1499 / 3))


def test_a_random_effect_of_runs_is_not_taken_for_a_finding() -> None:
    """Runs that differ among themselves around 0: a test that pools all queries would find something almost always."""
    found = naive = 0
    trials = 300
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        runs = [rng.normal(rng.normal(0.0, 0.1), 0.1, 400) for _ in range(3)]
        claim = joined([higher("NDCG", "a", "b", run, np.zeros(400)) for run in runs])
        found += min(claim.p_values()) < 0.05
        naive += stats.ttest_1samp(np.concatenate(runs), 0.0).pvalue < 0.05
    assert naive > 0.7 * trials
    # 5 %, and three standard errors of a share of so many trials.
    assert found < (0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)) * trials


def test_margins() -> None:
    small = RNG.normal(0.0, 0.01, 400)
    base = np.full(400, 0.5)
    assert verdicts([not_lower("NDCG", "a", "b", base + small, base, margin=0.02)])[0][0] == "holds"
    assert verdicts([not_lower("NDCG", "a", "b", base + small - 0.05, base, margin=0.02)])[0][0] == "does not hold"
    assert verdicts([alike("NDCG", "a", "b", base + small, base, margin=0.01)])[0][0] == "holds"
    assert verdicts([alike("NDCG", "a", "b", base + small + 0.05, base, margin=0.01)])[0][0] == "does not hold"
    assert verdicts([gains_less("NDCG", "a", "b", base + small, base, margin=0.01)])[0][0] == "holds"
    wide = np.array([0.3, -0.3] * 10)
    assert verdicts([alike("NDCG", "a", "b", 0.5 + wide, np.full(20, 0.5), margin=0.01)])[0][0] == "undecided"


def test_a_finding_holds_only_if_all_of_its_claims_do() -> None:
    yes, no = number("y", "share", 0.7, above=0.6), number("n", "share", 0.5, above=0.6)
    unsure = higher("NDCG", "a", "b", A[:3], B[:3])
    assert overall([yes, yes]) == "holds"
    assert overall([yes, unsure]) == "undecided"
    assert overall([yes, unsure, no]) == "does not hold"


def test_corrected_for_their_number() -> None:
    claims = [higher("NDCG", "a", "b", A, B)] + [higher("NDCG", "x", "y", B[:50], B[50:100])] * 9
    assert verdicts(claims)[0][1] == pytest.approx(10 * stats.ttest_rel(A, B).pvalue)


def test_goes_through_json_and_into_a_table() -> None:
    claim = higher("NDCG", "a", "b", A, B)
    assert Claim.from_dict(claim.to_dict()) == claim
    (row,) = verdict_table([claim]).records()
    assert row["mean"] == pytest.approx((A - B).mean())


def test_queries_without_a_value_are_left_out() -> None:
    with_nan = np.append(A, np.nan)
    assert higher("NDCG", "a", "b", with_nan, np.append(B, 0.1)).samples == higher("NDCG", "a", "b", A, B).samples
    assert verdicts([higher("NDCG", "a", "b", [np.nan], [0.1])])[0][0] == "undecided"
