"""What a ranker would have got from the users of a click log that other rankers made.

Under the position-based model a click at position k comes with probability p_k·α. The log's clicks give each document's
α, with propensities p that are known; a ranker that puts the document at rank r is worth Σ α·f(r) per session, with
f(r) = p_r for clicks, or 1/log2(1 + r) for DCG. With w = 1/max(p, clip), over the n impressions of a document:

``ips``
    α = (1/n)·Σ click·w: unbiased where nothing is clipped, and noisy (Joachims et al. 2017);
``snips``
    α = Σ click·w / Σ p·w: self-normalized, which also undoes the bias of clipping (Swaminathan & Joachims 2015);
``dr``
    α = m + (1/n)·Σ (click − p·m)·w: doubly robust (Oosterhuis 2023), with a model m of what the document attracts, and
    clicks that correct it. m is that of the other half of the sessions, a posterior mean; other models may be
    given. Right if either m or p is.

The three differ where something is clipped or was never shown; else they are the same number. Documents that no
session showed have α = 0 for ``ips`` and ``snips``, which is pessimistic about rankers that bring
up new documents, and m for ``dr``; ``unseen`` says how much of a ranker's list this concerns. Intervals are over
queries, each counted with its sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.arrays import number_array
from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.joining import join_clicks
from gradrank.data.clicks.labels import click_labels
from gradrank.data.clicks.propensity import Propensities
from gradrank.data.clicks.sessions import rows_of_log, take_sessions
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.ranking import order_within_queries

ESTIMATORS = ("ips", "snips", "dr")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """What a ranker is worth per session, by the log."""

    system: str
    value: float
    low: float
    high: float
    """Ends of the interval."""
    gain: float
    gain_low: float
    gain_high: float
    """Difference from what the log's own lists are worth, by the same estimate, with its interval (paired by query)."""
    unseen: float
    """Share of the list's weight on documents that no session showed."""


@dataclass(frozen=True)
class Counterfactual:
    """Estimates for several rankers from one log."""

    estimator: str
    worth: str
    logged: float
    """What the lists of the log are worth by the same estimate."""
    clicks: float
    """Clicks per session that were counted in the log, at positions of known propensity."""
    sessions: int
    queries: int
    """Sessions and queries of the log that the data has."""
    confidence: float
    estimates: tuple[Estimate, ...]


