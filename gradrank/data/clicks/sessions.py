"""Sessions as training data, and how well a click model foretells sessions that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.labels import ClickLabels, click_labels, places_among
from gradrank.data.clicks.propensity import Propensities, estimate_propensities
from gradrank.data.clicks.readers import ClickLog
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError

POSITION = "position"
"""Name of the label source that holds the positions."""


def take_sessions(log: ClickLog, sessions: NDArray[np.bool_] | NDArray[np.int64]) -> ClickLog:
    """Some sessions of a log, with the same numbers of queries and documents.

    >>> from gradrank.data.clicks.readers import click_log
    >>> log = click_log([("q", ["a"], []), ("q", ["b", "a"], ["a"])])
    >>> take_sessions(log, np.array([False, True])).document.tolist()
    [1, 0]
    """
    chosen = np.flatnonzero(sessions) if sessions.dtype == bool else sessions
    sizes = np.diff(log.indptr)[chosen]
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    rows = np.arange(indptr[-1]) + np.repeat(log.indptr[chosen] - indptr[:-1], sizes)
    return replace(
        log,
        query=log.query[chosen],
        indptr=indptr,
        document=log.document[rows],
        position=log.position[rows],
        order=log.order[rows],
        last=log.last[rows],
        ranker=None if log.ranker is None else log.ranker[chosen],
        randomized=None if log.randomized is None else log.randomized[chosen],
        # Whose sessions these were, is not known any more.
        clicks_not_shown=0,
        last_clicks_not_shown=0,
        shown_again=0,
    )


def rows_of_log(log: ClickLog, data: RankingData) -> NDArray[np.int64]:
    """For each impression of a log the row of its document in the data, −1 where there is none.

    >>> from gradrank.data.clicks.readers import click_log
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["q", "q"], docid=["a", "b"])
    >>> rows_of_log(click_log([("q", ["b", "x"], [])]), data).tolist()
    [1, -1]
    """
    if data.docid is None:
        raise DataError("this data has no document ids, so clicks cannot be joined to it")
    width = max(1, len(log.documents))
    query = places_among(log.queries, data.qid)[data.query_of_row()]
    document = places_among(log.documents, data.docid)
    known = np.flatnonzero((query >= 0) & (document >= 0))
    keys = query[known] * width + document[known]
    by_key = np.argsort(keys, kind="stable")
    wanted = np.repeat(log.query.astype(np.int64), np.diff(log.indptr)) * width + log.document
    if not len(keys):
        return np.full(len(wanted), -1)
    found = np.minimum(np.searchsorted(keys, wanted, sorter=by_key), len(keys) - 1)
    rows = known[by_key[found]]
    return np.where(keys[by_key[found]] == wanted, rows, -1)


def session_data(
    data: RankingData, log: ClickLog, propensities: Propensities | None = None, *, clip: float = 0.05
) -> RankingData:
    """One query per session: the documents shown with their features, and whether they were clicked.

    The labels are ``label`` (1 = clicked) and ``position``. Sessions without two documents of which one was clicked and
    one was not teach nothing and are left out, as are documents that the data does not have. Every session holds its
    documents' features again: for more than about a million sessions make labels of them instead.

    With propensities, clicked documents get the weights 1/propensity (inverse propensity), which is what makes a loss
    summed over clicks unbiased (Joachims et al. 2017).

    Parameters
    ----------
    data
        Features of the documents, with document ids.
    log
        The click log.
    propensities
        How likely each position is examined. None = no weights. Documents at positions that are not known are left
        out.
    clip
        Propensities below this count as this: rare clicks on deep positions would else outweigh everything. Weights
        are divided by their mean over the clicks (self-normalized).

    Examples
    --------
    >>> from gradrank.data.clicks.propensity import given_propensities
    >>> from gradrank.data.clicks.readers import click_log
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["q", "q"], docid=["a", "b"])
    >>> log = click_log([("q", ["a", "b"], ["b"]), ("q", ["a", "b"], ["a"])])
    >>> sessions = session_data(data, log, given_propensities([1.0, 0.5]))
    >>> sessions.label().tolist(), sessions.document_weight.round(2).tolist()
    ([0.0, 1.0, 1.0, 0.0], [1.0, 1.33, 0.67, 1.0])
    """
    if not 0 < clip <= 1:
        raise DataError(f"clip is {clip}, expected a number above 0 and up to 1")
    rows = rows_of_log(log, data)
    session = np.repeat(np.arange(log.n_sessions), np.diff(log.indptr))
    chance = np.ones(len(rows)) if propensities is None else propensities.at(log.position)
    clicked = log.order > 0
    kept = (rows >= 0) & ~np.isnan(chance)
    ones = np.bincount(session[kept & clicked], minlength=log.n_sessions)
    others = np.bincount(session[kept & ~clicked], minlength=log.n_sessions)
    kept &= ((ones > 0) & (others > 0))[session]
    if not kept.any():
        raise DataError("no session shows two documents of the data of which one was clicked and one was not")
    numbers, start = np.unique(session[kept], return_index=True)
    names = log.queries[log.query[numbers].astype(np.int64)]
    weight = None
    if propensities is not None:
        weight = np.where(clicked, 1.0 / np.maximum(chance, clip), 1.0)[kept]
        weight[clicked[kept]] /= weight[clicked[kept]].mean()
    return RankingData(
        X=np.ascontiguousarray(data.X[rows[kept]]),  # type: ignore[arg-type]
        indptr=np.append(start, int(kept.sum())).astype(np.int64),
        labels={
            "label": clicked[kept].astype(np.float32),
            POSITION: log.position[kept].astype(np.float32),
        },
        qid=Strings.of(f"{name}#{number + 1}" for name, number in zip(names, numbers.tolist(), strict=True)),
        docid=None if data.docid is None else data.docid[rows[kept]],
        document_weight=weight,
        feature_names=data.feature_names,
    )


# ---------------------------------------------------------------------- held-out likelihood
@dataclass(frozen=True)
class HeldOut:
    """Mean log likelihood per impression of clicks that the models have not seen; higher is better."""

    naive: float
    """Click-through rates, the same at every position."""
    position_based: float
    """Propensity of the position times attractiveness."""
    impressions: int
    """Impressions that it is the mean over."""


def held_out_likelihood(
    log: ClickLog,
    propensities: Propensities | None = None,
    *,
    method: str = "auto",
    share: float = 0.2,
    random_state: int = 0,
) -> HeldOut:
    """Compare a position-based model with a naive one on sessions that neither was made from.

    Both give each document of a query one number, from the other sessions and with a prior from the log, and both
    give documents without such sessions the mean.

    Parameters
    ----------
    log
        The click log.
    propensities
        Known propensities; None = they are estimated from the other sessions.
    method
        How they are estimated; see :func:`estimate_propensities`.
    share
        Share of the sessions that are held out.
    random_state
        Seed of their choice.

    Examples
    --------
    >>> from gradrank.data.artificial import make_data
    >>> from gradrank.data.clicks.simulate import simulate_log
    >>> data = make_data(50, n_docs=8, n_features=5)
    >>> log = simulate_log(data, {"old": data.X[:, 0], "new": data.X[:, 1]}, 20_000, shown=5)
    >>> found = held_out_likelihood(log)
    >>> found.naive < found.position_based
    True
    """
    if not 0 < share < 1:
        raise DataError(f"share is {share}, expected a number between 0 and 1")
    held = np.random.default_rng(random_state).random(log.n_sessions) < share
    if held.all() or not held.any():
        raise DataError(f"there are {log.n_sessions} sessions, too few to hold some out")
    train, test = take_sessions(log, ~held), take_sessions(log, held)
    if propensities is None:
        propensities = estimate_propensities(train, method, replicates=2)  # type: ignore[arg-type]
    flat = replace(propensities, probability=np.where(np.isnan(propensities.probability), np.nan, 1.0))
    chance = propensities.at(test.position)
    known = ~np.isnan(chance)
    clicked = test.order[known] > 0
    values = []
    for model, seen in ((flat, np.ones(len(clicked))), (propensities, chance[known])):
        attracted = _attraction_of(click_labels(train, "examined", propensities=model), test)[known]
        click = np.clip(seen * attracted, 1e-9, 1 - 1e-9)
        values.append(float(np.where(clicked, np.log(click), np.log1p(-click)).mean()))
    return HeldOut(values[0], values[1], int(known.sum()))


def _attraction_of(labels: ClickLabels, log: ClickLog) -> NDArray[np.float64]:
    """The label of each impression's document; the prior's mean where there is none."""
    width = max(1, len(labels.documents))
    keys = labels.query.astype(np.int64) * width + labels.document
    wanted = np.repeat(log.query.astype(np.int64), np.diff(log.indptr)) * width + log.document
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    values = np.where(keys[found] == wanted, labels.label[found], np.nan)
    mean = labels.prior[0] / sum(labels.prior) if sum(labels.prior) else 0.0
    return np.where(np.isnan(values), mean, values)
