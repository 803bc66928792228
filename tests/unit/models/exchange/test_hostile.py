"""Files made to do harm: numbers that would fill the memory, entities, cycles, nesting, keys given twice."""

from __future__ import annotations

import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank.errors import ModelError
from gradrank.models.registry import load_ranker
from gradrank.models.trees.tree import Tree
from tests.support.model_zoo import model_files

MEGABYTE = 1 << 20


def refused(content: bytes, message: str, folder: Path, most: int = 24 * MEGABYTE) -> None:
    """The file is refused by one sentence, without much memory."""
    path = folder / "hostile"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=message) as caught:
            load_ranker(path)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert used < most + 8 * len(content)


def json_with(name: str, change: Callable[[Any], Any]) -> bytes:
    value = json.loads(model_files()[name])
    change(value)
    return json.dumps(value).encode()


def _set(*path: Any) -> Callable[[Any], Any]:
    *inner, last, new = path

    def change(value: Any) -> None:
        for key in inner:
            value = value[key]
        value[last] = new

    return change


TREE = ("learner", "gradient_booster", "model", "trees", 0)
PAYLOAD = ("payload", "trees", 0)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("xgboost json", _set("learner", "learner_model_param", "num_feature", "2000000000"), "2000000000 features"),
        ("xgboost json", _set(*TREE, "left_children", 0, 0), "children do not form a tree"),
        ("xgboost json", _set(*TREE, "right_children", 0, -1), "children do not form a tree"),
        ("xgboost json", _set(*TREE, "right_children", 0, 10**6), "children do not form a tree"),
        ("xgboost json", _set(*TREE, "split_conditions", 0, float("nan")), "not a finite number"),
        ("xgboost json", _set(*TREE, "split_indices", 0, 99), "feature number 99"),
        ("xgboost json", _set(*TREE, "split_indices", 0, 2**32), "whole numbers"),
        ("gradrank trees", _set(*PAYLOAD, "left", 0, 0), "parents before their children"),
        ("gradrank trees", _set(*PAYLOAD, "right", 0, -99), "parents before their children"),
        ("gradrank trees", _set(*PAYLOAD, "split_feature", 0, 3), "feature number 3"),
        ("gradrank trees", _set(*PAYLOAD, "split_feature", 0, -1), "feature"),
        ("gradrank trees", _set(*PAYLOAD, "split_feature", 0, 0.5), "whole numbers"),
        ("gradrank trees", _set(*PAYLOAD, "left", 0, 2**32 + 1), "whole numbers"),
        ("gradrank trees", _set(*PAYLOAD, "threshold", 0, float("nan")), "not a finite number"),
        ("gradrank trees", _set(*PAYLOAD, "leaf_value", [[1.0]] * 9), "expected one list"),
        ("gradrank trees", _set("training", [1]), "facts about the training"),
        ("gradrank trees", _set("training", "x", json.loads('{"a":' * 300 + "1" + "}" * 300)), "more than 30 levels"),
        ("gradrank categories", _set("payload", "categories", "columns", [9]), "feature number 9 has categories"),
        ("gradrank categories", _set("payload", "categories", "columns", [-1]), "categories of 1 columns"),
        ("gradrank categories", _set("payload", "categories", "columns", [0, 1]), "categories of 1 columns"),
        ("gradrank categories", _set("payload", "categories", "values", [[{}, []]]), "a category is a dict"),
        ("xgboost dart", _set("learner", "learner_model_param", "base_score", "1"), "not a whole XGBoost model"),
        ("xgboost dart", _set("learner", "learner_model_param", "base_score", "[0]"), "not a whole XGBoost model"),
        ("xgboost dart", _set("learner", "gradient_booster", "weight_drop", [1.0]), "1 weights for 2 trees"),
        ("gradrank linear", _set("kind", []), r"kind \[\], expected one of trees"),
        ("gradrank linear", _set("payload", "weights", [1.0]), "1 weights for 3 features"),
        ("gradrank net", _set("payload", "layers", 0, "bias", [0.0]), "layer 1 has weights of shape"),
        ("gradrank feature", _set("payload", "missing", float("nan")), "missing is nan"),
        ("catboost SymmetricTree", _set("oblivious_trees", 0, "leaf_values", [1.0] * 7), "3 levels and 7 leaf values"),
        ("catboost SymmetricTree", _set("oblivious_trees", 0, "splits", 0, "float_feature_index", 10**9), "1000000000"),
        ("catboost SymmetricTree", _set("oblivious_trees", 0, "splits", 0, "border", float("nan")), "not a number"),
        (
            "catboost SymmetricTree",
            _set("features_info", "float_features", 0, "flat_feature_index", 2**40),
            "1099511627777 features",
        ),
    ],
)
def test_damaged_numbers(name: str, change: Any, message: str, tmp_path: Path) -> None:
    refused(json_with(name, change), message, tmp_path)


def chain(n_nodes: int) -> dict[str, Any]:
    """A tree where every split has a leaf on its left: as deep as it is large."""
    return {
        "split_feature": [0] * n_nodes,
        "threshold": np.linspace(0.0, 1.0, n_nodes).tolist(),
        "decision": [8] * n_nodes,
        "left": [~k for k in range(n_nodes)],
        "right": [*range(1, n_nodes), ~n_nodes],
        "leaf_value": np.arange(n_nodes + 1.0).tolist(),
    }


