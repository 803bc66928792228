"""Pairs with the factor (y_u − y_v): values and slopes against every pair written out."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank import FocusedBoost, FocusedSVM, make_splits
from gradrank.learners.boosting.pair_weights import FactoredPairs
from gradrank.learners.focused.beta_path import top_and_rest
from gradrank.learners.focused.label_differences import DifferenceOracle, DifferencePairs
from gradrank.learners.linear.pair_risk import PairOracle

LABELS = np.array([3, 0, 1, 2, 0, 0, 1, 0, np.nan, 2, 0, 0, 1], dtype=np.float32)
# The third query has no pair, the last one document only.
INDPTR = np.array([0, 5, 9, 11, 12, 13])
WEIGHT = np.array([1.0, 2.0, 0.5, 1.0, 1.0])


def pairs_of(query: int) -> list[tuple[int, int]]:
    rows = range(INDPTR[query], INDPTR[query + 1])
    return [(u, v) for u in rows for v in rows if LABELS[u] > 0 and LABELS[v] == 0]


def test_the_hinge_is_that_of_all_pairs() -> None:
    scores = np.random.default_rng(1).normal(size=len(LABELS))
    value, slopes = 0.0, np.zeros(len(LABELS))
    for query, weight in enumerate(WEIGHT):
        pairs = pairs_of(query)
        for u, v in pairs:
            loss = 1.0 - float(LABELS[u]) * (scores[u] - scores[v])
            if loss > 0:
                value += weight / len(pairs) * loss
                slopes[u] -= weight / len(pairs) * LABELS[u]
                slopes[v] += weight / len(pairs) * LABELS[u]
    found, (gradient,) = DifferenceOracle(LABELS, INDPTR, weight=WEIGHT)(scores)
    np.testing.assert_allclose(found, [value])
    np.testing.assert_allclose(gradient, slopes)


@pytest.mark.parametrize("uniform", ["pair", "query"])
@pytest.mark.parametrize("size", [1.0, 400.0])
def test_the_potential_is_that_of_all_pairs(uniform: str, size: float) -> None:
    scores = size * np.random.default_rng(2).normal(size=len(LABELS))
    logs, rows = [], []
    total = sum(
        weight * (1 if uniform == "query" else len(pairs_of(q))) for q, weight in enumerate(WEIGHT) if pairs_of(q)
    )
    for query, weight in enumerate(WEIGHT):
        pairs = pairs_of(query)
        for u, v in pairs:
            start = weight / (len(pairs) if uniform == "query" else 1) / total
            logs.append(np.log(start) - float(LABELS[u]) * (scores[u] - scores[v]))
            rows.append((u, v))
    weights = np.exp(np.array(logs) - max(logs)) * [LABELS[u] for u, _ in rows]
    weights /= weights.sum()
    values = np.zeros(len(LABELS))
    for (u, v), share in zip(rows, weights, strict=True):
        values[u] += share
        values[v] -= share
    found = DifferencePairs(LABELS, INDPTR, uniform=uniform, weight=WEIGHT).potential(scores)
    np.testing.assert_allclose(found.values, values, atol=1e-15)
    assert found.log_loss == pytest.approx(max(logs) + np.log(np.exp(np.array(logs) - max(logs)).sum()))


def test_differences_of_one_are_the_pairs_without_a_factor() -> None:
    labels = top_and_rest(LABELS)
    scores = np.random.default_rng(3).normal(size=len(LABELS))
    for one, other in zip(DifferenceOracle(labels, INDPTR)(scores), PairOracle(labels, INDPTR)(scores), strict=True):
        np.testing.assert_allclose(one, other)
    one, other = (kind(labels, INDPTR).potential(scores) for kind in (DifferencePairs, FactoredPairs))
    np.testing.assert_allclose(one.values, other.values)
    assert one.log_loss == pytest.approx(other.log_loss)


def test_no_pairs_at_all() -> None:
    pairs = DifferencePairs(np.zeros(3, dtype=np.float32), np.array([0, 3]))
    assert pairs.empty
    assert not pairs.potential(np.ones(3)).values.any()


@pytest.mark.parametrize("learner", [FocusedSVM(k=4, C=1.0), FocusedBoost(k=4, n_estimators=20)])
def test_learners_take_the_factor(learner) -> None:
    data = make_splits(30, n_docs=12, n_features=5, random_state=4)
    plain = learner.fit(data["train"]).predict(data["test"])
    learner.set_params(by_difference=True)
    weighed = learner.fit(data["train"]).predict(data["test"])
    assert not np.allclose(plain, weighed)
    # With k = 1 all labels are 1 or 0, and the factor does nothing.
    learner.set_params(k=1, beta=0.0)
    one = learner.fit(data["train"]).predict(data["test"])
    two = learner.set_params(by_difference=False).fit(data["train"]).predict(data["test"])
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-3)
