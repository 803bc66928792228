"""LambdaLoss and LambdaGap: the kernels against a double loop over pairs, written from the papers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.errors import GradrankError
from gradrank.measures import DCG, MAP, NDCG, Precision, Recall
from gradrank.objectives import Lambda, LambdaGap, LambdaLoss, LambdaWide, Noisy, Tiered, parse_objective

LABELS = st.lists(st.tuples(st.integers(0, 3), st.floats(-2, 2, width=16)), min_size=2, max_size=12)


def discount(rank: int) -> float:
    """1/D of a rank from 1; 0 ranks apart costs nothing."""
    return float(1.0 / np.log2(1.0 + rank))


def loss_weight(scheme: str, mu: float, gains: tuple[float, float], ranks: tuple[int, int]) -> float:
    (g_i, g_j), (r_i, r_j) = gains, ranks
    apart = abs(r_i - r_j)
    delta = abs(discount(apart) - discount(apart + 1))
    rho = abs(discount(r_i) - discount(r_j))
    return {
        "loss1": g_i * discount(r_i),
        "loss2": delta * (g_i - g_j),
        "loss2pp": (rho + mu * delta) * (g_i - g_j),
        "wide": (rho + mu) * (g_i - g_j),
    }[scheme]


def gap_weight(form: str, add: str, mu: float, k: int, ranks: tuple[int, int]) -> float:
    r_i, r_j = ranks
    apart = abs(r_i - r_j)
    far = apart == k if form == "s" else apart >= k
    across = (min(ranks) <= k) and (max(ranks) > k)
    arp = abs(max(0, r_i - k) - max(0, r_j - k))
    return mu * far + {"none": 0.0, "precision": float(across), "arp": float(arp)}[add]


def double_loop(labels: np.ndarray, scores: np.ndarray, weight: Any) -> tuple[np.ndarray, np.ndarray]:
    """λ and ρ: every pair, RankNet's force times the weight."""
    order = np.argsort(-scores, kind="stable")
    rank = np.empty(len(scores), dtype=int)
    rank[order] = np.arange(1, len(scores) + 1)
    lambdas, rhos = np.zeros(len(scores)), np.zeros(len(scores))
    for i in range(len(scores)):
        for j in range(len(scores)):
            if labels[i] > labels[j]:
                p = 1.0 / (1.0 + np.exp(scores[i] - scores[j]))
                w = weight(i, j, int(rank[i]), int(rank[j]))
                lambdas[i] += w * p
                lambdas[j] -= w * p
                rhos[i] += w * p * (1 - p)
                rhos[j] += w * p * (1 - p)
    return lambdas, rhos


def drawn(documents: list[tuple[int, float]]) -> tuple[RankingData, np.ndarray, np.ndarray]:
    labels, scores = np.array(documents, dtype=float).T
    scores = scores + np.arange(len(scores)) * 1e-3  # no ties, whose order is drawn
    data = RankingData.from_arrays(np.zeros((len(labels), 1)), labels, group=[len(labels)])
    return data, labels, scores


@pytest.mark.kernel
@pytest.mark.parametrize("cutoff", [None, 3])
@pytest.mark.parametrize("scheme", ["loss1", "loss2", "loss2pp", "wide"])
@settings(max_examples=25)
@given(documents=LABELS)
def test_lambda_loss_is_the_double_loop(scheme: str, cutoff: int | None, documents: list[tuple[int, float]]) -> None:
    data, labels, scores = drawn(documents)
    gains = 2.0**labels - 1.0
    best = np.sort(gains)[::-1][:cutoff]
    ideal = sum(gain * discount(r) for r, gain in enumerate(best, start=1))

    def weight(i: int, j: int, r_i: int, r_j: int) -> float:
        if cutoff is not None and min(r_i, r_j) > cutoff:
            return 0.0
        return loss_weight(scheme, 4.0, (gains[i] / ideal, gains[j] / ideal), (r_i, r_j))

    objective: Lambda = LambdaWide(NDCG(cutoff), mu=4.0)
    if scheme != "wide":
        objective = LambdaLoss(NDCG(cutoff), scheme=scheme, mu=4.0)
    got = objective.bind(data).gradients(scores)
    lambdas, rhos = double_loop(labels, scores, weight)
    np.testing.assert_allclose(got.lambdas, lambdas, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got.rhos, rhos, rtol=1e-4, atol=1e-5)


