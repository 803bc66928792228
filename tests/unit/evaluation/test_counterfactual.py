"""Counterfactual evaluation: what a new ranker gets is foretold from the log of another."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data.artificial import make_data
from gradrank.data.clicks.click_log import click_log
from gradrank.data.clicks.propensity import given_propensities
from gradrank.data.clicks.simulate import Users, attraction, simulate_log
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation.counterfactual import counterfactual

DEPTH = 6
KNOWN = given_propensities(1 / np.arange(1, DEPTH + 1))


def _made(seed: int):  # type: ignore[no-untyped-def]
    data = make_data(150, n_docs=DEPTH, n_features=6, random_state=seed, n_jobs=1)
    rng = np.random.default_rng(seed)
    new = data.label() + 0.5 * rng.normal(size=data.n_docs)
    log = simulate_log(data, {"a": rng.random(data.n_docs), "b": data.X[:, 0]}, 15_000, shown=DEPTH, random_state=seed)
    # The truth: attractiveness at the new ranks, over the queries as often as the log has them.
    weight = np.bincount(log.query, minlength=data.n_queries)
    alpha = attraction(data, Users()).reshape(-1, DEPTH)
    order = np.argsort(-new.reshape(-1, DEPTH), axis=1)
    clicks = (np.take_along_axis(alpha, order, axis=1) / np.arange(1, DEPTH + 1)).sum(axis=1)
    return data, log, new, float(np.average(clicks, weights=weight))


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_the_truth_is_within_the_intervals(estimator: str) -> None:
    errors, inside, gains = [], 0, []
    for seed in range(6):
        data, log, new, truth = _made(seed)
        found = counterfactual(log, data, {"new": new}, KNOWN, estimator=estimator, cutoff=DEPTH, clip=0.01)  # type: ignore[arg-type]
        item = found.estimates[0]
        errors.append(item.value - truth)
        inside += item.low < truth < item.high
        gains.append((item.gain, truth - found.clicks))
        assert item.unseen == 0.0
        assert found.logged == pytest.approx(found.clicks, rel=0.03)
        assert item.gain_low < item.gain < item.gain_high
    assert inside >= 5
    assert abs(np.mean(errors)) < 0.02
    # The new ranker's clicks, not the log's: those are fewer by much more than the error.
    assert all(gain > 0.05 and abs(gain - real) < 0.02 for gain, real in gains)


def test_self_normalization_undoes_clipping() -> None:
    data, log, new, truth = _made(1)
    clipped = {
        name: counterfactual(log, data, {"new": new}, KNOWN, estimator=name, cutoff=DEPTH, clip=1.0).estimates[0].value  # type: ignore[arg-type]
        for name in ("ips", "snips", "dr")
    }
    assert clipped["ips"] < 0.8 * truth
    assert clipped["snips"] == pytest.approx(truth, rel=0.04)
    # The model makes up for weights that are too small.
    assert abs(clipped["dr"] - truth) < abs(clipped["ips"] - truth) / 3


def test_estimates_by_hand() -> None:
    data = RankingData.from_arrays([[0.0]] * 3, [0, 0, 0], qid=["q"] * 3, docid=["a", "b", "c"])
    log = click_log([("q", ["a", "b"], ["b"]), ("q", ["b", "a"], ["b"]), ("q", ["a", "b"], [])])
    known = given_propensities([1.0, 0.5])
    scores = {"bca": [1.0, 3.0, 2.0]}
    # b: clicked at place 2 and 1, not clicked at 2.
    ips, snips = (1 / 0.5 + 1 + 0) / 3, (1 / 0.5 + 1) / 3
    for name, alpha in (("ips", ips), ("snips", snips)):
        found = counterfactual(log, data, scores, known, estimator=name, cutoff=2, clip=0.1)  # type: ignore[arg-type]
        assert found.estimates[0].value == pytest.approx(alpha)
        assert found.estimates[0].unseen == pytest.approx(0.5 / 1.5)
    given = counterfactual(log, data, scores, known, estimator="dr", cutoff=2, clip=0.1, model=[0.0, 0.4, 0.2])
    robust = 0.4 + ((1 - 0.2) / 0.5 + (1 - 0.4) + (0 - 0.2) / 0.5) / 3
    assert given.estimates[0].value == pytest.approx(robust + 0.5 * 0.2)
    dcg = counterfactual(log, data, scores, known, estimator="ips", worth="dcg", cutoff=3, clip=0.1)
    assert dcg.estimates[0].value == pytest.approx(ips)


def test_what_cannot_be_estimated_is_said() -> None:
    data, log, new, _ = _made(0)
    shallow = given_propensities(1 / np.arange(1, 5))
    with pytest.raises(DataError, match="how likely rank 5 is examined is not known"):
        counterfactual(log, data, {"new": new}, shallow, cutoff=DEPTH)
    # No list is longer than what is known.
    deep, exact = (counterfactual(log, data, {"new": new}, KNOWN, cutoff=at).estimates[0] for at in (DEPTH + 1, DEPTH))
    assert deep == exact
    with pytest.raises(DataError, match="system 'new' has scores of shape"):
        counterfactual(log, data, {"new": new[:-1]}, KNOWN, cutoff=6)
    with pytest.raises(DataError, match="the log shows no document of the data"):
        counterfactual(click_log([("zz", ["x"], [])]), data, {"new": new}, KNOWN, cutoff=6)
