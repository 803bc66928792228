"""LightGBM's JSON dump (``Booster.dump_model``), for tools that read it; Vespa's import of it is a format of its own.

Vespa sends ``x < threshold`` left where LightGBM sends ``x <= threshold``, takes ``default_left`` for every missing
value, whatever the missing type, and has no category numbers: its file has the next double above each threshold.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.models.exchange.lightgbm_text import spaceless
from gradrank.models.exchange.plan import Losses, Plan, one_ensemble
from gradrank.models.exchange.registry import Files
from gradrank.models.exchange.splits import missing_goes_left, nested_text, refuse_categories
from gradrank.models.trees.tree import CATEGORICAL, DEFAULT_LEFT, MISSING_BITS, MISSING_NAN, MISSING_ZERO, Tree

_MISSING = {MISSING_ZERO: "Zero", MISSING_NAN: "NaN"}


def write(plan: Plan, losses: Losses) -> Files:
    """The dump as LightGBM gives it."""
    names = spaceless(plan.feature_names)
    ensemble = one_ensemble(plan, losses.target)
    trees = [_tree_json(tree, tree.threshold, (tree.decision & DEFAULT_LEFT) > 0) for tree in ensemble.trees]
    values = None if ensemble.categories is None else ensemble.categories.to_list()
    return _file(plan, names, trees, ensemble.base_score, values)


def write_vespa(plan: Plan, losses: Losses) -> Files:
    """The dump as Vespa reads it."""
    ensemble = one_ensemble(plan, losses.target)
    refuse_categories(ensemble.trees, plan.feature_names, losses.target)
    left = missing_goes_left(ensemble.trees, plan.feature_names, losses)
    largest = np.finfo(np.float64).max
    trees = []
    for tree, missing_left in zip(ensemble.trees, left, strict=True):
        with np.errstate(over="ignore"):
            above = np.nextafter(tree.threshold, np.inf)
        trees.append(_tree_json(tree, np.minimum(above, largest), missing_left, missing="NaN"))
    losses.note("vespa: features are named as in the model: give the expressions of these names in the rank profile")
    return _file(plan, list(plan.feature_names), trees, ensemble.base_score, None)


def _file(plan: Plan, names: list[str], trees: list[str], base_score: float, categories: Any) -> Files:
    if base_score != 0.0 or not trees:
        trees = [_tree_json(Tree.of(leaf_value=[base_score]), np.zeros(0), np.zeros(0, dtype=bool)), *trees]
    head = {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": len(names) - 1,
        "objective": "lambdarank",
        "average_output": False,
        "feature_names": names,
        "monotone_constraints": [],
        "feature_infos": {},
        "gradrank_origin": {"name": plan.origin.name, "sha256": plan.origin.sha256},
        "pandas_categorical": categories,
    }
    infos = [f'{{"tree_index": {number}, {text}' for number, text in enumerate(trees)]
    text = json.dumps(head, ensure_ascii=False, indent=1)[:-2] + ',\n "tree_info": [\n' + ",\n".join(infos) + "\n]}\n"
    return {"": text.encode()}


def _tree_json(tree: Tree, threshold: NDArray[np.float64], left: NDArray[np.bool_], missing: str | None = None) -> str:
    cover, node_cover = tree.leaf_cover.tolist(), tree.node_cover().tolist()

    def split(node: int, left_text: str, right_text: str) -> str:
        categorical = bool(tree.decision[node] & CATEGORICAL)
        kind = missing or _MISSING.get(int(tree.decision[node] & MISSING_BITS), "None")
        facts = {
            "split_index": node,
            "split_feature": int(tree.split_feature[node]),
            "split_gain": float(tree.split_gain[node]),
            "threshold": "||".join(map(str, _members(tree, node))) if categorical else float(threshold[node]),
            "decision_type": "==" if categorical else "<=",
            "default_left": bool(left[node]),
            "missing_type": kind,
            "internal_value": 0,
            "internal_weight": node_cover[node],
            "internal_count": round(node_cover[node]),
        }
        return f'{json.dumps(facts)[:-1]}, "left_child": {left_text}, "right_child": {right_text}}}'

    def leaf(number: int) -> str:
        facts = {
            "leaf_index": number,
            "leaf_value": float(tree.leaf_value[number]),
            "leaf_weight": cover[number],
            "leaf_count": round(cover[number]),
        }
        return json.dumps(facts)

    n_sets = len(tree.cat_start) - 1
    return (
        f'"num_leaves": {tree.n_leaves}, "num_cat": {n_sets}, "shrinkage": 1, '
        f'"tree_structure": {nested_text(tree, split, leaf)}}}'
    )


def _members(tree: Tree, node: int) -> list[int]:
    number = int(tree.threshold[node])
    words = tree.cat_words[tree.cat_start[number] : tree.cat_start[number + 1]]
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    found: list[int] = np.flatnonzero(bits).tolist()
    return found
