"""The mean attractiveness of documents given their clicks and a first guess (empirical Bayes).

How far attractiveness strays from a guess depends on the guess: what is guessed to be poor mostly is, what is guessed
to be middling may be very good or not. So no form of a distribution is assumed. Documents are put into strips of like
guesses; within a strip attractiveness has a distribution over a grid of levels, the one that makes the clicks of the
strip's documents likeliest (nonparametric maximum likelihood, Kiefer & Wolfowitz 1956; by expectation maximization). A
document's mean under it, given its own clicks, is what is wanted (Robbins 1956): many clicks speak for themselves, few
are drawn to what is usual for the guess.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.evidence import Evidence

_LEVELS = 40
_STRIPS = 15
_DOCUMENTS_PER_STRIP = 50  # at least
_ITERATIONS = 300
# Documents spread evenly over the levels that are added to each strip, so that no level is ruled out.
_SPREAD = 0.5


def posterior_means(evidence: Evidence, guess: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean attractiveness of each document; the guess for documents that nobody examined.

    Parameters
    ----------
    evidence
        What clicks tell.
    guess
        A first guess for each document, from other clicks than its own.

    Examples
    --------
    >>> one = np.ones(2)
    >>> evidence = Evidence(3, np.array([0, 1]), np.array([1.0, 90.0]), np.array([0.0, 10.0]), one, 0 * one)
    >>> posterior_means(evidence, np.full(3, 0.5)).round(1).tolist()
    [0.9, 0.9, 0.5]
    """
    seen = evidence.examined > 0
    levels = grid_of_levels(evidence)
    likelihood = evidence.log_likelihood(levels)[seen]
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    count = max(1, min(_STRIPS, int(seen.sum()) // _DOCUMENTS_PER_STRIP))
    edges = np.quantile(guess[seen], np.linspace(0, 1, count + 1)[1:-1])
    strip = np.searchsorted(edges, guess[seen])
    means = np.empty(len(likelihood))
    for number in range(count):
        own = strip == number
        means[own] = _means(likelihood[own]) @ levels
    out = np.array(guess, dtype=np.float64)
    out[seen] = means
    return out


def grid_of_levels(evidence: Evidence) -> NDArray[np.float64]:
    """Levels of attractiveness, evenly spaced in log-odds, from a tenth of the mean (0.01 at most) to nearly 1."""
    clicks = float((evidence.hits - (evidence.hits + evidence.misses) * evidence.offset).sum())
    mean = clicks / max(float(evidence.examined.sum()), 1e-12)
    lowest = min(max(0.1 * mean, 1e-5), 0.01)
    ends = np.log(lowest / (1 - lowest)), np.log(0.99 / 0.01)
    return np.asarray(1.0 / (1.0 + np.exp(-np.linspace(*ends, _LEVELS))))


def _means(likelihood: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chances of the levels for each document of a strip, given its clicks."""
    shares = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    chances = likelihood
    for _ in range(_ITERATIONS):
        chances = likelihood * shares
        chances /= chances.sum(axis=1, keepdims=True)
        shares = chances.sum(axis=0) + _SPREAD / len(shares)
        shares /= shares.sum()
    return chances
