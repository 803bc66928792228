"""Least squares on differences within queries: by pairs, by slopes, and what trees learn from it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.learners import LambdaMART
from gradrank.measures import NDCG
from gradrank.objectives import Differences, parse_objective
from tests.support.objectives import made_up_lists, slopes_of


def test_loss_is_that_of_all_pairs() -> None:
    data, scores = made_up_lists(4)
    weighted = data.with_document_weight(np.random.default_rng(2).uniform(0.5, 3.0, data.n_docs))
    labels, weight = weighted.label().astype(float), weighted.row_weights()
    total = 0.0
    for start, end in itertools.pairwise(weighted.indptr):
        rows = [row for row in range(start, end) if not np.isnan(labels[row])]
        for one, two in itertools.combinations(rows, 2):
            gap = (labels[one] - labels[two]) - (scores[one] - scores[two])
            total += 0.5 * weight[one] * weight[two] * gap**2 / sum(weight[row] for row in rows)
    assert Differences().bind(weighted).loss(scores) == pytest.approx(total)


@pytest.mark.kernel
def test_gradients_are_derivatives_of_the_loss() -> None:
    data, scores = made_up_lists(4)
    bound = Differences().bind(data)
    np.testing.assert_allclose(bound.gradients(scores).lambdas, slopes_of(bound, scores), rtol=1e-4, atol=1e-5)
    # The loss is quadratic: second differences are exact.
    loss = bound.loss(scores)
    for row in range(0, data.n_docs, 3):
        up, down = scores.copy(), scores.copy()
        up[row] += 1.0
        down[row] -= 1.0
        second = bound.loss(up) + bound.loss(down) - 2.0 * loss
        assert bound.gradients(scores).rhos[row] == pytest.approx(second, rel=1e-4, abs=1e-5)


def test_what_queries_have_in_common_is_not_learned() -> None:
    """Labels are the sum of what orders documents and of something far larger that only tells queries apart."""
    rng = np.random.default_rng(3)
    query, own = np.repeat(rng.normal(size=200), 10), rng.normal(size=2000)
    X = np.column_stack([query, own, rng.normal(size=2000)])
    data = RankingData.from_arrays(X, 50.0 * query + own, qid=np.repeat(np.arange(200), 10))
    best = own == np.repeat(np.maximum.reduceat(own, data.indptr[:-1]), data.sizes)
    found = {}
    for name in ("Differences", "Regression"):
        model = LambdaMART(name, n_estimators=40, learning_rate=0.3, num_leaves=8, random_state=1, n_jobs=1).fit(data)
        found[name] = NDCG(5, label="best").mean(model.predict(data), data.with_label("best", best.astype(float)))
    assert found["Differences"] > 0.95
    assert found["Differences"] > found["Regression"] + 0.05


def test_catboosts_name_leads_to_it() -> None:
    with pytest.raises(Exception, match="Differences"):
        parse_objective("QueryRMSE")
