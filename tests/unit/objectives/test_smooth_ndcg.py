"""ApproxNDCG and NeuralNDCG: equal to their definitions, and λ is the derivative of the loss."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.learners import LambdaMART, LambdaRank
from gradrank.measures import NDCG
from gradrank.objectives import ApproxNDCG, NeuralNDCG, Objective
from tests.support.objectives import made_up_lists, slopes_of

OBJECTIVES: list[Objective] = [
    ApproxNDCG(),
    ApproxNDCG(temperature=1.5, k=3),
    NeuralNDCG(),
    NeuralNDCG(k=3, temperature=0.5),
]
LABELS, SCORES = np.array([0.0, 2.0, 1.0, 0.0, 3.0]), np.array([0.3, -0.2, 0.9, 1.1, 0.4])


def one_query(labels: np.ndarray) -> RankingData:
    return RankingData.from_arrays(np.zeros((len(labels), 1)), labels, group=[len(labels)])


def ideal(labels: np.ndarray, k: int | None = None) -> float:
    best = np.sort(2.0**labels - 1)[::-1][:k]
    return float((best / np.log2(np.arange(2, len(best) + 2))).sum())


def approx_by_definition(labels: np.ndarray, scores: np.ndarray, temperature: float) -> float:
    total = 0.0
    for i in range(len(labels)):
        rank = 1.0
        for j in range(len(labels)):
            if j != i:
                rank += 1.0 / (1.0 + np.exp((scores[i] - scores[j]) / temperature))
        total += (2.0 ** labels[i] - 1.0) / np.log2(1.0 + rank)
    return 1.0 - total / ideal(labels)


@pytest.mark.kernel
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_gradients_are_derivatives_of_the_loss(objective: Objective) -> None:
    data, scores = made_up_lists(4)
    bound = objective.bind(data)
    np.testing.assert_allclose(bound.gradients(scores).lambdas, slopes_of(bound, scores), rtol=1e-3, atol=2e-5)


@pytest.mark.kernel
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_approx_ndcg_by_its_definition(temperature: float) -> None:
    bound = ApproxNDCG(temperature=temperature).bind(one_query(LABELS))
    np.testing.assert_allclose(bound.loss(SCORES), approx_by_definition(LABELS, SCORES, temperature), rtol=1e-12)
    # Scores too far apart for powers with a common scale.
    wide = SCORES * 1e4
    np.testing.assert_allclose(bound.loss(wide), 1.0 - NDCG().values(wide, one_query(LABELS))[0], rtol=1e-9)
    assert np.isfinite(bound.gradients(wide).lambdas).all()


@pytest.mark.parametrize(("k", "temperature"), [(None, 1.0), (2, 1.0), (None, 0.2)])
def test_neural_ndcg_by_automatic_differentiation(k: int | None, temperature: float) -> None:
    """The definition in PyTorch, differentiated by PyTorch."""
    torch = pytest.importorskip("torch")
    s = torch.tensor(SCORES, requires_grad=True)
    n = len(SCORES)
    places = torch.arange(1, n + 1, dtype=torch.float64)
    distances = (s[:, None] - s[None, :]).abs().sum(1)
    P = torch.softmax(((n + 1 - 2 * places)[:, None] * s[None, :] - distances[None, :]) / temperature, dim=1)
    for _ in range(50):
        P = P / P.sum(0, keepdim=True)
        P = P / P.sum(1, keepdim=True)
    discount = 1.0 / torch.log2(1.0 + places)
    discount[n if k is None else k :] = 0.0
    value = (discount * (P @ torch.tensor(2.0**LABELS - 1.0))).sum() / ideal(LABELS, k)
    value.backward()
    bound = NeuralNDCG(k=k, temperature=temperature).bind(one_query(LABELS))
    np.testing.assert_allclose(bound.loss(SCORES), 1.0 - value.item(), rtol=1e-7)
    np.testing.assert_allclose(bound.gradients(SCORES).lambdas, s.grad.numpy(), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("objective", [ApproxNDCG(temperature=1e-3), NeuralNDCG(temperature=1e-3)], ids=str)
def test_cold_forms_are_ndcg_itself(objective: Objective) -> None:
    data = one_query(LABELS)
    np.testing.assert_allclose(objective.bind(data).loss(SCORES), 1.0 - NDCG().values(SCORES, data)[0], atol=1e-6)


@pytest.mark.parametrize("objective", ["ApproxNDCG", "NeuralNDCG(k=5)"])
def test_nets_and_trees_learn_by_them(objective: str) -> None:
    data = make_splits(80, n_docs=10, n_features=5, random_state=1)
    net = LambdaRank(objective, hidden_layer_sizes=8, epochs=15, batch_size=8, n_jobs=1, measure="NDCG@5")
    trees = LambdaMART(objective, n_estimators=20, learning_rate=0.3, n_jobs=1, measure="NDCG@5")
    for learner in (net, trees):
        # A random ranker has 0.58.
        assert learner.fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.8
