"""Number of trees, leaves and rate where none are given; queries that are held out to find the number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank import MART, LambdaMART, McRank, make_splits
from gradrank.data import RankingData
from gradrank.data.formats.binary import open_binary, write_binary
from gradrank.errors import TrainingError
from gradrank.learners import Step
from gradrank.learners.trees.boosting import LambdaCourse
from gradrank.learners.trees.hold_out import HELD_OUT, held_out_queries
from gradrank.learners.trees.size_rule import (
    DEFAULT_LEVELS,
    DEFAULT_PATIENCE,
    DEFAULT_RATE,
    MOST_TREES,
    default_leaves,
    default_reg_lambda,
    fixed_trees,
    mean_weight,
    shape_by_size,
)
from gradrank.measures import NDCG
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.runtime.memory import is_mapped

DATA = make_splits(130, n_docs=8, n_features=4, noise=0.3, random_state=3)
TRAIN, VALID = DATA["train"], DATA["vali"]
# Quick, and open in what is tested here.
QUICK: dict[str, Any] = {"learning_rate": 0.3, "early_stopping_rounds": 8, "n_jobs": 1}


class Told:
    """Remembers steps and what is said."""

    def __init__(self, fail_at: tuple[bool, int] | None = None, error: type[BaseException] = RuntimeError) -> None:
        self.steps: list[Step] = []
        self.said: list[str] = []
        self._fail_at, self._error = fail_at, error

    def say(self, text: str) -> None:
        self.said.append(text)

    def __call__(self, step: Step) -> None:
        self.steps.append(step)
        if (step.open_ended, step.number) == self._fail_at:
            raise self._error


def test_what_is_added_to_leaves_follows_the_weights_unless_it_is_given() -> None:
    size = {"n_queries": 1000, "n_docs": 9000, "validated": False, "unit_queries": True, "weight": 0.25}
    assert shape_by_size(LambdaMART(), **size).reg_lambda == 0.25 * default_reg_lambda(1000)
    assert shape_by_size(LambdaMART(reg_lambda=3.0), **size).reg_lambda == 3.0
    assert shape_by_size(LambdaMART(), **{**size, "unit_queries": False}).reg_lambda == 0.0


def test_what_a_query_weighs() -> None:
    data = RankingData.from_arrays(np.zeros((6, 1)), qid=[1, 1, 1, 1, 2, 3])
    assert mean_weight(data) == 1.0
    assert mean_weight(data.with_weight([2.0, 0.0, 4.0])) == 3.0
    # (1 + 3 + 0 + 0) / 4 and 5; the third weighs nothing.
    both = data.with_document_weight([1.0, 3.0, 0.0, 0.0, 5.0, 0.0]).with_weight([2.0, 1.0, 7.0])
    assert mean_weight(both) == (2.0 * 1.0 + 1.0 * 5.0) / 2


def test_what_is_given_wins_and_the_rest_follows_the_size() -> None:
    learner = LambdaMART(n_estimators=300, num_leaves=9, learning_rate=0.07)
    shape = shape_by_size(learner, 10, 100, validated=False)
    assert (shape.n_estimators, shape.num_leaves, shape.learning_rate) == (300, 9, 0.07)
    assert shape.early_stopping_rounds is None
    assert not shape.searched
    for queries, docs in ((50, 500), (1_000, 25_000), (50_000, 5_000_000)):
        shape = shape_by_size(LambdaMART(), queries, docs, validated=True)
        assert (shape.num_leaves, shape.learning_rate) == (default_leaves(queries, docs), DEFAULT_RATE)
        assert (shape.n_estimators, shape.early_stopping_rounds) == (MOST_TREES, DEFAULT_PATIENCE)
        assert shape.searched
        fixed = shape_by_size(LambdaMART(), queries, docs, validated=False)
        assert (fixed.n_estimators, fixed.early_stopping_rounds) == (fixed_trees(DEFAULT_RATE), None)


@pytest.mark.parametrize(
    ("objective", "added"),
    [
        ("NDCG@10", 6.5),  # a twentieth of 130 queries
        ("Tiered(NDCG, CNDCG(label=clicks), weight=0)", 6.5),
        ("Noisy(MAP, samples=2)", 6.5),
        ("Lambda(NDCG, normalize=log)", 6.5),
        ("Lambda(NDCG)", 0.0),  # the papers' λ's, whose size depends on the labels
        ("Regression", 0.0),
    ],
)
def test_curvature_is_added_where_its_size_is_known(objective: str, added: float) -> None:
    data = TRAIN.with_label("clicks", TRAIN.label() / 4)
    few: dict[str, Any] = {"n_estimators": 2, "num_leaves": 4, "random_state": 1}
    by_rule = LambdaMART(objective, **few).fit(data)
    given = LambdaMART(objective, reg_lambda=added, **few).fit(data)
    without = LambdaMART(objective, reg_lambda=0.0, **few).fit(data)
    assert by_rule.ranker_.training["parameters"]["reg_lambda"] == added
    assert by_rule.predict(data).tolist() == given.predict(data).tolist()
    # What is added makes steps smaller, and where nothing is they are the same.
    assert np.abs(by_rule.predict(data)).max() <= np.abs(without.predict(data)).max()
    assert (by_rule.predict(data).tolist() == without.predict(data).tolist()) == (added == 0.0)


def test_rule_goes_one_way_with_the_size() -> None:
    leaves = [default_leaves(10**k, 20 * 10**k) for k in range(8)]
    assert leaves == sorted(leaves)
    assert (leaves[0], leaves[-1]) == (2, 63)
    # Documents of a few queries are no reason for large trees, and trees need documents.
    assert default_leaves(100, 10**6) == default_leaves(100, 10**4) == 10
    assert default_leaves(10**6, 10**3) == 20


@pytest.mark.parametrize(
    ("policy", "shape"),
    [("symmetric", {"max_depth": DEFAULT_LEVELS}), ("lossguide", {"num_leaves": default_leaves(130, TRAIN.n_docs)})],
)
def test_with_validation_data_the_number_is_found_by_early_stopping(policy: str, shape: dict[str, Any]) -> None:
    open_policy: dict[str, Any] = {} if policy == "symmetric" else {"grow_policy": policy}
    found = LambdaMART(**open_policy, **QUICK).fit(TRAIN, valid=VALID)
    share = 1.0 if policy == "symmetric" else 0.7
    asked = LambdaMART(grow_policy=policy, n_estimators=5_000, reg_lambda=6.5, subsample=share, **shape, **QUICK).fit(
        TRAIN, valid=VALID
    )
    assert found.record_.curves == asked.record_.curves
    assert found.record_.steps - found.record_.best == 8
    assert found.n_estimators_ == found.record_.best == len(found.ranker_.trees)
    assert found.predict(VALID).tolist() == asked.predict(VALID).tolist()
    assert found.get_params()["n_estimators"] is None
    assert found.get_params()["num_leaves"] is None
    told = found.ranker_.training
    by_rule = ["grow_policy"] if not open_policy else []
    assert told["by_data"] == [*by_rule, *shape, "subsample", "reg_lambda", "n_estimators"]
    assert told["parameters"]["n_estimators"] == found.n_estimators_
    assert told["parameters"] | shape == told["parameters"]
    assert "by_data" not in asked.ranker_.training


@pytest.mark.parametrize("kind", [LambdaMART, MART, McRank])
def test_held_out_queries_find_the_number_for_a_training_on_all(kind: type[LambdaMART]) -> None:
    told = Told()
    found = kind(callbacks=[told], **QUICK).fit(TRAIN)
    decided = {name: found.ranker_.training["parameters"][name] for name in found.ranker_.training["by_data"]}
    assert decided["n_estimators"] == found.n_estimators_
    assert found.num_leaves_ == (2 ** decided["max_depth"] if "max_depth" in decided else decided["num_leaves"])
    given = kind(**{**decided, "early_stopping_rounds": None}, learning_rate=0.3, n_jobs=1).fit(TRAIN)
    assert found.predict(VALID).tolist() == given.predict(VALID).tolist()
    held = found.record_.held_out
    assert held is not None
    assert held.queries == 26
    curve = held.curves["NDCG@10"]
    assert int(np.argmax(curve)) + 1 == held.best == len(curve) - 8
    assert [step.open_ended for step in told.steps] == [True] * len(curve) + [False] * found.n_estimators_
    assert "26 queries are held out" in told.said[0]
    assert f"{held.best} trees are best on the 26 held-out queries" in told.said[1]
    assert found.record_.curves == {}
    training = found.ranker_.training
    assert training["held_out"] == {"queries": 26, "best": held.best}
    assert training["curves"] == {HELD_OUT: held.curves}


def test_first_training_learns_nothing_of_the_held_out_queries() -> None:
    held = held_out_queries(TRAIN, 0.2, random_state=0)
    rows = np.repeat(held, TRAIN.sizes)
    assert held.sum() == 26
    other = TRAIN.with_label("label", np.where(rows, 4 - TRAIN.label(), TRAIN.label()))
    told = Told(), Told()
    for data, listener in zip((TRAIN, other), told, strict=True):
        LambdaMART(callbacks=[listener], **QUICK).fit(data)
    pairs = list(zip(*([step for step in each.steps if step.open_ended] for each in told), strict=False))
    assert len(pairs) > 8
    scores = np.zeros(TRAIN.n_docs)
    for one, two in pairs:
        assert one.trees[0].leaf_value.tolist() == two.trees[0].leaf_value.tolist()
        scores += TreeEnsemble(one.trees, TRAIN.feature_names).grouped_scores(TRAIN)
        by_hand = NDCG(10).values(scores[rows], TRAIN.take_queries(held))
        assert one.values[HELD_OUT]["NDCG@10"] == pytest.approx(float(np.nanmean(by_hand)), abs=1e-12)


@pytest.mark.parametrize("fail_at", [(True, 9), (False, 5)])
def test_killed_run_goes_on_in_either_training(tmp_path: Path, fail_at: tuple[bool, int]) -> None:
    whole = LambdaMART(**QUICK).fit(TRAIN)
    assert whole.n_estimators_ > 5
    state = {"checkpoint": tmp_path / "state", "checkpoint_every": 4}
    with pytest.raises(RuntimeError):
        LambdaMART(callbacks=[Told(fail_at)], **state, **QUICK).fit(TRAIN)
    told = Told()
    again = LambdaMART(callbacks=[told], **state, **QUICK).fit(TRAIN)
    assert told.steps[0].open_ended == fail_at[0]
    assert told.steps[0].number == fail_at[1] // 4 * 4 + 1
    assert again.predict(VALID).tolist() == whole.predict(VALID).tolist()
    assert again.record_.held_out == whole.record_.held_out
    with pytest.raises(TrainingError, match="belongs to another run"):
        LambdaMART(validation_fraction=0.3, **state, **QUICK).fit(TRAIN)


def test_interrupted_training_keeps_the_best_of_the_first() -> None:
    first = Told((True, 12), KeyboardInterrupt)
    cut = LambdaMART(callbacks=[first], **QUICK).fit(TRAIN)
    assert cut.record_.interrupted
    assert (cut.record_.steps, len(first.steps)) == (12, 12)
    second = Told((False, 1), KeyboardInterrupt)
    later = LambdaMART(callbacks=[second], **QUICK).fit(TRAIN)
    assert later.record_.interrupted
    best = later.record_.held_out.best  # type: ignore[union-attr]
    assert later.n_estimators_ == best > 1
    trees = [tree for step in second.steps[:best] for tree in step.trees]
    expected = TreeEnsemble(trees, TRAIN.feature_names).predict(VALID)
    np.testing.assert_allclose(later.predict(VALID), expected, atol=1e-12)


def test_interrupted_before_the_second_training_has_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = LambdaCourse.advance

    def interrupted(course: LambdaCourse, step: int) -> bool:
        if course.left_out is None:
            raise KeyboardInterrupt
        return advance(course, step)

    monkeypatch.setattr(LambdaCourse, "advance", interrupted)
    learner = LambdaMART(diagnostics=3, **QUICK).fit(TRAIN)
    assert learner.record_.interrupted
    assert learner.n_estimators_ == learner.record_.held_out.best > 1  # type: ignore[union-attr]


def test_memory_map_gives_the_same_model(tmp_path: Path) -> None:
    write_binary(TRAIN, tmp_path / "train")
    mapped = open_binary(tmp_path / "train")
    assert is_mapped(mapped.X)
    models = [LambdaMART(**QUICK).fit(data).ranker_.to_dict() for data in (TRAIN, mapped)]
    assert models[0]["payload"] == models[1]["payload"]
    assert models[0]["training"]["curves"] == models[1]["training"]["curves"]


def test_few_queries_or_no_share_give_a_fixed_number() -> None:
    few = TRAIN.take_queries(np.arange(60))
    told = Told()
    learner = LambdaMART(learning_rate=0.5, n_jobs=1, callbacks=[told]).fit(few)
    assert learner.n_estimators_ == fixed_trees(0.5)
    assert "60 queries are too few to hold some out" in told.said[0]
    told = Told()
    learner = LambdaMART(learning_rate=0.5, validation_fraction=0, n_jobs=1, callbacks=[told]).fit(TRAIN)
    assert (learner.n_estimators_, told.said) == (fixed_trees(0.5), [])


def test_warm_start_needs_a_number() -> None:
    learner = LambdaMART(warm_start=True, **QUICK).fit(TRAIN)
    with pytest.raises(TrainingError, match="give n_estimators, or validation data"):
        learner.fit(TRAIN)
    before = learner.n_estimators_
    learner.set_params(n_estimators=before + 3, early_stopping_rounds=None).fit(TRAIN)
    assert learner.n_estimators_ == before + 3


def test_keys_hold_out_the_same_queries_wherever_they_are() -> None:
    keys = np.random.default_rng(0).integers(2**62, size=TRAIN.n_queries).astype(np.uint64)
    whole = RankingData(TRAIN.X, TRAIN.indptr, TRAIN.labels, TRAIN.qid, feature_names=TRAIN.feature_names, keys=keys)
    part = np.arange(40, 90)
    held = held_out_queries(whole, 0.2, random_state=1)
    assert 10 < held.sum() < 45
    assert held_out_queries(whole.take_queries(part), 0.2, random_state=1).tolist() == held[part].tolist()
