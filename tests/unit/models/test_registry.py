"""Every kind of ranker comes back from its file exactly; damaged files are named, never half read."""

from __future__ import annotations

import json
import math

import lightgbm
import numpy as np
import pytest
import xgboost
from hypothesis import given
from hypothesis import strategies as st

from gradrank.errors import ModelError
from gradrank.models import registry as saved
from gradrank.models.feature import FeatureRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.nets.scaling import Scaling
from gradrank.models.registry import RANKERS, load_ranker, ranker_from_dict
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.trees.expected_grade import ExpectedGrade
from gradrank.models.weighted_sum import WeightedSum

NAMES = ["bm25", "prix d'été", "clicks"]


def small_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 2] = rng.integers(0, 40, 200)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.nan_to_num(X[:, 0]) + (X[:, 2] % 3 == 0)


def trained_trees(**parameters) -> lightgbm.Booster:
    X, y = small_data()
    parameters = {"verbose": -1, "num_threads": 1, "min_data_per_group": 5, "num_leaves": 9} | parameters
    return lightgbm.train(parameters, lightgbm.Dataset(X, y, categorical_feature=[2]), 5)


def rankers() -> dict[str, object]:
    facts = {"objective": "LambdaMART(NDCG@10)", "curve": [0.1, np.float64(1 / 3)], "versions": {"numpy": "2"}}
    trees = TreeEnsemble(TreeEnsemble.from_lightgbm(trained_trees()).trees, NAMES, base_score=1 / 3, training=facts)
    linear = LinearRanker([0.1, -1e-300, 3.0], 1 / 3, mean=[1, 2, 3], scale=[0.1, 2, 3], feature_names=NAMES)
    scaling = Scaling(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.0, 3.0]))
    layers = [([[0.1, 1 / 3, -2.0], [1e-30, 2.0, 3.0]], [0.5, -0.1]), ([[1.0, -1 / 7]], [0.0])]
    feature = FeatureRanker("clicks", -1, missing=-7.5, feature_names=NAMES)
    return {
        "trees": trees,
        "linear": linear,
        "feature": feature,
        "weighted_sum": WeightedSum([(0.1, trees), (1.0, linear), (-2.0, FeatureRanker("bm25"))], feature_names=NAMES),
        "net": NetRanker(layers, scaling=scaling, feature_names=NAMES, training=facts),
        "expected_grade": ExpectedGrade([trees, trees.truncate(2), trees.truncate(1)], [0.0, 0.5, 4.0]),
    }


def test_every_registered_kind_is_tried_here():
    made = rankers()
    assert set(made) == set(RANKERS)
    assert all(ranker.kind == kind for kind, ranker in made.items())


@pytest.mark.parametrize("kind", RANKERS)
def test_saving_and_loading_is_exact(tmp_path, kind):
    ranker = rankers()[kind]
    X, _ = small_data()
    path = tmp_path / "modèle.json"
    ranker.save(path)
    loaded = load_ranker(path)
    assert type(loaded) is type(ranker)
    assert loaded.feature_names == tuple(NAMES)
    assert loaded.predict(X).tobytes() == ranker.predict(X).tobytes()
    assert loaded.to_dict() == ranker.to_dict()
    again = tmp_path / "again.json"
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []


@pytest.mark.parametrize("kind", RANKERS)
def test_used_features_are_those_that_change_a_score(kind):
    ranker = rankers()[kind]
    X, _ = small_data()
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
    rankers()["trees"].save(path)
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


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.99])
def test_a_file_cut_off_is_refused_by_name(tmp_path, kind, share):
    path = tmp_path / "cut.json"
    rankers()[kind].save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ModelError, match=r"cut\.json: "):
        load_ranker(path)


def test_native_files_of_lightgbm_and_xgboost_are_recognized(tmp_path):
    X, y = small_data()
    booster = trained_trees()
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
    text = trained_trees().model_to_string()
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
        (b"{}", "is not a gradrank model"),
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
    rankers()["linear"].save(path)
    before = path.read_bytes()
    broken = rankers()["linear"]
    monkeypatch.setattr(broken, "_payload", lambda: {"bias": math.nan})
    with pytest.raises(ValueError, match="not JSON compliant"):
        broken.save(path)
    assert path.read_bytes() == before


def test_the_registry_names_classes_that_exist():
    for kind, place in saved.RANKERS.items():
        module, name = place.split(":")
        assert getattr(__import__(module, fromlist=[name]), name).kind == kind
