"""The choice: tier by tier, with the tests that other tools compute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gradrank.data import RankingData
from gradrank.errors import GradrankError
from gradrank.evaluation import Evaluation
from gradrank.measures import CNDCG, MAP, NDCG, Graded
from gradrank.selection.choice import choose

TIERS = (NDCG(3), CNDCG(3), MAP())


def evaluation_of(values: dict[str, np.ndarray]) -> Evaluation:
    """Systems with given values: tiers × queries each."""
    queries = next(iter(values.values())).shape[1]
    data = RankingData.from_arrays(np.zeros((queries, 1)), np.zeros(queries), qid=np.arange(queries))
    measures = TIERS[: len(next(iter(values.values())))]
    by_system = {name: dict(zip(measures, rows, strict=True)) for name, rows in values.items()}
    return Evaluation(data.qid, measures, by_system, {})


def by_definition(values: dict[str, np.ndarray], level: float) -> str:
    left = list(values)
    tiers = len(values[left[0]])
    for tier in range(tiers - 1):
        reference = left[0] if tier == 0 else max(left, key=lambda name: values[name][tier].mean())
        left = [
            name
            for name in left
            if name == reference
            or values[name][tier].mean() >= values[reference][tier].mean()
            or not stats.ttest_rel(values[name][tier], values[reference][tier]).pvalue < level
        ]
    return max(left, key=lambda name: values[name][-1].mean())


@given(random_state=st.integers(0, 400), tiers=st.integers(1, 3), level=st.sampled_from([0.01, 0.05, 0.3]))
def test_the_rule_by_definition(random_state: int, tiers: int, level: float) -> None:
    rng = np.random.default_rng(random_state)
    common = rng.random((tiers, 30))
    values = {
        f"s{number}": common + 0.1 * rng.standard_normal((tiers, 30)) + 0.05 * rng.standard_normal((tiers, 1))
        for number in range(5)
    }
    choice = choose(evaluation_of(values), level=level)
    assert choice.system == by_definition(values, level)
    assert list(choice.reasons) == list(values)


def shifted(first: float, second: float) -> np.ndarray:
    """Two tiers of 40 queries; both differ from the baseline by a mean shift with little noise."""
    noise = np.tile([-0.01, 0.01], 20)
    return np.array([np.full(40, 0.5) + first + noise, np.full(40, 0.4) + second + noise])


BASE = {"w=0": np.array([np.full(40, 0.5), np.full(40, 0.4)])}


def test_a_system_that_harms_the_trusted_measure_is_never_chosen() -> None:
    choice = choose(evaluation_of({**BASE, "greedy": shifted(-0.05, 0.3), "kind": shifted(0.0, 0.1)}))
    assert choice.system == "kind"
    assert "significantly below w=0" in choice.reasons["greedy"]
    assert "not significantly below w=0 at level 0.05, and its CNDCG@3 is 0.5000" in choice.sentence()


def test_the_baseline_is_kept_if_nothing_else_is_left() -> None:
    choice = choose(evaluation_of({**BASE, "greedy": shifted(-0.05, 0.3)}))
    assert choice.system == "w=0"
    assert choice.sentence().startswith("w=0 is kept: its CNDCG@3 is 0.4000; no other system")


def test_a_better_trusted_measure_does_not_win_over_the_second() -> None:
    choice = choose(evaluation_of({**BASE, "graded": shifted(0.0, 0.1), "better": shifted(0.2, 0.05)}))
    assert choice.system == "graded"


def test_with_a_margin_harm_must_be_ruled_out() -> None:
    rng = np.random.default_rng(0)
    # Few noisy queries: nothing is significant, and nothing is ruled out.
    values = {"a": rng.random((2, 8)), "b": rng.random((2, 8))}
    values["a"][0] += 0.1
    values["b"][1] += 1.0
    assert choose(evaluation_of(values)).system == "b"
    choice = choose(evaluation_of(values), margin=0.01)
    assert choice.system == "a"
    assert "may be more than 0.01 below a" in choice.reasons["b"]
    assert choose(evaluation_of({**BASE, "kind": shifted(-0.001, 0.1)}), margin=0.01).system == "kind"
    assert choose(evaluation_of({**BASE, "same": BASE["w=0"] + [[0.0], [0.1]]}), margin=1e-9).system == "same"


def test_the_margin_is_that_of_a_t_interval() -> None:
    rng = np.random.default_rng(3)
    values = {"a": rng.random((2, 50)), "b": rng.random((2, 50))}
    values["b"][1] += 1.0
    low = stats.ttest_rel(values["b"][0], values["a"][0]).confidence_interval(0.95).low
    assert choose(evaluation_of(values), margin=-low + 1e-6).system == "b"
    assert choose(evaluation_of(values), margin=-low - 1e-6).system == "a"


def test_queries_without_a_value_are_left_out() -> None:
    one, two = shifted(0.0, 0.1), shifted(0.0, 0.2)
    one[1, :5] = two[1, :5] = np.nan
    assert choose(evaluation_of({**BASE, "one": one, "two": two})).system == "two"
    nothing = np.full((2, 40), np.nan)
    assert choose(evaluation_of({**BASE, "nothing": nothing})).system == "w=0"


@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
def test_other_tests(test: str) -> None:
    values = {**BASE, "greedy": shifted(-0.05, 0.3), "kind": shifted(0.0, 0.1)}
    assert choose(evaluation_of(values), test=test, resamples=500).system == "kind"


def test_one_system_and_named_measures() -> None:
    assert choose(evaluation_of(BASE)).sentence() == "w=0 is kept: its CNDCG@3 is 0.4000"
    values = {**BASE, "graded": shifted(-0.1, 0.1)}
    assert choose(evaluation_of(values), Graded((CNDCG(3),))).system == "graded"
    assert choose(evaluation_of(values), baseline="graded").system == "graded"
    assert choose(evaluation_of(values)).to_dict()["measures"] == ["NDCG@3", "CNDCG@3"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": [MAP()]}, "lacks the measure MAP"),
        ({"measures": []}, "there is no measure"),
        ({"baseline": "none"}, "there is no system 'none'"),
        ({"margin": 0.0}, "the margin is 0.0"),
        ({"level": 2.0}, "significance level is 2.0"),
    ],
)
def test_wrong_requests(options: dict[str, object], message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        choose(evaluation_of({**BASE, "other": shifted(0, 0)}), **options)
