"""Attributes of ONNX's two operators for trees.

``TreeEnsembleRegressor`` is the older and known to every runtime, but its scores are float32. ``TreeEnsemble``
(version 5 of ai.onnx.ml, 2024) takes and gives doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.models.exchange.plan import Losses, TreesPart
from gradrank.models.exchange.splits import (
    check_leaves,
    finite_single,
    missing_goes_left,
    refuse_categories,
    single_thresholds,
)
from gradrank.models.exchange.xgboost_write import ids_of_children
from gradrank.models.trees.tree import Tree

_LEQ, _SUM, _NONE = 0, 1, 0


def regressor_attributes(ensembles: Sequence[TreesPart], names: Sequence[str], losses: Losses) -> dict[str, Any]:
    """Of TreeEnsembleRegressor with one target per ensemble, in float32."""
    rows: dict[str, list[Any]] = {}

    def add(key: str, values: list[Any]) -> None:
        rows.setdefault(key, []).extend(values)

    number = 0
    for column, ensemble in enumerate(ensembles):
        refuse_categories(ensemble.trees, names, losses.target)
        check_leaves(ensemble.trees, ensemble.base_score, losses.target)
        missing_left = missing_goes_left(ensemble.trees, names, losses)
        bounds = [finite_single(bound, losses) for bound in single_thresholds(ensemble.trees, names, losses)]
        for tree, track, bound in zip(ensemble.trees, missing_left, bounds, strict=True):
            left, right = (ids.tolist() for ids in ids_of_children(tree))
            n, leaves = tree.n_nodes, tree.n_leaves
            no_leaf = [0] * leaves
            add("nodes_treeids", [number] * (n + leaves))
            add("nodes_nodeids", list(range(n + leaves)))
            add("nodes_featureids", tree.split_feature.tolist() + no_leaf)
            add("nodes_values", bound.astype(np.float64).tolist() + [0.0] * leaves)
            add("nodes_modes", ["BRANCH_LEQ"] * n + ["LEAF"] * leaves)
            add("nodes_truenodeids", left + no_leaf)
            add("nodes_falsenodeids", right + no_leaf)
            add("nodes_missing_value_tracks_true", track.astype(int).tolist() + no_leaf)
            add("target_treeids", [number] * leaves)
            add("target_nodeids", list(range(n, n + leaves)))
            add("target_ids", [column] * leaves)
            add("target_weights", tree.leaf_value.tolist())
            number += 1
    facts = {"n_targets": len(ensembles), "aggregate_function": "SUM", "post_transform": "NONE"}
    return {**rows, **facts, "base_values": [ensemble.base_score for ensemble in ensembles]}


def ensemble_attributes(
    ensembles: Sequence[TreesPart], names: Sequence[str], losses: Losses
) -> dict[str, int | NDArray[Any]]:
    """Of TreeEnsemble with one target per ensemble, in double precision; base scores are not among them."""
    parts: list[dict[str, NDArray[Any]]] = []
    first_node = first_leaf = 0
    for column, ensemble in enumerate(ensembles):
        refuse_categories(ensemble.trees, names, losses.target)
        for tree, track in zip(ensemble.trees, missing_goes_left(ensemble.trees, names, losses), strict=True):
            parts.append(_tree_arrays(tree, track, column, first_node, first_leaf))
            first_node += len(parts[-1]["nodes_featureids"])
            first_leaf += tree.n_leaves
    joined: dict[str, int | NDArray[Any]] = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    joined["nodes_modes"] = np.full(first_node, _LEQ, dtype=np.uint8)
    return {**joined, "n_targets": len(ensembles), "aggregate_function": _SUM, "post_transform": _NONE}


def _tree_arrays(
    tree: Tree, missing_left: NDArray[np.bool_], column: int, first_node: int, first_leaf: int
) -> dict[str, NDArray[Any]]:
    feature, threshold = tree.split_feature.astype(np.int64), tree.threshold
    left, right = tree.left.astype(np.int64), tree.right.astype(np.int64)
    if not tree.n_nodes:
        # A root must be a split: one with the leaf on both sides.
        feature, threshold = np.zeros(1, dtype=np.int64), np.zeros(1)
        left = right = np.array([-1])
        missing_left = np.zeros(1, dtype=bool)
    sides = {}
    for side, child in (("true", left), ("false", right)):
        sides[f"nodes_{side}nodeids"] = np.where(child >= 0, child + first_node, ~child + first_leaf)
        sides[f"nodes_{side}leafs"] = (child < 0).astype(np.int64)
    return {
        "tree_roots": np.array([first_node]),
        "nodes_featureids": feature,
        "nodes_splits": threshold,
        "nodes_missing_value_tracks_true": missing_left.astype(np.int64),
        **sides,
        "leaf_targetids": np.full(tree.n_leaves, column, dtype=np.int64),
        "leaf_weights": tree.leaf_value,
    }
