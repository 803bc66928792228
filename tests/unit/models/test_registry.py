"""Files of models, ours and those of others: read as they were written; damaged ones are named, never half read."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import xgboost
from hypothesis import given
from hypothesis import strategies as st

from gradrank.errors import ModelError
from gradrank.models import registry as saved
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.nets.scaling import Scaling
from gradrank.models.registry import load_ranker, ranker_from_dict
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from tests.support.rankers import NAMES, example_rankers, feature_rows, trained_booster


@pytest.mark.parametrize("kind", saved.RANKERS)
def test_used_features_are_those_that_change_a_score(kind):
    ranker = example_rankers()[kind]
    X, _ = feature_rows(60)
    before = ranker.predict(X)
    changed = []
    for number, name in enumerate(NAMES):
        # Each value of the feature in the place of every other: one that is used matters somewhere.
        trials = [np.roll(X[:, number], shift) for shift in range(len(X))]
        trial = np.concatenate([np.column_stack([*X[:, :number].T, other, *X[:, number + 1 :].T]) for other in trials])
        if (ranker.predict(trial) != np.tile(before, len(X))).any():
            changed.append(name)
    # Rounding hides what the linear ranker's weight of 1e-300 does to a score.
    hidden = {"prix d'été"} if kind in ("linear", "weighted_sum") else set()
    assert set(changed) <= set(ranker.used_features()) <= {*changed, *hidden}


def test_features_without_weight_are_not_used():
    assert LinearRanker([0.0, 1.0], feature_names=["a", "b"]).used_features() == ("b",)
    layers = [([[0.0, 1.0, 1.0]], [0.0]), ([[1.0]], [0.0])]
    net = NetRanker(layers, scaling=Scaling(np.zeros(3), np.array([1.0, 0.0, 1.0])), feature_names=NAMES)
    assert net.used_features() == ("clicks",)
    assert TreeEnsemble([Tree.of(leaf_value=[1.0])], ["a"]).used_features() == ()


def test_the_file_starts_with_a_readable_manifest(tmp_path):
    path = tmp_path / "model.json"
    example_rankers()["trees"].save(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:4] == ["{", '"format": "gradrank-model",', '"version": 1,', '"kind": "trees",']
    assert "prix d'été" in lines[4]
    assert sum(line.startswith('{"split_feature"') for line in lines) == 5
    value = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(name))
    assert value["training"]["curve"] == [0.1, 1 / 3]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_leaf_values_survive_as_text(values):
    n = len(values)
    tree = Tree.of(
        leaf_value=values,
        split_feature=[0] * (n - 1),
        threshold=values[1:],
        decision=[0] * (n - 1),
        left=[~k for k in range(n - 1)],
        right=[k + 1 if k < n - 2 else ~(n - 1) for k in range(n - 1)],
    )
    model = TreeEnsemble([tree], ["a"])
    again = ranker_from_dict(json.loads(json.dumps(model.to_dict())))
    assert again.trees[0].leaf_value.tobytes() == tree.leaf_value.tobytes()
    assert again.trees[0].threshold.tobytes() == tree.threshold.tobytes()


def test_training_facts_may_hold_any_number(tmp_path):
    LinearRanker([1.0], training={"curve": [math.nan, math.inf], "seed": np.int64(3)}).save(tmp_path / "m.json")
    assert load_ranker(tmp_path / "m.json").training == {"curve": ["nan", "inf"], "seed": 3}


def test_native_files_of_lightgbm_and_xgboost_are_recognized(tmp_path):
    X, y = feature_rows()
    booster = trained_booster()
    booster.save_model(tmp_path / "lightgbm.txt")
    assert load_ranker(tmp_path / "lightgbm.txt").predict(X).tobytes() == booster.predict(X).tobytes()
    windows = (tmp_path / "lightgbm.txt").read_bytes().replace(b"\n", b"\r\n")
    (tmp_path / "windows.txt").write_bytes(windows)
    assert load_ranker(tmp_path / "windows.txt").predict(X).tobytes() == booster.predict(X).tobytes()
    other = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, y), 3)
    for name in ("x.json", "x.ubj"):
        other.save_model(tmp_path / name)
        assert np.array_equal(load_ranker(tmp_path / name).predict(X), TreeEnsemble.from_xgboost(other).predict(X))
    for name in ("lightgbm.txt", "x.json", "x.ubj"):
        content = (tmp_path / name).read_bytes()
        for cut in (4, len(content) // 3):
            (tmp_path / "cut").write_bytes(content[:cut])
            with pytest.raises(ModelError, match="cut: "):
                load_ranker(tmp_path / "cut")


def test_a_lightgbm_file_with_damaged_trees_is_refused(tmp_path):
    text = trained_booster().model_to_string()
    path = tmp_path / "damaged.txt"
    for found, instead in [
        ("num_leaves=9", "num_leaves=8"),
        ("\nleaf_value=", "\nleaf_values="),
        ("\nthreshold=", "\nthreshold=x "),
        ("\nleft_child=", "\nleft_child=7 "),
        ("\nmax_feature_idx=2", "\nmax_feature_idx=0"),
        ("\nmax_feature_idx=2", ""),
    ]:
        assert found in text
        path.write_text(text.replace(found, instead, 1))
        with pytest.raises(ModelError, match=r"damaged\.txt: "):
            load_ranker(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a model"),
        (b"hello", "is not a model"),
        (b"[1, 2]", "is not a model"),
        (b"{}", "is JSON, but no model: expected a file of gradrank, LightGBM"),
        (b'{"name": "tree", "tree_info": []}', "is LightGBM's JSON dump, expected its model as text"),
        (b'{"format": "gradrank-model", "version": 99}', "version 99, this gradrank reads up to 1: update"),
        (b'{"format": "gradrank-model", "version": "1"}', "version '1'"),
        (b'{"format": "gradrank-model", "version": 1, "kind": "oracle"}', "kind 'oracle', expected one of trees, "),
        (b'{"format": "gradrank-model", "version": 1, "kind": "linear"}', "damaged ranker of kind 'linear'"),
        (b'{"format": "gradrank-model", "version": 1, "kind": "linear", "feature_names": "ab"}', "damaged"),
        (
            b'{"format": "gradrank-model", "version": 1, "kind": "linear", "feature_names": "a", "training": {}, '
            b'"payload": {"weights": [1]}}',
            "not a list of strings",
        ),
        (
            b'{"format": "gradrank-model", "version": 1, "kind": "trees", "feature_names": ["a"], "training": {}, '
            b'"payload": {"base_score": 0, "trees": [{"leaf_value": [1, 2], "split_feature": [5], "threshold": [0], '
            b'"decision": [0], "left": [-1], "right": [-2]}]}}',
            "feature number 5, but there are 1 features",
        ),
        (b"tree\nversion=v4\n\xff\xfe", "not UTF-8"),
        (b"\x00" * 100, "is not a model"),
    ],
)
def test_what_is_no_model_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message) as caught:
        load_ranker(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(ModelError, match=r"nothing\.json: there is no such file"):
        load_ranker(tmp_path / "nothing.json")
    with pytest.raises(ModelError, match="cannot be read"):
        load_ranker(tmp_path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    example_rankers()["linear"].save(path)
    before = path.read_bytes()
    broken = example_rankers()["linear"]
    monkeypatch.setattr(broken, "_payload", lambda: {"bias": math.nan})
    with pytest.raises(ValueError, match="not JSON compliant"):
        broken.save(path)
    assert path.read_bytes() == before


def test_the_registry_names_classes_that_exist():
    for kind, place in saved.RANKERS.items():
        module, name = place.split(":")
        assert getattr(__import__(module, fromlist=[name]), name).kind == kind
