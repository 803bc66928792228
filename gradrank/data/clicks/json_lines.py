"""The usual lines of a log in JSON, cut into ids by a kernel.

Usual is an object of plain values: strings without escapes, whole numbers, true, false, null, and flat lists of ids.
Whatever is not, valid or not, is left to Python's own reader, which also says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.runtime.kernels import njit

Spans = NDArray[np.int64]
"""Starts and ends of strings, two rows."""


@dataclass(frozen=True, eq=False)
class CutLines:
    """The ids of sessions as places in the buffer."""

    query: Spans
    shown: Spans
    shown_indptr: NDArray[np.int64]
    clicks: Spans
    click_indptr: NDArray[np.int64]
    ranker: Spans
    """An empty span where the session names none."""
    randomized: NDArray[np.int8]
    """1 = in random order, 0 = not, −1 = not said."""


def cut_json_lines(buffer: NDArray[np.uint8]) -> CutLines | None:
    """The ids of all sessions; None if some line is not of the usual kind.

    >>> line = b'{"qid": 7, "shown": ["a", "b"], "clicks": [], "time": 3.5}'
    >>> cut = cut_json_lines(np.frombuffer(line, dtype=np.uint8))
    >>> [line[start:end] for start, end in cut.shown.T.tolist()]
    [b'a', b'b']
    """
    buffer = np.ascontiguousarray(buffer)
    lines = int(np.count_nonzero(buffer == 10)) + 1
    ids = int(np.count_nonzero(buffer == 44)) + lines
    query, ranker = np.zeros((2, lines), dtype=np.int64), np.zeros((2, lines), dtype=np.int64)
    shown, clicks = np.empty((2, ids), dtype=np.int64), np.empty((2, ids), dtype=np.int64)
    shown_indptr, click_indptr = np.zeros(lines + 1, dtype=np.int64), np.zeros(lines + 1, dtype=np.int64)
    randomized = np.full(lines, -1, dtype=np.int8)
    n = _cut(buffer, query, shown, shown_indptr, clicks, click_indptr, ranker, randomized)
    if n < 0:
        return None
    try:
        # What is not text is an error, which Python's reader tells.
        buffer.tobytes().decode()
    except UnicodeDecodeError:
        return None
    shown_indptr, click_indptr = shown_indptr[: n + 1], click_indptr[: n + 1]
    return CutLines(
        query[:, :n],
        shown[:, : shown_indptr[-1]],
        shown_indptr,
        clicks[:, : click_indptr[-1]],
        click_indptr,
        ranker[:, :n],
        randomized[:n],
    )


@njit(cache=True, nogil=True)
def _blank(buffer, i):  # type: ignore[no-untyped-def]
    """Behind blanks, on the same line."""
    while i < len(buffer) and (buffer[i] == 32 or buffer[i] == 9 or buffer[i] == 13):
        i += 1
    return i


@njit(cache=True, nogil=True)
def _string_end(buffer, i):  # type: ignore[no-untyped-def]
    """The place of the quotation mark that ends a string which starts at i; −1 for what is not usual."""
    while i < len(buffer):
        byte = buffer[i]
        if byte == 34:
            return i
        if byte == 92 or byte < 32:
            return -1
        i += 1
    return -1


@njit(cache=True, nogil=True)
def _number_end(buffer, i):  # type: ignore[no-untyped-def]
    """Behind a whole number without sign or leading zeros; −1 if there is none, or if it goes on otherwise."""
    start = i
    while i < len(buffer) and 48 <= buffer[i] <= 57:
        i += 1
    if i == start or (buffer[start] == 48 and i > start + 1) or i == len(buffer):
        return -1
    byte = buffer[i]
    # A point, an exponent, or anything else that does not end a value.
    return i if byte in (44, 93, 125, 32, 9, 13) else -1


@njit(cache=True, nogil=True)
def _id(buffer, i):  # type: ignore[no-untyped-def]
    """Start and end of an id, and what is behind it; an id that is not usual has the end −1."""
    if i < len(buffer) and buffer[i] == 34:
        end = _string_end(buffer, i + 1)
        return (i + 1, end, end + 1) if end > i + 1 else (i, -1, i)
    end = _number_end(buffer, i)
    return i, end, end


@njit(cache=True, nogil=True)
def _list(buffer, i, spans, count):  # type: ignore[no-untyped-def]
    """Append the ids of a list; their number, and what is behind the list, or −1."""
    if i >= len(buffer) or buffer[i] != 91:
        return count, -1
    i = _blank(buffer, i + 1)
    if i < len(buffer) and buffer[i] == 93:
        return count, i + 1
    while True:
        start, end, i = _id(buffer, i)
        if end < 0:
            return count, -1
        spans[0, count] = start
        spans[1, count] = end
        count += 1
        i = _blank(buffer, i)
        if i >= len(buffer) or (buffer[i] != 44 and buffer[i] != 93):
            return count, -1
        if buffer[i] == 93:
            return count, i + 1
        i = _blank(buffer, i + 1)


@njit(cache=True, nogil=True)
def _word(buffer, i):  # type: ignore[no-untyped-def]
    """true is 1, false 0, null −1, anything else −2; and what is behind it."""
    left = len(buffer) - i
    if left >= 4 and buffer[i] == 116 and buffer[i + 1] == 114 and buffer[i + 2] == 117 and buffer[i + 3] == 101:
        return 1, i + 4
    if left >= 4 and buffer[i] == 110 and buffer[i + 1] == 117 and buffer[i + 2] == 108 and buffer[i + 3] == 108:
        return -1, i + 4
    if (
        left >= 5 and buffer[i] == 102 and buffer[i + 1] == 97 and buffer[i + 2] == 108
        and buffer[i + 3] == 115 and buffer[i + 4] == 101
    ):  # fmt: skip
        return 0, i + 5
    return -2, i


@njit(cache=True, nogil=True)
def _other(buffer, i):  # type: ignore[no-untyped-def]
    """Behind a plain value of a key that is not ours; −1 for lists, objects and what is not usual."""
    if i < len(buffer) and buffer[i] == 34:
        end = _string_end(buffer, i + 1)
        return end + 1 if end >= 0 else -1
    word, after = _word(buffer, i)
    if word > -2:
        return after
    # Digits, at most one point between digits.
    start = i
    while i < len(buffer) and 48 <= buffer[i] <= 57:
        i += 1
    if i == start or (buffer[start] == 48 and i > start + 1):
        return -1
    if i < len(buffer) and buffer[i] == 46:
        point = i
        i += 1
        while i < len(buffer) and 48 <= buffer[i] <= 57:
            i += 1
        if i == point + 1:
            return -1
    return i


@njit(cache=True, nogil=True)
def _key(buffer, start, end):  # type: ignore[no-untyped-def]
    """Which of our keys it is: qid 1, shown 2, clicks 3, ranker 4, randomized 5; 0 for others."""
    length = end - start
    first = buffer[start] if length else 0
    if length == 3 and first == 113 and buffer[start + 1] == 105 and buffer[start + 2] == 100:
        return 1
    if length == 5 and first == 115:
        name = (104, 111, 119, 110)
        for k in range(4):
            if buffer[start + 1 + k] != name[k]:
                return 0
        return 2
    if length == 6 and first == 99:
        same = (108, 105, 99, 107, 115)
        for k in range(5):
            if buffer[start + 1 + k] != same[k]:
                return 0
        return 3
    if length == 6 and first == 114:
        made = (97, 110, 107, 101, 114)
        for k in range(5):
            if buffer[start + 1 + k] != made[k]:
                return 0
        return 4
    if length == 10 and first == 114:
        drawn = (97, 110, 100, 111, 109, 105, 122, 101, 100)
        for k in range(9):
            if buffer[start + 1 + k] != drawn[k]:
                return 0
        return 5
    return 0


@njit(cache=True, nogil=True)
def _cut(buffer, query, shown, shown_indptr, clicks, click_indptr, ranker, randomized):  # type: ignore[no-untyped-def]
    """Number of sessions, or −1 if a line is not usual."""
    n = len(buffer)
    count = 0
    i = 0
    while i < n:
        i = _blank(buffer, i)
        if i < n and buffer[i] == 10:
            i += 1
            continue
        if i >= n:
            break
        if buffer[i] != 123:
            return -1
        i = _blank(buffer, i + 1)
        n_shown = shown_indptr[count]
        n_clicks = click_indptr[count]
        seen = 0
        while True:
            if i >= n or buffer[i] != 34:
                return -1
            start = i + 1
            end = _string_end(buffer, start)
            if end < 0:
                return -1
            i = _blank(buffer, end + 1)
            if i >= n or buffer[i] != 58:
                return -1
            i = _blank(buffer, i + 1)
            key = _key(buffer, start, end)
            if key and seen & (1 << key):
                return -1  # given twice
            seen |= 1 << key
            if key == 1:
                query[0, count], query[1, count], i = _id(buffer, i)
                if query[1, count] < 0:
                    return -1
            elif key == 2:
                n_shown, i = _list(buffer, i, shown, n_shown)
            elif key == 3:
                n_clicks, i = _list(buffer, i, clicks, n_clicks)
            elif key == 4:
                word, after = _word(buffer, i)
                if word == -1:
                    i = after
                else:
                    ranker[0, count], ranker[1, count], i = _id(buffer, i)
                    if ranker[1, count] < 0:
                        return -1
            elif key == 5:
                word, i = _word(buffer, i)
                if word == -2:
                    return -1
                randomized[count] = word
            else:
                i = _other(buffer, i)
            if i < 0:
                return -1
            i = _blank(buffer, i)
            if i >= n or (buffer[i] != 44 and buffer[i] != 125):
                return -1
            if buffer[i] == 125:
                break
            i = _blank(buffer, i + 1)
        i = _blank(buffer, i + 1)
        # All of qid, shown and clicks, and something shown.
        if seen & 14 != 14 or n_shown == shown_indptr[count] or (i < n and buffer[i] != 10):
            return -1
        count += 1
        shown_indptr[count] = n_shown
        click_indptr[count] = n_clicks
    return count
