"""Cross-fitting of members."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gradrank.data.artificial import make_data
from gradrank.data.ranking_data import RankingData
from gradrank.learners import LambdaMART
from gradrank.measures import NDCG
from gradrank.models.trees.ensemble import Tree, assign_leaves
from gradrank.selection.crossfit import CrossFitted, crossfitted, fit_fold, parts_of, tasks_of
from gradrank.selection.members import Member

POOL = make_data(40, n_docs=10, n_features=4, random_state=3)
FRESH = make_data(30, n_docs=10, n_features=4, random_state=4)
FOLDS = 3
TREES = Member("t", "trees", "lambdamart", {"objective": "NDCG@10", "n_estimators": 12, "random_state": 7})
SVM = Member("s", "ranksvm", "ranksvm", {"C": 0.1})
NETS = Member("n", "net", "lambdarank", {"epochs": 4, "hidden_layer_sizes": 4, "random_state": 1}, models_per_fold=2)


def fitted(member: Member, pool: RankingData = POOL, held: RankingData | None = None) -> CrossFitted:
    tasks = tasks_of(member, FOLDS, seed=5)
    models = [fit_fold(task, pool, ends=lambda: False) for task in tasks]
    return crossfitted(tasks, models, pool, NDCG(10), held=held)


def standardized(scores: NDArray[np.float64], data: RankingData) -> NDArray[np.float64]:
    means = np.array([scores[a:b].mean() for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)])
    return np.asarray(scores / np.sqrt(np.mean((scores - np.repeat(means, data.sizes)) ** 2)))


def outputs(tree: Tree, data: RankingData) -> NDArray[np.float64]:
    return np.asarray(tree.leaf_value[assign_leaves(tree, data.X)])


def test_trees_by_hand() -> None:
    part = parts_of(POOL.n_queries, FOLDS, 5)
    learners, curves = [], []
    for fold in range(FOLDS):
        left_out = POOL.take_queries(part == fold)
        learner = LambdaMART("NDCG@10", n_estimators=12, random_state=7).fit(
            POOL.take_queries(part != fold), valid=left_out
        )
        learners.append(learner)
        # The curve again, tree by tree.
        scores, curve = np.zeros(left_out.n_docs), []
        for (tree,) in learner.trees_:
            scores = scores + outputs(tree, left_out)
            curve.append(NDCG(10).mean(scores, left_out))
        curves.append(curve)
    expected = np.zeros(POOL.n_docs)
    total = np.zeros(FRESH.n_docs)
    steps = int(np.argmax(np.mean(curves, axis=0))) + 1
    for fold, learner in enumerate(learners):
        own = int(np.argmax(np.mean([curve for k, curve in enumerate(curves) if k != fold], axis=0))) + 1
        left_out = POOL.take_queries(part == fold)
        expected[np.repeat(part == fold, POOL.sizes)] = sum(outputs(tree, left_out) for (tree,) in learner.trees_[:own])
        total += sum(outputs(tree, FRESH) for (tree,) in learner.trees_[:steps]) / FOLDS
    found = fitted(TREES)
    np.testing.assert_allclose(found.scores, standardized(expected, POOL), rtol=1e-9)
    served = sum(weight * ranker.predict(FRESH) for weight, ranker in found.parts)
    np.testing.assert_allclose(served * (expected / found.scores)[0], total, rtol=1e-7)


@pytest.mark.parametrize("member", [SVM, NETS])
def test_scores_of_a_query_do_not_depend_on_its_labels(member: Member) -> None:
    part = parts_of(POOL.n_queries, FOLDS, 5)
    inside = np.repeat(part == 1, POOL.sizes)
    labels = POOL.label().copy()
    labels[inside] = labels[inside][::-1]
    other = fitted(member, replace(POOL, labels={"label": labels}))
    found = fitted(member)
    one, two = found.scores[inside], other.scores[inside]
    np.testing.assert_allclose(one / np.linalg.norm(one), two / np.linalg.norm(two), rtol=1e-9)
    assert not np.allclose(found.scores[~inside], other.scores[~inside])


def test_all_models_of_a_net_are_summed_with_equal_spread() -> None:
    found = fitted(NETS)
    assert len(found.parts) == FOLDS * 2
    assert len({ranker.predict(FRESH).tobytes() for _, ranker in found.parts}) == FOLDS * 2
    spreads = [weight * np.std(ranker.predict(FRESH)) for weight, ranker in found.parts]
    assert max(spreads) < 3 * min(spreads)


def test_queries_that_stay_apart_are_scored_by_the_whole_member() -> None:
    found = fitted(SVM, held=FRESH)
    served = sum(weight * ranker.predict(FRESH) for weight, ranker in found.parts)
    np.testing.assert_allclose(found.scores, served, rtol=1e-12)
    np.testing.assert_allclose(found.scores, standardized(found.scores, FRESH), rtol=1e-12)


def test_ends_when_told() -> None:
    steps = []

    def ends() -> bool:
        steps.append(1)
        return len(steps) >= 3

    model = fit_fold(tasks_of(TREES, FOLDS, 0)[0], POOL, ends=ends)
    assert model.cut_short
    assert model.curve.shape == (3, 1)
    assert not fit_fold(tasks_of(TREES, FOLDS, 0)[0], POOL, ends=lambda: False).cut_short
