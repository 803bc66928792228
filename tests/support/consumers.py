"""Those who read exported files: the real tools, and walkers by the known rules of those that do not run here.

Every consumer takes the file, rows of features and their names, and gives scores. Walkers share no code with writers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
SLACK = np.float32(1e-6)

Rows = np.ndarray
Scores = np.ndarray


@dataclass(frozen=True)
class Consumer:
    """Who reads a format, and what it makes of documents."""

    score: Callable[[Path, Rows, Sequence[str]], Scores]
    who: str
    single: bool
    """Whether it reads features as float32."""
    missing_is_zero: bool = False


def _walk(node: Any, X: Rows, step: Callable[[Any, Rows], tuple[Any, Any, np.ndarray] | None], value: Any) -> Scores:
    """Values of the leaves that rows reach; ``step`` gives both children and which rows go left, None at a leaf."""
    out = np.zeros(len(X), dtype=np.float64)
    todo = [(node, np.arange(len(X)))]
    while todo:
        here, rows = todo.pop()
        found = step(here, X[rows])
        if found is None:
            out[rows] = value(here)
        else:
            left, right, goes_left = found
            todo += [(left, rows[goes_left]), (right, rows[~goes_left])]
    return out


def _sum32(columns: Sequence[Scores]) -> Scores:
    """Added up one after the other in single precision."""
    total = np.zeros(len(columns[0]), dtype=np.float32)
    for column in columns:
        total = total + column.astype(np.float32)
    return total.astype(np.float64)


# ---------------------------------------------------------------------- LightGBM and its dump
def lightgbm_booster(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    import lightgbm

    return np.asarray(lightgbm.Booster(model_file=path).predict(X, num_threads=1))


def lightgbm_dump(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    """LightGBM's own rules: ``<=``; what is missing by missing_type; categories by membership."""
    model = json.loads(path.read_text(encoding="utf-8"))

    def step(node: Any, rows: Rows) -> Any:
        if "leaf_value" in node:
            return None
        x = rows[:, node["split_feature"]].astype(np.float64)
        if node["decision_type"] == "==":
            members = [int(text) for text in node["threshold"].split("||")]
            left = np.isin(np.where(x > -1, np.trunc(np.nan_to_num(x, nan=-9)), -9), members)
            return node["left_child"], node["right_child"], left
        missing = np.isnan(x)
        if node["missing_type"] == "Zero":
            missing |= np.abs(x) <= np.float64(np.float32(1e-35))
        if node["missing_type"] == "None":
            x, missing = np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf), np.zeros(len(x), dtype=bool)
        return node["left_child"], node["right_child"], np.where(missing, node["default_left"], x <= node["threshold"])

    total = np.zeros(len(X))
    for tree in model["tree_info"]:
        total = total + _walk(tree["tree_structure"], X, step, lambda node: node["leaf_value"])
    return total