def counterfactual(
    log: ClickLog,
    data: RankingData,
    systems: Mapping[str, ArrayLike],
    propensities: Propensities,
    *,
    estimator: Literal["ips", "snips", "dr"] = "snips",
    worth: Literal["clicks", "dcg"] = "clicks",
    cutoff: int = 10,
    clip: float = 0.05,
    model: ArrayLike | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Counterfactual:
    """Evaluate rankers by a click log that others made.

    Parameters
    ----------
    log
        The click log.
    data
        The documents that a ranker may show, with document ids; labels are not looked at.
    systems
        Scores, one per document in the data's own order, by the ranker's name.
    propensities
        How likely each position is examined.
    estimator
        ``ips``, ``snips`` or ``dr``; see above.
    worth
        Expected ``clicks`` per session, or expected ``dcg`` with attractiveness as gain.
    cutoff
        Ranks that count.
    clip
        Propensities below this count as this in weights.
    model
        For ``dr``: what each document attracts by some model, one number per document; None = by the log.
    confidence
        Of the intervals.
    random_state
        Seed of the halves of the log for ``dr``.

    Examples
    --------
    >>> from gradrank.data.artificial import make_data
    >>> from gradrank.data.clicks.propensity import given_propensities
    >>> from gradrank.data.clicks.simulate import simulate_log
    >>> data = make_data(50, n_docs=6, n_features=5)
    >>> log = simulate_log(data, {"old": data.X[:, 0]}, 5000)
    >>> found = counterfactual(log, data, {"best": data.label()}, given_propensities(1 / np.arange(1, 7)))
    >>> found.estimates[0].gain_low > 0
    True
    """
    if estimator not in ESTIMATORS:
        raise DataError(f"estimator {estimator!r} does not exist, expected one of {', '.join(ESTIMATORS)}")
    if worth not in ("clicks", "dcg"):
        raise DataError(f"worth is {worth!r}, expected clicks or dcg")
    if cutoff < 1 or not 0 < clip <= 1 or not 0 < confidence < 1:
        raise DataError(f"cutoff is {cutoff}, clip {clip} and confidence {confidence}: expected 1 or more, and shares")
    if propensities.false_clicks is not None:
        raise DataError("the propensities have false clicks (trust bias), which no counterfactual estimate takes off")
    shown = _Shown.of(log, data, propensities)
    if estimator == "dr":
        halves = np.random.default_rng(random_state).random(log.n_sessions) < 0.5
        attraction = _doubly_robust(shown, log, data, propensities, clip, model, halves)
    else:
        attraction = _weighted(shown, data.n_docs, clip, self_normalized=estimator == "snips")
    # Ranks that no list has need no propensity.
    weights = _rank_weights(worth, propensities, min(cutoff, int(data.sizes.max())))
    sessions = np.bincount(shown.query_of_session, minlength=data.n_queries).astype(np.float64)
    seen = np.bincount(shown.row, minlength=data.n_docs) > 0
    at_rank = np.append(weights, 0.0)[np.minimum(shown.place, len(weights))]
    logged = np.bincount(
        data.query_of_row()[shown.row], weights=attraction[shown.row] * at_rank, minlength=data.n_queries
    ) / np.maximum(sessions, 1)
    width = NormalDist().inv_cdf(0.5 + confidence / 2)
    estimates = []
    for name, scores in systems.items():
        given = _list_weights(data, name, scores, weights)
        values = np.add.reduceat(attraction * given, data.indptr[:-1])
        mean, error = _mean_and_error(values, sessions)
        gain, gain_error = _mean_and_error(values - logged, sessions)
        of_query = np.repeat(sessions, data.sizes)
        total = float((given * of_query).sum())
        unseen = float((given * of_query)[~seen].sum()) / total if total else 0.0
        estimates.append(
            Estimate(
                name, mean, mean - width * error, mean + width * error,
                gain, gain - width * gain_error, gain + width * gain_error, unseen,
            )
        )  # fmt: skip
    n_sessions = len(shown.query_of_session)
    return Counterfactual(
        estimator=estimator,
        worth=worth,
        logged=_mean_and_error(logged, sessions)[0],
        clicks=float(shown.clicked.sum()) / n_sessions,
        sessions=n_sessions,
        queries=int(np.count_nonzero(sessions)),
        confidence=confidence,
        estimates=tuple(estimates),
    )


@dataclass(frozen=True, eq=False)
class _Shown:
    """Impressions of documents of the data at positions of known propensity."""

    row: NDArray[np.int64]
    session: NDArray[np.int64]
    place: NDArray[np.int64]
    """Position from 0."""
    chance: Floats
    clicked: NDArray[np.bool_]
    query_of_session: NDArray[np.int64]
    """The data's query of each session that showed a document of the data."""

    @classmethod
    def of(cls, log: ClickLog, data: RankingData, propensities: Propensities) -> _Shown:
        rows = rows_of_log(log, data)
        chance = propensities.at(log.position)
        kept = (rows >= 0) & ~np.isnan(chance)
        if not kept.any():
            raise DataError("the log shows no document of the data at a position of known propensity")
        session = np.repeat(np.arange(log.n_sessions), np.diff(log.indptr))
        _, first = np.unique(session[kept], return_index=True)
        return cls(
            row=rows[kept],
            session=session[kept],
            place=log.position[kept].astype(np.int64) - 1,
            chance=chance[kept],
            clicked=log.order[kept] > 0,
            query_of_session=data.query_of_row()[rows[kept][first]],
        )


def _weighted(shown: _Shown, n_docs: int, clip: float, *, self_normalized: bool) -> Floats:
    weight = 1.0 / np.maximum(shown.chance, clip)
    top = np.bincount(shown.row, weights=shown.clicked * weight, minlength=n_docs)
    below = np.bincount(shown.row, weights=shown.chance * weight if self_normalized else None, minlength=n_docs)
    return np.asarray(top / np.where(below > 0, below, 1.0))


def _doubly_robust(
    shown: _Shown,
    log: ClickLog,
    data: RankingData,
    propensities: Propensities,
    clip: float,
    model: ArrayLike | None,
    halves: NDArray[np.bool_],
) -> Floats:
    weight = 1.0 / np.maximum(shown.chance, clip)
    if model is not None:
        given = number_array(model, "the model of attractiveness", np.float64)
        if given.shape != (data.n_docs,) or not ((given >= 0) & (given <= 1)).all():
            raise DataError("the model of attractiveness does not have a number from 0 to 1 for each document")
        models = (given, given)
    else:
        models = (
            _posterior(take_sessions(log, halves), data, propensities),
            _posterior(take_sessions(log, ~halves), data, propensities),
        )
    side = halves[shown.session]
    total, count = np.zeros(data.n_docs), np.bincount(shown.row, minlength=data.n_docs)
    for own, other in ((side, models[1]), (~side, models[0])):
        row = shown.row[own]
        term = other[row] + (shown.clicked[own] - shown.chance[own] * other[row]) * weight[own]
        total += np.bincount(row, weights=term, minlength=data.n_docs)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), 0.5 * (models[0] + models[1])))


