"""Kernels that take LETOR text apart.

All of them rely on one promise of their caller: the text they get ends with a newline. Every inner
loop stops at a newline, so nothing is read past the end without a check on each byte.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.data.number_kernel import (
    COLON,
    NAN,
    NUMBER,
    POINT,
    POWERS_OF_TEN,
    UNCERTAIN,
    byte_at,
    digit_at,
    ends_token,
    parse_number,
)
from gradrank.kernels import njit

# What is wrong with a line. The kinds of number of number_kernel come first.
OK = 0
NO_QID = 11
EMPTY_QID = 12
BAD_QID = 13
UNEXPECTED_QID = 14
BAD_INDEX = 15
INDEX_ZERO = 16
INDEX_TOO_LARGE = 17
NO_COLON = 18
TWICE = 19
COMES_AGAIN = 98
LABEL = 20  # added to the kind of number if the label is meant, not a feature's value
CHANGED = 99

# Places in the counts that parse_lines gives.
DOCUMENTS = 0
RUNS = 1
UNCERTAINS = 2
COLUMNS = 3

# One division of a whole number below 10^15 by a power of ten is exact; 15 digits are below 2^53.
_FAST_DIGITS = 15
_INDEX_DIGITS = 9
_WORDS_AT_ONCE = 4
_EACH_BYTE = np.uint64(0x0101010101010101)
_EACH_HIGH_BIT = np.uint64(0x8080808080808080)


@njit(cache=True, nogil=True, inner=True)
def _next_of(text: NDArray[np.uint8], words: NDArray[np.uint64], position: int, end: int, sign: int) -> int:
    """Position of the first newline or ``sign`` at or after a position, or ``end`` if there is none before it.

    ``words`` is the text seen as words of 8 bytes: a word holds a zero byte if and only if
    ``(word - 0x01…01) & ~word & 0x80…80`` is not 0.
    """
    newlines = np.uint64(10) * _EACH_BYTE
    signs = np.uint64(sign) * _EACH_BYTE
    while position < end and position & 7 != 0:
        if text[position] == 10 or text[position] == sign:
            return position
        position += 1
    word = position >> 3
    last = (end >> 3) - _WORDS_AT_ONCE
    while word <= last:
        found = np.uint64(0)
        for offset in range(_WORDS_AT_ONCE):
            one = words[word + offset] ^ newlines
            other = words[word + offset] ^ signs
            found |= ((one - _EACH_BYTE) & ~one) | ((other - _EACH_BYTE) & ~other)
        if found & _EACH_HIGH_BIT != 0:
            break
        word += _WORDS_AT_ONCE
    position = max(position, word << 3)
    while position < end and text[position] != 10 and text[position] != sign:
        position += 1
    return position


@njit(cache=True, nogil=True)
def next_newline(text: NDArray[np.uint8], words: NDArray[np.uint64], position: int, end: int) -> int:
    """Position of the first newline at or after a position, or ``end`` if there is none before it."""
    return int(_next_of(text, words, position, end, np.int64(10)))


@njit(cache=True, nogil=True)
def scan_lines(text: NDArray[np.uint8], words: NDArray[np.uint64], start: int, end: int) -> tuple[int, int, int]:
    """Number of documents, the highest feature index that ends a line, and where the first one starts.

    Works on part of a text that need not end with a newline, and looks only at the ends of lines:
    where indices rise along a line, as they mostly do, the last one is the highest.
    """
    rows = 0
    highest = -1
    first = -1
    position = start
    while position < end:
        while position < end and (text[position] == 32 or text[position] == 9 or text[position] == 13):
            position += 1
        if position == end:
            break
        stop = _next_of(text, words, position, end, np.int64(35))
        if stop > position:
            rows += 1
            if first < 0:
                first = position
            back = stop - 1
            while text[back] == 32 or text[back] == 9 or text[back] == 13:
                back -= 1
            while back > position and text[back] != 58 and text[back] != 32 and text[back] != 9:
                back -= 1
            if text[back] == 58:
                index = 0
                power = 1
                back -= 1
                while back > position and 48 <= text[back] <= 57 and power < 10**_INDEX_DIGITS:
                    index += power * (int(text[back]) - 48)
                    power *= 10
                    back -= 1
                if power > 1 and (text[back] == 32 or text[back] == 9):
                    highest = max(highest, index)
        if stop < end and text[stop] == 35:
            stop = _next_of(text, words, stop, end, np.int64(10))
        position = stop + 1
    return rows, highest, first


@njit(cache=True, nogil=True, inner=True)
def _line_end(text: NDArray[np.uint8], position: int) -> int:
    while text[position] != 10:
        position += 1
    return position


@njit(cache=True, nogil=True, inner=True)
def _docid(text: NDArray[np.uint8], position: int) -> tuple[int, int, int]:
    """Start and length of the document id in a comment (0, 0 if none), and the line's end.

    The id is what follows ``docid =``, ``docid=`` or ``docid:``; a comment of a single word is the id.
    """
    words = 0
    word_start = 0
    word_length = 0
    while True:
        while text[position] == 32 or text[position] == 9 or text[position] == 13:
            position += 1
        if text[position] == 10:
            if words == 1:
                return word_start, word_length, position
            return 0, 0, position
        start = position
        if (
            text[position] == 100
            and text[position + 1] == 111
            and text[position + 2] == 99
            and text[position + 3] == 105
            and text[position + 4] == 100
        ):
            position += 5
            while text[position] == 32 or text[position] == 9:
                position += 1
            if text[position] == 61 or text[position] == 58:
                position += 1
                while text[position] == 32 or text[position] == 9:
                    position += 1
                start = position
                while not (text[position] == 32 or text[position] == 9 or text[position] == 13 or text[position] == 10):
                    position += 1
                return start, position - start, _line_end(text, position)
            position = start
        while not (text[position] == 32 or text[position] == 9 or text[position] == 13 or text[position] == 10):
            position += 1
        words += 1
        word_start = start
        word_length = position - start


@njit(cache=True, nogil=True, inner=True)
def _same(text: NDArray[np.uint8], one: int, other: int, length: int) -> bool:
    offset = 0
    while offset < length and text[one + offset] == text[other + offset]:
        offset += 1
    return offset == length


@njit(cache=True, nogil=True)
def parse_lines(
    text: NDArray[np.uint8],
    features: NDArray[np.float32],
    labels: NDArray[np.float32],
    first_index: int,
    last_index: int,
    wants_qid: bool,
    allows_missing: bool,
    docids: NDArray[np.int64],
    runs: NDArray[np.int64],
    uncertain: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Read the documents of a text into ``features`` (zero before) and ``labels``.

    ``docids[row]`` becomes start and length of the document's id; ``runs[run]`` the first row of each run
    of equal query ids with start and length of that id; ``uncertain`` the numbers left to the caller: row,
    column (-1 for the label), position. ``counts`` (zero before) becomes the numbers of documents, runs and
    uncertain numbers, and of the columns needed if ``features`` has too few. Features without a column and
    uncertain numbers without room are not stored: ``counts`` tells, and the caller calls again with larger
    arrays.

    Gives what is wrong (:data:`OK` if nothing) and where.
    """
    size = len(text)
    width = features.shape[1]
    last_row_of = np.full(width, -1, dtype=np.int64)
    n_uncertain = 0
    n_runs = 0
    row = 0
    position = 0
    while position < size:
        byte = byte_at(text, position)
        while byte == 32 or byte == 9 or byte == 13:
            position += 1
            byte = byte_at(text, position)
        if byte == 10:
            position += 1
            continue
        if byte == 35:
            position = _line_end(text, position) + 1
            continue
        if row == len(labels):
            return CHANGED, position

        value, end, kind = parse_number(text, position)
        if kind == UNCERTAIN:
            if n_uncertain < len(uncertain):
                uncertain[n_uncertain, 0] = row
                uncertain[n_uncertain, 1] = -1
                uncertain[n_uncertain, 2] = position
            n_uncertain += 1
            counts[UNCERTAINS] = n_uncertain
        elif kind != NUMBER and not (kind == NAN and allows_missing):
            return LABEL + kind, position
        labels[row] = np.float32(value)
        position = end
        byte = byte_at(text, position)
        while byte == 32 or byte == 9 or byte == 13:
            position += 1
            byte = byte_at(text, position)

        has_qid = byte == 113 and text[position + 1] == 105 and text[position + 2] == 100 and text[position + 3] == 58
        if has_qid != wants_qid:
            return NO_QID if wants_qid else UNEXPECTED_QID, position
        if has_qid:
            token = position
            position += 4
            start = position
            while byte_at(text, position) > 32 and byte_at(text, position) != 35:
                position += 1
            if not ends_token(byte_at(text, position)):
                return BAD_QID, token
            length = position - start
            if length == 0:
                return EMPTY_QID, token
            if n_runs == 0 or runs[n_runs - 1, 2] != length or not _same(text, start, runs[n_runs - 1, 1], length):
                runs[n_runs, 0] = row
                runs[n_runs, 1] = start
                runs[n_runs, 2] = length
                n_runs += 1
                counts[RUNS] = n_runs

        while True:
            byte = byte_at(text, position)
            while byte == 32 or byte == 9 or byte == 13:
                position += 1
                byte = byte_at(text, position)
            if byte == 10 or byte == 35:
                break

            token = position
            index = 0
            digit = digit_at(text, position)
            while digit <= 9:
                index = index * 10 + digit
                position += 1
                digit = digit_at(text, position)
            if digit != COLON:
                kind = NO_COLON if position > token and ends_token(byte_at(text, position)) else BAD_INDEX
                return kind, token
            if position == token:
                return BAD_INDEX, token
            if index < first_index or index > last_index or position - token > _INDEX_DIGITS:
                # Leading zeros are harmless, so that the number of digits alone decides nothing.
                while text[token] == 48 and text[token + 1] != 58:
                    token += 1
                if position - token > _INDEX_DIGITS or index > last_index:
                    return INDEX_TOO_LARGE, token
                if index < first_index:
                    return INDEX_ZERO, token
            column = index - first_index
            if column >= width:
                counts[COLUMNS] = max(counts[COLUMNS], column + 1)
            else:
                if last_row_of[column] == row:
                    return TWICE, token
                last_row_of[column] = row

            position += 1
            token = position
            negative = byte_at(text, position) == 45
            if negative:
                position += 1
            mantissa = 0
            first_digit = position
            digit = digit_at(text, position)
            while digit <= 9:
                mantissa = mantissa * 10 + digit
                position += 1
                digit = digit_at(text, position)
            digits = position - first_digit
            places = 0
            if digit == POINT:
                position += 1
                first_digit = position
                digit = digit_at(text, position)
                while digit <= 9:
                    mantissa = mantissa * 10 + digit
                    position += 1
                    digit = digit_at(text, position)
                places = position - first_digit
                digits += places
            if 0 < digits <= _FAST_DIGITS and ends_token(byte_at(text, position)):
                value = np.float64(mantissa)
                if mantissa != 0 and places > 0:
                    value /= POWERS_OF_TEN[places]
                if negative:
                    value = -value
            else:
                value, position, kind = parse_number(text, token)
                if kind == UNCERTAIN:
                    if n_uncertain < len(uncertain):
                        uncertain[n_uncertain, 0] = row
                        uncertain[n_uncertain, 1] = column
                        uncertain[n_uncertain, 2] = token
                    n_uncertain += 1
                    counts[UNCERTAINS] = n_uncertain
                elif kind != NUMBER and not (kind == NAN and allows_missing):
                    return kind, token
            if column < width:
                features[row, column] = np.float32(value)

        if byte == 35:
            start, length, position = _docid(text, position + 1)
            docids[row, 0] = start
            docids[row, 1] = length
        row += 1
        position += 1
        counts[DOCUMENTS] = row
    return OK, 0


