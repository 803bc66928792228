"""Leaves of all trees fitted together: against the solution by elimination."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.artificial import make_data
from gradrank.learners import LambdaMART
from gradrank.learners.trees.refit_leaves import refit_leaves
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.objectives import Differences


def trained(data: RankingData, trees: int = 5) -> TreeEnsemble:
    learner = LambdaMART(
        "Differences", n_estimators=trees, learning_rate=0.1, num_leaves=6, validation_fraction=0.0, n_jobs=1
    )
    ranker = learner.fit(data).ranker_
    assert isinstance(ranker, TreeEnsemble)
    return ranker


def made_up(n_queries: int = 30) -> RankingData:
    data = make_data(n_queries, n_docs=12, n_features=5, random_state=4)
    rng = np.random.default_rng(1)
    target = rng.normal(size=data.n_docs) + 3.0 * data.X[:, 0]
    target[rng.random(data.n_docs) < 0.1] = np.nan
    data = data.with_label("wish", target).with_document_weight(rng.uniform(0.5, 2.0, data.n_docs))
    return data.with_label("label", target)


@pytest.mark.kernel
@pytest.mark.parametrize("l2", [0.5, 10.0])
def test_values_solve_the_normal_equations(l2: float) -> None:
    data = made_up()
    before = trained(data)
    after = refit_leaves(before, data, "wish", l2=l2, iterations=300)
    leaf = before.predict_leaf(data)
    counts = np.array([tree.n_leaves for tree in before.trees])
    Z = np.zeros((data.n_docs, counts.sum()))
    for tree, first in enumerate(np.cumsum(counts) - counts):
        Z[np.arange(data.n_docs), first + leaf[:, tree]] = 1.0
    target = data.label("wish").astype(float)
    weight = data.row_weights() * ~np.isnan(target)
    target = np.nan_to_num(target)
    # Differences from the query's weighted mean as a matrix.
    C = np.zeros((data.n_docs, data.n_docs))
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        C[start:end, start:end] = np.eye(end - start) - weight[start:end] / weight[start:end].sum()
    A = C.T @ np.diag(weight) @ C
    start_values = np.concatenate([tree.leaf_value for tree in before.trees])
    moved = np.linalg.solve(Z.T @ A @ Z + l2 * np.eye(len(start_values)), Z.T @ A @ (target - Z @ start_values))
    values = np.concatenate([tree.leaf_value for tree in after.trees])
    np.testing.assert_allclose(values, start_values + moved, atol=1e-6)
    assert np.abs(moved).max() > 0.05


def test_a_few_steps_come_closer_and_threads_change_nothing() -> None:
    data = made_up(2000)
    before = trained(data, trees=8)
    loss = Differences("wish").bind(data).loss
    one = refit_leaves(before, data, "wish", n_jobs=1)
    two = refit_leaves(before, data, "wish", n_jobs=2)
    worth = [loss(model.grouped_scores(data)) for model in (before, one)]
    assert worth[1] < 0.9 * worth[0]
    for left, right in zip(one.trees, two.trees, strict=True):
        np.testing.assert_array_equal(left.leaf_value, right.leaf_value)
        np.testing.assert_array_equal(left.threshold, right.threshold)


def test_nothing_to_fit() -> None:
    data = made_up()
    empty = TreeEnsemble([], data.feature_names)
    assert refit_leaves(empty, data, "wish") is empty
    before = trained(data)
    unjudged = data.with_label("nothing", np.full(data.n_docs, np.nan))
    after = refit_leaves(before, unjudged, "nothing")
    np.testing.assert_array_equal(after.predict(data), before.predict(data))
