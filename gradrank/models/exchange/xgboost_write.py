"""XGBoost's saved models, JSON and UBJSON, written without XGBoost.

XGBoost sends ``x < condition`` left in float32: the condition is the next float32 above the largest that goes left.
Leaf values are rounded to float32, in which XGBoost adds them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError
from gradrank.models.exchange.plan import Losses, Plan, TreesPart, one_ensemble
from gradrank.models.exchange.registry import Files
from gradrank.models.exchange.splits import (
    check_leaves,
    finite_single,
    just_above,
    missing_goes_left,
    refuse_categories,
    single_thresholds,
)
from gradrank.models.exchange.ubjson import format_ubjson
from gradrank.models.trees.tree import Tree

_NO_PARENT = 2147483647
_BAD_IN_NAMES = "[]<"


def write_json(plan: Plan, losses: Losses) -> Files:
    """The model as XGBoost's JSON."""
    model = _model(plan, losses)
    return {"": json.dumps(_listed(model), ensure_ascii=False, allow_nan=False).encode()}


def write_ubjson(plan: Plan, losses: Losses) -> Files:
    """The model as XGBoost's UBJSON."""
    return {"": format_ubjson(_model(plan, losses))}


def single_ensemble(plan: Plan, losses: Losses) -> tuple[TreesPart, list[NDArray[np.bool_]], list[NDArray[np.float32]]]:
    """The model as trees that split by ``x < condition`` in float32: where missing values go, and the conditions."""
    ensemble = one_ensemble(plan, losses.target)
    refuse_categories(ensemble.trees, plan.feature_names, losses.target)
    check_leaves(ensemble.trees, ensemble.base_score, losses.target)
    left = missing_goes_left(ensemble.trees, plan.feature_names, losses)
    bounds = single_thresholds(ensemble.trees, plan.feature_names, losses)
    return ensemble, left, [finite_single(just_above(bound), losses) for bound in bounds]


def _model(plan: Plan, losses: Losses) -> dict[str, Any]:
    for name in plan.feature_names:
        if any(character in name for character in _BAD_IN_NAMES):
            raise ModelError(f"feature {name!r} has a name that XGBoost refuses: it may not hold [, ] or <")
    ensemble, left, conditions = single_ensemble(plan, losses)
    n_features = len(plan.feature_names)
    trees = [
        _tree(number, tree, missing_left, condition, n_features)
        for number, (tree, missing_left, condition) in enumerate(zip(ensemble.trees, left, conditions, strict=True))
    ]
    return {
        "learner": {
            "attributes": {"gradrank_origin": str(plan.origin)},
            "feature_names": list(plan.feature_names),
            "feature_types": ["float"] * n_features,
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                    "iteration_indptr": list(range(len(trees) + 1)),
                    "tree_info": [0] * len(trees),
                    "trees": trees,
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                # XGBoost 2 reads a number of more digits than float32 has as 0.5, without a word.
                "base_score": np.format_float_scientific(np.float32(ensemble.base_score), exp_digits=1).upper(),
                "boost_from_average": "1",
                "num_class": "0",
                "num_feature": str(n_features),
                "num_target": "1",
            },
            "objective": {"name": "rank:pairwise", "lambdarank_param": {}},
        },
        "version": [2, 1, 0],
    }


def _tree(
    number: int, tree: Tree, missing_left: NDArray[np.bool_], condition: NDArray[np.float32], n_features: int
) -> dict[str, Any]:
    node_id, leaf_id = _paired_ids(tree)
    size = tree.n_nodes + tree.n_leaves
    ids = np.concatenate((node_id, leaf_id))
    left, right = (ids[places] for places in ids_of_children(tree))

    def placed(of_nodes: Any, of_leaves: Any, dtype: type) -> NDArray[Any]:
        column: NDArray[Any] = np.zeros(size, dtype=dtype)
        column[ids] = np.concatenate((np.asarray(of_nodes), np.broadcast_to(of_leaves, tree.n_leaves)))
        return column

    parents = np.full(size, _NO_PARENT, dtype=np.int32)
    parents[left] = node_id
    parents[right] = node_id
    leaf_value = tree.leaf_value.astype(np.float32)
    empty = np.zeros(0, dtype=np.int32)
    return {
        # Some readers take the leaves from here.
        "base_weights": placed(np.zeros(tree.n_nodes), leaf_value, np.float32),
        "categories": empty,
        "categories_nodes": empty,
        "categories_segments": empty.astype(np.int64),
        "categories_sizes": empty.astype(np.int64),
        "default_left": placed(missing_left, 0, np.uint8),
        "id": number,
        "left_children": placed(left, -1, np.int32),
        "loss_changes": placed(tree.split_gain, 0, np.float32),
        "parents": parents,
        "right_children": placed(right, -1, np.int32),
        "split_conditions": placed(condition, leaf_value, np.float32),
        "split_indices": placed(tree.split_feature, 0, np.int32),
        "split_type": np.zeros(size, dtype=np.uint8),
        "sum_hessian": placed(tree.node_cover(), tree.leaf_cover, np.float32),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(size),
            "size_leaf_vector": "1",
        },
    }


def _paired_ids(tree: Tree) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the splits and of the leaves; a right child's follows the left one's: XGBoost counts on it."""
    node_id = np.zeros(tree.n_nodes, dtype=np.int64)
    leaf_id = np.zeros(tree.n_leaves, dtype=np.int64)
    following = 1
    for left, right in zip(tree.left.tolist(), tree.right.tolist(), strict=True):
        for child in (left, right):
            if child >= 0:
                node_id[child] = following
            else:
                leaf_id[~child] = following
            following += 1
    return node_id, leaf_id


def ids_of_children(tree: Tree) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The children of each node where leaf k is number ``n_nodes + k``."""
    left, right = (np.where(child >= 0, child, tree.n_nodes + ~child) for child in (tree.left, tree.right))
    return left.astype(np.int32), right.astype(np.int32)


def _listed(value: Any) -> Any:
    """The same with lists in the place of arrays; float32 as doubles, which are exactly they."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list) else value