@pytest.mark.parametrize("wrapping", [[0, 2**63 - 1, -(2**63), 4], [0, 2**62, -(2**62), 4], [0, 5, 4], [0, -1, 4]])
def test_category_sets_whose_places_wrap_around(wrapping: list[int], tmp_path: Path) -> None:
    # The difference of the second and third number, in 64 bits, is positive again.
    arrays = {**chain(3), "decision": [1, 8, 8], "threshold": [0, 0.5, 0.6], "cat_words": [1, 2, 3, 4]}
    with pytest.raises(ModelError, match="category sets are damaged"):
        Tree.of(**arrays, cat_start=wrapping)
    lines = [f"cat_boundaries={' '.join(map(str, wrapping))}", "cat_threshold=1 2 3 4"]
    old = model_files()["lightgbm"].decode().split("\n")
    first = next(place for place, line in enumerate(old) if line.startswith("cat_boundaries="))
    refused("\n".join([*old[:first], *lines, *old[first + 2 :]]).encode(), "category sets are damaged", tmp_path)


def test_a_tree_as_deep_as_it_is_large(tmp_path: Path) -> None:
    value = json.loads(model_files()["gradrank trees"])
    value["payload"] = {"base_score": 0.0, "trees": [chain(60_000)]}
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(value))
    tracemalloc.start()
    try:
        ranker = load_ranker(path)
        X = np.zeros((300, 3))
        X[:, 0] = np.random.default_rng(0).random(300)
        scores = ranker.predict(X, n_jobs=1)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Cut into pieces, it would take 5 GB.
    assert used < 64 * MEGABYTE
    # Leaf k is reached by values above k thresholds.
    assert scores.tolist() == np.searchsorted(np.linspace(0.0, 1.0, 60_000), X[:, 0]).tolist()


def test_devices_are_no_models() -> None:
    with pytest.raises(ModelError, match="/dev/zero: is a device, expected a file"):
        load_ranker("/dev/zero")


def test_keys_given_twice(tmp_path: Path) -> None:
    for name in ("gradrank linear", "xgboost json", "catboost Lossguide"):
        content = model_files()[name].decode()
        key = next(iter(json.loads(content)))
        refused(f'{{"{key}": 1, {content.lstrip()[1:]}'.encode(), f"gives '{key}' twice", tmp_path)
    twice = model_files()["lightgbm"].replace(b"\nnum_cat=", b"\nnum_leaves=3\nnum_cat=", 1)
    refused(twice, "gives 'num_leaves' twice", tmp_path)
    refused(b"{i\x01ai\x01i\x01ai\x02}", "'a' is given twice", tmp_path)
    many = ", ".join(f'"{k}": 0' for k in range(100_000))
    refused(f'{{{many}, "99999": 0}}'.encode(), "gives '99999' twice", tmp_path, most=100 * MEGABYTE)


