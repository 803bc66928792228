"""Click models of users who read lists from the top: what they examine depends on what they clicked before.

Two models. In both, users who examine a document click it with its attractiveness a, and who stops reads nothing below:

``cascade``
    users who do not click always read on; after a click at position k they read on with probability λ_k (dependent
    click model, Guo et al. 2009). If no session has two clicks, λ is 0 and this is the cascade model (Craswell et al.
    2008);
``dbn``
    a click satisfies with a probability s of the document, and who is satisfied stops; others read on with probability
    γ, the same everywhere (dynamic Bayesian network, Chapelle & Zhang 2009). How useful a document is, is a·s: it
    attracts and then satisfies.

Both are fitted by expectation maximization. What is not observed are the documents below the last click, or of a list
without clicks, that were still examined. Attractiveness has the Beta prior that the log suggests (``prior.py``),
satisfaction one worth two clicks with the mean of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.prior import suggested_prior
from gradrank.errors import DataError
from gradrank.runtime.kernels import njit

SESSION_MODELS = ("cascade", "dbn")
_MAX_ITERATIONS = 200
_TOLERANCE = 1e-7  # rise of the log likelihood per impression
_SATISFACTION_PRIOR = 2.0


@dataclass(frozen=True, eq=False)
class SessionModel:
    """A fitted model of users who read from the top."""

    kind: Literal["cascade", "dbn"]
    keys: NDArray[np.int64]
    """Query times number of documents, plus document, of each pair that was shown; rising."""
    attraction: NDArray[np.float64]
    """a of each pair."""
    ends: NDArray[np.int64]
    """What the chance to stop after a click belongs to: the keys of the pairs (``dbn``), or positions (``cascade``)."""
    satisfaction: NDArray[np.float64]
    """Chance that a click is the end, s or 1 − λ, of each of the ``ends``."""
    go_on: float
    """γ; 1 for ``cascade``."""
    mean: tuple[float, float]
    """Attraction and satisfaction of what was never shown."""
    trace: NDArray[np.float64]
    """Log likelihood per impression, without the prior, at the start of each iteration."""
    converged: bool

    def chances(self, log: ClickLog) -> NDArray[np.float64]:
        """For each impression the chance of a click, given the clicks above it in its session."""
        attraction, satisfaction = self._of_impressions(log)
        out = np.empty(log.n_impressions)
        _foretell(log.indptr, log.order > 0, attraction, satisfaction, self.go_on, out)
        return out

    def examined(self, log: ClickLog) -> NDArray[np.float64]:
        """For each impression the chance that it was examined, given all clicks of its session."""
        attraction, satisfaction = self._of_impressions(log)
        seen, satisfied = np.empty((2, log.n_impressions))
        _look_back(log.indptr, log.order > 0, attraction, satisfaction, self.go_on, seen, satisfied)
        return seen

    def _of_impressions(self, log: ClickLog) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        keys = pair_keys(log)
        ends = keys if self.kind == "dbn" else log.position.astype(np.int64)
        return (
            _looked_up(self.keys, self.attraction, keys, self.mean[0]),
            _looked_up(self.ends, self.satisfaction, ends, self.mean[1]),
        )


def pair_keys(log: ClickLog) -> NDArray[np.int64]:
    """A number for the query and document of each impression."""
    return np.repeat(log.query.astype(np.int64), np.diff(log.indptr)) * max(1, len(log.documents)) + log.document


def fit_session_model(log: ClickLog, kind: Literal["cascade", "dbn"] = "dbn") -> SessionModel:
    """Fit one of :data:`SESSION_MODELS` to a log.

    >>> from gradrank.data.clicks.click_log import click_log
    >>> log = click_log([("q", ["a", "b", "c"], ["b"])] * 30 + [("q", ["a", "b", "c"], ["a"])] * 10)
    >>> model = fit_session_model(log, "cascade")
    >>> model.examined(log)[:2].round(2).tolist()  # who clicks the second has seen the first
    [1.0, 1.0]
    """
    if kind not in SESSION_MODELS:
        raise DataError(f"model {kind!r} does not exist, expected one of {', '.join(SESSION_MODELS)}")
    clicked = log.order > 0
    if not clicked.any():
        raise DataError("the log has no clicks, so no click model can be fitted to it")
    keys, pair = np.unique(pair_keys(log), return_inverse=True)
    pair = pair.reshape(-1)
    end_keys, end = keys, pair
    if kind == "cascade":
        end_keys, end = np.unique(log.position.astype(np.int64), return_inverse=True)
        end = end.reshape(-1)
    clicks, ending_clicks = _sums(pair, clicked, len(keys)), _sums(end, clicked, len(end_keys))
    seen = np.ones(log.n_impressions)
    satisfied = 0.5 * clicked
    go_on = 0.9 if kind == "dbn" else 1.0
    trace: list[float] = []
    converged = False
    while not converged and len(trace) < _MAX_ITERATIONS:
        mean = float(clicks.sum() / seen.sum()), float(satisfied.sum() / clicks.sum())
        examined = _sums(pair, seen, len(keys))
        prior = suggested_prior(clicks, examined, _sums(pair, seen**2, len(keys)))
        attraction = (clicks + prior[0]) / np.maximum(examined + sum(prior), 1e-12)
        pulled = _SATISFACTION_PRIOR if kind == "dbn" else 1e-9  # of positions there are few, each with many clicks
        satisfaction = (_sums(end, satisfied, len(end_keys)) + pulled * mean[1]) / (ending_clicks + pulled)
        likelihood, went_on, could = _look_back(
            log.indptr, clicked, attraction[pair], satisfaction[end], go_on, seen, satisfied
        )
        trace.append(likelihood / log.n_impressions)
        converged = len(trace) > 1 and trace[-1] - trace[-2] <= _TOLERANCE
        if kind == "dbn" and could > 0:
            go_on = went_on / could
    return SessionModel(kind, keys, attraction, end_keys, satisfaction, go_on, mean, np.array(trace), converged)


def _looked_up(
    known: NDArray[np.int64], values: NDArray[np.float64], wanted: NDArray[np.int64], otherwise: float
) -> NDArray[np.float64]:
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, values[place], otherwise)


def _sums(number: NDArray[np.int64], values: NDArray[np.generic], count: int) -> NDArray[np.float64]:
    return np.bincount(number, weights=values, minlength=count).astype(np.float64)


@njit(cache=True, nogil=True)
def _look_back(
    indptr: NDArray[np.int64],
    clicked: NDArray[np.bool_],
    attraction: NDArray[np.float64],
    satisfaction: NDArray[np.float64],
    go_on: float,
    seen: NDArray[np.float64],
    satisfied: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Chances of what was examined and what satisfied, given the clicks of the sessions.

    Returns the log likelihood, how often users who could read on did, and how often they could.
    """
    likelihood, went_on, could = 0.0, 0.0, 0.0
    for session in range(len(indptr) - 1):
        start, end = indptr[session], indptr[session + 1]
        last = start - 1
        for i in range(start, end):
            satisfied[i] = 0.0
            if clicked[i]:
                last = i
        # seen[i] holds the chance of no click from i on, for users who examine i, until it is replaced below.
        silent = 1.0
        for i in range(end - 1, last, -1):
            silent = (1 - attraction[i]) * (1 - go_on + go_on * silent)
            seen[i] = silent
        for i in range(start, last):
            seen[i] = 1.0
            went_on += 1.0
            could += 1.0
            stays = go_on
            if clicked[i]:
                likelihood += np.log(max(attraction[i], 1e-300))
                stays *= 1 - satisfaction[i]
            else:
                likelihood += np.log(max(1 - attraction[i], 1e-300))
            likelihood += np.log(max(stays, 1e-300))
        reached = 1.0
        if last >= start:
            seen[last] = 1.0
            ending = satisfaction[last]
            total = ending + (1 - ending) * (1 - go_on + go_on * silent)
            satisfied[last] = ending / total
            likelihood += np.log(max(attraction[last], 1e-300))
            reached = (1 - ending) * go_on
            if last < end - 1:
                could += 1 - ending / total
                went_on += reached * silent / total
        else:
            total = silent
        likelihood += np.log(max(total, 1e-300))
        for i in range(last + 1, end):
            seen[i] = reached * seen[i] / max(total, 1e-300)
            reached *= (1 - attraction[i]) * go_on
        for i in range(last + 1, end - 1):
            could += seen[i]
            went_on += seen[i + 1]
    return likelihood, went_on, could


@njit(cache=True, nogil=True)
def _foretell(
    indptr: NDArray[np.int64],
    clicked: NDArray[np.bool_],
    attraction: NDArray[np.float64],
    satisfaction: NDArray[np.float64],
    go_on: float,
    out: NDArray[np.float64],
) -> None:
    for session in range(len(indptr) - 1):
        reads = 1.0
        for i in range(indptr[session], indptr[session + 1]):
            out[i] = reads * attraction[i]
            if clicked[i]:
                reads = (1 - satisfaction[i]) * go_on
            else:
                reads = reads * (1 - attraction[i]) / max(1 - out[i], 1e-12) * go_on
