"""Sessions as training data: one query each, or counted by document and position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.joining import places_among
from gradrank.data.clicks.propensity import Propensities
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError

POSITION = "position"
"""Name of the label source that holds the positions."""


def take_sessions(log: ClickLog, sessions: NDArray[np.bool_] | NDArray[np.int64]) -> ClickLog:
    """Some sessions of a log, with the same numbers of queries and documents.

    >>> from gradrank.data.clicks.click_log import click_log
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

    >>> from gradrank.data.clicks.click_log import click_log
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
    summed over clicks unbiased (Joachims et al. 2017). With false clicks (trust bias) a click counts by the share of
    its position's clicks that are true, (1 − false/all)/propensity, which is right for the mean of each position
    (Agarwal et al. 2019).

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
    >>> from gradrank.data.clicks.click_log import click_log
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
        worth = _true_share(log, propensities) / np.maximum(chance, clip)
        weight = np.where(clicked, worth, 1.0)[kept]
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


def _true_share(log: ClickLog, propensities: Propensities) -> NDArray[np.float64]:
    """For each impression the share of the clicks at its position that are not false."""
    if propensities.false_clicks is None:
        return np.ones(log.n_impressions)
    positions, place = np.unique(log.position, return_inverse=True)
    place = place.reshape(-1)
    rate = np.bincount(place, weights=log.order > 0) / np.bincount(place)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = 1.0 - propensities.false_clicks_at(positions) / rate
    return np.clip(np.nan_to_num(share), 0.01, 1.0)[place]


def impression_data(data: RankingData, log: ClickLog) -> RankingData:
    """One row per document and position at which it was shown, whatever the number of sessions.

    The labels are ``label``, the share of these impressions that were clicked, and ``position``; the document weights
    are the numbers of impressions. A model of single clicks (``Logistic``) learns the same from these rows as from the
    sessions. Documents that the data does not have are left out.

    Parameters
    ----------
    data
        Features of the documents, with document ids.
    log
        The click log.

    Examples
    --------
    >>> from gradrank.data.clicks.click_log import click_log
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["q", "q"], docid=["a", "b"])
    >>> shown = impression_data(data, click_log([("q", ["a", "b"], ["b"]), ("q", ["a", "b"], []), ("q", ["b"], [])]))
    >>> shown.label().tolist(), shown.label("position").tolist(), shown.document_weight.tolist()
    ([0.0, 0.0, 0.5], [1.0, 1.0, 2.0], [2.0, 1.0, 2.0])
    """
    rows = rows_of_log(log, data)
    kept = rows >= 0
    if not kept.any():
        raise DataError("no session shows a document of the data")
    width = int(log.position.max()) + 1
    keys, cell = np.unique(rows[kept] * width + log.position[kept], return_inverse=True)
    cell = cell.reshape(-1)
    shown = np.bincount(cell, minlength=len(keys)).astype(np.float64)
    clicks = np.bincount(cell, weights=log.order[kept] > 0, minlength=len(keys))
    row = keys // width
    query = data.query_of_row()[row]
    numbers, start = np.unique(query, return_index=True)
    return RankingData(
        X=np.ascontiguousarray(data.X[row]),
        indptr=np.append(start, len(row)).astype(np.int64),
        labels={
            "label": (clicks / shown).astype(np.float32),
            POSITION: (keys % width).astype(np.float32),
        },
        qid=data.qid[numbers],
        document_weight=shown,
        feature_names=data.feature_names,
    )
