"""Tree ensembles of ONNX files: ``TreeEnsembleRegressor`` and the newer ``TreeEnsemble``, with one score per document.

Runtimes compare in the type of the input. For float32 input a threshold becomes the largest double that rounds to a
float32 on its side, so that documents of either precision go where the runtime sends them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import default_feature_names
from gradrank.errors import MissingExtraError, ModelError
from gradrank.models.exchange.numbering import checked_features, renumber
from gradrank.models.exchange.splits import largest_at_most
from gradrank.models.exchange.xgboost_model import largest_below
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.trees.tree import DEFAULT_LEFT, MISSING_NAN, Tree

# Operators that may stand before and after the trees, as they change no number.
_HARMLESS = {"Identity", "Cast", "Reshape", "Squeeze", "Flatten", "Unsqueeze"}
_TREES = ("TreeEnsembleRegressor", "TreeEnsemble")
# The numbers by which TreeEnsemble calls what TreeEnsembleRegressor names.
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_SWAPPED = ("BRANCH_GTE", "BRANCH_GT")


def read(content: bytes) -> TreeEnsemble:
    """The trees of an ONNX file."""
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("onnx", "onnx") from None
    try:
        model = onnx.load_model_from_string(content)
    except Exception:  # protobuf's errors have their class in a package of its own
        raise ModelError("is not a whole ONNX model") from None
    try:
        return _ensemble(model, onnx)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise ModelError(f"is a damaged ONNX model ({type(error).__name__}: {error})") from None


def _ensemble(model: Any, onnx: Any) -> TreeEnsemble:
    graph = model.graph
    found = [node for node in graph.node if node.op_type in _TREES and node.domain == "ai.onnx.ml"]
    others = [node.op_type for node in graph.node if node.op_type not in (*_HARMLESS, *_TREES)]
    base, others = _added_base(graph, onnx) if others == ["Add"] else (0.0, others)
    if len(found) != 1 or others:
        what = f"the operator {others[0]}" if others else f"{len(found)} tree ensembles"
        raise ModelError(f"is an ONNX model with {what}, expected one ensemble of trees and nothing that calculates")
    (node,) = found
    values = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    arrays = {key: _array(value, onnx) for key, value in values.items()}
    single = _is_single(graph, node.input[0], onnx)
    trees, targets, count = (_regressor if node.op_type == _TREES[0] else _ensemble_of_5)(arrays)
    if targets != 1 or int(arrays.get("n_targets", 1)) != 1:
        raise ModelError("is an ONNX model of several targets, expected one score per document")
    transform = arrays.get("post_transform", "NONE")
    if transform not in ("NONE", 0):
        raise ModelError(f"is an ONNX model with the post transform {transform!r}, expected the sum of trees itself")
    names = _feature_names(model, count)
    factor = 1.0 / len(trees) if _aggregate(arrays) == "AVERAGE" else 1.0
    made = [tree.tree(single, len(names)).scaled(factor) for tree in trees]
    offset = arrays.get("base_values", arrays.get("base_values_as_tensor", np.zeros(0)))
    base += float(offset[0]) if len(offset) else 0.0
    return TreeEnsemble(made, names, base_score=base, training={"source": "onnx"})


def _aggregate(arrays: dict[str, Any]) -> str:
    given = arrays.get("aggregate_function", "SUM")
    name = _AGGREGATES[given] if isinstance(given, int) and 0 <= given < len(_AGGREGATES) else given
    if name not in ("SUM", "AVERAGE"):
        raise ModelError(f"is an ONNX model that takes the {name} of its trees, expected SUM or AVERAGE")
    return str(name)


def _added_base(graph: Any, onnx: Any) -> tuple[float, list[str]]:
    """The constant that our own files add to TreeEnsemble, which has no base scores."""
    (node,) = [node for node in graph.node if node.op_type == "Add"]
    constants = {item.name: item for item in graph.initializer}
    given = [constants[name] for name in node.input if name in constants]
    if len(given) != 1:
        return 0.0, ["Add"]
    value = onnx.numpy_helper.to_array(given[0])
    return (float(value.reshape(-1)[0]), []) if value.size == 1 else (0.0, ["Add"])


def _is_single(graph: Any, name: str, onnx: Any) -> bool:
    """Whether the trees get float32; the value that goes into them may be a cast of the input."""
    kinds = {item.name: item.type.tensor_type.elem_type for item in graph.input}
    makers = {output: node for node in graph.node for output in node.output}
    for _ in range(len(graph.node)):
        if name not in makers or makers[name].op_type == "Cast":
            break
        name = makers[name].input[0]
    kind = makers[name].attribute[0].i if name in makers else kinds.get(name)
    if len(kinds) != 1 or kind not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
        raise ModelError("is an ONNX model whose input is not one matrix of float32 or float64")
    return bool(kind == onnx.TensorProto.FLOAT)


def _feature_names(model: Any, least: int) -> tuple[str, ...]:
    shape = model.graph.input[0].type.tensor_type.shape.dim
    told = int(shape[1].dim_value) if len(shape) > 1 else 0
    count = checked_features(max(least, told, 1), "an ONNX")
    kept = {item.key: item.value for item in model.metadata_props}.get("feature_names", "").split("\n")
    return tuple(kept) if len(kept) == count and len(set(kept)) == count and all(kept) else default_feature_names(count)


def _array(value: Any, onnx: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        if value.external_data or value.data_location:
            raise ModelError("is an ONNX model that keeps numbers in other files, which are not read")
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple) and value and isinstance(value[0], bytes):
        return [item.decode() for item in value]
    return value if isinstance(value, int | float | str) else np.asarray(value)


class _Nodes:
    """One tree as ONNX has it: nodes in one numbering, leaves among them."""

    def __init__(
        self,
        feature: Any,
        value: Any,
        mode: list[str],
        track: Any,
        sides: tuple[list[int], list[int]],
        leaf: dict[int, float],
    ) -> None:
        self.feature, self.value, self.mode, self.track = feature, value, mode, track
        self.true, self.false = sides
        self.leaf = leaf

    def tree(self, single: bool, n_features: int) -> Tree:
        is_leaf = [mode == "LEAF" for mode in self.mode]
        inner, leaves, number = renumber(self.true, self.false, is_leaf, "an ONNX")
        if len(inner) + len(leaves) != len(is_leaf):
            raise ModelError("has an ONNX tree whose first node is not its root, or with nodes that nothing leads to")
        modes = np.array(self.mode, dtype=object)[inner]
        strange = [mode for mode in modes.tolist() if mode not in _MODES[:4]]
        if strange:
            raise ModelError(f"has ONNX splits of the mode {str(strange[0])[:40]!r}, expected comparisons by size")
        # x >= v and x > v are the opposites of x < v and x <= v, with the branches swapped.
        swapped = np.isin(modes, _SWAPPED)
        strict = np.isin(modes, ("BRANCH_LT", "BRANCH_GTE"))
        value = np.asarray(self.value, dtype=np.float64)[inner]
        true, false = (number[np.asarray(side, dtype=np.int64)[inner]] for side in (self.true, self.false))
        missing_left = (np.asarray(self.track)[inner] != 0) != swapped
        return Tree.of(
            leaf_value=[self.leaf.get(int(old), 0.0) for old in leaves],
            split_feature=np.asarray(self.feature, dtype=np.int64)[inner],
            threshold=_thresholds(value, strict, single),
            decision=MISSING_NAN + DEFAULT_LEFT * missing_left.astype(np.int64),
            left=np.where(swapped, false, true),
            right=np.where(swapped, true, false),
            n_features=n_features,
        )


def _thresholds(value: NDArray[np.float64], strict: NDArray[np.bool_], single: bool) -> NDArray[np.float64]:
    if not np.isfinite(value).all():
        raise ModelError("has an ONNX split threshold that is not a finite number")
    if single:
        with np.errstate(over="ignore"):
            rounded = value.astype(np.float32)
        below: Callable[[NDArray[np.float32]], NDArray[np.float64]] = largest_below
        return np.where(strict, below(rounded), largest_at_most(rounded))
    return np.where(strict, np.nextafter(value, -np.inf), value)


def _regressor(arrays: dict[str, Any]) -> tuple[list[_Nodes], int, int]:
    """Trees of TreeEnsembleRegressor, number of targets, number of features that are used."""
    tree_of = arrays["nodes_treeids"]
    size = len(tree_of)
    value = arrays.get("nodes_values", arrays.get("nodes_values_as_tensor"))
    weight = arrays.get("target_weights", arrays.get("target_weights_as_tensor"))
    track = arrays.get("nodes_missing_value_tracks_true", np.zeros(size, dtype=np.int64))
    lists = [arrays[f"nodes_{key}"] for key in ("nodeids", "featureids", "modes", "truenodeids", "falsenodeids")]
    if value is None or weight is None or any(len(part) != size for part in (*lists, value, track)):
        raise ModelError("has ONNX trees whose lists of nodes have different lengths")
    ids, feature, mode, true, false = lists
    place: dict[int, dict[int, int]] = {}
    rows: dict[int, list[int]] = {}
    for row, (tree, node) in enumerate(zip(tree_of.tolist(), ids.tolist(), strict=True)):
        if place.setdefault(tree, {}).setdefault(node, len(place[tree])) != len(rows.setdefault(tree, [])):
            raise ModelError(f"gives node {node} of ONNX tree {tree} twice")
        rows[tree].append(row)
    leaf: dict[int, dict[int, float]] = {tree: {} for tree in place}
    owners = zip(arrays["target_treeids"].tolist(), arrays["target_nodeids"].tolist(), weight.tolist(), strict=True)
    for tree, node, amount in owners:
        at = place[tree][node]
        leaf[tree][at] = leaf[tree].get(at, 0.0) + float(amount)
    trees = []
    for tree, chosen in rows.items():
        local = place[tree]
        own_true, own_false = (
            [-1 if mode[row] == "LEAF" else local.get(int(side[row]), -1) for row in chosen] for side in (true, false)
        )
        modes = [mode[row] for row in chosen]
        trees.append(_Nodes(feature[chosen], value[chosen], modes, track[chosen], (own_true, own_false), leaf[tree]))
    targets = len(set(arrays["target_ids"].tolist()) | {0})
    return trees, targets, int(feature.max()) + 1


def _ensemble_of_5(arrays: dict[str, Any]) -> tuple[list[_Nodes], int, int]:
    """The same of TreeEnsemble, whose leaves stand in a list of their own."""
    feature = arrays["nodes_featureids"]
    size, n_leaves = len(feature), len(arrays["leaf_weights"])
    modes = [_MODES[number] for number in arrays["nodes_modes"].tolist()]
    track = arrays.get("nodes_missing_value_tracks_true", np.zeros(size, dtype=np.int64))
    sides = []
    for side in ("true", "false"):
        child, is_leaf = arrays[f"nodes_{side}nodeids"], arrays[f"nodes_{side}leafs"] != 0
        if (
            len(child) != size
            or len(is_leaf) != size
            or ((child < 0) | (child >= np.where(is_leaf, n_leaves, size))).any()
        ):
            raise ModelError("has ONNX trees whose children are not there")
        sides.append((child, is_leaf))
    if any(len(part) != size for part in (arrays["nodes_splits"], modes, track)):
        raise ModelError("has ONNX trees whose lists of nodes have different lengths")
    # Every node belongs to one tree: what is reached twice could grow without bound.
    reached = np.zeros(size, dtype=bool)
    trees = [
        _subtree(int(root), feature, arrays["nodes_splits"], modes, track, sides, arrays["leaf_weights"], reached)
        for root in arrays["tree_roots"]
    ]
    return trees, len(set(arrays["leaf_targetids"].tolist()) | {0}), int(feature.max()) + 1


def _subtree(
    root: int, feature: Any, value: Any, modes: list[str], track: Any, sides: Any, weights: Any, reached: Any
) -> _Nodes:
    """The nodes below one root, each leaf a node of its own: two branches may share a leaf of the list."""
    olds: list[int] = []
    true: list[int] = []
    false: list[int] = []
    leaf: dict[int, float] = {}
    todo: list[tuple[int, bool, list[int], int]] = [(root, False, [], 0)]
    while todo:
        old, ends, side, parent = todo.pop()
        here = len(olds)
        if side:
            side[parent] = here
        olds.append(-1 if ends else old)
        true.append(-1)
        false.append(-1)
        if ends:
            leaf[here] = float(weights[old])
        else:
            if not 0 <= old < len(reached) or reached[old]:
                raise ModelError("has an ONNX tree whose children do not form a tree")
            reached[old] = True
            todo += [
                (int(child[old]), bool(is_leaf[old]), target, here)
                for (child, is_leaf), target in zip(reversed(sides), (false, true), strict=True)
            ]
    chosen = np.array(olds)
    mode = ["LEAF" if old < 0 else modes[old] for old in olds]
    return _Nodes(feature[chosen], value[chosen], mode, track[chosen], (true, false), leaf)
