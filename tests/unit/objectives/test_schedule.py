"""Objectives that change with the iteration."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.errors import GradrankError
from gradrank.measures import NDCG
from gradrank.objectives import Lambda, Scheduled, Sigmoid, parse_objective, recommended

FIRST = Lambda(NDCG(), normalize="deviation")
SECOND = Lambda(NDCG(3), cost=Sigmoid(0.5), normalize="deviation")


@pytest.mark.parametrize("w0", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("eta", [0.1, 0.01, 0.001])
def test_linear_weights_follow_the_formula(w0: float, eta: float) -> None:
    objective = Scheduled(FIRST, SECOND, "linear", w0, eta)
    weight = w0
    for step in range(300):
        np.testing.assert_allclose(objective.weight(step), weight, rtol=1e-9)
        weight = min(1.0, weight + eta)


@pytest.mark.parametrize("w0", [0.1, 0.5])
@pytest.mark.parametrize("eta", [100.0, 250.0])
def test_exponential_weights_follow_the_formula(w0: float, eta: float) -> None:
    objective = Scheduled(FIRST, SECOND, "exponential", w0, eta)
    weight = w0
    for step in range(300):
        np.testing.assert_allclose(objective.weight(step), weight, rtol=1e-9)
        weight = min(1.0, weight + exp(-eta / (step + 1)))


def test_gradients_are_mixed_by_the_weight_of_the_step() -> None:
    rng = np.random.default_rng(0)
    data = RankingData.from_arrays(np.zeros((60, 1)), rng.integers(0, 4, 60), group=np.full(6, 10))
    scores = rng.normal(size=60)
    objective = Scheduled(FIRST, SECOND, "linear", w0=0.2, eta=0.1)
    bound = objective.bind(data)
    one, two = (part.bind(data).gradients(scores) for part in (FIRST, SECOND))
    for step in (0, 3, 8, 50):
        w = objective.weight(step)
        got = bound.gradients(scores, step)
        np.testing.assert_allclose(got.lambdas, (1 - w) * one.lambdas + w * two.lambdas, atol=1e-6)
        np.testing.assert_allclose(got.rhos, (1 - w) * one.rhos + w * two.rhos, atol=1e-6)


def test_name_round_trip() -> None:
    name = "Scheduled(Lambda(NDCG), Lambda(NDCG, cost=sigmoid), schedule=linear, w0=0.1, eta=0.01)"
    assert str(parse_objective(name)) == name
    bare = "Scheduled(NDCG, Lambda(NDCG, cost=sigmoid), schedule=linear, w0=0.1, eta=0.01)"
    assert parse_objective(bare, bare=Lambda) == parse_objective(name)
    assert parse_objective(bare).parts[0] == recommended(NDCG())
    divided = name[:-1] + ", normalize=deviation)"
    assert str(parse_objective(divided)) == divided


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Scheduled(NDCG)", "takes two objectives"),
        ("Scheduled(NDCG, MAP, schedule=cubic)", "schedule is 'cubic'"),
        ("Scheduled(NDCG, MAP, w0=2)", "w0 is 2"),
        ("Scheduled(NDCG, MAP, eta=-1)", "eta is -1"),
        ("Scheduled(NDCG, MAP, eta=fast)", "eta is 'fast', expected a number"),
        ("Scheduled(NDCG, MAP, foo=1)", "takes two objectives"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        parse_objective(name)