def vespa(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    """Vespa's import: ``<`` in double precision, NaN by default_left, features by name."""
    model = json.loads(path.read_text(encoding="utf-8"))
    column = {name: place for place, name in enumerate(names)}

    def step(node: Any, rows: Rows) -> Any:
        if "leaf_value" in node:
            return None
        x = rows[:, column[model["feature_names"][node["split_feature"]]]].astype(np.float64)
        left = np.where(np.isnan(x), node["default_left"], x < node["threshold"])
        return node["left_child"], node["right_child"], left

    total = np.zeros(len(X))
    for tree in model["tree_info"]:
        total = total + _walk(tree["tree_structure"], X, step, lambda node: node["leaf_value"])
    return total


# ---------------------------------------------------------------------- XGBoost and its dump
def xgboost_booster(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    import xgboost

    booster = xgboost.Booster({"nthread": 1}, model_file=path)
    return np.asarray(booster.predict(xgboost.DMatrix(X, feature_names=list(names), nthread=1)), dtype=np.float64)


def ltr_plugin(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    """The plugins for Elasticsearch and OpenSearch: ``<`` in float32, NaN by ``missing``, children by their ids."""
    trees = json.loads(path.read_text(encoding="utf-8"))
    column = {name: place for place, name in enumerate(names)}

    def step(node: Any, rows: Rows) -> Any:
        if "leaf" in node:
            return None
        x = rows[:, column[node["split"]]].astype(np.float32)
        by_id = {child["nodeid"]: child for child in node["children"]}
        left = np.where(np.isnan(x), node["missing"] == node["yes"], x < np.float32(node["split_condition"]))
        return by_id[node["yes"]], by_id[node["no"]], left

    return _sum32([_walk(tree, X, step, lambda node: node["leaf"]) for tree in trees])


def elastic(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    """Elastic's inference: nodes by index, ``lte`` in double precision, missing by default_left, a weighted sum."""
    ensemble = json.loads(path.read_text(encoding="utf-8"))["definition"]["trained_model"]["ensemble"]
    column = {name: place for place, name in enumerate(names)}
    total = np.zeros(len(X))
    weights = ensemble["aggregate_output"]["weighted_sum"]["weights"]
    for weight, member in zip(weights, ensemble["trained_models"], strict=True):
        tree = member["tree"]
        nodes = {node["node_index"]: node for node in tree["tree_structure"]}

        def step(node: Any, rows: Rows, tree: Any = tree, nodes: Any = nodes) -> Any:
            if "leaf_value" in node:
                return None
            x = rows[:, column[tree["feature_names"][node["split_feature"]]]].astype(np.float64)
            assert node["decision_type"] == "lte"
            left = np.where(np.isnan(x), node["default_left"], x <= node["threshold"])
            return nodes[node["left_child"]], nodes[node["right_child"]], left

        total = total + weight * _walk(nodes[0], X, step, lambda node: node["leaf_value"][0])
    return total


# ---------------------------------------------------------------------- RankLib and Solr
def ranklib(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    """RankLib: features from 1, NaN is 0, ``<=`` and sums in float32; linear models in double precision."""
    lines = path.read_text(encoding="utf-8").splitlines()
    body = "\n".join(line for line in lines if not line.startswith("##"))
    x32 = np.nan_to_num(X.astype(np.float32), nan=0.0, posinf=np.inf, neginf=-np.inf)
    if lines[0] == "## Linear Regression":
        pairs = {int(word.split(":")[0]): float(word.split(":")[1]) for word in body.split()}
        total = np.full(len(X), pairs.pop(0))
        for feature, weight in pairs.items():
            total = total + weight * x32[:, feature - 1].astype(np.float64)
        return total
    assert lines[0] == "## LambdaMART"

    def step(node: Any, rows: Rows) -> Any:
        if node[0].tag == "output":
            return None
        feature, threshold, left, right = node  # by their places, as RankLib has it
        goes_left = rows[:, int(feature.text) - 1] <= np.float32(threshold.text)
        return left, right, goes_left

    total = np.zeros(len(X), dtype=np.float32)
    for tree in ElementTree.fromstring(body.strip()):
        values = _walk(tree[0], x32, step, lambda node: np.float32(node[0].text))
        total = total + values.astype(np.float32) * np.float32(tree.get("weight"))
    return total.astype(np.float64)


def solr(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    """Solr: ``<=`` threshold + 1e-6 in float32, features by name, as the store has them.

    A missing value is 0, unless the model says otherwise: then the node says where it goes.
    """
    model = json.loads(path.read_text(encoding="utf-8"))
    store = json.loads(path.with_name(path.stem + ".features.json").read_text(encoding="utf-8"))
    assert [item["name"] for item in model["features"]] == [item["name"] for item in store]
    assert {item["store"] for item in store} <= {model["store"]}
    place = {item["name"]: list(names).index(item["name"]) for item in model["features"]}
    x32 = X.astype(np.float32)
    if model["params"].get("isNullSameAsZero", "true") == "true":
        x32 = np.nan_to_num(x32, nan=0.0, posinf=np.inf, neginf=-np.inf)
    else:
        assert {item["params"]["defaultValue"] for item in store} <= {"NaN"}
    if model["class"].endswith(".LinearModel"):
        return _sum32([np.float32(weight) * x32[:, place[name]] for name, weight in model["params"]["weights"].items()])
    assert model["class"].endswith(".MultipleAdditiveTreesModel")

    def step(node: Any, rows: Rows) -> Any:
        if "value" in node:
            return None
        assert isinstance(node["threshold"], str)
        column = rows[:, place[node["feature"]]]
        by_threshold = column <= np.float32(node["threshold"]) + SLACK
        goes_left = np.where(np.isnan(column), node.get("missing") == "left", by_threshold)
        return node["left"], node["right"], goes_left

    columns = [
        np.float32(tree["weight"])
        * _walk(tree["root"], x32, step, lambda node: np.float32(node["value"])).astype(np.float32)
        for tree in model["params"]["trees"]
    ]
    return _sum32(columns)


# ---------------------------------------------------------------------- ONNX, C, Python
def onnx_runtime(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        pytest.skip("this ONNX Runtime has no TreeEnsemble yet")
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    (given,) = session.get_inputs()
    (scores,) = session.run(None, {given.name: X.astype(kinds[given.type])})
    assert scores.shape == (len(X),)
    return scores.astype(np.float64)


def compiled_c(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    program = path.with_suffix(".program")
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    subprocess.run(
        [COMPILER, "-O2", *warnings, "-DGRADRANK_MAIN", path, "-lm", "-o", program], check=True, capture_output=True
    )
    return _lines_of([str(program)], X)


def bare_python(path: Path, X: Rows, names: Sequence[str]) -> Scores:
    """A Python without site packages, environment and user's folders."""
    return _lines_of([sys.executable, "-I", "-S", str(path)], X)


def _lines_of(call: list[str], X: Rows) -> Scores:
    text = "".join(" ".join(map(repr, row)) + "\n" for row in X.astype(np.float64).tolist())
    result = subprocess.run(call, input=text, capture_output=True, text=True, check=True, timeout=120)
    return np.array([float(line) for line in result.stdout.split()])


CONSUMERS: dict[str, Consumer] = {
    "lightgbm": Consumer(lightgbm_booster, "LightGBM", single=False),
    "lightgbm-json": Consumer(lightgbm_dump, "a walker", single=False),
    "vespa": Consumer(vespa, "a walker", single=False),
    "xgboost": Consumer(xgboost_booster, "XGBoost", single=True),
    "xgboost-ubj": Consumer(xgboost_booster, "XGBoost", single=True),
    "ltr-plugin": Consumer(ltr_plugin, "a walker", single=True),
    "elastic": Consumer(elastic, "a walker", single=False),
    "ranklib": Consumer(ranklib, "a walker", single=True, missing_is_zero=True),
    "solr": Consumer(solr, "a walker", single=True, missing_is_zero=True),
    "solr-9.2": Consumer(solr, "a walker", single=True),
    "onnx": Consumer(onnx_runtime, "ONNX Runtime", single=True),
    "onnx-double": Consumer(onnx_runtime, "ONNX Runtime", single=False),
    "c": Consumer(compiled_c, "a compiled program", single=False),
    "python": Consumer(bare_python, "a bare interpreter", single=False),
}
