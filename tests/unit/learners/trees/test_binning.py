"""Training from a memory map gives the model that training in memory gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank import MART, LambdaMART, McRank, RankingData, make_data
from gradrank.data.formats.binary import open_binary, write_binary
from gradrank.learners.trees import grower as grower_module
from gradrank.learners.trees.binning import make_dataset
from gradrank.learners.trees.grower import TreeGrower
from gradrank.models.trees.ensemble import assign_leaves
from gradrank.runtime.memory import is_mapped


def _awkward(n_queries: int, seed: int, *, nan: bool = True) -> RankingData:
    """Features that are missing, mostly 0, whole, constant, negative zeros, and far outside of the others' range."""
    rng = np.random.default_rng(seed)
    data = make_data(n_queries, n_docs=12, n_features=8, random_state=seed)
    X = np.array(data.X)
    if nan:
        X[rng.random(len(X)) < 0.1, 0] = np.nan
    X[rng.random(len(X)) < 0.9, 1] = 0.0
    X[:, 2] = np.round(4 * X[:, 2])
    X[:, 3] = 7.0
    X[rng.random(len(X)) < 0.3, 4] = -0.0
    X[rng.random(len(X)) < 0.01, 5] *= 1e6
    return replace(data, X=X)


def _mapped(data: RankingData, folder: Path, name: str) -> RankingData:
    write_binary(data, folder / name)
    mapped = open_binary(folder / name)
    assert is_mapped(mapped.X)
    return mapped


def _plain(model: Any) -> Any:
    found = model.ranker_.to_dict()
    found["training"].pop("seconds")
    return found


CASES = [
    (LambdaMART, {}),
    (LambdaMART, {"subsample": 1.0, "train_measure": True}),
    (LambdaMART, {"colsample_bytree": 0.5}),
    (LambdaMART, {"quantized": False, "max_bin": 15}),
    (LambdaMART, {"monotone_constraints": [1, 0, 0, 0, 0, 0, 0, 0]}),
    (LambdaMART, {"categorical_feature": [2]}),
    (LambdaMART, {"step": "optimal-leaf", "n_estimators": 4}),
    (LambdaMART, {"lightgbm": {"bin_construct_sample_cnt": 300}}),
    (MART, {}),
    (McRank, {"n_estimators": 5}),
]


@pytest.mark.parametrize(("learner", "given"), CASES)
@pytest.mark.parametrize("wide", [False, True])
def test_a_memory_map_gives_the_model_of_the_same_data_in_memory(
    tmp_path: Path, learner: Any, given: dict[str, Any], wide: bool
) -> None:
    train, valid = _awkward(60, 1, nan=wide), _awkward(30, 2)
    if wide:
        # All but the third feature, whose whole numbers are categories in one case.
        moved = 1e-9 * (np.arange(8) != 2)
        train, valid = (replace(data, X=data.X.astype(np.float64) + moved) for data in (train, valid))
    parameters = {"n_estimators": 12, "learning_rate": 0.2, "num_leaves": 9, **given}
    in_memory = learner(**parameters).fit(train, valid=valid)
    from_files = learner(**parameters).fit(_mapped(train, tmp_path, "a"), valid=_mapped(valid, tmp_path, "b"))
    assert _plain(from_files) == _plain(in_memory)
    assert in_memory.ranker_.shape()["leaves"] > in_memory.ranker_.shape()["trees"]


def test_bins_tell_the_leaves_that_the_features_tell(tmp_path: Path) -> None:
    train, valid = _awkward(60, 3, nan=False), _awkward(30, 4)
    mapped = _mapped(train, tmp_path, "a")
    grower = TreeGrower(mapped, LambdaMART(num_leaves=20), split="mse", watched={"v": _mapped(valid, tmp_path, "b")})
    rng = np.random.default_rng(5)
    for step in range(6):
        lambdas = rng.normal(size=train.n_docs).astype(np.float32) * (step != 2)  # step 2 finds no split
        tree = grower.grow(lambdas, np.ones_like(lambdas), step)
        assert tree.n_leaves == (1 if step == 2 else 20)
        found = grower.leaves(tree)
        np.testing.assert_array_equal(found[""], assign_leaves(tree, train.X))
        np.testing.assert_array_equal(found["v"], assign_leaves(tree, valid.X))


def test_features_in_a_file_are_not_read_once_they_are_binned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_args: Any, **_more: Any) -> None:
        raise AssertionError("features were looked at for the leaves of a tree")

    monkeypatch.setattr(grower_module, "assign_leaves", refused)
    train, valid = _mapped(_awkward(60, 1), tmp_path, "a"), _mapped(_awkward(30, 2), tmp_path, "b")
    assert LambdaMART(n_estimators=3).fit(train, valid=valid).ranker_.n_trees > 0


def test_bins_of_another_dataset(tmp_path: Path) -> None:
    """Data that is binned by a reference has its boundaries, not those of its own values."""
    settings = {"max_bin": 15, "min_data_in_bin": 1, "verbosity": -1, "feature_pre_filter": False}
    one, other = (RankingData.from_arrays(np.arange(64.0)[:, None] * k, qid=np.zeros(64)) for k in (1, 1000))
    reference = make_dataset(one, settings).construct()
    alone = make_dataset(other, settings).construct()
    shared = make_dataset(_mapped(other, tmp_path, "c"), settings, reference=reference).construct()
    assert reference.feature_num_bin(0) == shared.feature_num_bin(0)
    for dataset, name in ((alone, "alone"), (shared, "shared")):
        dataset._dump_text(tmp_path / name)
    assert (tmp_path / "alone").read_text() != (tmp_path / "shared").read_text()
