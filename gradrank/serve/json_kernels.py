"""Kernels that find and read numbers in the bytes of JSON.

The text ends with zeros, so that no loop needs to ask whether it has ended: a zero ends every token.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradrank.data.formats.number_kernel import POWERS_OF_TEN, byte_at, nearest_double
from gradrank.runtime.kernels import njit

NOT_THERE, ODD = -1, -2
_EXACT_MANTISSA = 2**53
_EXACT_POWER = 22
_MOST_DIGITS = 18
_LOWEST_POWER, _HIGHEST_POWER = -100, 60


@njit(cache=True, nogil=True, plain=True, inner=True)
def _blank_end(text: Any, at: Any) -> Any:
    """The next place that is no white space."""
    while byte_at(text, at) == 32 or byte_at(text, at) == 10 or byte_at(text, at) == 13 or byte_at(text, at) == 9:
        at += 1
    return at


@njit(cache=True, nogil=True, plain=True, inner=True)
def _string_end(text: Any, at: Any) -> Any:
    """The place behind the string that begins here; −1 if it does not end."""
    at += 1
    while byte_at(text, at) != 34:
        if byte_at(text, at) == 92:
            at += 1
        if byte_at(text, at) == 0:
            return -1
        at += 1
    return at + 1


@njit(cache=True, nogil=True, plain=True)
def find_value(text: Any, at: Any, key: Any) -> Any:
    """Where the value of a key of the outermost object begins, whose members are read from ``at`` on.

    ``at`` is 0, or a place behind a member's value. NOT_THERE if there is no such key, ODD if that is not certain.
    """
    at = _blank_end(text, at)
    if byte_at(text, at) == 125:
        return NOT_THERE
    if byte_at(text, at) != 123 and byte_at(text, at) != 44:
        return ODD
    at = _blank_end(text, at + 1)
    while byte_at(text, at) == 34:
        begin = at
        at = _string_end(text, at)
        if at < 0:
            return ODD
        same = at - begin == len(key)
        for place in range(begin, at):
            if byte_at(text, place) == 92:
                return ODD  # a name may be spelt with escapes
            if same:
                same = byte_at(text, place) == key[place - begin]
        at = _blank_end(text, at)
        if byte_at(text, at) != 58:
            return ODD
        at = _blank_end(text, at + 1)
        if same:
            return at
        at = _value_end(text, at)
        if at < 0:
            return ODD
        if byte_at(text, at) != 44:
            break
        at = _blank_end(text, at + 1)
    return NOT_THERE


@njit(cache=True, nogil=True, plain=True, inner=True)
def _value_end(text: Any, at: Any) -> Any:
    """The comma or brace behind the value that begins here; −1 if a string in it does not end."""
    depth = 0
    while byte_at(text, at) != 0 and (depth > 0 or (byte_at(text, at) != 44 and byte_at(text, at) != 125)):
        if byte_at(text, at) == 34:
            at = _string_end(text, at)
            if at < 0:
                return -1
            continue
        if byte_at(text, at) == 91 or byte_at(text, at) == 123:
            depth += 1
        elif byte_at(text, at) == 93 or byte_at(text, at) == 125:
            depth -= 1
        at += 1
    return at


@njit(cache=True, nogil=True, plain=True)
def object_end(text: Any, at: Any) -> Any:
    """The place behind the first closing brace that is in no string; where the text ends if there is none."""
    while byte_at(text, at) != 0 and byte_at(text, at) != 125:
        if byte_at(text, at) == 34:
            end = _string_end(text, at)
            if end < 0:
                return at
            at = end
        else:
            at += 1
    return at + 1


@njit(cache=True, nogil=True, plain=True)
def first_document(text: Any, start: Any) -> Any:
    """Where the first document begins; −1 if it is neither a list nor an object."""
    if byte_at(text, start) != 91:
        return -1
    at = _blank_end(text, start + 1)
    return at if byte_at(text, at) == 91 or byte_at(text, at) == 123 else -1


@njit(cache=True, nogil=True, plain=True)
def count_commas(text: Any, at: Any) -> Any:
    count = 0
    while byte_at(text, at) != 93 and byte_at(text, at) != 0:
        count += byte_at(text, at) == 44
        at += 1
    return count


@njit(cache=True, nogil=True, plain=True, inner=True)
def _number(text: Any, at: Any) -> Any:
    """Value and end of the number or null that stands here; an end of −1 if Python shall read it."""
    if byte_at(text, at) == 110:
        if byte_at(text, at + 1) == 117 and byte_at(text, at + 2) == 108 and byte_at(text, at + 3) == 108:
            return np.nan, at + 4
        return 0.0, -1
    negative = byte_at(text, at) == 45
    if negative:
        at += 1
    mantissa = np.int64(0)
    digits = 0
    begin = at
    while 48 <= byte_at(text, at) <= 57:
        digits += mantissa != 0 or byte_at(text, at) != 48
        if digits > _MOST_DIGITS:
            return 0.0, -1
        mantissa = mantissa * 10 + np.int64(byte_at(text, at) - 48)
        at += 1
    if at == begin or (byte_at(text, begin) == 48 and at > begin + 1):
        return 0.0, -1
    # Python reads -0 as a whole number, which has no sign.
    negative &= mantissa != 0 or byte_at(text, at) == 46 or byte_at(text, at) == 101 or byte_at(text, at) == 69
    scale = np.int64(0)
    if byte_at(text, at) == 46:
        at += 1
        begin = at
        while 48 <= byte_at(text, at) <= 57:
            digits += mantissa != 0 or byte_at(text, at) != 48
            if digits > _MOST_DIGITS:
                return 0.0, -1
            mantissa = mantissa * 10 + np.int64(byte_at(text, at) - 48)
            at += 1
        if at == begin:
            return 0.0, -1
        scale = begin - at
    if byte_at(text, at) == 101 or byte_at(text, at) == 69:
        at += 1
        falls = byte_at(text, at) == 45
        if falls or byte_at(text, at) == 43:
            at += 1
        begin = at
        power = np.int64(0)
        while 48 <= byte_at(text, at) <= 57:
            power = power * 10 + np.int64(byte_at(text, at) - 48)
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


@njit(cache=True, nogil=True, plain=True, inner=True)
def _behind_name(text: Any, at: Any) -> Any:
    """The place behind a name and its colon, where a value begins; −1 if they do not stand here."""
    if byte_at(text, at) != 34:
        return -1
    at = _string_end(text, at)
    if at < 0:
        return -1
    at = _blank_end(text, at)
    return _blank_end(text, at + 1) if byte_at(text, at) == 58 else -1


@njit(cache=True, nogil=True, plain=True, inner=True)
def _same_bytes(text: Any, words: Any, one: Any, other: Any, length: Any) -> Any:
    """Whether as many bytes stand at both places; those at the second hold no zero, so that the end of text differs."""
    if length < 8:
        same = True
        for place in range(length):
            same &= byte_at(text, one + place) == byte_at(text, other + place)
        return same
    for place in range(0, length - 7, 8):
        if byte_at(words, one + place) != byte_at(words, other + place):
            return False
    return byte_at(words, one + length - 8) == byte_at(words, other + length - 8)


@njit(cache=True, nogil=True, plain=True)
def read_documents(text: Any, words: Any, start: Any, between: Any, out: Any) -> Any:
    """Read the documents from ``start`` on: how many, and the place behind them; a number of 0 if they are not plain.

    Documents are objects if ``between`` has rows, else lists. What stands in the first object between the value before
    and value k is noted there, as its place and length, and looked for in all others. ``words`` are the eight bytes
    from each place of the text on.
    """
    width = out.shape[1]
    named = len(between) > 0
    opening, closing = (123, 125) if named else (91, 93)
    at = _blank_end(text, start + 1)
    row = 0
    while True:
        if row == len(out) or byte_at(text, at) != opening:
            return 0, at
        at = _blank_end(text, at + 1)
        for column in range(width):
            if named and row > 0:
                length = between[column, 1]
                if not _same_bytes(text, words, at, between[column, 0], length):
                    return 0, at
                at += length
            else:
                begin = at
                if column > 0:
                    at = _blank_end(text, at)
                    if byte_at(text, at) != 44:
                        return 0, at
                    at = _blank_end(text, at + 1)
                if named:
                    at = _behind_name(text, at)
                    if at < 0:
                        return 0, begin
                    between[column, 0] = begin
                    between[column, 1] = at - begin
            value, at = _number(text, at)
            if at < 0:
                return 0, at
            out[row, column] = value
        at = _blank_end(text, at)
        if byte_at(text, at) != closing:
            return 0, at
        at = _blank_end(text, at + 1)
        row += 1
        if byte_at(text, at) == 93:
            return row, at + 1
        if byte_at(text, at) != 44:
            return 0, at
        at = _blank_end(text, at + 1)
