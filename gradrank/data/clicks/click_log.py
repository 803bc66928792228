"""A click log in memory: sessions of one query each, what they showed and what was clicked, as columns."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.runtime.files import replacing
from gradrank.runtime.kernels import njit


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Sessions of one query each: documents shown and clicks on them, as columns.

    Session ``s`` showed the impressions ``indptr[s]:indptr[s + 1]``, in order of position. A document
    shown twice in a session counts once, at its first place.

    >>> log = click_log([("q", ["a", "b", "c"], ["c", "a", "x"]), ("q", ["b", "a"], [])])
    >>> log.n_sessions, log.n_impressions, log.n_clicks, log.clicks_not_shown
    (2, 5, 2, 1)
    >>> log.order.tolist(), log.last.tolist()
    ([2, 0, 1, 0, 0], [False, False, False, False, False])
    """

    queries: Strings
    """Distinct query ids."""
    documents: Strings
    """Distinct ids of documents shown or clicked."""
    query: NDArray[np.int32]
    """For each session its query, as a place in ``queries``."""
    indptr: NDArray[np.int64]
    """Session boundaries in the impressions, length sessions + 1."""
    document: NDArray[np.int32]
    """For each impression its document, as a place in ``documents``."""
    position: NDArray[np.int32]
    """For each impression the place at which it was shown, from 1."""
    order: NDArray[np.int32]
    """For each impression which click of its session was the final one on it, from 1; 0 = not clicked."""
    last: NDArray[np.bool_]
    """For each impression whether the session's last click was on it."""
    clicks_not_shown: int
    """Clicks on documents that the session did not show."""
    last_clicks_not_shown: int
    """Sessions whose last click was such a click."""
    shown_again: int
    """Impressions left out because their session had shown the document already."""
    rankers: Strings | None = None
    """Names of the rankers that made the lists, if the log tells them."""
    ranker: NDArray[np.int32] | None = None
    """For each session its ranker, as a place in ``rankers``; −1 = not told."""
    randomized: NDArray[np.bool_] | None = None
    """For each session whether its list was shown in random order, if the log tells."""

    @property
    def n_sessions(self) -> int:
        """Number of sessions."""
        return len(self.query)

    @property
    def n_impressions(self) -> int:
        """Number of documents shown, over all sessions."""
        return len(self.document)

    @property
    def n_clicks(self) -> int:
        """Number of impressions that were clicked, however often."""
        return int(np.count_nonzero(self.order))

    def __repr__(self) -> str:
        return (
            f"ClickLog({self.n_sessions:,} sessions, {len(self.queries):,} queries, {self.n_impressions:,} documents "
            f"shown, {self.n_clicks:,} of them clicked; {self.clicks_not_shown:,} clicks on documents not shown)"
        )


def click_log(sessions: list[tuple[str, list[str], list[str]]]) -> ClickLog:
    """A log from sessions ``(query, shown documents in order, clicked documents in order)``.

    >>> click_log([("q", ["a", "b"], ["b", "b"])])
    ClickLog(1 sessions, 1 queries, 2 documents shown, 1 of them clicked; 0 clicks on documents not shown)
    """
    builder = SessionsBuilder()
    for query, shown, clicks in sessions:
        builder.add(query, shown, clicks)
    return builder.log()


class SessionsBuilder:
    """Collects sessions given as Python strings."""

    def __init__(self) -> None:
        self.queries: dict[str, int] = {}
        self.documents: dict[str, int] = {}
        self.query = array("i")
        self.shown = array("i")
        self.shown_ends = array("q", [0])
        self.clicks = array("i")
        self.click_ends = array("q", [0])
        self.rankers: dict[str, int] = {}
        self.ranker = array("i")
        self.randomized = array("b")

    def add(
        self, query: str, shown: list[str], clicks: list[str], ranker: str | None = None, randomized: bool | None = None
    ) -> None:
        documents = self.documents
        self.ranker.append(-1 if ranker is None else self.rankers.setdefault(ranker, len(self.rankers)))
        self.randomized.append(-1 if randomized is None else randomized)
        self.query.append(self.queries.setdefault(query, len(self.queries)))
        self.shown.extend([documents.setdefault(document, len(documents)) for document in shown])
        self.shown_ends.append(len(self.shown))
        self.clicks.extend([documents.setdefault(document, len(documents)) for document in clicks])
        self.click_ends.append(len(self.clicks))

    def log(self) -> ClickLog:
        shown_indptr = np.array(self.shown_ends, dtype=np.int64)
        randomized = np.array(self.randomized, dtype=np.int8)
        log = log_of_lists(
            Strings.of(self.queries),
            Strings.of(self.documents),
            np.array(self.query, dtype=np.int32),
            np.array(self.shown, dtype=np.int32),
            shown_indptr,
            places_in_lists(shown_indptr),
            np.array(self.clicks, dtype=np.int32),
            np.array(self.click_ends, dtype=np.int64),
        )
        if self.rankers:
            log = replace(log, rankers=Strings.of(self.rankers), ranker=np.array(self.ranker, dtype=np.int32))
        return replace(log, randomized=randomized > 0) if (randomized >= 0).any() else log


