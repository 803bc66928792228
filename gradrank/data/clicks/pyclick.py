"""PyClick's text: sessions separated by ``;`` or line ends, ``query <tab> a,b,c : b , a``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.fields import line_of, text_of, trimmed
from gradrank.data.clicks.json_lines import CutLines
from gradrank.errors import DataError
from gradrank.runtime.kernels import njit

_ERRORS = {
    1: "has no tab after the query",
    2: "has no ' :' between the documents shown and the clicks",
    3: "has an empty id among the documents shown, expected ids separated by commas",
    4: "has an empty id among the clicks, expected ids separated by commas",
    5: "has an empty query",
}


def cut_pyclick(buffer: NDArray[np.uint8], path: str | Path, lines_before: int = 0) -> CutLines:
    """The ids of all sessions of PyClick's text, as places in the buffer.

    >>> cut = cut_pyclick(np.frombuffer(b"7\\ta,b : b", dtype=np.uint8), "log.txt")
    >>> cut.shown.T.tolist()
    [[2, 3], [4, 5]]
    """
    buffer = np.ascontiguousarray(buffer)
    sessions = int(np.count_nonzero((buffer == ord(";")) | (buffer == 10))) + 1
    ids = int(np.count_nonzero(buffer == ord(","))) + sessions
    query = np.empty((2, sessions), dtype=np.int64)
    shown = np.empty((2, ids), dtype=np.int64)
    clicks = np.empty((2, ids), dtype=np.int64)
    shown_indptr = np.zeros(sessions + 1, dtype=np.int64)
    click_indptr = np.zeros(sessions + 1, dtype=np.int64)
    count, error, offset = _scan_pyclick(buffer, query, shown, shown_indptr, clicks, click_indptr)
    if error:
        end = offset + 60
        found = text_of(buffer, offset, end).split("\n")[0].split(";")[0]
        line = lines_before + line_of(buffer, offset)
        raise DataError(f"session {found!r} {_ERRORS[error]}", path=path, line=line)
    shown_indptr, click_indptr = shown_indptr[: count + 1], click_indptr[: count + 1]
    return CutLines(
        query[:, :count],
        shown[:, : shown_indptr[-1]],
        shown_indptr,
        clicks[:, : click_indptr[-1]],
        click_indptr,
        np.zeros((2, count), dtype=np.int64),
        np.full(count, -1, dtype=np.int8),
    )


@njit(cache=True, nogil=True)
def _scan_pyclick(
    buffer: NDArray[np.uint8],
    query: NDArray[np.int64],
    shown: NDArray[np.int64],
    shown_indptr: NDArray[np.int64],
    clicks: NDArray[np.int64],
    click_indptr: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Cut sessions into ids: number of sessions, error number, and where it is."""
    tab, newline, space, carriage, colon, semicolon = 9, 10, 32, 13, 58, 59
    n = len(buffer)
    count = 0
    i = 0
    while i < n:
        byte = buffer[i]
        if byte in (newline, space, carriage, semicolon, tab):
            i += 1
            continue
        start = i
        end = i
        while end < n and buffer[end] != newline and buffer[end] != semicolon:
            end += 1
        tab_at = start
        while tab_at < end and buffer[tab_at] != tab:
            tab_at += 1
        if tab_at == end:
            return count, 1, start
        # Only a colon after a space separates: ids may be URLs.
        colon_at = tab_at + 1
        while colon_at < end and not (
            buffer[colon_at] == colon and (buffer[colon_at - 1] == space or buffer[colon_at - 1] == tab)
        ):
            colon_at += 1
        if colon_at >= end:
            return count, 2, start
        query[0, count], query[1, count] = trimmed(buffer, start, tab_at)
        if query[0, count] == query[1, count]:
            return count, 5, start
        n_shown = _cut_list(buffer, tab_at + 1, colon_at, shown, shown_indptr[count])
        if n_shown <= shown_indptr[count]:
            return count, 3, start
        n_clicks = _cut_list(buffer, colon_at + 1, end, clicks, click_indptr[count])
        if n_clicks < 0:
            return count, 4, start
        count += 1
        shown_indptr[count] = n_shown
        click_indptr[count] = n_clicks
        i = end
    return count, 0, 0


@njit(cache=True, nogil=True)
def _cut_list(
    buffer: NDArray[np.uint8],
    start: int,
    end: int,
    ids: NDArray[np.int64],
    count: int,
) -> int:
    """Append the ids of a comma-separated list; −1 for an empty id, none for an empty list."""
    start, end = trimmed(buffer, start, end)
    if start == end:
        return count
    begin = start
    for i in range(start, end + 1):
        if i == end or buffer[i] == 44:
            ids[0, count], ids[1, count] = trimmed(buffer, begin, i)
            if ids[0, count] == ids[1, count]:
                return -1
            count += 1
            begin = i + 1
    return count
