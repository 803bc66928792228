"""Searching parameters by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.data.splits import concatenate
from gradrank.errors import DataError, TrainingError
from gradrank.learners import LambdaMART
from gradrank.learners.base.loop import Step
from gradrank.learners.base.search import Options, Range, parse_search
from gradrank.measures import NDCG, parse_measure
from gradrank.selection.crossfit import parts_of
from gradrank.selection.space import space_of
from gradrank.selection.study import Study, scalar
from gradrank.selection.trials import Bar, FoldCurve, Trial, bar_of, falls_behind, rises
from gradrank.selection.tune import _facts, tune
from gradrank.selection.tuned import Tuned
from tests.support.disks import file_size_limit

pytest.importorskip("optuna")
SETS = make_splits(24, n_docs=8, n_features=4, random_state=3)
TRAIN, VALID = SETS["train"], SETS["vali"]
POOL = concatenate([TRAIN, VALID])
QUICK: dict[str, Any] = {"fixed": {"n_estimators": 6, "min_child_samples": 3}, "folds": 2, "processes": 1, "n_jobs": 1}


def facts(found: Tuned) -> list[tuple[Any, ...]]:
    """Everything of the trials that must repeat."""
    return [(trial.parameters, trial.state, trial.values, trial.folds, trial.steps) for trial in found.trials]


# ---------------------------------------------------------------- values
def test_a_fold_is_judged_at_the_number_of_trees_that_the_others_chose() -> None:
    found = tune(TRAIN, VALID, "NDCG@5", trials=1, **{**QUICK, "folds": 3})
    part = parts_of(POOL.n_queries, 3, 0)
    curves = []
    for fold in range(3):
        learner = LambdaMART("NDCG@5", **QUICK["fixed"], random_state=0)
        train, left_out = POOL.take_queries(part != fold), POOL.take_queries(part == fold)
        trees = [tree for (tree,) in learner.fit(train).trees_]
        # Step by step, without anything of the learner's own record.
        scores = np.cumsum([tree.leaf_value[_leaves(tree, left_out.X)] for tree in trees], axis=0)
        curves.append([NDCG(5).mean(left_out.in_input_order(row), left_out) for row in scores])
    expected = [curves[fold][int(np.argmax(np.mean(np.delete(curves, fold, 0), 0)))] for fold in range(3)]
    assert found.best.folds == pytest.approx(expected, abs=1e-9)
    assert found.best.value == pytest.approx(np.mean(expected), abs=1e-9)
    assert found.best.steps == int(np.argmax(np.mean(curves, 0))) + 1
    assert found.ranker.shape()["trees"] == found.best.steps == found.best_params["n_estimators"]
    by_hand = LambdaMART("NDCG@5", **{**QUICK["fixed"], "n_estimators": found.best.steps}).fit(POOL)
    np.testing.assert_array_equal(found.ranker.predict(POOL), by_hand.predict(POOL))


def _leaves(tree: Any, X: np.ndarray) -> np.ndarray:
    from gradrank.models.trees.ensemble import assign_leaves

    return assign_leaves(tree, X)


def test_data_that_stays_apart_is_not_learned_from() -> None:
    found = tune(TRAIN, VALID, "NDCG@5", trials=2, apart=True, **QUICK)
    learner = LambdaMART("NDCG@5", **QUICK["fixed"]).fit(TRAIN, valid=VALID)
    assert found.defaults.value == max(learner.record_.curves["valid"]["NDCG@5"])
    assert found.defaults.steps == learner.record_.best
    expected = LambdaMART(**found.best_params).fit(TRAIN)
    np.testing.assert_array_equal(found.ranker.predict(VALID), expected.predict(VALID))
    assert "on the validation data" in found.sentence() or found.best.defaults


# ---------------------------------------------------------------- repeating and going on
def test_it_repeats_goes_on_after_a_kill_and_takes_no_other_data(tmp_path: Path) -> None:
    alone = tune(TRAIN, VALID, "NDCG@5", trials=13, **QUICK)
    assert len(alone.trials) == 13
    assert alone.trials[0].defaults
    assert alone.best.value == max(trial.value for trial in alone.trials if trial.state == "complete")
    assert set(alone.importances) <= set(alone.space.searched)
    path = tmp_path / "study.db"
    tune(TRAIN, VALID, "NDCG@5", trials=4, storage=path, **QUICK)
    # Killed: a trial that nobody brings to an end.
    space = space_of("lambdamart", NDCG(5), fixed=QUICK["fixed"])
    with Study(space, NDCG(5), _facts(space, NDCG(5), POOL, alone.cut, True), storage=path) as study:
        study.ask()
        with pytest.raises(DataError, match="is in use by another search"):
            tune(TRAIN, VALID, "NDCG@5", trials=13, storage=path, **QUICK)
    again = tune(TRAIN, VALID, "NDCG@5", trials=13, storage=path, **QUICK)
    assert facts(again) == facts(alone)
    np.testing.assert_array_equal(again.ranker.predict(POOL), alone.ranker.predict(POOL))
    kept = path.read_bytes()
    with pytest.raises(TrainingError, match=r"study.db: belongs to another search \(data differ\); delete it"):
        tune(TRAIN, None, "NDCG@5", trials=13, storage=path, **QUICK)
    with pytest.raises(TrainingError, match=r"\(fixed, measure differ\)"):
        tune(TRAIN, VALID, "MAP", trials=13, storage=path, **QUICK)
    with pytest.raises(TrainingError, match=r"\(search differ\)"):
        tune(TRAIN, VALID, "NDCG@5", trials=13, storage=path, search={"num_leaves": "4..8"}, **QUICK)
    assert path.read_bytes() == kept


def test_a_file_that_is_no_study_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, however long it is " * 50)
    kept = path.read_bytes()
    with pytest.raises(DataError, match=r"notes.txt: is no file of a search"):
        tune(TRAIN, VALID, trials=1, storage=path, **QUICK)
    assert path.read_bytes() == kept
    with pytest.raises(DataError, match="is a folder"):
        tune(TRAIN, VALID, trials=1, storage=tmp_path, **QUICK)


def test_a_full_disk_is_one_error_and_stands_in_nobodys_way(tmp_path: Path) -> None:
    path, space = tmp_path / "s.db", space_of("lambdamart", NDCG(5), fixed=QUICK["fixed"])
    with file_size_limit(4096), pytest.raises(DataError, match=r"s\.db: cannot be written: "):
        tune(TRAIN, VALID, "NDCG@5", trials=1, storage=path, **QUICK)
    assert list(tmp_path.iterdir()) == []
    with Study(space, NDCG(5), {}, storage=path) as study:
        study.ask()
        with file_size_limit(0), pytest.raises(DataError, match=r"s\.db: cannot be written: "):
            study.ask()
    with Study(space, NDCG(5), {}, storage=path) as study:
        assert study.ask()[2]  # the defaults, which were not brought to an end


def test_processes_find_the_same_values() -> None:
    one = tune(TRAIN, VALID, "NDCG@5", trials=3, **QUICK)
    two = tune(TRAIN, VALID, "NDCG@5", trials=3, **{**QUICK, "processes": 2})
    assert len(two.trials) == 3
    assert facts(two)[0] == facts(one)[0]
    for trial in two.trials[1:]:
        same = {**trial.parameters, "n_estimators": 6}
        fixed = {name: value for name, value in same.items() if name not in ("measure", "random_state", "objective")}
        again = tune(TRAIN, VALID, "NDCG@5", trials=1, **{**QUICK, "fixed": fixed}, refit=False)
        assert again.defaults.values == trial.values


# ---------------------------------------------------------------- ending
def test_stopped_by_the_user_the_best_so_far_is_trained() -> None:
    told: list[Trial] = []
    found = tune(TRAIN, VALID, "NDCG@5", trials=50, listener=told.append, asked=lambda: len(told) == 3, **QUICK)
    assert found.interrupted
    assert len(found.trials) == 3
    assert found.ranker.shape()["trees"] == found.best.steps


def test_python_s_own_ctrl_c(tmp_path: Path) -> None:
    steps: list[Step] = []

    def interrupt(step: Step) -> None:
        steps.append(step)
        if len(steps) == 20:
            raise KeyboardInterrupt

    found = tune(TRAIN, VALID, "NDCG@5", trials=50, callbacks=[interrupt], **QUICK)
    assert found.interrupted
    # Two folds of six trees each: the second trial was at work.
    assert [trial.defaults for trial in found.trials] == [True]
    steps.clear()
    with pytest.raises(KeyboardInterrupt):
        tune(TRAIN, VALID, "NDCG@5", callbacks=[lambda step: interrupt(step) or _raise()], **QUICK)  # type: ignore[func-returns-value]


def _raise() -> None:
    raise KeyboardInterrupt


def test_a_short_budget_still_tries_the_defaults() -> None:
    found = tune(TRAIN, VALID, "NDCG@5", budget=1e-6, **QUICK)
    assert [trial.defaults for trial in found.trials] == [True]
    assert not found.interrupted
    assert "no setting is better than the defaults" in found.sentence()


# ---------------------------------------------------------------- trials that fail, fall behind or come again
def test_a_setting_that_cannot_be_trained_is_recorded() -> None:
    fixed = {**QUICK["fixed"], "step": "newton", "monotone_constraints": {"f1": 1}}
    found = tune(
        TRAIN, VALID, "NDCG@5", trials=12, search={"split": "newton|mse"}, **{**QUICK, "fixed": fixed}, refit=False
    )
    failed = [trial for trial in found.trials if trial.state == "failed"]
    assert failed
    assert {trial.parameters["split"] for trial in failed} == {"mse"}
    assert all("monotone_constraints go with" in trial.note for trial in failed)
    assert found.best.state == "complete"


def test_if_the_defaults_cannot_be_trained_the_search_ends_with_the_reason() -> None:
    with pytest.raises(TrainingError, match="one label only"):
        tune(TRAIN.with_label("label", np.ones(TRAIN.n_docs)), trials=3, **QUICK)


def test_a_finite_space_comes_to_an_end_and_nothing_is_trained_twice() -> None:
    trained: list[int] = []
    only = dict.fromkeys(("reg_lambda", "colsample_bytree", "subsample"), 1.0)
    fixed = {**QUICK["fixed"], **only, "learning_rate": 0.1}
    found = tune(
        TRAIN, VALID, "NDCG@5", search={"num_leaves": "2|5"}, budget=60.0, refit=False,
        callbacks=[lambda step: trained.append(1) if step.number == 1 else None], **{**QUICK, "fixed": fixed},
    )  # fmt: skip
    assert len(trained) == 2 * 3, "the defaults and two settings, in two folds each"
    assert {trial.parameters.get("num_leaves") for trial in found.trials} == {None, 2, 5}


def trial(*folds: list[float]) -> Trial:
    curves = [FoldCurve([[value] for value in fold], 1.0) for fold in folds]
    return Trial(0, {}, "complete", values=(0.0,), rises=tuple(map(rises, curves)))


def test_the_bar_is_the_median_of_the_best_so_far() -> None:
    done = [trial([0.1, 0.4, 0.2], [0.5]), trial([0.3], [0.1]), trial([0.0, 0.2, 0.2, 0.6], [0.9])]
    bar = bar_of(done, [])
    assert bar is not None
    # Running bests: .1 .4 .4 .4, .3 .3 .3 .3, 0 .2 .2 .6; best after 2, 1 and 4 steps.
    assert bar == Bar(2, (0.1, 0.3, 0.3, 0.4))
    assert [bar.stops(step, 0.29) for step in (1, 2, 9)] == [False, True, True]
    assert not bar.stops(3, 0.3)
    own = [FoldCurve([[0.2], [0.5]], 1.0)]
    second = bar_of(done, own)
    assert second is not None
    # Sums of both folds: .9, .4, 1.5.
    assert second.levels == pytest.approx((0.45,))
    assert not second.stops(1, 0.41), "what was good in the first fold may be worse in the second"
    assert second.stops(1, 0.39)
    assert not falls_behind(done, own)
    assert falls_behind(done, [FoldCurve([[0.39]], 1.0)])


def test_trials_that_fall_behind_are_pruned_and_say_where() -> None:
    wide = {"learning_rate": "0.000001..0.5:log"}
    found = tune(TRAIN, VALID, "NDCG@5", trials=20, search=wide, **{**QUICK, "folds": 3}, refit=False)
    pruned = [trial for trial in found.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.note.startswith("ended in fold ") and 1 <= len(trial.folds) <= 3 for trial in pruned)
    assert all(trial.state == "complete" for trial in found.trials[:5]), "not before there is something to compare with"
    kept = tune(TRAIN, VALID, "NDCG@5", trials=8, search=wide, prune=False, **QUICK, refit=False)
    assert {trial.state for trial in kept.trials} == {"complete"}


# ---------------------------------------------------------------- graded measures
def test_a_graded_measure_chooses_tier_by_tier() -> None:
    measure = parse_measure("Graded(NDCG@5, MAP, tolerance=0.5)")
    found = tune(TRAIN, VALID, measure, trials=6, **QUICK, refit=False)
    done = [trial for trial in found.trials if trial.state == "complete"]
    # So wide a tolerance leaves the whole choice to the second part.
    assert found.best.values[1] == max(trial.values[1] for trial in done)
    assert scalar((0.5, 0.25), parse_measure("Graded(NDCG@5, MAP)")) == pytest.approx(0.5 + 0.25e-6)


# ---------------------------------------------------------------- spaces
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4..128:log", Range(4, 128, log=True)),
        ("-1.5..2e1", Range(-1.5, 20.0)),
        ("relu|tanh", Options(("relu", "tanh"))),
        ("10|64,32", Options((10, "64,32"))),
        ("true|false", Options((True, False))),
    ],
)
def test_ranges_are_spelt_as_they_print(text: str, expected: Range | Options) -> None:
    assert parse_search(text) == expected
    assert parse_search(str(expected)) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": {"num_leaves": "128..4"}}, "128..4, expected its first number below"),
        ({"search": {"num_leaves": "0..4:log"}}, "expected a positive start"),
        ({"search": {"num_leaves": "1..4"}}, "num_leaves is 1, expected"),
        ({"search": {"num_leaves": "4"}}, "'4' is nothing to search"),
        ({"search": {"split": "newton|newtn"}}, "split is 'newtn', expected"),
        ({"search": {"num_leafs": "4..8"}}, "no parameter 'num_leafs'; did you mean num_leaves"),
        ({"search": {"random_state": "1..8"}}, "random_state cannot be searched"),
        ({"search": {"num_leaves": "4..8"}, "fixed": {"leaves": 3}}, "num_leaves is fixed and searched"),
        ({"fixed": {"measure": "MAP"}}, "measure cannot be fixed"),
        ({"fixed": {"learning_rate": -1}}, "learning_rate is -1, expected"),
        ({"algorithm": "ranksvm", "fixed": {"C": "auto"}}, "C is auto: the learner would choose"),
        ({"trials": 0}, "trials is 0"),
        ({"budget": -1.0}, "budget is -1.0"),
        ({"folds": 1000}, "folds is 1000, expected 2 to 36"),
    ],
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises((DataError, TrainingError)) as caught:
        tune(TRAIN, VALID, **{**QUICK, "fixed": {}, **options})
    assert message in str(caught.value)


def test_a_result_tells_what_it_is_worth() -> None:
    found = tune(TRAIN, VALID, "NDCG@5", trials=6, **QUICK, refit=False)
    better = replace(found, chosen=next(t.number for t in found.trials if not t.defaults and t.state == "complete"))
    assert "likely to be less on new queries" in better.sentence()
    assert [row[0] for row in found.table().rows] == list(range(6))
    assert found.to_dict()["best_params"] == found.best_params
    assert np.nanmax(found.best_so_far()) == found.best.value
    with pytest.raises(TrainingError, match="without a final training"):
        _ = found.ranker


# ---------------------------------------------------------------------- how trees grow
def test_each_policy_has_the_size_of_its_own_trees() -> None:
    space = space_of("lambdamart", NDCG(5))
    assert {"grow_policy", "max_depth", "num_leaves", "min_child_samples"} <= set(space.searched)
    sampled = {"num_leaves": 9, "min_child_samples": 4, "max_depth": 4, "learning_rate": 0.2}
    symmetric = space.parameters({**sampled, "grow_policy": "symmetric"})
    assert symmetric["max_depth"] == 4
    assert not {"num_leaves", "min_child_samples"} & set(symmetric)
    leaf_by_leaf = space.parameters({**sampled, "grow_policy": "lossguide"})
    assert (leaf_by_leaf["num_leaves"], leaf_by_leaf["min_child_samples"]) == (9, 4)
    assert "max_depth" not in leaf_by_leaf
    for made in (symmetric, leaf_by_leaf):
        LambdaMART(**made).check_parameters()


@pytest.mark.parametrize(
    ("how", "there", "not_there"),
    [
        ({"fixed": {"num_leaves": 15}}, {"learning_rate"}, {"grow_policy", "max_depth"}),
        ({"search": {"num_leaves": "4..32"}}, {"num_leaves"}, {"grow_policy", "max_depth"}),
        ({"fixed": {"grow_policy": "symmetric"}}, {"max_depth"}, {"num_leaves", "min_child_samples", "grow_policy"}),
        ({"fixed": {"grow_policy": "lossguide"}}, {"num_leaves"}, {"max_depth", "grow_policy"}),
        ({"fixed": {"categorical_feature": ["f1"]}}, {"num_leaves"}, {"grow_policy", "max_depth"}),
    ],
)
def test_what_is_fixed_or_asked_for_says_how_trees_grow(
    how: dict[str, Any], there: set[str], not_there: set[str]
) -> None:
    searched = set(space_of("lambdamart", NDCG(5), **how).searched)
    assert there <= searched
    assert not not_there & searched
