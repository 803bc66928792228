"""Noise in the λ's: the mean over samples, drawn by seed, step and sample."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.errors import GradrankError
from gradrank.learners import LambdaMART, LambdaRank
from gradrank.measures import NDCG
from gradrank.objectives import Lambda, Noisy, parse_objective

DATA = make_splits(60, n_docs=12, n_features=4, random_state=2, clicks=True)


def test_it_is_the_mean_of_the_samples() -> None:
    data = DATA["train"]
    scores = np.random.default_rng(0).normal(size=data.n_docs)
    inner = Lambda(NDCG(3)).bind(data, random_state=7)
    wanted = np.zeros(data.n_docs)
    for sample in range(3):
        noise = -np.log(np.random.default_rng([7, 5, sample]).standard_exponential(data.n_docs))
        wanted += inner.gradients(scores + 0.5 * noise).lambdas / 3
    got = Noisy(Lambda(NDCG(3)), samples=3, scale=0.5).bind(data, random_state=7).gradients(scores, 5)
    np.testing.assert_allclose(got.lambdas, wanted, rtol=1e-4, atol=1e-6)


def test_many_samples_come_near_the_expectation_over_orders() -> None:
    """Two documents: with Gumbel noise o is logistic, and the expected force of RankNet is known by quadrature."""
    data = RankingData.from_arrays([[0.0]] * 2, [1, 0], qid=[1, 1])
    got = Noisy(Lambda(NDCG()), samples=4000).bind(data).gradients(np.array([0.7, 0.0])).lambdas[0]
    grid = np.linspace(-30, 30, 20001)
    density = np.exp(-grid) / (1 + np.exp(-grid)) ** 2
    force = np.trapezoid(density / (1 + np.exp(0.7 + grid)), grid)
    np.testing.assert_allclose(got, force * (1 - 1 / np.log2(3)), rtol=0.05)


def test_documents_that_the_measure_does_not_see_are_pushed() -> None:
    data = DATA["train"]
    scores = np.random.default_rng(1).normal(size=data.n_docs)
    exact = Lambda(NDCG(1)).bind(data).gradients(scores, count_pairs=True)
    noisy = Noisy(Lambda(NDCG(1)), samples=8).bind(data).gradients(scores, count_pairs=True)
    assert np.count_nonzero(noisy.lambdas) > 1.3 * np.count_nonzero(exact.lambdas)
    assert noisy.effective_pairs > 0


def test_steps_differ_and_repeat() -> None:
    data = DATA["train"]
    bound = [parse_objective("Noisy(NDCG@3)").bind(data, random_state=seed) for seed in (0, 0, 1)]
    scores = np.zeros(data.n_docs)
    one, again, other = (item.gradients(scores, 2).lambdas for item in bound)
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert (one != bound[0].gradients(scores, 3).lambdas).any()


@pytest.mark.parametrize("objective", ["Noisy(NDCG@3, samples=2)", "Noisy(Tiered(NDCG, CNDCG, weight=0.1), samples=2)"])
def test_models_do_not_depend_on_threads(objective: str) -> None:
    models = [
        LambdaMART(objective, n_estimators=5, n_jobs=n_jobs).fit(DATA["train"]).predict(DATA["test"])
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(models[0], models[1])
    net = LambdaRank(objective, hidden_layer_sizes=4, epochs=2, n_jobs=1).fit(DATA["train"])
    assert len(np.unique(net.predict(DATA["test"]))) > 100


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Noisy(ListNet)", "takes a measure, λ-gradients or tiers, found ListNet"),
        ("Noisy(NDCG, samples=0)", "samples is 0"),
        ("Noisy(NDCG, scale=0)", "scale is 0"),
        ("Noisy(NDCG, MAP)", "takes one objective"),
        ("Noisy()", "takes one objective"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        parse_objective(name)