def test_nesting_without_end(tmp_path: Path) -> None:
    for opening in (b"[", b'{"a":'):
        refused(b'{"learner": ' + opening * 100_000, "nested too deeply", tmp_path)
    refused(b"{i\x01a" + b"[" * 100_000, "nested too deeply", tmp_path)
    refused(b"{i\x01a" + b"[#" * 100_000, "UBJSON", tmp_path)
    refused(b"## LambdaMART\n<ensemble><tree>" + b"<split>" * 100_000, "without a feature or threshold", tmp_path)
    leaf = json.loads(model_files()["gradrank feature"])
    for _ in range(150):
        leaf = {**leaf, "kind": "weighted_sum", "payload": {"parts": [{"weight": 1.0, "ranker": leaf}]}}
    refused(json.dumps(leaf).encode(), "more than 50 deep", tmp_path)


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    lines = ['<!ENTITY a0 "' + "x" * 1000 + '">']
    lines += [f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 10)]
    laughs = f"<!DOCTYPE ensemble [{''.join(lines)}]>"
    refused(f"## LambdaMART\n{laughs}<ensemble>&a9;</ensemble>".encode(), "declares a document type", tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("1")
    outside = f'<!DOCTYPE e [<!ENTITY f SYSTEM "file://{secret}">]><ensemble><tree><split><output>&f;</output></split>'
    refused(outside.encode() + b"</tree></ensemble>", "declares a document type", tmp_path)


def test_counts_that_the_file_does_not_hold(tmp_path: Path) -> None:
    huge = struct.pack(">q", 1 << 40)
    for element in (b"T", b"Z", b"d", b"U", b"[", b"S"):
        refused(b"{i\x01a[$" + element + b"#L" + huge, "UBJSON", tmp_path)
    # Sixteen bytes each ask for as many constants as there are bytes behind them.
    refused(
        b"{i\x01a[" + 30_000 * (b"[$T#L" + struct.pack(">q", 100_000)), "UBJSON .a container of constants", tmp_path
    )
    refused(b"{i\x01a[#L" + huge, "UBJSON", tmp_path)
    refused(b"{i\x01aSL" + huge, "UBJSON", tmp_path)
    refused(b"{i\x01a{$T#L" + huge, "UBJSON", tmp_path)
    refused(b"{i\x01a[#i\xff", "UBJSON", tmp_path)
    refused(b"## Linear Regression\n0:1 1:1 2000000000:1\n", "feature number 2000000000", tmp_path)
    tree = "<split><feature>2000000000</feature><threshold>1</threshold>{}{}</split>".format(
        *(f"<split pos='{side}'><output>1</output></split>" for side in ("left", "right"))
    )
    refused(f"<ensemble><tree>{tree}</tree></ensemble>".encode(), "feature number 2000000000", tmp_path)
    leaf = b"<ensemble><tree><split><output>1</output></split></tree></ensemble>"
    refused(b"## MART\n## No. of features = 999999999\n" + leaf, "feature number 999999999", tmp_path)
    header = (1 << 60).to_bytes(8, "little") + b"{}"
    refused(header, "is not a model", tmp_path)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "no element found"),
        ("<ensemble></ensemble>", "without trees"),
        ("<ensemble><tree></tree></ensemble>", "without a leaf"),
        ("<ensemble><tree><split></split></tree></ensemble>", "lacks a child or an output"),
        ("<ensemble><tree><split><output>x</output></split></tree></ensemble>", "'x', expected a number"),
        ("<ensemble><tree><split><output>nan</output></split></tree></ensemble>", "'nan', expected a number"),
        ("<ensemble><tree><split><output>inf</output></split></tree></ensemble>", "not a finite number"),
        ("<ensemble><tree><split><output>1</output><output>1</output></split></tree></ensemble>", "second or late"),
        ("<ensemble><tree><split><feature>0.5</feature></split></tree></ensemble>", "expected a whole number"),
        ("<ensemble><forest></forest></ensemble>", "<forest> in <ensemble>"),
        ("<ensemble><tree><split><output>1</output></split><split><output>1</output></split></tree></ensemble>", "two"),
        ("<ensemble>text<tree></tree></ensemble>", "has text in <ensemble>"),
    ],
)
def test_ranklib_that_is_no_tree(body: str, message: str, tmp_path: Path) -> None:
    refused(f"## LambdaMART\n{body}".encode(), message, tmp_path)


def test_ranklib_of_other_kinds_is_named(tmp_path: Path) -> None:
    refused(b"## RankNet\n1 2 3\n", "RankLib model of 'RankNet', expected one of LambdaMART, MART, ", tmp_path)
    refused(b"## Random Forests\n<ensemble>", "'Random Forests'", tmp_path)
    refused(b"## Linear Regression\n0:1 1:x\n", "expected pairs FEATURE:WEIGHT", tmp_path)
    refused(b"## Linear Regression\n1:1 1:2\n", "feature 1 two weights", tmp_path)
    refused(b"## Linear Regression\n", "no feature", tmp_path)


def onnx_with(change: Callable[[Any], None], form: str = "onnx-double") -> bytes:
    import onnx

    model = onnx.load_model_from_string(model_files()[form])
    (node,) = [node for node in model.graph.node if node.op_type.startswith("TreeEnsemble")]
    change({attribute.name: attribute for attribute in node.attribute})
    content: bytes = model.SerializeToString()
    return content


def _ints(name: str, place: int, value: int) -> Callable[[Any], None]:
    return lambda attributes: attributes[name].ints.__setitem__(place, value)


@pytest.mark.parametrize(
    ("form", "change", "message"),
    [
        ("onnx-double", _ints("nodes_truenodeids", 0, 0), "do not form a tree"),
        ("onnx-double", _ints("nodes_truenodeids", 1, 2**40), "children are not there"),
        ("onnx-double", _ints("nodes_featureids", 0, 2**40), "features, expected 1 to"),
        ("onnx-double", _ints("nodes_featureids", 0, -1), "feature"),
        ("onnx-double", lambda items: items["tree_roots"].ints.extend([0] * 100_000), "do not form a tree"),
        ("onnx-double", lambda items: items["nodes_splits"].t.dims.__setitem__(0, 2**40), "damaged ONNX model"),
        (
            "onnx-double",
            lambda items: items["leaf_weights"].t.external_data.add(key="location", value="x"),
            "other files",
        ),
        ("onnx", _ints("nodes_truenodeids", 0, 0), "do not form a tree"),
        ("onnx", _ints("nodes_nodeids", 1, 0), "twice"),
        ("onnx", _ints("nodes_featureids", 0, 2**40), "features, expected 1 to"),
        ("onnx", lambda items: items["nodes_values"].floats.pop(), "different lengths"),
        ("onnx", lambda items: items["nodes_values"].floats.__setitem__(0, float("nan")), "not a finite number"),
        ("onnx", lambda items: items["target_weights"].floats.__setitem__(0, float("inf")), "not a finite number"),
    ],
)
def test_damaged_onnx(form: str, change: Callable[[Any], None], message: str, tmp_path: Path) -> None:
    refused(onnx_with(change, form), message, tmp_path, most=64 * MEGABYTE)
