"""Trees of scikit-learn's HistGradientBoosting models, from their arrays.

scikit-learn sends ``x <= threshold`` left in double precision and missing values where each node says, and adds leaf
values tree after tree to its baseline: scores are the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradrank.data.ranking_data import default_feature_names
from gradrank.errors import ModelError
from gradrank.models.exchange.numbering import renumber
from gradrank.models.trees.tree import DEFAULT_LEFT, MISSING_NAN, Tree

_IDENTITY = {"squared_error", "absolute_error", "quantile", "log_loss"}


@dataclass(frozen=True)
class SklearnModel:
    """What a fitted model of scikit-learn says."""

    trees: tuple[Tree, ...]
    feature_names: tuple[str, ...]
    base_score: float


def is_hist_gradient_boosting(model: Any) -> bool:
    """Whether a model is a fitted HistGradientBoosting one."""
    return type(model).__name__.startswith("HistGradientBoosting") and hasattr(model, "_predictors")


def parse_sklearn(model: Any) -> SklearnModel:
    """Read a fitted HistGradientBoostingRegressor, or a classifier of two classes (its ``decision_function``)."""
    if not is_hist_gradient_boosting(model):
        raise ModelError(f"a {type(model).__name__} is no fitted HistGradientBoosting model of scikit-learn")
    if getattr(model, "is_categorical_", None) is not None and np.any(model.is_categorical_):
        raise ModelError("has categorical features of scikit-learn, which are not supported")
    loss = str(model.loss)
    if loss not in _IDENTITY:
        raise ModelError(f"is a scikit-learn model with the loss {loss!r}, whose predictions are no sum of trees")
    if any(len(iteration) != 1 for iteration in model._predictors):
        raise ModelError("is a scikit-learn model of several classes, expected one score per document")
    n_features = int(model.n_features_in_)
    names = getattr(model, "feature_names_in_", None)
    return SklearnModel(
        tuple(_tree(iteration[0].nodes, n_features) for iteration in model._predictors),
        default_feature_names(n_features) if names is None else tuple(str(name) for name in names),
        float(np.asarray(model._baseline_prediction).reshape(-1)[0]),
    )


def _tree(nodes: Any, n_features: int) -> Tree:
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    inner, leaves, number = renumber(
        left.tolist(), right.tolist(), nodes["is_leaf"].astype(bool).tolist(), "a scikit-learn"
    )
    return Tree.of(
        leaf_value=nodes["value"][leaves].astype(np.float64),
        split_feature=nodes["feature_idx"][inner].astype(np.int64),
        threshold=nodes["num_threshold"][inner].astype(np.float64),
        decision=MISSING_NAN + DEFAULT_LEFT * nodes["missing_go_to_left"][inner].astype(np.int64),
        left=number[left[inner]],
        right=number[right[inner]],
        split_gain=nodes["gain"][inner].astype(np.float64),
        leaf_cover=nodes["count"][leaves].astype(np.float64),
        n_features=n_features,
    )
