"""The verdict says who wins, by how much, and how sure that is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gradrank.data.strings import Strings
from gradrank.evaluation import Evaluation, LabelFacts, compare
from gradrank.measures import parse_measure
from gradrank.report.headline import headline

NDCG = parse_measure("NDCG@10")


def evaluation(**values: list[float]) -> Evaluation:
    count = len(next(iter(values.values())))
    return Evaluation(
        Strings.of(f"q{i}" for i in range(count)),
        (NDCG,),
        {name: {NDCG: np.array(column)} for name, column in values.items()},
        {"label": LabelFacts(count, 0, 0, 0, 0)},
    )


LOW = [0.30, 0.40, 0.50, 0.20, 0.10, 0.60]
HIGH = [0.52, 0.61, 0.69, 0.43, 0.31, 0.78]
MIDDLE = [0.51, 0.62, 0.68, 0.44, 0.30, 0.79]


def test_a_significant_win() -> None:
    result = evaluation(old=LOW, new=HIGH)
    top = headline(result, compare(result))
    # Means 0.35 and 0.5567; differences .22 .21 .19 .23 .21 .18.
    assert top.sentence == (
        "new beats old by 0.2067 NDCG@10 (0.5567 against 0.3500, +59.0%) over 6 queries: "
        "a significant difference, p < 0.0001."
    )
    low, high = stats.ttest_rel(HIGH, LOW).confidence_interval(0.95)
    assert top.details == (
        f"The difference is between +{low:.4f} and +{high:.4f} (95 % interval). "
        "new is better on 6 queries, equal on 0, worse on 0.",
    )
    assert top.system == "new"


def test_the_runner_up_is_tested_too() -> None:
    result = evaluation(old=LOW, near=MIDDLE, new=[value + 0.001 for value in HIGH])
    p = stats.ttest_rel([value + 0.001 for value in HIGH], MIDDLE).pvalue
    assert headline(result, compare(result)).details[1] == (
        f"The runner-up, near, is 0.0010 behind new: not significant, p = {p:.4f} (paired t-test of this one pair)."
    )


def test_a_win_that_may_be_chance() -> None:
    result = evaluation(old=HIGH, new=[0.9, 0.5, 0.9, 0.3, 0.4, 0.8])
    p = stats.ttest_rel([0.9, 0.5, 0.9, 0.3, 0.4, 0.8], HIGH).pvalue
    assert headline(result, compare(result)).sentence == (
        "No system is significantly better than old by NDCG@10: the best, new, is 0.0767 higher "
        f"(0.6333 against 0.5567, +13.8%) over 6 queries, p = {p:.4f}."
    )


def test_the_baseline_stays_ahead() -> None:
    result = evaluation(old=HIGH, worst=[0.0] * 6, new=LOW)
    assert headline(result, compare(result)).sentence == (
        "old stays ahead by NDCG@10: the closest, new, is 0.2067 lower (0.3500 against 0.5567, -37.1%) over 6 queries, "
        "a significant difference, p < 0.0001."
    )


def test_the_same_system_twice() -> None:
    result = evaluation(old=LOW, new=LOW)
    assert headline(result, compare(result)).sentence == (
        "No system is better than old by NDCG@10: new has the same mean over 6 queries, p = 1.0000."
    )


def test_without_a_comparison() -> None:
    assert headline(evaluation(old=LOW, new=HIGH), None).sentence == (
        "new has the highest NDCG@10, 0.5567 over 6 queries; significance was not tested."
    )


def test_one_system() -> None:
    low, high = stats.t.interval(0.95, 5, np.mean(LOW), stats.sem(LOW))
    assert headline(evaluation(only=LOW), None).sentence == (
        f"only reaches NDCG@10 0.3500 (95 % interval {low:.4f} to {high:.4f}) over 6 queries."
    )


@pytest.mark.parametrize("compared", [True, False])
def test_no_query_can_be_evaluated(compared: bool) -> None:
    result = evaluation(old=[np.nan] * 3, new=[np.nan] * 3)
    assert headline(result, compare(result) if compared else None).sentence == "No query can be evaluated by NDCG@10."


def test_one_query() -> None:
    result = evaluation(old=[0.5], new=[1.0])
    assert "over 1 query, p unknown" in headline(result, compare(result)).sentence
