"""Trees from XGBoost's saved models (JSON or UBJSON), read without XGBoost.

XGBoost sends ``x < threshold`` left in float32 and rounds float64 input to float32 first. Both are one float64 test
``x <= t``: ``t`` is the largest float64 that rounds to a float32 below the threshold, so float32 and float64 input
go where XGBoost sends them. XGBoost adds leaf values in float32, gradrank the same values in float64: scores agree to
float32 rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import default_feature_names
from gradrank.errors import ModelError
from gradrank.models.exchange.numbering import checked_features, renumber
from gradrank.models.exchange.strict_json import parse_json
from gradrank.models.exchange.ubjson import parse_ubjson
from gradrank.models.trees.tree import DEFAULT_LEFT, MISSING_NAN, Tree

_LOGISTIC = {"binary:logistic", "reg:logistic", "binary:logitraw"}
_LOG = {"count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"}


@dataclass(frozen=True)
class XGBoostModel:
    """What a saved XGBoost model says."""

    trees: tuple[Tree, ...]
    feature_names: tuple[str, ...]
    base_score: float
    objective: str
    best: int | None
    """Iterations up to the best one, if training was stopped early; the trees are cut there."""
    grown: int
    """Iterations that were trained."""


def parse_xgboost(model: bytes | str | Mapping[str, Any]) -> XGBoostModel:
    """Read a model that XGBoost's ``save_model`` or ``save_raw`` gave, as bytes, text or parsed JSON."""
    try:
        return _parse(_parsed(model))
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise ModelError(f"is not a whole XGBoost model ({type(error).__name__}: {error})") from None


def _parsed(model: bytes | str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(model, Mapping):
        return model
    if isinstance(model, str) or model[1:2] in (b'"', b"\n", b"\r", b" ", b"\t"):
        return dict(parse_json(model))
    return dict(parse_ubjson(bytes(model)))


def _parse(model: Mapping[str, Any]) -> XGBoostModel:
    if "learner" not in model:
        raise ModelError("is not an XGBoost model: it has no learner")
    learner = model["learner"]
    parameters = learner["learner_model_param"]
    if int(parameters.get("num_class", 0)) > 1 or int(parameters.get("num_target", 1)) > 1:
        raise ModelError("is an XGBoost model of several classes or targets, expected one score per document")
    booster = learner["gradient_booster"]
    weights = None
    if booster["name"] == "dart":
        weights = np.asarray(booster["weight_drop"], dtype=np.float64)
        booster = booster["gbtree"]
    elif booster["name"] != "gbtree":
        raise ModelError(f"is an XGBoost {booster['name']} model, expected gbtree or dart")
    n_features = checked_features(int(parameters["num_feature"]), "an XGBoost")
    trees = [_tree(tree, n_features) for tree in booster["model"]["trees"]]
    if weights is not None:
        if len(weights) != len(trees):
            raise ModelError(f"is an XGBoost dart model with {len(weights)} weights for {len(trees)} trees")
        trees = [tree.scaled(float(weight)) for tree, weight in zip(trees, weights, strict=True)]
    names = tuple(learner.get("feature_names") or ()) or default_feature_names(n_features)
    objective = str(learner.get("objective", {}).get("name", ""))
    base_score = _base_margin(parameters["base_score"], objective)
    ends = _iteration_ends(booster["model"], len(trees))
    best = learner.get("attributes", {}).get("best_iteration")
    if best is None:
        return XGBoostModel(tuple(trees), names, base_score, objective, None, len(ends))
    # As XGBModel.predict, which leaves out what was trained while it waited for an improvement.
    kept = min(int(best) + 1, len(ends))
    return XGBoostModel(tuple(trees[: ends[kept - 1]]), names, base_score, objective, kept, len(ends))


def _iteration_ends(model: Mapping[str, Any], n_trees: int) -> list[int]:
    """For each iteration, which may have grown several trees, the number of trees up to its end."""
    if "iteration_indptr" in model:
        return [int(end) for end in model["iteration_indptr"]][1:]
    parallel = max(1, int(model.get("gbtree_model_param", {}).get("num_parallel_tree", 1)))
    return list(range(parallel, n_trees + 1, parallel))


def _base_margin(text: Any, objective: str) -> float:
    """The constant that XGBoost starts its sum from: its base score, before the objective's link function."""
    value = float(np.float32(float(str(text).strip("[]"))))
    if objective in _LOGISTIC:
        return math.log(value / (1.0 - value))
    return math.log(value) if objective in _LOG else value


def _tree(tree: Mapping[str, Any], n_features: int) -> Tree:
    if len(tree.get("categories_nodes", ())):
        raise ModelError("has categorical splits of XGBoost, which are not supported")
    if int(tree.get("tree_param", {}).get("size_leaf_vector", 1)) > 1:
        raise ModelError("has XGBoost trees with several values per leaf, which are not supported")
    left = np.asarray(tree["left_children"], dtype=np.int64)
    right = np.asarray(tree["right_children"], dtype=np.int64)
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)
    if left.ndim != 1 or left.shape != right.shape or left.shape != condition.shape:
        raise ModelError("has an XGBoost tree whose lists have different lengths")
    inner, leaf, number = renumber(left.tolist(), right.tolist(), (left < 0).tolist(), "an XGBoost")
    default_left = np.asarray(tree["default_left"], dtype=np.int64)[inner]
    return Tree.of(
        leaf_value=condition[leaf].astype(np.float64),
        n_features=n_features,
        split_feature=np.asarray(tree["split_indices"], dtype=np.int64)[inner],
        threshold=largest_below(condition[inner]),
        decision=MISSING_NAN + DEFAULT_LEFT * (default_left > 0),
        left=number[left[inner]],
        right=number[right[inner]],
        split_gain=np.asarray(tree["loss_changes"], dtype=np.float64)[inner],
        leaf_cover=np.asarray(tree["sum_hessian"], dtype=np.float64)[leaf],
    )


def largest_below(threshold: NDArray[np.float32]) -> NDArray[np.float64]:
    """The largest float64 that, rounded to float32, is less than a float32 threshold.

    >>> bound = largest_below(np.array([1.0], dtype=np.float32))
    >>> np.float32(bound[0]) < 1, np.float32(np.nextafter(bound[0], 2)) < 1
    (np.True_, np.False_)
    """
    if not np.isfinite(threshold).all():
        raise ModelError("has an XGBoost split threshold that is not a finite number")
    upper = threshold.astype(np.float64)
    with np.errstate(over="ignore"):
        # Below the least float32 lies only minus infinity, half a step of which starts at -2^128.
        lower = np.nextafter(threshold, np.float32(-np.inf)).astype(np.float64)
        lower = np.where(np.isinf(lower), -(2.0**128), lower)
        middle = (lower + upper) / 2
        return np.where(middle.astype(np.float32) < threshold, middle, np.nextafter(middle, -np.inf))
