"""One ranker of every kind, over the same three features."""

from __future__ import annotations

from functools import cache
from typing import Any

import lightgbm
import numpy as np

from gradrank.models.feature import FeatureRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.nets.scaling import Scaling
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.trees.expected_grade import ExpectedGrade
from gradrank.models.weighted_sum import WeightedSum

NAMES = ["bm25", "prix d'été", "clicks"]


def feature_rows(count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the three features, the last one a category, with missing values; and something to predict."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 3))
    X[:, 2] = rng.integers(0, 40, count)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.nan_to_num(X[:, 0]) + (X[:, 2] % 3 == 0)


def trained_booster(**parameters: Any) -> lightgbm.Booster:
    """Five trees of LightGBM over the three features."""
    X, y = feature_rows()
    parameters = {"verbose": -1, "num_threads": 1, "min_data_per_group": 5, "num_leaves": 9} | parameters
    return lightgbm.train(parameters, lightgbm.Dataset(X, y, categorical_feature=[2]), 5)


@cache
def example_rankers() -> dict[str, Ranker]:
    """A ranker of each kind, with numbers that text rounds easily."""
    facts = {"objective": "LambdaMART(NDCG@10)", "curve": [0.1, np.float64(1 / 3)], "versions": {"numpy": "2"}}
    trees = TreeEnsemble(TreeEnsemble.from_lightgbm(trained_booster()).trees, NAMES, base_score=1 / 3, training=facts)
    linear = LinearRanker([0.1, -1e-300, 3.0], 1 / 3, mean=[1, 2, 3], scale=[0.1, 2, 3], feature_names=NAMES)
    scaling = Scaling(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.0, 3.0]))
    layers = [([[0.1, 1 / 3, -2.0], [1e-30, 2.0, 3.0]], [0.5, -0.1]), ([[1.0, -1 / 7]], [0.0])]
    feature = FeatureRanker("clicks", -1, missing=-7.5, feature_names=NAMES)
    return {
        "trees": trees,
        "linear": linear,
        "feature": feature,
        "weighted_sum": WeightedSum([(0.1, trees), (1.0, linear), (-2.0, FeatureRanker("bm25"))], feature_names=NAMES),
        "net": NetRanker(layers, scaling=scaling, feature_names=NAMES, training=facts),
        "expected_grade": ExpectedGrade([trees, trees.truncate(2), trees.truncate(1)], [0.0, 0.5, 4.0]),
    }