@njit(cache=True, nogil=True)
def gather(text: NDArray[np.uint8], spans: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes at the spans (start, length), one after the other, and their lengths."""
    lengths = spans[:, 1].copy()
    buffer = np.empty(lengths.sum(), dtype=np.uint8)
    position = 0
    for span in range(len(spans)):
        start = spans[span, 0]
        for offset in range(lengths[span]):
            buffer[position + offset] = text[start + offset]
        position += lengths[span]
    return buffer, lengths


@njit(cache=True, nogil=True)
def number_strings(buffer: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """For each string the number of its value, values numbered as they first appear; and their count."""
    count = len(offsets) - 1
    slots = 16
    while slots < 2 * count:
        slots *= 2
    table = np.full(slots, -1, dtype=np.int64)  # the first string with the value that belongs into the slot
    numbers = np.empty(count, dtype=np.int64)
    distinct = 0
    for string in range(count):
        start = offsets[string]
        length = offsets[string + 1] - start
        code = np.uint64(14695981039346656037)
        for offset in range(length):
            code = (code ^ np.uint64(buffer[start + offset])) * np.uint64(1099511628211)
        slot = np.int64((code ^ (code >> np.uint64(32))) & np.uint64(slots - 1))
        while True:
            other = table[slot]
            if other < 0:
                table[slot] = string
                numbers[string] = distinct
                distinct += 1
                break
            if offsets[other + 1] - offsets[other] == length and _same(buffer, start, offsets[other], length):
                numbers[string] = numbers[other]
                break
            slot = (slot + 1) & (slots - 1)
    return numbers, distinct
