"""Scores along lines equal those of rankers made with the moved weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.errors import ModelError
from gradrank.models.feature import FeatureRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.nets.net_lines import tanh_of_all
from gradrank.models.nets.scaling import Scaling
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.weight_vectors import WeightVector, projections, weights_of
from gradrank.models.weighted_sum import WeightedSum

NAMES = ["a", "b", "c"]


def net(*hidden: int, activation: str = "tanh", log: bool = False) -> NetRanker:
    rng = np.random.default_rng(len(hidden))
    sizes = [3, *hidden, 1]
    layers = [(rng.normal(size=(o, i)), rng.normal(size=o)) for i, o in pairwise(sizes)]
    scaling = Scaling(np.array([0.5, 0.0, 1.0]), np.array([2.0, 1.0, 0.0]), log)
    return NetRanker(layers, activation=activation, scaling=scaling, feature_names=NAMES)


def summed() -> WeightedSum:
    stump = Tree.numerical(split_feature=[1], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0])
    parts = [(1.0, FeatureRanker("c")), (-2.0, TreeEnsemble([stump], NAMES)), (0.5, net(2))]
    return WeightedSum(parts, feature_names=NAMES)


RANKERS = {
    "linear": LinearRanker([1.0, -2.0, 0.5], 3.0, mean=[0, 1, 2], scale=[1, 2, 4], feature_names=NAMES),
    "sum": summed(),
    "linear net": net(),
    "two layers": net(4),
    "wide": net(70),
    "rectified": net(4, activation="relu"),
    "logarithms": net(4, log=True),
    "three layers": net(5, 4),
    "four layers": net(3, 2, 3, activation="relu"),
}


@pytest.mark.parametrize("ranker", RANKERS.values(), ids=RANKERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lines_are_as_defined(ranker: Ranker, dtype: type) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 3)).astype(dtype)
    X[2, 1] = X[5, 2] = np.nan
    weighted = weights_of(ranker)
    directions = rng.normal(size=(70, len(weighted.weight_vector())))
    distances = np.array([0.001, 0.5, 3.0])
    fast = [scores.copy() for scores in weighted.shifted_scores(X, directions, distances)]
    slow = list(WeightVector.shifted_scores(weighted, X, directions, distances))
    assert len(fast) == len(slow) == 70
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("ranker", RANKERS.values(), ids=RANKERS)
def test_weights_come_and_go(ranker: Ranker) -> None:
    weighted = weights_of(ranker)
    weights = weighted.weight_vector()
    assert len(weighted.weight_names()) == len(set(weighted.weight_names())) == len(weights)
    X = np.random.default_rng(1).normal(size=(5, 3))
    np.testing.assert_array_equal(weighted.with_weight_vector(weights).predict(X), ranker.predict(X))
    weights += 1.0
    assert not np.array_equal(weighted.weight_vector(), weights), "a copy was asked for"
    np.testing.assert_array_equal(weights_of(weighted.with_weight_vector(weights)).weight_vector(), weights)


@pytest.mark.parametrize("ranker", RANKERS.values(), ids=RANKERS)
def test_equal_documents_get_equal_scores(ranker: Ranker) -> None:
    rng = np.random.default_rng(2)
    X = np.tile(rng.normal(size=(1, 3)), (61, 1))
    directions = rng.normal(size=(3, len(weights_of(ranker).weight_vector())))
    for scores in weights_of(ranker).shifted_scores(X, directions, np.array([0.1, 1.0])):
        assert (scores == scores[:, :1]).all()


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32))
def test_projections_are_products(n_docs: int, n_weights: int, n_vectors: int, random_state: int) -> None:
    rng = np.random.default_rng(random_state)
    basis, vectors = rng.normal(size=(n_docs, n_weights)), rng.normal(size=(n_vectors, n_weights))
    np.testing.assert_allclose(projections(basis, vectors), vectors @ basis.T, rtol=1e-12, atol=1e-12)


def test_rankers_without_weights() -> None:
    with pytest.raises(ModelError, match="kind 'trees' has no vector of weights"):
        weights_of(TreeEnsemble([], NAMES))


def test_tanh_is_exact_to_rounding() -> None:
    x = np.concatenate([np.linspace(-50, 50, 5001), np.linspace(-1, 1, 2001), [0.0, 1e-300, -1e-9, 1e300, -1e300]])
    values = x.copy()
    tanh_of_all(values, np.empty(64))
    # 1 − 2/(e + 1) rounds numbers of about 1 four times.
    np.testing.assert_allclose(values, np.tanh(x), rtol=0, atol=4 * np.finfo(float).eps / 2)
    assert values[-5] == 0.0
    assert (np.abs(values) <= 1.0).all()
