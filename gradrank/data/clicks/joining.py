"""Click labels joined to data, by query id and document id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.interning import intern
from gradrank.data.clicks.labels import ClickLabels
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError


@dataclass(frozen=True)
class JoinCounts:
    """What joining click labels to data found and did not find."""

    documents_matched: int
    """Documents of the data that have a row of clicks."""
    documents_unmatched: int
    documents_labeled: int
    """Matched documents shown often enough for a label."""
    queries_matched: int
    """Queries of the data with at least one matched document."""
    queries_unmatched: int
    rows_used: int
    """Rows of clicks whose document is in the data."""
    rows_unused: int


def join_clicks(data: RankingData, labels: ClickLabels, name: str = "clicks") -> tuple[RankingData, JoinCounts]:
    """The data with click labels as one more label source, joined by query id and document id.

    Parameters
    ----------
    data
        Data with document ids.
    labels
        The click labels; documents without any get NaN.
    name
        Name of the label source.

    Returns
    -------
    The data, and counts of what was found and what was not.

    Examples
    --------
    >>> from gradrank.data.clicks.click_log import click_log
    >>> from gradrank.data.clicks.labels import click_labels
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["q", "q"], docid=["a", "z"])
    >>> joined, counts = join_clicks(data, click_labels(click_log([("q", ["a", "b"], ["a"])])))
    >>> joined.label("clicks").tolist(), counts.documents_unmatched, counts.rows_unused
    ([1.0, nan], 1, 1)
    """
    if data.docid is None:
        raise DataError("this data has no document ids, so clicks cannot be joined to it")
    query = places_among(labels.queries, data.qid)[data.query_of_row()]
    document = places_among(labels.documents, data.docid)
    known = (query >= 0) & (document >= 0)
    width = max(1, len(labels.documents))
    wanted = query * width + document
    keys = labels.query.astype(np.int64) * width + labels.document
    by_key = np.argsort(keys, kind="stable")
    found = np.searchsorted(keys, wanted, sorter=by_key)
    row = by_key[np.minimum(found, len(keys) - 1)] if len(keys) else np.zeros(len(wanted), dtype=np.int64)
    matched = known & (found < len(keys))
    matched[matched] = keys[row[matched]] == wanted[matched]
    column = np.full(data.n_docs, np.nan)
    column[matched] = labels.label[row[matched]]
    n_matched = int(matched.sum())
    matched_queries = int(np.logical_or.reduceat(matched, data.indptr[:-1]).sum())
    used = len(np.unique(row[matched]))
    counts = JoinCounts(
        documents_matched=n_matched,
        documents_unmatched=data.n_docs - n_matched,
        documents_labeled=int((~np.isnan(column)).sum()),
        queries_matched=matched_queries,
        queries_unmatched=data.n_queries - matched_queries,
        rows_used=used,
        rows_unused=len(labels) - used,
    )
    return data.with_label(name, column), counts


def places_among(known: Strings, wanted: Strings) -> NDArray[np.int64]:
    """For each wanted string its place among the known, which are distinct; −1 if it is not there."""
    buffer = np.concatenate((known.buffer, wanted.buffer))
    shift = len(known.buffer)
    starts = np.concatenate((known.offsets[:-1], np.asarray(wanted.offsets[:-1]) + shift))
    ends = np.concatenate((known.offsets[1:], np.asarray(wanted.offsets[1:]) + shift))
    # Numbered by first appearance, the known strings are 0, 1, 2, …
    codes = intern(buffer, starts, ends)[0][len(known) :].astype(np.int64)
    return np.where(codes < len(known), codes, -1)
