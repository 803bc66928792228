"""Models of CatBoost, from the JSON of ``save_model(format="json")``, read without CatBoost.

CatBoost rounds features to float32 and sends ``x > border`` right. Symmetric trees test the same split on a whole
level; the number of a leaf has one bit per level.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data.ranking_data import default_feature_names
from gradrank.errors import ModelError
from gradrank.models.exchange.numbering import checked_features, renumber
from gradrank.models.exchange.splits import largest_at_most
from gradrank.models.exchange.strict_json import parse_json
from gradrank.models.trees.tree import DEFAULT_LEFT, MISSING_NAN, Tree

_DEEPEST = 24


@dataclass(frozen=True)
class CatBoostModel:
    """What a saved CatBoost model says."""

    trees: tuple[Tree, ...]
    feature_names: tuple[str, ...]
    base_score: float


def parse_catboost(model: Any) -> CatBoostModel:
    """Read a fitted model, or what it saved as JSON: bytes, text or the parsed value."""
    if hasattr(model, "save_model"):
        model = _saved(model)
    value = model if isinstance(model, Mapping) else parse_json(model)
    try:
        return _parse(value)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise ModelError(f"is not a whole CatBoost model ({type(error).__name__}: {error})") from None


def _saved(model: Any) -> bytes:
    """What CatBoost writes of a fitted model."""
    if not model.is_fitted():
        raise ModelError(f"this {type(model).__name__} is not fitted: call fit first")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except Exception as error:  # categories, without the data they were counted on; its errors have no public base
            raise ModelError(f"this {type(model).__name__} cannot be read: {' '.join(str(error).split())}") from None
        return path.read_bytes()


def is_catboost(value: Any) -> bool:
    """Whether parsed JSON is a model of CatBoost's."""
    return isinstance(value, Mapping) and "features_info" in value and ("oblivious_trees" in value or "trees" in value)


def _parse(value: Mapping[str, Any]) -> CatBoostModel:
    info = value["features_info"]
    for kind in ("categorical_features", "text_features", "embedding_features", "ctrs"):
        if info.get(kind):
            raise ModelError(f"is a CatBoost model with {kind.replace('_', ' ')}, expected numbers only")
    features = info["float_features"]
    places = [int(feature["flat_feature_index"]) for feature in features]
    n_features = checked_features(max(places) + 1, "a CatBoost")
    if min(places) < 0 or len(set(places)) < len(places):
        raise ModelError("is a CatBoost model whose features are numbered twice or below 0")
    names = list(default_feature_names(n_features))
    for place, feature in zip(places, features, strict=True):
        names[place] = str(feature.get("feature_id") or names[place])
    missing_left = [feature["nan_value_treatment"] != "AsTrue" for feature in features]
    scale, bias = value.get("scale_and_bias", [1, [0]])
    bias = bias if isinstance(bias, list) else [bias]
    if len(bias) != 1:
        raise ModelError(f"is a CatBoost model of {len(bias)} classes or targets, expected one score per document")
    reader = _Reader(places, missing_left, n_features, float(scale))
    if "oblivious_trees" in value:
        trees = [reader.symmetric(tree) for tree in value["oblivious_trees"]]
    else:
        trees = [reader.nested(tree) for tree in value["trees"]]
    return CatBoostModel(tuple(trees), tuple(names), float(bias[0]))


class _Reader:
    def __init__(self, places: list[int], missing_left: list[bool], n_features: int, scale: float) -> None:
        self.places = places
        self.missing_left = missing_left
        self.n_features = n_features
        self.scale = scale

    def split(self, value: Mapping[str, Any]) -> tuple[int, float, bool]:
        """Feature, border, and whether a missing value goes left."""
        if value["split_type"] != "FloatFeature":
            raise ModelError(f"has a CatBoost split of type {str(value['split_type'])[:40]!r}, expected numbers only")
        number = int(value["float_feature_index"])
        if not 0 <= number < len(self.places):
            raise ModelError(f"splits on CatBoost's feature {number}, but there are {len(self.places)}")
        return self.places[number], float(value["border"]), self.missing_left[number]

    def symmetric(self, value: Mapping[str, Any]) -> Tree:
        levels = [self.split(split) for split in reversed(value["splits"])]
        leaves = np.asarray(value["leaf_values"], dtype=np.float64)
        depth = len(levels)
        if depth > _DEEPEST or leaves.shape != (1 << depth,):
            raise ModelError(f"has a CatBoost tree of {depth} levels and {leaves.size} leaf values")
        n_nodes = len(leaves) - 1
        # Level by level: node k has the children 2k + 1 and 2k + 2, the last level the leaves.
        level = np.log2(np.arange(1, n_nodes + 1)).astype(int) if n_nodes else np.zeros(0, dtype=int)
        left = 2 * np.arange(n_nodes) + 1
        left, right = (np.where(child < n_nodes, child, ~(child - n_nodes)) for child in (left, left + 1))
        feature, border, missing_left = (
            np.array([split[k] for split in levels])[level] if depth else [] for k in range(3)
        )
        return self.tree(leaves, value.get("leaf_weights"), feature, border, missing_left, left, right)

    def nested(self, value: Mapping[str, Any]) -> Tree:
        """A tree whose nodes hold their children; walked without recursion."""
        splits: list[tuple[int, float, bool]] = []
        left: list[int] = []
        right: list[int] = []
        is_leaf: list[bool] = []
        values: list[float] = []
        weights: list[float] = []
        todo: list[tuple[Mapping[str, Any], list[int], int]] = [(value, [], 0)]
        while todo:
            node, side, parent = todo.pop()
            here = len(is_leaf)
            if side:
                side[parent] = here
            leaf = "split" not in node
            is_leaf.append(leaf)
            left.append(-1)
            right.append(-1)
            splits.append((0, 0.0, True) if leaf else self.split(node["split"]))
            values.append(float(node["value"]) if leaf else 0.0)
            weights.append(float(node.get("weight", 0.0)) if leaf else 0.0)
            if not leaf:
                todo += [(node["right"], right, here), (node["left"], left, here)]
        inner, leaves, number = renumber(left, right, is_leaf, "a CatBoost")
        feature, border, missing_left = (np.array([split[k] for split in splits])[inner] for k in range(3))
        children = (number[np.array(side)[inner]] for side in (left, right))
        return self.tree(np.array(values)[leaves], np.array(weights)[leaves], feature, border, missing_left, *children)

    def tree(
        self, leaves: Any, weights: Any, feature: Any, border: Any, missing_left: Any, left: Any, right: Any
    ) -> Tree:
        bound = np.asarray(border, dtype=np.float64).astype(np.float32)
        cover = {} if weights is None else {"leaf_cover": weights}
        return Tree.of(
            leaf_value=leaves * self.scale,
            split_feature=np.asarray(feature, dtype=np.int64),
            threshold=largest_at_most(bound),
            decision=MISSING_NAN + DEFAULT_LEFT * np.asarray(missing_left, dtype=np.int64),
            left=left,
            right=right,
            n_features=self.n_features,
            **cover,
        )