def _posterior(log: ClickLog, data: RankingData, propensities: Propensities) -> Floats:
    """What each document attracts by some sessions; the mean for documents that they do not show."""
    labels = click_labels(log, "examined", propensities=propensities)
    mean = labels.prior[0] / sum(labels.prior) if sum(labels.prior) else 0.0
    column = join_clicks(data, labels)[0].label("clicks").astype(np.float64)
    return np.where(np.isnan(column), mean, column)


def _rank_weights(worth: str, propensities: Propensities, cutoff: int) -> Floats:
    ranks = np.arange(1, cutoff + 1)
    if worth == "dcg":
        return np.asarray(1.0 / np.log2(1.0 + ranks))
    chance = propensities.at(ranks)
    if np.isnan(chance).any():
        rank = int(ranks[np.isnan(chance)][0])
        raise DataError(
            f"how likely rank {rank} is examined is not known, expected propensities down to the cutoff of {cutoff}; "
            f"a cutoff of {rank - 1} or worth dcg can do without"
        )
    return chance


def _list_weights(data: RankingData, name: str, scores: ArrayLike, weights: Floats) -> Floats:
    """The weight of the rank that each document gets; equal scores stand in the data's order."""
    values = number_array(scores, f"system {name!r}", np.float64)
    if values.shape != (data.n_docs,) or np.isnan(values).any():
        raise DataError(f"system {name!r} has scores of shape {values.shape}, expected a number for each document")
    order = order_within_queries(-values, data.indptr)
    place = np.arange(data.n_docs) - np.repeat(data.indptr[:-1], data.sizes)
    result = np.zeros(data.n_docs)
    result[order] = np.append(weights, 0.0)[np.minimum(place, len(weights))]
    return result


def _mean_and_error(values: Floats, sessions: Floats) -> tuple[float, float]:
    """Mean over sessions, and its standard error when queries are drawn."""
    total = float(sessions.sum())
    mean = float((sessions * values).sum()) / total
    count = int(np.count_nonzero(sessions))
    if count < 2:
        return mean, float("inf")
    spread = float((sessions**2 * (values - mean) ** 2).sum()) * count / (count - 1)
    return mean, float(np.sqrt(spread)) / total