@pytest.mark.kernel
@pytest.mark.parametrize("add", ["none", "precision", "arp"])
@pytest.mark.parametrize("form", ["s", "x"])
@settings(max_examples=25)
@given(documents=LABELS, k=st.integers(1, 5))
def test_lambda_gap_is_the_double_loop(form: str, add: str, documents: list[tuple[int, float]], k: int) -> None:
    data, labels, scores = drawn(documents)
    binary = (labels >= 2).astype(float)

    def weight(i: int, j: int, r_i: int, r_j: int) -> float:
        return gap_weight(form, add, 0.5, k, (r_i, r_j))

    objective = LambdaGap(Precision(k, rel=2), form=form, add=add, mu=0.5)  # type: ignore[arg-type]
    got = objective.bind(data).gradients(scores)
    lambdas, rhos = double_loop(binary, scores, weight)
    np.testing.assert_allclose(got.lambdas, lambdas, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got.rhos, rhos, rtol=1e-4, atol=1e-4)


def test_a_pair_by_hand() -> None:
    """Two documents, the better one below: all weights are 1 − 1/log2(3), but those of the better one alone."""
    data, scores = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1]), np.array([1.0, 0.0])
    p, step = 1 / (1 + np.exp(-1.0)), 1 - 1 / np.log2(3)
    for scheme, weight in (("loss1", 1 / np.log2(3)), ("loss2", step), ("loss2pp", 11 * step)):
        got = LambdaLoss(NDCG(), scheme=scheme).bind(data).gradients(scores).lambdas
        np.testing.assert_allclose(got, [-weight * p, weight * p], rtol=1e-5)


def test_where_they_differ_from_the_change_of_the_measure() -> None:
    """P@2 does not change if documents of ranks 3 and 5 swap; LambdaGap pushes them apart."""
    data = RankingData.from_arrays([[0.0]] * 5, [0, 0, 0, 0, 1], group=[5])
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    exact = Lambda(Precision(2)).bind(data).gradients(scores).lambdas
    wide = LambdaGap(Precision(2)).bind(data).gradients(scores).lambdas
    assert exact[2] == 0.0
    assert wide[2] < 0.0
    assert wide[3] == 0.0  # one rank apart


def test_they_take_the_options_of_lambda_gradients() -> None:
    name = "LambdaLoss(NDCG@5, cost=sigmoid, mu=1, truncation=3, normalize=log, gap=true, goal=NDCG@3)"
    objective = parse_objective("LambdaLoss(NDCG, scheme=loss2, normalize=log, gap=true, goal=NDCG@10)")
    assert objective == LambdaLoss(NDCG(), normalize="log", gap=True, scheme="loss2", goal=NDCG(10))
    assert objective.measure == NDCG(10)
    # mu is LambdaLoss's own: a cost's must be given as an object.
    assert isinstance(parse_objective(name), LambdaLoss)
    tiers = parse_objective("Tiered(LambdaLoss(NDCG), LambdaLoss(CNDCG), weight=0.1)")
    assert isinstance(tiers, Tiered)
    assert isinstance(parse_objective("Noisy(LambdaGap(P@3))"), Noisy)
    assert LambdaGap(Recall(5)).measure == Recall(5)
    assert LambdaLoss(DCG(5)).deepest == 5
    assert LambdaLoss(DCG(5), truncation=3).deepest == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("LambdaLoss(MAP)", "takes NDCG, DCG, CNDCG or κ-NDCG, found MAP"),
        ("LambdaLoss(NDCG, scheme=loss3)", "scheme is 'loss3', expected loss1 or loss2 or loss2pp"),
        ("LambdaLoss(NDCG, mu=0)", "mu is 0"),
        ("LambdaLoss(NDCG, foo=1)", "LambdaLoss has no option 'foo'"),
        ("LambdaGap(P)", "takes P@k or Recall@k, found P"),
        ("LambdaGap(NDCG@3)", "takes P@k or Recall@k"),
        ("LambdaGap(P@3, form=y)", "form is 'y'"),
        ("LambdaGap(P@3, add=map)", "add is 'map'"),
        ("Lambda(NDCG, goal=CNDCG@3)", "expected a measure of the labels of NDCG"),
        ("Lambda(NDCG, goal=3)", "goal takes a measure"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        parse_objective(name)


def test_a_goal_that_is_the_target_is_none() -> None:
    assert Lambda(MAP(), goal=MAP()) == Lambda(MAP())
    assert Lambda(MAP(), goal=MAP(10)) != Lambda(MAP())
    assert str(Lambda(MAP(), goal=MAP(10))) == "Lambda(MAP, goal=MAP@10)"
