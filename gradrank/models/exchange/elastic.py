"""Elastic's own inference: an ensemble of trees as the body of ``PUT _ml/trained_models/ID``.

Splits are ``lte`` in double precision, with a side for missing values: nothing is rounded.
"""

from __future__ import annotations

import json
from typing import Any

from gradrank.models.exchange.plan import Losses, Plan, one_ensemble
from gradrank.models.exchange.registry import Files
from gradrank.models.exchange.splits import missing_goes_left, refuse_categories
from gradrank.models.exchange.xgboost_write import ids_of_children
from gradrank.models.trees.tree import Tree


def write(plan: Plan, losses: Losses) -> Files:
    """The body of the request that makes the model."""
    ensemble = one_ensemble(plan, losses.target)
    names = list(plan.feature_names)
    refuse_categories(ensemble.trees, names, losses.target)
    left = missing_goes_left(ensemble.trees, names, losses)
    trees = [_nodes(tree, side.tolist()) for tree, side in zip(ensemble.trees, left, strict=True)]
    if ensemble.base_score != 0.0 or not trees:
        trees = [[{"node_index": 0, "leaf_value": [ensemble.base_score]}], *trees]
    models = [
        {"tree": {"feature_names": names, "tree_structure": nodes, "target_type": "regression"}} for nodes in trees
    ]
    body = {
        "description": f"gradrank {plan.origin.name}",
        "metadata": {"gradrank_origin": {"name": plan.origin.name, "sha256": plan.origin.sha256}},
        "input": {"field_names": names},
        "inference_config": {"learning_to_rank": {"feature_extractors": []}},
        "definition": {
            "trained_model": {
                "ensemble": {
                    "feature_names": names,
                    "target_type": "regression",
                    "aggregate_output": {"weighted_sum": {"weights": [1.0] * len(models)}},
                    "trained_models": models,
                }
            }
        },
    }
    losses.note("elastic: fill in feature_extractors, one for each feature that a query must calculate")
    return {"": json.dumps(body, ensure_ascii=False, allow_nan=False).encode()}


def _nodes(tree: Tree, missing_left: list[bool]) -> list[dict[str, Any]]:
    left, right = (ids.tolist() for ids in ids_of_children(tree))
    gain = tree.split_gain.tolist()
    splits = [
        {
            "node_index": node,
            "split_feature": feature,
            "threshold": threshold,
            "decision_type": "lte",
            "default_left": missing_left[node],
            "left_child": left[node],
            "right_child": right[node],
            "split_gain": gain[node],
        }
        for node, (feature, threshold) in enumerate(
            zip(tree.split_feature.tolist(), tree.threshold.tolist(), strict=True)
        )
    ]
    leaves = [
        {"node_index": tree.n_nodes + number, "leaf_value": [value]}
        for number, value in enumerate(tree.leaf_value.tolist())
    ]
    return splits + leaves
