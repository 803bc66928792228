"""Weights of documents: a pair counts with that of its better document."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank import LambdaMART, RankSVM, make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.measures import parse_measure
from gradrank.objectives import parse_objective


def _pairs(measure: str, labels, scores, weights, *, recommended=False):  # type: ignore[no-untyped-def]
    """λ and ρ by the definition: swap, evaluate again, push; no two scores are equal."""
    data = RankingData.from_arrays(np.zeros((len(labels), 1)), labels, group=[len(labels)])
    bound = parse_measure(measure)
    now = bound.values(scores, data)[0]
    lambdas, rhos, total = np.zeros(len(labels)), np.zeros(len(labels)), 0.0
    for i, j in itertools.permutations(range(len(labels)), 2):
        if labels[i] > labels[j]:
            swapped = np.array(scores)
            swapped[[i, j]] = swapped[[j, i]]
            delta = abs(bound.values(swapped, data)[0] - now)
            if recommended:
                delta /= 0.01 + abs(scores[i] - scores[j])
            p = 1 / (1 + np.exp(scores[i] - scores[j]))
            lambdas[i] += weights[i] * delta * p
            lambdas[j] -= weights[i] * delta * p
            rhos[[i, j]] += weights[i] * delta * p * (1 - p)
            # Weights do not enter normalization, but pairs of weight 0 are none.
            total += 2 * delta * p * (weights[i] > 0)
    factor = np.log2(1 + total) / total if recommended and total > 0 else 1.0
    return lambdas * factor, rhos * factor


@st.composite
def lists(draw):  # type: ignore[no-untyped-def]
    n = draw(st.integers(2, 7))
    labels = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.0]), min_size=n, max_size=n))
    scores = np.random.default_rng(draw(st.integers(0, 1000))).permutation(n) * 0.7
    return np.array(labels, dtype=float), scores, np.array(weights)


@pytest.mark.kernel
@pytest.mark.parametrize("measure", ["NDCG", "MAP", "ERR"])
@given(lists())
def test_lambdas_by_brute_force(measure: str, made) -> None:  # type: ignore[no-untyped-def]
    labels, scores, weights = made
    data = RankingData.from_arrays(np.zeros((len(labels), 1)), labels, group=[len(labels)], document_weight=weights)
    for spelt, recommended in (
        (f"Lambda({measure})", False),
        (f"Lambda({measure}, normalize=log, gap=true)", True),
        (f"Lambda({measure}, construction=local-cost, reach=99)", False),
    ):
        got = parse_objective(spelt).bind(data, n_jobs=1).gradients(scores)
        lambdas, rhos = _pairs(measure, labels, scores, weights, recommended=recommended)
        np.testing.assert_allclose(got.lambdas, lambdas, rtol=2e-4, atol=1e-6)
        np.testing.assert_allclose(got.rhos, rhos, rtol=2e-4, atol=1e-6)


@pytest.mark.kernel
@given(lists())
def test_ranknet_listnet_and_regression_by_finite_differences(made) -> None:  # type: ignore[no-untyped-def]
    labels, scores, weights = made
    n = len(labels)
    data = RankingData.from_arrays(np.zeros((n, 1)), labels, group=[n], document_weight=weights)
    for name in ("RankNet", "ListNet", "Regression"):
        bound = parse_objective(name).bind(data, n_jobs=1)
        got = bound.gradients(scores).lambdas
        for i in range(n):
            step = np.zeros(n)
            step[i] = 1e-5
            slope = (bound.loss(scores + step) - bound.loss(scores - step)) / 2e-5
            assert got[i] == pytest.approx(-slope, rel=1e-3, abs=1e-4)
    # The losses themselves, by hand.
    pairs = sum(
        weights[i] * np.log1p(np.exp(scores[j] - scores[i]))
        for i in range(n)
        for j in range(n)
        if labels[i] > labels[j]
    )
    assert parse_objective("RankNet").bind(data, n_jobs=1).loss(scores) == pytest.approx(pairs, rel=1e-5, abs=1e-6)
    if len(set(labels)) > 1:
        truth = np.exp(labels) / np.exp(labels).sum()
        cross = -(weights * truth * (scores - np.log(np.exp(scores).sum()))).sum()
        assert parse_objective("ListNet").bind(data, n_jobs=1).loss(scores) == pytest.approx(cross, rel=1e-5, abs=1e-6)


def test_weights_that_do_not_fit_are_refused() -> None:
    data = make_splits(20, n_docs=8, n_features=4, random_state=1)["train"]
    weighted = data.with_document_weight(np.ones(data.n_docs))
    with pytest.raises(TrainingError, match="RankSVM knows weights of queries, not of documents"):
        RankSVM(verbose=False).fit(weighted)
    with pytest.raises(TrainingError, match="all weights of documents are zero"):
        LambdaMART(verbose=False).fit(data.with_document_weight(np.zeros(data.n_docs)))


def test_documents_of_weight_zero_win_no_pairs() -> None:
    """Where only the pairs won by half of the documents count, the other half's labels may be anything."""
    data = make_splits(60, n_docs=12, n_features=5, random_state=1)["train"]
    weight = np.random.default_rng(0).integers(0, 2, data.n_docs).astype(float)
    some, other = (
        LambdaMART("RankNet", n_estimators=5, n_jobs=1, verbose=False).fit(data.with_document_weight(w)).predict(data)
        for w in (weight, np.ones(data.n_docs))
    )
    assert not np.allclose(some, other)
    doubled = LambdaMART("RankNet", n_estimators=5, n_jobs=1, verbose=False).fit(data.with_document_weight(2 * weight))
    # Newton steps do not depend on a common factor.
    np.testing.assert_allclose(doubled.predict(data), some, rtol=1e-4, atol=1e-6)
