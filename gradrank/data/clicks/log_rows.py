"""Click logs with one shown document per row (``csv`` and ``tsv``)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog, log_of_lists
from gradrank.data.clicks.row_files import Rows, read_rows

_COLUMNS = ("session", "qid", "docid", "position", "click")


def read_log_rows(buffer: NDArray[np.uint8], path: str | Path, separator: str) -> ClickLog:
    """The log of a file of rows."""
    rows = read_rows(buffer, path, separator, _COLUMNS, ("click_time", "ranker", "randomized"))
    session, _ = rows.codes("session")
    query, queries = rows.codes("qid")
    document, documents = rows.codes("docid")
    position = rows.numbers("position")
    if len(position) and position.min() < 1:
        rows.fail("position", int(position.argmin()), "a whole number of 1 or more")
    if len(position) and position.max() > np.iinfo(np.int32).max:
        rows.fail("position", int(position.argmax()), "a whole number below 2^31")
    click = rows.numbers("click")
    # A session with several queries is one session for each: number the pairs by first appearance.
    _, first, group = np.unique(session.astype(np.int64) * len(queries) + query, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    number = np.empty(len(first), dtype=np.int64)
    number[by_appearance] = np.arange(len(first))
    group = number[group.reshape(-1)]
    shown = np.lexsort((position, group))
    clicked = np.flatnonzero(click)
    when = click[clicked].astype(np.float64)
    if "click_time" in rows.columns:
        when = np.array([_time(rows, row) for row in clicked.tolist()], dtype=np.float64)
    clicked = clicked[np.lexsort((position[clicked], when, group[clicked]))]
    log = log_of_lists(
        queries,
        documents,
        query[first[by_appearance]],
        document[shown],
        np.concatenate(([0], np.cumsum(np.bincount(group, minlength=len(first))))),
        position[shown].astype(np.int32),
        document[clicked],
        np.concatenate(([0], np.cumsum(np.bincount(group[clicked], minlength=len(first))))),
    )
    if "ranker" in rows.columns:
        ranker, rankers = rows.codes("ranker")
        log = replace(log, rankers=rankers, ranker=_of_session(rows, "ranker", ranker, group, first[by_appearance]))
    if "randomized" in rows.columns:
        flag = rows.numbers("randomized")
        if len(flag) and flag.max() > 1:
            rows.fail("randomized", int(flag.argmax()), "0 or 1")
        randomized = _of_session(rows, "randomized", flag, group, first[by_appearance])
        log = replace(log, randomized=randomized.astype(bool))
    return log


def _of_session(
    rows: Rows, column: str, values: NDArray[Any], group: NDArray[np.int64], first: NDArray[np.int64]
) -> NDArray[Any]:
    """What a column says of each session, the same in all of its rows."""
    wrong = np.flatnonzero(values != values[first][group])
    if len(wrong):
        rows.fail(column, int(wrong[0]), f"{rows.text(column, int(first[group[wrong[0]]]))!r} as before in its session")
    return np.asarray(values[first])


def _time(rows: Rows, row: int) -> float:
    text = rows.text("click_time", row).strip()
    try:
        time = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            rows.fail("click_time", row, "a number or an ISO 8601 time")
        # Without a zone read as UTC, so that the hour a local clock repeats in autumn stays in order.
        time = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not np.isfinite(time):
        rows.fail("click_time", row, "a number or an ISO 8601 time")
    return time
