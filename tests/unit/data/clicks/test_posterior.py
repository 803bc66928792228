"""Mean attractiveness given clicks: by hand, and nearer to the truth than rates."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data.clicks.click_log import click_log
from gradrank.data.clicks.evidence import Evidence, evidence_of
from gradrank.data.clicks.posterior import grid_of_levels, posterior_means
from gradrank.data.clicks.propensity import Propensities
from gradrank.data.clicks.session_models import fit_session_model
from gradrank.data.ranking_data import RankingData


def test_evidence_counts_by_document_and_position() -> None:
    data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 0, 0], qid=["q"] * 3, docid=["a", "b", "c"])
    log = click_log([("q", ["a", "b", "x"], ["a", "x"]), ("q", ["b", "a"], []), ("q", ["a", "b"], ["b"])])
    one = np.ones(2)
    known = Propensities(np.array([1, 2]), np.array([0.9, 0.5]), one, one, "trust", false_clicks=np.array([0.1, 0.0]))
    found = evidence_of(data, log, known)
    rows = sorted(zip(found.document, found.slope, found.offset, found.hits, found.misses, strict=True))
    assert rows == [(0, 0.5, 0.0, 0, 1), (0, 0.9, 0.1, 1, 1), (1, 0.5, 0.0, 1, 1), (1, 0.9, 0.1, 0, 1)]
    assert found.examined.tolist() == pytest.approx([2.3, 1.9, 0.0])
    assert found.rate[:2].tolist() == pytest.approx([(1 - 0.2) / 2.3, (1 - 0.1) / 1.9])
    assert np.isnan(found.rate[2])
    # log P of a at γ = 0.5: hit 0.55, miss 0.45 at position 1; miss 0.75 at position 2.
    assert found.log_likelihood(np.array([0.5]))[0, 0] == pytest.approx(np.log(0.55 * 0.45 * 0.75))
    model = fit_session_model(log, "dbn")
    of_sessions = evidence_of(data, log, model)
    seen = np.bincount(log.document, weights=model.examined(log))
    assert of_sessions.examined[:2].tolist() == pytest.approx(seen[:2].tolist())


def test_expectations_lead_to_the_likeliest_attraction() -> None:
    """Share of the looks that attracted, again and again (EM): the maximum of the likelihood, found by a fine grid."""
    rng = np.random.default_rng(3)
    n = 12  # documents, each at two positions with different examination and false clicks
    slope, offset = np.tile([0.7, 0.3], n), np.tile([0.2, 0.05], n)
    hits = rng.binomial(30, slope * 0.4 + offset).astype(float)
    evidence = Evidence(n, np.repeat(np.arange(n), 2), hits, 30 - hits, slope, offset)
    attraction = np.full(n, 0.5)
    for _ in range(3000):
        attracted, in_vain = evidence.expected(attraction)
        attraction = attracted / (attracted + in_vain)
    levels = np.linspace(0.0005, 0.9995, 2000)
    assert attraction == pytest.approx(levels[evidence.log_likelihood(levels).argmax(axis=1)], abs=1e-3)
    # Nobody is looked at more often than shown, and where everybody looks all that is not clicked is a look in vain.
    assert (attracted + in_vain <= 60).all()
    certain = Evidence(1, np.array([0]), np.array([4.0]), np.array([6.0]), np.ones(1), np.zeros(1))
    assert [number[0] for number in certain.expected(np.array([0.3]))] == pytest.approx([4.0, 6.0])


def _drawn(n_docs: int, shown: int) -> tuple[np.ndarray, Evidence]:
    rng = np.random.default_rng(1)
    truth = rng.choice([0.1, 0.2, 0.8], n_docs, p=[0.7, 0.2, 0.1])
    slope = rng.choice([1.0, 0.3], n_docs)
    hits = rng.binomial(shown, slope * truth).astype(float)
    return truth, Evidence(n_docs, np.arange(n_docs), hits, shown - hits, slope, np.zeros(n_docs))


def test_means_are_nearer_to_the_truth_than_rates_and_than_one_prior() -> None:
    truth, evidence = _drawn(2000, 20)

    def error(label: np.ndarray) -> float:
        return float(np.mean((label - truth) ** 2))

    means = posterior_means(evidence, np.full(2000, 0.2))
    # The best that can be done, by somebody who knows the distribution that was drawn from.
    levels = np.array([0.1, 0.2, 0.8])
    chances = np.exp(evidence.log_likelihood(levels)) * [0.7, 0.2, 0.1]
    best = error(chances @ levels / chances.sum(axis=1))
    assert best < error(means) < 1.05 * best
    assert error(means) < 0.5 * error(evidence.rate)
    # The best that a Beta prior around the overall mean can do, whatever its strength.
    beta = min(
        error((evidence.rate * evidence.examined + s * truth.mean()) / (evidence.examined + s))
        for s in np.geomspace(0.1, 100, 30)
    )
    assert error(means) < 0.7 * beta


def test_means_are_those_of_the_likeliest_distribution() -> None:
    _, evidence = _drawn(300, 10)
    levels = grid_of_levels(evidence)
    likelihood = np.exp(evidence.log_likelihood(levels))
    # Slowly, one document after the other.
    shares = np.full(len(levels), 1 / len(levels))
    for _ in range(300):
        total = np.full(len(levels), 0.5 / len(levels))
        means = []
        for row in likelihood:
            chances = row * shares / (row @ shares)
            means.append(float(chances @ levels))
            total += chances
        shares = total / total.sum()
    found = posterior_means(evidence, np.full(300, 0.3))
    assert found == pytest.approx(means, rel=1e-6)


def test_documents_that_nobody_examined_keep_the_guess() -> None:
    _, evidence = _drawn(200, 10)
    more = Evidence(202, evidence.document, evidence.hits, evidence.misses, evidence.slope, evidence.offset)
    guess = np.append(np.full(200, 0.2), [0.7, 0.4])
    assert posterior_means(more, guess)[200:].tolist() == [0.7, 0.4]
