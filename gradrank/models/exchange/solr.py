"""Solr LTR's models, MultipleAdditiveTreesModel and LinearModel, with a stub of the feature store.

Solr's trees send ``x <= threshold + 1e-6`` left, calculated in float32: thresholds are written so that the sum is the
largest float32 that goes left. Where no float32 does that (close to 0), it is a loss. A missing value counts as 0;
from Solr 9.2 on splits of trees may say where it goes (``missing``), if the model says that it does not count as 0
(``isNullSameAsZero``) and the store gives NaN for it (``defaultValue``).
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError
from gradrank.models.exchange.plan import LinePart, Losses, Plan, TreesPart, as_line, one_ensemble
from gradrank.models.exchange.registry import Files
from gradrank.models.exchange.splits import (
    check_leaves,
    finite_single,
    missing_goes_left,
    missing_is_zero,
    nested_text,
    refuse_categories,
    single_thresholds,
)
from gradrank.models.trees.tree import Tree

SLACK = np.float32(1e-6)
_STEPS = 4
_PACKAGE = "org.apache.solr.ltr"


def write(plan: Plan, losses: Losses) -> Files:
    """The model, and beside it the features that it names, as values that a request passes (``efi.NAME``)."""
    return _files(plan, losses, branches=False)


def write_branches(plan: Plan, losses: Losses) -> Files:
    """The same with a branch for missing values at every split, as Solr 9.2 and later read it."""
    return _files(plan, losses, branches=True)


def _files(plan: Plan, losses: Losses, *, branches: bool) -> Files:
    line = as_line(plan)
    name = re.sub(r"[^\w.-]+", "_", plan.origin.name) + f"-{plan.origin.sha256[:12]}"
    if line is not None:
        used, text = _linear(plan, line, name, losses)
    else:
        used, text = _trees(plan, one_ensemble(plan, losses.target), name, losses, branches)
    at_missing = {"defaultValue": "NaN"} if branches and line is None else {}
    stub = [
        {
            "store": name,
            "name": feature,
            "class": f"{_PACKAGE}.feature.ValueFeature",
            "params": {"value": f"${{{feature}}}", "required": False, **at_missing},
        }
        for feature in used
    ]
    losses.note("solr: the features beside the model are a stub that takes their values from the request (efi.NAME)")
    return {"": text.encode(), ".features.json": (json.dumps(stub, ensure_ascii=False, indent=1) + "\n").encode()}


def _linear(plan: Plan, line: LinePart, name: str, losses: Losses) -> tuple[list[str], str]:
    for feature, value in zip(plan.feature_names, line.at_missing.tolist(), strict=True):
        if value != 0.0:
            losses.lose(
                "missing",
                f"a missing {feature!r} adds {value!r} to the score, solr reads it as 0 and adds 0",
                "missing values count as 0",
            )
    if line.bias != 0.0:
        losses.note(f"solr: the constant {line.bias!r} is left out, which changes every score alike")
    used = [feature for feature, slope in zip(plan.feature_names, line.slope.tolist(), strict=True) if slope]
    if not used:
        raise ModelError("solr needs a feature with a weight other than 0, the model has none")
    slopes = dict(zip(plan.feature_names, line.slope.tolist(), strict=True))
    value = _head("LinearModel", name, used) | {"params": {"weights": {feature: slopes[feature] for feature in used}}}
    return used, json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _trees(plan: Plan, ensemble: TreesPart, name: str, losses: Losses, branches: bool) -> tuple[list[str], str]:
    names = plan.feature_names
    refuse_categories(ensemble.trees, names, losses.target)
    check_leaves(ensemble.trees, ensemble.base_score, losses.target)
    missing_left: list[NDArray[np.bool_] | None] = [None] * len(ensemble.trees)
    if branches:
        missing_left = [*missing_goes_left(ensemble.trees, names, losses)]
    else:
        missing_is_zero(ensemble.trees, names, losses)
    bounds = single_thresholds(ensemble.trees, names, losses)
    texts = [
        f'{{"weight": "1", "root": {_tree_text(number, tree, finite_single(bound, losses), left, names, losses)}}}'
        for number, (tree, bound, left) in enumerate(zip(ensemble.trees, bounds, missing_left, strict=True))
    ]
    if ensemble.base_score != 0.0 or not texts:
        texts.insert(0, f'{{"weight": "1", "root": {{"value": "{np.float32(ensemble.base_score)}"}}}}')
    splits = {feature for tree in ensemble.trees for feature in tree.split_feature.tolist()}
    used = [names[feature] for feature in sorted(splits)]
    head = json.dumps(_head("MultipleAdditiveTreesModel", name, used), ensure_ascii=False, indent=1)[:-2]
    null = '"isNullSameAsZero": "false", ' if branches else ""
    return used, head + f',\n "params": {{{null}"trees": [\n' + ",\n".join(texts) + "\n ]}\n}\n"


def _head(kind: str, name: str, features: list[str]) -> dict[str, Any]:
    return {
        "class": f"{_PACKAGE}.model.{kind}",
        "name": name,
        "store": name,
        "features": [{"name": feature} for feature in features],
    }


def _tree_text(
    number: int,
    tree: Tree,
    bound: NDArray[np.float32],
    missing_left: NDArray[np.bool_] | None,
    names: tuple[str, ...],
    losses: Losses,
) -> str:
    written, reached = compensated(bound)
    for node in np.flatnonzero(reached != bound).tolist():
        low, high = sorted((float(reached[node]), float(bound[node])))
        losses.lose(
            "slack",
            f"tree {number} splits {names[tree.split_feature[node]]!r} at {float(tree.threshold[node])!r}, and solr "
            f"adds 1e-6 to thresholds: values above {low!r} up to {high!r} go the other way",
            "the nearest threshold that can be written is taken",
        )
    values = tree.leaf_value.astype(np.float32)

    def split(node: int, left: str, right: str) -> str:
        feature = json.dumps(names[tree.split_feature[node]], ensure_ascii=False)
        missing = "" if missing_left is None else f'"missing": "{"left" if missing_left[node] else "right"}", '
        return f'{{"feature": {feature}, "threshold": "{written[node]}", {missing}"left": {left}, "right": {right}}}'

    return nested_text(tree, split, lambda leaf: f'{{"value": "{values[leaf]}"}}')


def compensated(bound: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """For each bound the float32 that comes nearest to it when 1e-6 is added in float32, and what it comes to.

    >>> written, reached = compensated(np.array([0.5, 1e-35], dtype=np.float32))
    >>> reached.tolist()
    [0.5, 0.0]
    """
    with np.errstate(over="ignore"):
        best = bound - SLACK
        candidate = best
        for _ in range(_STEPS):
            candidate = np.nextafter(candidate, np.float32(-np.inf))
        reached = best + SLACK
        for _ in range(2 * _STEPS + 1):
            sum_of = candidate + SLACK
            exact = bound.astype(np.float64)
            nearer = np.abs(sum_of.astype(np.float64) - exact) < np.abs(reached.astype(np.float64) - exact)
            best, reached = np.where(nearer, candidate, best), np.where(nearer, sum_of, reached)
            candidate = np.nextafter(candidate, np.float32(np.inf))
    return best.astype(np.float32), reached.astype(np.float32)
