"""Sessions counted by query and list: where lists repeat, a session costs little more than finding its own.

The same lists are shown to many users. A list is found by its text as it stands in the log, whatever its length; its
ids are looked up once, and of later sessions only the clicks. Texts of lists take memory: who counts begins anew when
there are too many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.interning import Interner, PairSums
from gradrank.data.clicks.json_lines import CutLines
from gradrank.runtime.kernels import njit


@dataclass(frozen=True, eq=False)
class ListImpressions:
    """What was counted for the documents of each query's lists."""

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    place: NDArray[np.int64]
    """In the list, from 1; the first if the document stands there twice."""
    impressions: NDArray[np.int64]
    clicks: NDArray[np.int64]
    last_clicks: NDArray[np.int64]


class ListCounts:
    """Sessions and clicks of each list of each query.

    >>> from gradrank.data.clicks.json_lines import cut_json_lines
    >>> line = b'{"qid": 7, "shown": ["a", "b"], "clicks": ["b"]}'
    >>> buffer = np.frombuffer(line + b"\\n" + line, dtype=np.uint8)
    >>> counts, queries, documents = ListCounts(), Interner(), Interner()
    >>> cut = cut_json_lines(buffer)
    >>> counts.add(buffer, queries.add(buffer, *cut.query), cut, documents)  # clicks on what was not shown
    0
    >>> found = counts.impressions()
    >>> found.document.tolist(), found.impressions.tolist(), found.clicks.tolist()
    ([0, 1], [2, 2], [0, 2])
    """

    def __init__(self) -> None:
        self._lists = Interner()
        self._documents = np.empty(1024, dtype=np.int32)
        self._indptr = np.zeros(1024, dtype=np.int64)
        self._pairs = PairSums(1)
        self._offsets = np.zeros(1024, dtype=np.int64)
        self._sessions = np.zeros(1024, dtype=np.int64)
        self._clicks, self._last = np.zeros((2, 1024), dtype=np.int64)
        self.sessions = 0

    @property
    def places(self) -> int:
        """Places of all lists of all queries, which memory goes with."""
        return int(self._offsets[len(self._pairs)])

    @property
    def repeated(self) -> bool:
        """Whether lists were shown twice or more, on average."""
        return self.sessions >= 2 * len(self._lists)

    def add(self, buffer: NDArray[np.uint8], query: NDArray[np.int32], cut: CutLines, documents: Interner) -> int:
        """Count sessions, whose new documents are numbered; how many clicks are on documents that were not shown."""
        ends = cut.shown_indptr[1:]
        before = len(self._lists)
        lists = self._lists.add(buffer, cut.shown[0][cut.shown_indptr[:-1]], cut.shown[1][ends - 1])
        if len(self._lists) > before:
            # Numbers are given out as they come: a new list is the highest so far.
            highest = np.maximum.accumulate(np.concatenate(([before - 1], lists[:-1])))
            first = np.flatnonzero(lists > highest)
            sizes = np.diff(cut.shown_indptr)[first]
            indptr = np.concatenate(([0], np.cumsum(sizes)))
            rows = np.arange(indptr[-1]) + np.repeat(cut.shown_indptr[first] - indptr[:-1], sizes)
            start = self._indptr[before]
            self._documents = _with_room(self._documents, start + indptr[-1])
            self._documents[start : start + indptr[-1]] = documents.add(buffer, cut.shown[0][rows], cut.shown[1][rows])
            self._indptr = _with_room(self._indptr, len(self._lists) + 1)
            self._indptr[before : len(self._lists) + 1] = start + indptr
        known = len(self._pairs)
        pairs = self._pairs.number(query, lists)
        if len(self._pairs) > known:
            sizes = np.diff(self._indptr)[self._pairs.pairs()[1][known:]]
            self._offsets = _with_room(self._offsets, len(self._pairs) + 1)
            self._offsets[known + 1 : len(self._pairs) + 1] = self._offsets[known] + np.cumsum(sizes)
            self._sessions = _with_room(self._sessions, len(self._pairs))
            self._clicks, self._last = (_with_room(column, self.places) for column in (self._clicks, self._last))
        clicks = documents.add(buffer, *cut.clicks)
        self.sessions += len(query)
        return int(
            _count(lists, pairs, self._documents, self._indptr, self._offsets, clicks, cut.click_indptr,
                   self._sessions, self._clicks, self._last)
        )  # fmt: skip

    def impressions(self) -> ListImpressions:
        """All that was counted, by document of each query's lists."""
        query, lists = self._pairs.pairs()
        sizes = np.diff(self._indptr)[lists]
        pair = np.repeat(np.arange(len(lists)), sizes)
        place = np.arange(len(pair)) - np.repeat(self._offsets[: len(lists)], sizes)
        document = self._documents[self._indptr[lists[pair]] + place].astype(np.int64)
        # A document that stands in a list twice counts at its first place.
        _, kept = np.unique(pair * (int(document.max(initial=0)) + 1) + document, return_index=True)
        kept.sort()
        return ListImpressions(
            query[pair[kept]], document[kept], place[kept] + 1, self._sessions[pair[kept]], self._clicks[kept],
            self._last[kept],
        )  # fmt: skip


def _with_room(values: NDArray[Any], need: int) -> NDArray[Any]:
    """The array, or a longer one that begins with it and goes on with zeros."""
    if need <= len(values):
        return values
    longer = np.zeros(max(int(need), 2 * len(values)), dtype=values.dtype)
    longer[: len(values)] = values
    return longer


@njit(cache=True, nogil=True)
def _count(lists, pairs, documents, indptr, offsets, clicks, click_indptr, sessions, clicked, last):  # type: ignore[no-untyped-def]
    missed = 0
    for session in range(len(lists)):
        start = indptr[lists[session]]
        end = indptr[lists[session] + 1]
        offset = offsets[pairs[session]] - start
        sessions[pairs[session]] += 1
        first_click = click_indptr[session]
        end_click = click_indptr[session + 1]
        for k in range(first_click, end_click):
            i = start
            while i < end and documents[i] != clicks[k]:
                i += 1
            if i == end:
                missed += 1
                continue
            again = False
            for earlier in range(first_click, k):
                again = again or clicks[earlier] == clicks[k]
            if not again:
                clicked[offset + i] += 1
            if k == end_click - 1:
                last[offset + i] += 1
    return missed
