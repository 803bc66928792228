"""XGBoost's tree dump as the LTR plugins of Elasticsearch and OpenSearch read it (``model/xgboost+json``).

The plugins send ``x < split_condition`` left, in float32, and find features by name in the feature set. They know no
base score, which is a tree of one leaf here. Plugins before their support for missing values read these as 0 and go
by the condition; newer ones go where ``missing`` says, which every split tells.
"""

from __future__ import annotations

import json

import numpy as np

from gradrank.models.exchange.plan import Losses, Plan
from gradrank.models.exchange.registry import Files
from gradrank.models.exchange.splits import nested_text
from gradrank.models.exchange.xgboost_write import ids_of_children, single_ensemble
from gradrank.models.trees.tree import Tree


def write(plan: Plan, losses: Losses) -> Files:
    """The definition of the model: a list of trees."""
    ensemble, left, conditions = single_ensemble(plan, losses)
    names = plan.feature_names
    texts = []
    if ensemble.base_score != 0.0 or not ensemble.trees:
        texts.append(json.dumps({"nodeid": 0, "leaf": float(np.float32(ensemble.base_score))}))
    for tree, missing_left, condition in zip(ensemble.trees, left, conditions, strict=True):
        texts.append(_tree_text(tree, missing_left.tolist(), condition.astype(np.float64).tolist(), names))
    losses.note(
        "ltr-plugin: the feature set must have features of the model's names; the format has no room for the origin"
    )
    return {"": ("[\n" + ",\n".join(texts) + "\n]\n").encode()}


def _tree_text(tree: Tree, missing_left: list[bool], condition: list[float], names: tuple[str, ...]) -> str:
    left, right = (ids.tolist() for ids in ids_of_children(tree))
    values = tree.leaf_value.astype(np.float32).astype(np.float64).tolist()
    depth = _depths(tree)

    def split(node: int, left_text: str, right_text: str) -> str:
        facts = {
            "nodeid": node,
            "depth": depth[node],
            "split": names[tree.split_feature[node]],
            "split_condition": condition[node],
            "yes": left[node],
            "no": right[node],
            "missing": left[node] if missing_left[node] else right[node],
        }
        return f'{json.dumps(facts, ensure_ascii=False)[:-1]}, "children": [{left_text}, {right_text}]}}'

    return nested_text(tree, split, lambda leaf: json.dumps({"nodeid": tree.n_nodes + leaf, "leaf": values[leaf]}))


def _depths(tree: Tree) -> list[int]:
    depth = [0] * tree.n_nodes
    for node in range(tree.n_nodes):
        for child in (int(tree.left[node]), int(tree.right[node])):
            if child >= 0:
                depth[child] = depth[node] + 1
    return depth
