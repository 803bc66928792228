"""Symmetric trees: against trying all features and thresholds, one document after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank import LambdaMART, make_splits
from gradrank.data import RankingData
from gradrank.data.formats.binary import open_binary, write_binary
from gradrank.errors import TrainingError
from gradrank.learners import Step
from gradrank.learners.base.monitor import TRAINING
from gradrank.learners.trees.size_rule import DEFAULT_LEVELS
from gradrank.learners.trees.symmetric_grower import SymmetricGrower
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.runtime.memory import is_mapped

DATA = make_splits(60, n_docs=12, n_features=5, noise=0.3, random_state=4)
QUICK: dict[str, Any] = {"n_estimators": 5, "learning_rate": 0.3, "n_jobs": 1}


def ranking_data(X: np.ndarray) -> RankingData:
    return RankingData.from_arrays(X, np.zeros(len(X)), qid=np.zeros(len(X), dtype=int))


def grower(data: RankingData, *, depth: int, split: str = "newton", added: float = 0.0, **own: Any) -> SymmetricGrower:
    return SymmetricGrower(data, LambdaMART(n_jobs=1, **own), depth=depth, split=split, reg_lambda=added)


def score(nodes: list[int], lambdas: np.ndarray, rhos: np.ndarray, added: float) -> float:
    """Σ over nodes of (Σλ)² ÷ (Σρ + c), as the definition has it."""
    total = 0.0
    for node in set(nodes):
        inside = [row for row, at in enumerate(nodes) if at == node]
        bend = sum(float(rhos[row]) for row in inside) + added
        if bend > 1e-12:
            total += sum(float(lambdas[row]) for row in inside) ** 2 / bend
    return total


def best_score(X: np.ndarray, nodes: list[int], lambdas: np.ndarray, rhos: np.ndarray, added: float) -> float:
    """The best that one feature and threshold can do for all nodes together; what is missing goes left."""
    found = -np.inf
    for column in X.T:
        there = np.unique(column[~np.isnan(column)])
        if not len(there):
            continue
        for threshold in [-np.inf, *((there[:-1] + there[1:]) / 2)]:
            right = [not (np.isnan(x) or x <= threshold) for x in column]
            found = max(found, score([2 * node + side for node, side in zip(nodes, right, strict=True)],
                                     lambdas, rhos, added))  # fmt: skip
    return found


@pytest.mark.kernel
@given(st.integers(0, 10**6), st.sampled_from(["newton", "mse"]), st.sampled_from([0.0, 0.5]))
def test_each_level_is_the_best_of_all_splits(seed: int, split: str, added: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 25))
    X = rng.integers(0, 5, (n, 3)).astype(float)
    X[rng.random((n, 3)) < 0.15] = np.nan
    # Small whole numbers, whose sums are exact in any order; some documents have no say.
    lambdas = rng.integers(-6, 7, n).astype(np.float32)
    rhos = rng.integers(1, 5, n).astype(np.float32)
    silent = rng.random(n) < 0.2
    lambdas[silent] = rhos[silent] = 0.0
    data = ranking_data(X)
    made = grower(data, depth=3, split=split, added=added)
    tree = made.grow(lambdas, rhos, step=0)
    bends = rhos if split == "newton" else np.where(silent, 0.0, 1.0)
    added = added if split == "newton" else 0.0
    levels = int(np.log2(tree.n_leaves))
    assert tree.n_leaves == 2**levels
    nodes = [0] * n
    for level in range(levels + (levels < 3)):
        before, best = score(nodes, lambdas, bends, added), best_score(data.X, nodes, lambdas, bends, added)
        if level == levels:
            # It stopped because nothing was left to gain.
            assert best <= before * (1 + 1e-8)
            break
        first = 2**level - 1
        # All nodes of a level ask the same.
        assert len(set(tree.split_feature[first : 2 * first + 1].tolist())) == 1
        assert len(set(tree.threshold[first : 2 * first + 1].tolist())) == 1
        column = data.X[:, tree.split_feature[first]]
        right = ~(np.isnan(column) | (column <= tree.threshold[first]))
        nodes = [2 * node + int(side) for node, side in zip(nodes, right, strict=True)]
        after = score(nodes, lambdas, bends, added)
        assert after == pytest.approx(best, rel=1e-12)
        assert tree.split_gain[first] * 2**level == pytest.approx(after - before, rel=1e-9)
    # Leaves as the bins tell them, and as the tree walks them.
    assert made.leaves(tree)[TRAINING].tolist() == nodes
    walked = TreeEnsemble([Tree(**{**vars(tree), "leaf_value": np.arange(2.0**levels)})], data.feature_names)
    assert walked.predict(data).tolist() == nodes
    if levels:
        assert tree.leaf_cover.tolist() == np.bincount(nodes, minlength=2**levels).tolist()


def test_any_number_of_threads_grows_the_same_tree() -> None:
    rng = np.random.default_rng(2)
    data = ranking_data(rng.standard_normal((30_000, 6)))
    lambdas, rhos = rng.standard_normal((2, 30_000)).astype(np.float32)
    trees = [
        SymmetricGrower(data, LambdaMART(n_jobs=jobs), depth=6, split="newton").grow(lambdas, np.abs(rhos), 0)
        for jobs in (1, 3)
    ]
    assert trees[0].split_feature.tolist() == trees[1].split_feature.tolist()
    assert trees[0].threshold.tolist() == trees[1].threshold.tolist()
    assert trees[0].split_gain.tolist() == trees[1].split_gain.tolist()


def test_what_is_missing_can_be_told_from_the_rest() -> None:
    X = np.array([[np.nan], [1.0], [2.0], [3.0], [np.nan], [4.0]])
    lambdas = np.where(np.isnan(X[:, 0]), 1.0, -0.5).astype(np.float32)
    made = grower(ranking_data(X), depth=1)
    tree = made.grow(lambdas, np.ones(6, dtype=np.float32), 0)
    assert made.leaves(tree)[TRAINING].tolist() == [0, 1, 1, 1, 0, 1]
    # Smaller than all that was seen is not missing.
    ensemble = TreeEnsemble([Tree(**{**vars(tree), "leaf_value": np.array([1.0, 2.0])})], ("x",))
    assert ensemble.predict(np.array([[-1e30], [np.nan]])).tolist() == [2.0, 1.0]


def test_validation_data_in_a_file_reaches_the_leaves_of_that_in_memory(tmp_path) -> None:
    write_binary(DATA["vali"], tmp_path / "vali")
    kept = open_binary(tmp_path / "vali")
    assert is_mapped(kept.X)
    here = LambdaMART(**QUICK).fit(DATA["train"], valid=DATA["vali"])
    there = LambdaMART(**QUICK).fit(DATA["train"], valid=kept)
    assert here.record_.curves == there.record_.curves


def test_a_value_or_nothing_is_something_to_tell_apart() -> None:
    X = np.array([[np.nan, 1.0], [7.0, 1.0], [7.0, 1.0], [np.nan, 1.0]])
    made = grower(ranking_data(X), depth=2)
    tree = made.grow(np.array([1, -1, -1, 1], dtype=np.float32), np.ones(4, dtype=np.float32), 0)
    assert made.leaves(tree)[TRAINING].tolist() == [0, 1, 1, 0]


def test_nothing_to_learn_is_one_leaf() -> None:
    data = ranking_data(np.arange(8.0)[:, None])
    nothing = np.zeros(8, dtype=np.float32)
    assert grower(data, depth=3).grow(nothing, nothing, 0).n_leaves == 1
    with pytest.raises(TrainingError, match="no feature has two values"):
        grower(ranking_data(np.ones((8, 2))), depth=3)


def test_a_share_of_the_features_is_drawn_for_each_tree() -> None:
    rng = np.random.default_rng(3)
    data = ranking_data(rng.standard_normal((200, 8)))
    made = grower(data, depth=4, colsample_bytree=0.25)
    used = []
    for step in range(20):
        lambdas = rng.standard_normal(200).astype(np.float32)
        tree = made.grow(lambdas, np.ones(200, dtype=np.float32), step)
        used.append(set(tree.split_feature.tolist()))
        assert len(used[-1]) <= 2
    assert set().union(*used) == set(range(8))


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({}, "symmetric"),
        ({"grow_policy": "lossguide"}, "lossguide"),
        ({"num_leaves": 15}, "lossguide"),
        ({"min_child_samples": 5}, "lossguide"),
        ({"min_child_weight": 1.0}, "lossguide"),
        ({"monotone_constraints": [1, 0, 0, 0, 0]}, "lossguide"),
        ({"categorical_feature": [0]}, "lossguide"),
        ({"lightgbm": {"path_smooth": 1.0}}, "lossguide"),
        ({"split_docs": 100}, "lossguide"),
        ({"max_depth": 3}, "symmetric"),
        ({"max_depth": 9}, "lossguide"),
        ({"max_bin": 300}, "lossguide"),
        ({"objective": "Lambda(NDCG)"}, "lossguide"),
        ({"objective": "Lambda(NDCG)", "grow_policy": "symmetric"}, "symmetric"),
    ],
)
def test_trees_are_symmetric_unless_something_else_is_asked_for(given: dict[str, Any], policy: str) -> None:
    data = DATA["train"]
    if "categorical_feature" in given:
        data = RankingData.from_arrays(np.round(data.X), data.label(), qid=data.query_of_row())
    learner = LambdaMART(**{**QUICK, **given}).fit(data)
    assert learner.ranker_.training["parameters"]["grow_policy"] == policy
    symmetric = [_is_symmetric(tree) for (tree,) in learner.trees_]
    assert all(symmetric) if policy == "symmetric" else not all(symmetric)
    if policy == "symmetric":
        assert learner.num_leaves_ == 2 ** given.get("max_depth", DEFAULT_LEVELS)


def _is_symmetric(tree: Tree) -> bool:
    levels = np.log2(tree.n_leaves)
    if levels != int(levels):
        return False
    spans = [slice(2**level - 1, 2 ** (level + 1) - 1) for level in range(int(levels))]
    return all(len({*zip(tree.split_feature[at], tree.threshold[at], strict=True)}) == 1 for at in spans)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"num_leaves": 15}, "does not take num_leaves: max_depth=5 makes 32 leaves"),
        ({"max_depth": 9}, "does not take max_depth: at most 8"),
        ({"max_bin": 300}, "does not take max_bin: at most 255"),
        ({"categorical_feature": ["f1"]}, "does not take categorical_feature"),
        ({"lightgbm": {"path_smooth": 1.0}}, "does not take lightgbm"),
    ],
)
def test_what_symmetric_trees_do_not_take_is_said(given: dict[str, Any], says: str) -> None:
    with pytest.raises(TrainingError, match=says):
        LambdaMART(grow_policy="symmetric", **given).fit(DATA["train"])


def test_an_interrupted_training_goes_on_to_the_same_model(tmp_path) -> None:
    def fail(step: Step) -> None:
        if step.number == 4:
            raise RuntimeError

    parameters = {**QUICK, "n_estimators": 9, "subsample": 0.6, "colsample_bytree": 0.5}
    whole = LambdaMART(**parameters).fit(DATA["train"], valid=DATA["vali"])
    kept = {"checkpoint": tmp_path / "state", "checkpoint_every": 2}
    with pytest.raises(RuntimeError):
        LambdaMART(**parameters, **kept, callbacks=[fail]).fit(DATA["train"], valid=DATA["vali"])
    seen: list[int] = []
    again = LambdaMART(**parameters, **kept, callbacks=[lambda step: seen.append(step.number)])
    again.fit(DATA["train"], valid=DATA["vali"])
    assert seen[0] > 1  # it did not begin anew
    assert again.predict(DATA["test"]).tolist() == whole.predict(DATA["test"]).tolist()


def test_learn_and_repeat() -> None:
    learner = LambdaMART(grow_policy="symmetric", n_estimators=80, n_jobs=1)
    first = learner.fit(DATA["train"], valid=DATA["vali"])
    assert first.score(DATA["test"]) > 0.85  # a random ranker has 0.45
    again = LambdaMART(**{**first.get_params(), "n_jobs": 2}).fit(DATA["train"], valid=DATA["vali"])
    assert again.predict(DATA["test"]).tolist() == first.predict(DATA["test"]).tolist()
