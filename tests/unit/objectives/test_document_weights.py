"""Weights of documents: a pair counts with that of its better document."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank import AdaRank, LambdaMART, make_splits
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


def _order_loss(order, scores, weights, places):  # type: ignore[no-untyped-def]
    """−Σ over the first places of an order: weight of the document there times its log chance among those left."""
    loss = 0.0
    for place in range(places):
        left = np.exp(scores[list(order[place:])])
        loss -= weights[order[place]] * (scores[order[place]] - np.log(left.sum()))
    return loss


def _chance(order, labels):  # type: ignore[no-untyped-def]
    return np.exp(-_order_loss(order, labels, np.ones(len(labels)), len(labels)))


@pytest.mark.kernel
@given(lists())
def test_losses_over_orders_by_hand(made) -> None:  # type: ignore[no-untyped-def]
    """A place counts with the weight of the document that is put there."""
    _, scores, weights = made
    n = len(scores)
    labels = np.arange(n, 0, -1.0) / 2
    data = RankingData.from_arrays(np.zeros((n, 1)), labels, group=[n], document_weight=weights)
    expected = {
        "ListMLE": _order_loss(range(n), scores, weights, n),
        "ListMLE(k=2)": _order_loss(range(n), scores, weights, 2),
    }
    if n <= 5:
        orders = list(itertools.permutations(range(n)))
        expected["ListNet(exact=true)"] = sum(_chance(o, labels) * _order_loss(o, scores, weights, n) for o in orders)
    for name, loss in expected.items():
        bound = parse_objective(name).bind(data, n_jobs=1)
        assert bound.loss(scores) == pytest.approx(loss, rel=1e-6, abs=1e-9), name
        _check_slope(bound, scores)


@pytest.mark.kernel
@given(lists())
def test_focused_by_hand(made) -> None:  # type: ignore[no-untyped-def]
    _, scores, weights = made
    n, k, beta = len(scores), 2, 0.3
    if n <= k:
        return
    labels = np.array([2.0, 1.0] + [0.0] * (n - 2))
    data = RankingData.from_arrays(np.zeros((n, 1)), labels, group=[n], document_weight=weights)
    top = [(0, 1), (1, 0)]
    listed = sum(_chance(o, labels[:2]) * _order_loss(o, scores[:2], weights[:2], 2) for o in top)
    paired = sum(weights[i] * np.log1p(np.exp(scores[j] - scores[i])) for i in range(k) for j in range(k, n))
    loss = beta * listed / np.log(2) + (1 - beta) * paired / (k * (n - k) * np.log(2))
    bound = parse_objective(f"Focused(k={k}, beta={beta})").bind(data, n_jobs=1)
    assert bound.loss(scores) == pytest.approx(loss, rel=1e-6, abs=1e-9)
    _check_slope(bound, scores)


@pytest.mark.kernel
@given(lists())
def test_smooth_gains_count_with_their_weight(made) -> None:  # type: ignore[no-untyped-def]
    """Where scores are far apart, the smooth forms are 1 − weighted DCG over the ideal of unweighted gains."""
    labels, scores, weights = made
    n = len(labels)
    if len(set(labels)) < 2:
        return
    data = RankingData.from_arrays(np.zeros((n, 1)), labels, group=[n], document_weight=weights)
    gain = 2**labels - 1
    discount = 1 / np.log2(2 + np.arange(n))
    ideal = (np.sort(gain)[::-1] * discount).sum()
    reached = ((weights * gain)[np.argsort(-scores)] * discount).sum()
    for name in ("ApproxNDCG", "NeuralNDCG"):
        bound = parse_objective(f"{name}(temperature=0.01)").bind(data, n_jobs=1)
        assert bound.loss(scores) == pytest.approx(1 - reached / ideal, abs=1e-6), name
        # Unevenly spaced: at some even ones the soft permutation needs no scaling, which the derivative takes as it is.
        _check_slope(parse_objective(name).bind(data, n_jobs=1), scores + 0.05 * scores**2)


@pytest.mark.kernel
@given(lists())
def test_cross_entropy_of_drawn_truth_by_hand(made) -> None:  # type: ignore[no-untyped-def]
    labels, scores, weights = made
    n = len(labels)
    if len(set(labels)) < 2:
        return
    plain = RankingData.from_arrays(np.zeros((n, 1)), labels, group=[n])
    # λ = φ − p without weights, from which φ can be seen; the same draw is used with weights.
    p = np.exp(scores) / np.exp(scores).sum()
    truth = parse_objective("XENDCG").bind(plain, n_jobs=1).gradients(scores).lambdas + p
    bound = parse_objective("XENDCG").bind(plain.with_document_weight(weights), n_jobs=1)
    got = bound.gradients(scores)
    np.testing.assert_allclose(got.lambdas, weights * truth - (weights * truth).sum() * p, rtol=1e-4, atol=1e-5)
    assert bound.loss(scores) == pytest.approx(-(weights * truth * np.log(p)).sum(), rel=1e-4, abs=1e-5)


def _check_slope(bound, scores) -> None:  # type: ignore[no-untyped-def]
    """λ is the negative derivative of the loss."""
    got = bound.gradients(scores).lambdas
    for i in range(len(scores)):
        step = np.zeros(len(scores))
        step[i] = 1e-5
        slope = (bound.loss(scores + step) - bound.loss(scores - step)) / 2e-5
        assert got[i] == pytest.approx(-slope, rel=1e-3, abs=1e-4)


def test_weights_that_do_not_fit_are_refused() -> None:
    data = make_splits(20, n_docs=8, n_features=4, random_state=1)["train"]
    weighted = data.with_document_weight(np.ones(data.n_docs))
    with pytest.raises(TrainingError, match="AdaRank knows weights of queries, not of documents"):
        AdaRank(verbose=False).fit(weighted)
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
