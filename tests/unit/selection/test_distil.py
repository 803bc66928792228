"""A portfolio at about the cost of one model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.errors import DataError
from gradrank.measures import NDCG
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.objectives import Differences
from gradrank.selection import distil as distil_module
from gradrank.selection.auto import AutoResult, auto
from gradrank.selection.distil import LEAVES, Distilled, Served, distil

SETS = make_splits(120, n_docs=10, n_features=5, random_state=2)


@pytest.fixture(scope="module")
def result() -> AutoResult:
    return auto(SETS["train"], SETS["vali"], NDCG(10), most=2, folds=2)


@pytest.fixture(scope="module")
def distilled(result: AutoResult) -> Distilled:
    return distil(result, NDCG(10), 0.3, budget=1e-6)


def test_as_many_trees_as_allowed_and_the_best_of_them(result: AutoResult, distilled: Distilled) -> None:
    plain = result.members[0].parts[0][1]
    assert isinstance(plain, TreeEnsemble)
    assert distilled.most_trees == int(0.3 * len(plain.trees))
    assert isinstance(distilled.ranker, TreeEnsemble)
    assert len(distilled.ranker.trees) <= distilled.most_trees
    allowed = [point for point in distilled.curve if point.trees <= distilled.most_trees]
    (student,) = [point for point in allowed if point.name.startswith("student")]
    assert distilled.chosen == student.name, "there was time for one only"


def test_a_student_ranks_far_better_than_chance_and_as_it_was_judged(distilled: Distilled) -> None:
    (student,) = [point for point in distilled.curve if point.name.startswith("student")]
    test = SETS["test"]
    chance = NDCG(10).mean(np.random.default_rng(0).normal(size=test.n_docs), test)
    found = NDCG(10).mean(student.make().predict(test), test)
    assert found > chance + 0.2
    assert found == pytest.approx(student.value, abs=0.06)


def test_a_member_must_be_ahead_by_more_than_chance_explains() -> None:
    rng = np.random.default_rng(0)
    base, data = rng.uniform(0.2, 0.8, 400), replace(SETS["train"], weight=None)

    def served(name: str, ahead: float, noise: float) -> Served:
        values = base + ahead + rng.normal(0.0, noise, 400)
        return Served(name, float(values.mean()), 10, 1.0, lambda: pytest.fail("not to be made"), values)

    students = [replace(served("far", 0.001, 0.0), distance=2.0), replace(served("student", 0.0, 0.0), distance=1.0)]
    lucky = [served(f"member {number}", 0.0, 0.1) for number in range(40)]
    assert max(member.value for member in lucky) > base.mean() + 0.008
    assert distil_module._chosen(students, lucky, data).name == "student"
    assert distil_module._chosen(students, [], data).name == "student"
    better = [served("better", 0.02, 0.1), served("best", 0.05, 0.1)]
    assert distil_module._chosen(students, [*lucky, *better], data).name == "best"


def test_curve_has_cost_and_value_of_what_could_be_served(result: AutoResult, distilled: Distilled) -> None:
    trees = [point.trees for point in distilled.curve]
    assert trees == sorted(trees)
    by_name = {point.name: point for point in distilled.curve}
    assert by_name["plain"].value == result.rows[0].value
    assert by_name["sum of all"].value == result.values["NDCG@10"]
    assert all(point.microseconds > 0.0 for point in distilled.curve)
    facts = distilled.ranker.training["distilled"]
    assert facts["chosen"] == distilled.chosen
    assert len(facts["curve"]) == len(trees)


def test_a_student_of_the_function_says_what_the_portfolio_says(result: AutoResult) -> None:
    """On documents that neither has seen; a model of as many trees that learned from labels is further from it."""
    test = SETS["test"]
    room = distil_module._Classroom(result, NDCG(10).bind(result.judged_on), 60, 60.0, None)
    assert room._function.data.n_docs >= 10_000 > result.pool.n_docs, "few documents are made more"
    served = room.taught(LEAVES[0])
    loss = Differences("teacher").bind(test.with_label("teacher", result.ranker.predict(test))).loss

    def distance(scores: np.ndarray) -> float:
        factor = min(np.linspace(0.1, 10.0, 200), key=lambda each: loss(each * scores))
        return loss(factor * scores) / loss(0.0 * scores)

    plain = result.members[0].parts[0][1]
    assert distance(served.make().predict(test)) < 0.5 * distance(plain.predict(test))
    assert served.distance < room.taught(2).distance


def test_judges_are_taught_by_models_that_have_not_seen_the_fold(result: AutoResult) -> None:
    room = distil_module._Classroom(result, NDCG(10).bind(result.judged_on), 20, 1.0, None)
    function = room._function
    shown = slice(0, 50)
    whole = result.ranker.predict(function.data.X[shown])
    np.testing.assert_allclose(function.scores(None)[shown], whole, atol=1e-9)
    for fold in range(result.folds):
        expected = np.zeros(50)
        for weight, member in zip(result.blend.weights, result.members, strict=True):
            own = len(member.parts) // result.folds
            for factor, ranker in member.parts[fold * own : (fold + 1) * own]:
                expected += weight * factor * result.folds * ranker.predict(function.data.X[shown])
        np.testing.assert_allclose(function.scores(fold)[shown], expected, atol=1e-9)


def test_judges_learn_only_from_models_and_queries_outside_of_the_fold(
    result: AutoResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models that have seen the fold say the opposite of the others, and so do all of the fold's own queries."""
    room = distil_module._Classroom(result, NDCG(10).bind(result.judged_on), 20, 1.0, None)
    function, wanted = room._function, 0
    signal = function.data.X[:, 0].astype(np.float64)
    own = np.repeat(room._part[function.origin] == wanted, function.data.sizes)
    by_fold = np.array([np.where(own, -50.0, 1.0) * signal, -3.0 * signal])
    assert result.folds == 2
    monkeypatch.setattr(room, "_function", replace(function, by_fold=by_fold))
    rows = np.zeros((2, result.pool.n_features))
    rows[1, 0] = 1.0
    low, high = room._lesson(room._student(15), wanted).predict(rows)
    assert high > low + 0.5
    low, high = room._lesson(room._student(15), None).predict(rows)
    assert high < low - 0.5


def test_queries_that_stay_apart_judge() -> None:
    apart = auto(SETS["train"], SETS["vali"], NDCG(10), most=1, folds=2, apart=True)
    found = distil(apart, NDCG(10), 0.2, budget=1e-6)
    (student,) = [point for point in found.curve if point.name.startswith("student")]
    assert student.value == pytest.approx(NDCG(10).mean(student.make().predict(SETS["vali"]), SETS["vali"]))


def test_bad_factor(result: AutoResult) -> None:
    with pytest.raises(DataError, match=r"factor is 0\.0, expected a positive number"):
        distil(result, NDCG(10), 0.0)
