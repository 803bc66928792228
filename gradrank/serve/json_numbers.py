"""The documents of a JSON request straight into a matrix, where they are plain numbers.

Python's parser makes an object of every number and every name, which takes longer than scoring them. Here a kernel
finds the value of ``documents`` at the top of the request and reads it if it has the plain form: lists of equally many
numbers and nulls, or objects that all have the same names in the same order as the first one. The rest of the request,
which is short, is left to Python's parser, and so is everything else: text among the values, names in another order,
numbers beyond the range of doubles, anything that is no JSON. So this can only be faster; what is accepted, and what is
said of the rest, is decided in one place, :mod:`~gradrank.serve.requests`.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.number_kernel import POWERS_OF_TEN, nearest_double
from gradrank.runtime.kernels import njit

# Below this Python's parser is as quick.
_WORTH_IT = 2048
_KEY = np.frombuffer(b'"documents"', dtype=np.uint8)
_NO_KEY = np.zeros(0, dtype=np.uint8)
_EXACT_MANTISSA = 2**53
_EXACT_POWER = 22
_MOST_DIGITS = 18
_LOWEST_POWER, _HIGHEST_POWER = -100, 60
# Zeros at the end, so that no loop needs to ask whether the text has ended: a zero ends every token.
_PADDING = bytes(16)


class PlainDocuments(NamedTuple):
    """What was read, and the request without it."""

    matrix: NDArray[np.float64]
    names: tuple[str, ...] | None
    """Names of the columns, if documents were objects."""
    rest: bytes
    """The request with null in place of the documents."""


def plain_documents(body: bytes, most_documents: int) -> PlainDocuments | None:
    """The documents of a request as a matrix; None if they are not plain, or too many.

    >>> plain_documents(b'{"documents": [' + b"[1, null, -2.5e1], " * 200 + b"[1, 2, 3]]}", 500).matrix[0].tolist()
    [1.0, nan, -25.0]
    """
    if len(body) < _WORTH_IT:
        return None
    text = np.frombuffer(body + _PADDING, dtype=np.uint8)
    start = _find_value(text, _KEY)
    if start < 0:
        return None
    names: tuple[str, ...] | None = None
    keys, ends = _NO_KEY, np.zeros(1, dtype=np.int64)
    at = int(_first_document(text, start))
    if at < 0:
        return None
    if text[at] == ord("{"):
        found = _first_names(body, at)
        if found is None:
            return None
        names, keys, ends = found
        width = len(names)
    else:
        width = 1 + int(_count_commas(text, at))
    # Every value takes at least two bytes, so that the room is never more than four times the body.
    rows = min(most_documents, (len(body) - start) // (2 * width) + 1)
    out = np.empty((rows, width))
    count, end = _read(text, start, keys, ends, out)
    if count <= 0:
        return None
    return PlainDocuments(out[:count], names, body[:start] + b"null" + body[int(end) :])


def _first_names(body: bytes, start: int) -> tuple[tuple[str, ...], NDArray[np.uint8], NDArray[np.int64]] | None:
    """Names of the first document: as text, and as the bytes that stand in the request."""
    end = body.find(b"}", start)
    try:
        document = json.loads(body[start : end + 1], parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    pieces = [json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass") for name in document]
    # A name that is spelt otherwise than Python spells it, or twice, is met by the kernel as another name.
    if not pieces:
        return None
    return (
        tuple(document),
        np.frombuffer(b"".join(pieces), dtype=np.uint8),
        np.cumsum([0, *map(len, pieces)], dtype=np.int64),
    )


def _refuse(name: str) -> Any:
    raise ValueError(name)


# ---------------------------------------------------------------------- kernels
@njit(cache=True, nogil=True, plain=True, inner=True)
def _blank_end(text: Any, at: Any) -> Any:
    """The next place that is no white space."""
    while text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9:
        at += 1
    return at


@njit(cache=True, nogil=True, plain=True, inner=True)
def _string_end(text: Any, at: Any) -> Any:
    """The place behind the string that begins here; −1 if it does not end."""
    at += 1
    while text[at] != 34:
        if text[at] == 92:
            at += 1
        if text[at] == 0:
            return -1
        at += 1
    return at + 1


@njit(cache=True, nogil=True, plain=True)
def _find_value(text: Any, key: Any) -> Any:
    """Where the value of a key of the outermost object begins; −1 if there is none, or two, or the object is odd."""
    at = _blank_end(text, 0)
    if text[at] != 123:
        return -1
    at = _blank_end(text, at + 1)
    found = -1
    while text[at] == 34:
        begin = at
        at = _string_end(text, at)
        if at < 0:
            return -1
        same = at - begin == len(key)
        for place in range(begin, at):
            if text[place] == 92:
                return -1  # a name may be spelt with escapes
            if same:
                same = text[place] == key[place - begin]
        at = _blank_end(text, at)
        if text[at] != 58:
            return -1
        at = _blank_end(text, at + 1)
        if same:
            if found >= 0:
                return -1
            found = at
        depth = 0
        while text[at] != 0 and (depth > 0 or (text[at] != 44 and text[at] != 125)):
            if text[at] == 34:
                at = _string_end(text, at)
                if at < 0:
                    return -1
                continue
            if text[at] == 91 or text[at] == 123:
                depth += 1
            elif text[at] == 93 or text[at] == 125:
                depth -= 1
            at += 1
        if text[at] != 44:
            break
        at = _blank_end(text, at + 1)
    return found


@njit(cache=True, nogil=True, plain=True)
def _first_document(text: Any, start: Any) -> Any:
    """Where the first document begins; −1 if it is neither a list nor an object."""
    if text[start] != 91:
        return -1
    at = _blank_end(text, start + 1)
    return at if text[at] == 91 or text[at] == 123 else -1


@njit(cache=True, nogil=True, plain=True)
def _count_commas(text: Any, at: Any) -> Any:
    count = 0
    while text[at] != 93 and text[at] != 0:
        count += text[at] == 44
        at += 1
    return count


@njit(cache=True, nogil=True, plain=True, inner=True)
def _number(text: Any, at: Any) -> Any:
    """Value and end of the number or null that stands here; an end of −1 if Python shall read it."""
    if text[at] == 110:
        if text[at + 1] == 117 and text[at + 2] == 108 and text[at + 3] == 108:
            return np.nan, at + 4
        return 0.0, -1
    negative = text[at] == 45
    if negative:
        at += 1
    mantissa = np.int64(0)
    digits = 0
    begin = at
    while 48 <= text[at] <= 57:
        digits += mantissa != 0 or text[at] != 48
        if digits > _MOST_DIGITS:
            return 0.0, -1
        mantissa = mantissa * 10 + np.int64(text[at] - 48)
        at += 1
    if at == begin or (text[begin] == 48 and at > begin + 1):
        return 0.0, -1
    # Python reads -0 as a whole number, which has no sign.
    negative &= mantissa != 0 or text[at] == 46 or text[at] == 101 or text[at] == 69
    scale = np.int64(0)
    if text[at] == 46:
        at += 1
        begin = at
        while 48 <= text[at] <= 57:
            digits += mantissa != 0 or text[at] != 48
            if digits > _MOST_DIGITS:
                return 0.0, -1
            mantissa = mantissa * 10 + np.int64(text[at] - 48)
            at += 1
        if at == begin:
            return 0.0, -1
        scale = begin - at
    if text[at] == 101 or text[at] == 69:
        at += 1
        falls = text[at] == 45
        if falls or text[at] == 43:
            at += 1
        begin = at
        power = np.int64(0)
        while 48 <= text[at] <= 57:
            power = power * 10 + np.int64(text[at] - 48)
            at += 1
            if at - begin > 4:
                return 0.0, -1
        if at == begin:
            return 0.0, -1
        scale += -power if falls else power
    value = np.float64(mantissa)
    if (mantissa != 0 and scale != 0) or mantissa > _EXACT_MANTISSA:
        if scale < _LOWEST_POWER or scale > _HIGHEST_POWER:
            return 0.0, -1
        if mantissa <= _EXACT_MANTISSA and -_EXACT_POWER <= scale <= _EXACT_POWER:
            value = value / POWERS_OF_TEN[-scale] if scale < 0 else value * POWERS_OF_TEN[scale]
        else:
            value, certain = nearest_double(mantissa, scale, False)
            if not certain:
                return 0.0, -1
    return -value if negative else value, at


@njit(cache=True, nogil=True, plain=True)
def _read(text: Any, start: Any, keys: Any, ends: Any, out: Any) -> Any:
    """Read the documents from ``start`` on: how many, and the place behind them; a number of 0 if they are not plain.

    The bytes of name k are ``keys[ends[k]:ends[k + 1]]``; without names documents are lists.
    """
    width = out.shape[1]
    named = len(keys) > 0
    opening, closing = (123, 125) if named else (91, 93)
    at = _blank_end(text, start + 1)
    row = 0
    while True:
        if row == len(out) or text[at] != opening:
            return 0, at
        at = _blank_end(text, at + 1)
        for column in range(width):
            if named:
                for place in range(ends[column], ends[column + 1]):
                    if text[at] != keys[place]:
                        return 0, at
                    at += 1
                at = _blank_end(text, at)
                if text[at] != 58:
                    return 0, at
                at = _blank_end(text, at + 1)
            value, end = _number(text, at)
            if end < 0:
                return 0, at
            out[row, column] = value
            at = _blank_end(text, end)
            if text[at] != (closing if column == width - 1 else 44):
                return 0, at
            at = _blank_end(text, at + 1)
        row += 1
        if text[at] == 93:
            return row, at + 1
        if text[at] != 44:
            return 0, at
        at = _blank_end(text, at + 1)
