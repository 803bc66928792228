"""Improving one measure while others are kept: the walk, its tests and its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from gradrank.data.artificial import make_splits
from gradrank.errors import GradrankError
from gradrank.evaluation import evaluate
from gradrank.learners import LambdaMART
from gradrank.measures import CNDCG, MRR, NDCG
from gradrank.models.feature import FeatureRanker
from gradrank.objectives import Scheduled, Tiered
from gradrank.report.walk import walk_figure
from gradrank.selection.constrained import _lower_bound, _members, improve
from gradrank.selection.improvement import Improvement
from gradrank.selection.keep import Keep

DATA = make_splits(240, n_docs=10, n_features=6, random_state=4, noise=0.2, clicks=True)
GOAL = CNDCG(3, label="clicks")


def run(keep: Any = "NDCG@10 >= 97%", goal: Any = GOAL, **options: Any) -> Improvement:
    learner = LambdaMART(n_estimators=15, learning_rate=0.2, n_jobs=1)
    return improve(learner, DATA["train"], DATA["vali"], goal, keep, held_out=DATA["test"], **options)


@pytest.fixture(scope="module")
def found() -> Improvement:
    return run()


def test_the_chosen_ranker_is_the_mixture_and_passes_the_test(found: Improvement) -> None:
    start = found.rankers["w=0"]
    values = evaluate(DATA["test"], {"start": start, "chosen": found.ranker}, [GOAL, NDCG(10)]).values
    excess = values["chosen"][NDCG(10)] - 0.97 * values["start"][NDCG(10)]
    excess = excess[~np.isnan(excess)]
    # An independent one-sided test: the mean is above 0 at level 0.05.
    assert stats.ttest_1samp(excess, 0.0, alternative="greater").pvalue <= 0.05
    assert np.nanmean(values["chosen"][GOAL]) == pytest.approx(found.chosen.goal)
    assert found.chosen.goal > np.nanmean(values["start"][GOAL]) + 0.01
    assert found.ranker.training["improvement"]["keep"] == ["NDCG@10 >= 97%"]


def test_the_walk_ends_at_the_first_point_that_fails(found: Improvement) -> None:
    assert [stop.holds for stop in found.stops[:-1]] == [True] * (len(found.stops) - 1)
    assert not found.stops[-1].holds
    assert found.chosen.goal == max(stop.goal for stop in found.stops if stop.holds)
    order = list(found.rankers)
    walked = [(order.index(stop.first), stop.share) for stop in found.stops]
    assert walked == sorted(walked)
    assert "is chosen: NDCG@10 >= 97% holds with 95 % confidence" in found.sentence()
    assert len(walk_figure(found).axes) == 2


def test_a_stricter_constraint_gains_less(found: Improvement) -> None:
    strict = run(["NDCG@10 >= 99%", "NDCG@3 >= 97%"])
    assert strict.stops[0].goal <= strict.chosen.goal <= found.chosen.goal
    assert len(strict.chosen.bounds) == 2
    # Nothing can be shown to lose nothing at all: the baseline stays.
    nothing = run("NDCG@10 >= 100%", level=0.001)
    assert nothing.ranker is nothing.rankers["w=0"] or nothing.chosen.bounds[0] >= 0


def test_bounds_are_those_of_a_t_test() -> None:
    values = np.random.default_rng(2).normal(0.1, 1.0, 50)
    expected = stats.ttest_1samp(values, 0.0, alternative="greater").confidence_interval(0.95).low
    assert _lower_bound(np.append(values, np.nan), 0.05) == pytest.approx(expected)
    assert _lower_bound(np.array([0.5]), 0.05) == -np.inf


def test_what_is_trained() -> None:
    keeps = [Keep.parse("NDCG@10 >= 99%"), Keep.parse("MRR >= 0.1")]
    members = _members(keeps, GOAL, [0.7, 0.3])
    assert list(members) == ["w=0", "w=0.3", "w=0.7", "w=1"]
    mixed = members["w=0.3"][0]
    assert isinstance(mixed, Tiered)
    assert mixed.weights == (0.7, 0.3)
    # Both measures read the grades: tiers would leave the second nothing to decide.
    same = _members(keeps[:1], MRR(), [0.4])["w=0.4"][0]
    assert isinstance(same, Scheduled)
    assert [same.weight(step) for step in (0, 50)] == [0.4, 0.4]


def test_a_baseline_of_the_users_own() -> None:
    own = FeatureRanker(DATA["train"].feature_names[0])
    found = run("NDCG@10 >= 100%", baseline=own)
    assert next(iter(found.rankers)) == "baseline"
    # A model that has learned anything beats a feature by far: the walk does not end beside it.
    assert found.chosen.first != "baseline"
    assert found.chosen.goal > found.stops[0].goal


def test_half_of_the_validation_queries_is_set_aside() -> None:
    learner = LambdaMART(n_estimators=3, n_jobs=1)
    found = improve(learner, DATA["train"], DATA["vali"], GOAL, "NDCG@10 >= 50%", random_state=3)
    assert found.queries == DATA["vali"].n_queries - DATA["vali"].n_queries // 2
    assert found.rankers["w=0"].training["best"] <= 3


def test_finished_rankers_are_not_trained_again(tmp_path) -> None:
    whole = run(folder=tmp_path)
    names: list[str] = []

    def none(name: str, *_: Any) -> None:
        names.append(name)

    again = run(folder=tmp_path, fit=none)
    assert names == []
    assert again.chosen == whole.chosen


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "NDCG@10 > 99%"}, "is no constraint, expected one like"),
        ({"keep": "NDCG@10 >= 101%"}, "expected a share above 0 and up to 100%"),
        ({"keep": "Graded(NDCG, MAP) >= 99%"}, "expected one measure"),
        ({"keep": []}, "nothing to keep"),
        ({"keep": "NDCG@10 >= 0.999"}, "the baseline itself does not keep NDCG@10 >= 0.999"),
        ({"goal": "Graded(NDCG, MAP)"}, "the goal is Graded"),
        ({"level": 0.7}, "the level is 0.7"),
        ({"weights": [1.0]}, "expected numbers between 0 and 1"),
    ],
)
def test_wrong_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        run(**options)
