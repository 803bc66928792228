"""Leaf values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data.artificial import make_data
from gradrank.errors import TrainingError
from gradrank.learners import MART, LambdaMART, McRank
from gradrank.learners.trees.leaf_values import leaf_values
from gradrank.measures import NDCG
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.objectives import parse_objective

TRAIN = make_data(50, n_docs=15, n_features=6, random_state=3)


@pytest.mark.kernel
@given(st.integers(0, 1000), st.integers(1, 6), st.floats(0, 3))
def test_leaf_values_are_sums_over_the_documents_of_a_leaf(random_state: int, n_leaves: int, l2: float) -> None:
    rng = np.random.default_rng(random_state)
    leaf = rng.integers(0, n_leaves, 40).astype(np.int32)
    lambdas = rng.normal(size=40).astype(np.float32)
    rhos = (rng.random(40) * (rng.random(40) < 0.7)).astype(np.float32)
    lambdas[rhos == 0] = 0
    newton = leaf_values("newton", leaf, n_leaves, lambdas, rhos, l2)
    gradient = leaf_values("gradient", leaf, n_leaves, lambdas, rhos)
    for number in range(n_leaves):
        inside = (leaf == number) & (rhos > 0)
        if inside.any():
            expected = lambdas[inside].sum(dtype=float) / (rhos[inside].sum(dtype=float) + l2)
            np.testing.assert_allclose(newton[number], expected, rtol=1e-5)
            np.testing.assert_allclose(gradient[number], lambdas[inside].mean(dtype=float), rtol=1e-5, atol=1e-7)
        else:
            assert newton[number] == 0.0
            assert gradient[number] == 0.0


def _training_value(step: str, rate: float = 1.0, **more: object) -> tuple[float, LambdaMART]:
    model = LambdaMART(
        "Lambda(NDCG@5)",
        n_estimators=2,
        num_leaves=5,
        learning_rate=rate,
        min_child_samples=5,
        step=step,
        subsample=1.0,
        train_measure=True,
        **more,
    ).fit(TRAIN)
    return model.record_.curves["train"]["NDCG@5"][-1], model


def test_optimal_step_is_the_best_weight_of_the_tree() -> None:
    value, model = _training_value("optimal")
    first, second = (tree for (tree,) in model.trees_)
    before, tree = (TreeEnsemble([tree], TRAIN.feature_names).predict(TRAIN) for tree in (first, second))
    # The tree has its weight already: other weights are relative to it, within those allowed.
    newton = _training_value("newton")[1].trees_[1][0]
    weight = float(np.max(np.abs(second.leaf_value)) / np.max(np.abs(newton.leaf_value)))
    np.testing.assert_allclose(second.leaf_value, weight * newton.leaf_value)
    for other in np.geomspace(0.1, 100.0, 200):
        assert NDCG(5).mean(before + other / weight * tree, TRAIN) <= value + 1e-12


def test_optimal_gradient_step_weighs_mean_lambdas() -> None:
    _, model = _training_value("optimal-gradient")
    first, second = (tree for (tree,) in model.trees_)
    before, step = (TreeEnsemble([tree], TRAIN.feature_names).predict(TRAIN) for tree in (first, second))
    gradients = parse_objective("Lambda(NDCG@5)").bind(TRAIN, random_state=model.random_state).gradients(before, 1)
    told = gradients.lambdas != 0
    leaves = np.unique(step)
    means = [gradients.lambdas[told & (step == value)].mean(dtype=float) for value in leaves]
    # One weight for the tree, which a Newton step does not have.
    weight = leaves[-1] / means[-1]
    np.testing.assert_allclose(leaves, weight * np.array(means), rtol=1e-4)
    assert 0.1 <= weight <= 100.0
    for other in np.geomspace(0.1, 100.0, 100):
        assert NDCG(5).mean(before + other / weight * step, TRAIN) <= NDCG(5).mean(before + step, TRAIN) + 1e-12


def test_optimal_leaf_step_is_not_worse_than_newton() -> None:
    newton, leaf = _training_value("newton")[0], _training_value("optimal-leaf")[0]
    assert leaf >= newton


def test_the_first_tree_keeps_its_scale() -> None:
    # All weights of the first tree give the same order.
    trees = [_training_value(step)[1].trees_[0][0] for step in ("newton", "optimal")]
    np.testing.assert_array_equal(trees[0].leaf_value, trees[1].leaf_value)


@pytest.mark.parametrize("step", ["optimal", "optimal-leaf"])
def test_shrinkage_and_sampled_queries(step: str) -> None:
    _, model = _training_value(step, rate=0.25)
    _, whole = _training_value(step)
    np.testing.assert_allclose(model.trees_[0][0].leaf_value, 0.25 * whole.trees_[0][0].leaf_value)
    sampled = LambdaMART("NDCG@5", n_estimators=3, subsample=0.3, step=step, min_child_samples=5, random_state=2)
    np.testing.assert_array_equal(sampled.fit(TRAIN).predict(TRAIN), sampled.fit(TRAIN).predict(TRAIN))


def test_optimal_step_for_objectives_without_curvature_or_measure() -> None:
    mixed = "Lambda(NDCG@5, cost=sigmoid)"
    assert LambdaMART(mixed, n_estimators=2, step="optimal", min_child_samples=5).fit(TRAIN).ranker_.n_features == 6
    assert MART(n_estimators=2, step="optimal", min_child_samples=5).fit(TRAIN).ranker_.n_features == 6
    with pytest.raises(TrainingError, match="one tree per step only"):
        McRank(n_estimators=2, step="optimal", min_child_samples=5).fit(TRAIN)
    with pytest.raises(
        TrainingError, match="expected auto, newton, gradient, optimal, optimal-leaf or optimal-gradient"
    ):
        LambdaMART(step="best", n_estimators=2).fit(TRAIN)