def places_in_lists(indptr: NDArray[np.int64]) -> NDArray[np.int32]:
    return (np.arange(indptr[-1]) - np.repeat(indptr[:-1], np.diff(indptr)) + 1).astype(np.int32)


def log_of_lists(
    queries: Strings,
    documents: Strings,
    query: NDArray[np.int32],
    shown: NDArray[np.int32],
    shown_indptr: NDArray[np.int64],
    position: NDArray[np.int32],
    clicks: NDArray[np.int32],
    click_indptr: NDArray[np.int64],
) -> ClickLog:
    keep = np.ones(len(shown), dtype=bool)
    order = np.zeros(len(shown), dtype=np.int32)
    last = np.zeros(len(shown), dtype=bool)
    not_shown, last_not_shown, again = match_clicks(
        shown, shown_indptr, clicks, click_indptr, np.full(len(documents), -1), keep, order, last
    )
    indptr = shown_indptr
    if again:
        indptr = np.concatenate(([0], np.cumsum(keep)))[shown_indptr]
        shown, position, order, last = shown[keep], position[keep], order[keep], last[keep]
    return ClickLog(
        queries=queries,
        documents=documents,
        query=query,
        indptr=indptr,
        document=shown,
        position=position,
        order=order,
        last=last,
        clicks_not_shown=int(not_shown),
        last_clicks_not_shown=int(last_not_shown),
        shown_again=int(again),
    )


@njit(cache=True, nogil=True)
def match_clicks(
    shown: NDArray[np.int32],
    shown_indptr: NDArray[np.int64],
    clicks: NDArray[np.int32],
    click_indptr: NDArray[np.int64],
    place: NDArray[np.int64],
    keep: NDArray[np.bool_],
    order: NDArray[np.int32],
    last: NDArray[np.bool_],
) -> tuple[int, int, int]:
    not_shown = 0
    last_not_shown = 0
    again = 0
    for session in range(len(shown_indptr) - 1):
        start = shown_indptr[session]
        # place[d] is the latest impression of document d; it is of this session if not before its start.
        for i in range(start, shown_indptr[session + 1]):
            if place[shown[i]] >= start:
                again += 1
                keep[i] = False
            else:
                place[shown[i]] = i
        first_click = click_indptr[session]
        end_click = click_indptr[session + 1]
        for k in range(first_click, end_click):
            i = place[clicks[k]]
            if i >= start:
                order[i] = k - first_click + 1
                last[i] = k == end_click - 1
            else:
                not_shown += 1
                last_not_shown += k == end_click - 1
    return not_shown, last_not_shown, again


def write_click_log(log: ClickLog, path: str | Path) -> None:
    """Write a log as JSON lines, one session each.

    Clicks on documents that were not shown are not known any more, and a document clicked twice is written once.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> write_click_log(click_log([("q", ["a", "b"], ["b", "a"])]), path)
    >>> path.read_text()
    '{"qid": "q", "shown": ["a", "b"], "clicks": ["b", "a"]}\\n'
    """
    queries, documents = ([json.dumps(text) for text in column] for column in (log.queries, log.documents))
    rankers = [] if log.rankers is None else [json.dumps(name) for name in log.rankers]
    position, shown, order = log.position.tolist(), log.document.tolist(), log.order.tolist()
    ends = log.indptr.tolist()
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for session, query in enumerate(log.query.tolist()):
            start, end = ends[session], ends[session + 1]
            if position[end - 1] != end - start:
                raise DataError(
                    f"session {session + 1} has gaps in its positions, which JSON lines cannot hold", path=path
                )
            clicked = sorted((order[i], documents[shown[i]]) for i in range(start, end) if order[i])
            line = f'{{"qid": {queries[query]}, "shown": [{", ".join(documents[d] for d in shown[start:end])}], '
            line += f'"clicks": [{", ".join(name for _, name in clicked)}]'
            if log.ranker is not None and log.ranker[session] >= 0:
                line += f', "ranker": {rankers[log.ranker[session]]}'
            if log.randomized is not None:
                line += f', "randomized": {"true" if log.randomized[session] else "false"}'
            file.write(line + "}\n")
