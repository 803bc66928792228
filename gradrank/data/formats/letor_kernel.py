"""Kernels that take LETOR text apart.

All of them rely on one promise of their caller: the text they get ends with a newline. Every inner
loop stops at a newline, so nothing is read past the end without a check on each byte.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.number_kernel import (
    COLON,
    NAN,
    NUMBER,
    SHORT_NUMBERS_END,
    UNCERTAIN,
    byte_at,
    digit_at,
    ends_token,
    is_blank,
    parse_number,
)
from gradrank.data.precision import FLOAT32_WHOLE, FLOAT64_WHOLE
from gradrank.runtime.kernels import njit

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
SIGN_IN_QID = 97
COMES_AGAIN = 98
LABEL = 20  # added to the kind of number if the label is meant, not a feature's value
CHANGED = 99

# Places in the counts that parse_lines gives.
DOCUMENTS = 0
RUNS = 1
UNCERTAINS = 2
COLUMNS = 3
LONG_NUMBERS = 4

_INDEX_DIGITS = 9
_INDEX_LIMIT = 10**_INDEX_DIGITS
# The loop over so many bytes vectorizes if it compares bytes with bytes.
_BYTES_AT_ONCE = 64
_NEWLINE = np.uint8(10)
_COMMENT = np.uint8(35)
_DOCID = int.from_bytes(b"docid")


@njit(cache=True, nogil=True, plain=True)
def scan_lines(text: NDArray[np.uint8], start: int, end: int) -> tuple[int, int, int]:
    """Number of documents, the highest feature index that ends a line, and where the first line with one starts.

    Works on part of a text that need not end with a newline, and looks only at the ends of lines:
    where indices rise along a line, as they mostly do, the last one is the highest.
    """
    rows = 0
    highest = -1
    first = -1
    line = start
    stop = start
    sign = _COMMENT  # behind it only the newline matters
    while stop < end:
        while stop + _BYTES_AT_ONCE <= end:
            found = False
            for at in range(np.uint64(stop), np.uint64(stop + _BYTES_AT_ONCE)):
                found |= (text[at] == _NEWLINE) | (text[at] == sign)
            if found:
                break
            stop += _BYTES_AT_ONCE
        while stop < end and text[stop] != 10 and text[stop] != sign:
            stop += 1
        if sign == _COMMENT:
            back = stop - 1
            while back >= line and is_blank(text[back]):
                back -= 1
            if back >= line:
                rows += 1
                if first < 0:
                    first = line
                while back > line and text[back] != 58 and text[back] != 32 and text[back] != 9:
                    back -= 1
                if text[back] == 58:
                    index = 0
                    power = 1
                    back -= 1
                    while back > line and 48 <= text[back] <= 57 and power < _INDEX_LIMIT:
                        index += power * (text[back] - 48)
                        power *= 10
                        back -= 1
                    if power > 1 and index > highest and (text[back] == 32 or text[back] == 9):
                        highest = index
        if stop < end and text[stop] == 35:
            sign = _NEWLINE
        else:
            sign = _COMMENT
            line = stop + 1
        stop += 1
    return rows, highest, first


@njit(cache=True, nogil=True, plain=True, inner=True)
def _docid(text: NDArray[np.uint8], position: int) -> tuple[int, int, int]:
    """Start and length of the document id in a comment (length 0 if none), and the line's end.

    The id is what follows ``docid =``, ``docid=`` or ``docid:``; a comment of a single word is the id.
    """
    words = 0
    start = position
    length = 0
    inside = False
    letters = 0
    while text[position] != 10:
        byte = text[position]
        if is_blank(byte):
            inside = False
        else:
            if not inside:
                words += 1
                start = position
                letters = 0
                inside = True
            length = position + 1 - start
            letters = letters * 256 + byte
            if length == 5 and letters == _DOCID:
                ahead = position + 1
                while text[ahead] == 32 or text[ahead] == 9:
                    ahead += 1
                if text[ahead] == 61 or text[ahead] == 58:
                    ahead += 1
                    while text[ahead] == 32 or text[ahead] == 9:
                        ahead += 1
                    start = ahead
                    while text[ahead] != 10 and not is_blank(text[ahead]):
                        ahead += 1
                    length = ahead - start
                    words = 1
                    while text[ahead] != 10:
                        ahead += 1
                    position = ahead
                    break
        position += 1
    if words != 1:
        length = 0
    return start, length, position


@njit(cache=True, nogil=True, plain=True, inner=True)
def _same(text: NDArray[np.uint8], one: int, other: int, length: int) -> bool:
    offset = 0
    while offset < length and text[one + offset] == text[other + offset]:
        offset += 1
    return offset == length


@njit(cache=True, nogil=True, plain=True)
def parse_lines(
    text: NDArray[np.uint8],
    narrow: NDArray[np.float32],
    wide: NDArray[np.float64],
    exact: bool,
    labels: NDArray[np.float32],
    first_index: int,
    last_index: int,
    wants_qid: bool,
    allows_missing: bool,
    last_row_of: NDArray[np.int64],
    changed: NDArray[np.bool_],
    docids: NDArray[np.int64],
    runs: NDArray[np.int64],
    uncertain: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Read the documents of a text into ``wide`` if ``exact``, else into ``narrow`` (zero before), and ``labels``.

    The other one is not touched. A kernel for either type alone would be compiled twice: files with long numbers are
    read as both.

    ``docids[row]`` becomes start and length of the document's id; ``runs[run]`` the first row of each run
    of equal query ids with start and length of that id; ``uncertain`` the numbers left to the caller: row,
    column (-1 for the label), position. ``counts`` (zero before) becomes the numbers of documents, runs and
    uncertain numbers, and of the columns needed if there are too few, and whether there are numbers with so many
    digits that float32 may not hold them. Features without a column and uncertain numbers without room are not stored:
    ``counts`` tells, and the caller calls again with larger arrays. ``last_row_of`` (-1 before) is where each column
    was last met, to find features given twice. ``changed`` is set for columns with a number from 2^24 to 2^53, or its
    negative, that float32 changes.

    Gives what is wrong (:data:`OK` if nothing) and where.
    """
    size = len(text)
    width = wide.shape[1] if exact else narrow.shape[1]
    n_uncertain = 0
    n_runs = 0
    row = 0
    position = 0
    while position < size:
        while is_blank(byte_at(text, position)):
            position += 1
        byte = byte_at(text, position)
        if byte == 10 or byte == 35:
            while text[position] != 10:
                position += 1
            position += 1
            continue
        if row == len(labels):
            return CHANGED, position

        column = -1  # the label, which is read as the features' values are
        while True:
            token = position
            value, position, kind, digits = parse_number(text, position, exact)
            if kind != NUMBER:
                if kind == UNCERTAIN:
                    if n_uncertain < len(uncertain):
                        uncertain[n_uncertain, 0] = row
                        uncertain[n_uncertain, 1] = column
                        uncertain[n_uncertain, 2] = token
                    n_uncertain += 1
                    counts[UNCERTAINS] = n_uncertain
                elif kind != NAN or not allows_missing:
                    return kind if column >= 0 else LABEL + kind, token

            if 0 <= column < width:
                # Unsigned indices spare the test for positions counted from the end.
                if exact:
                    wide[np.uint64(row), np.uint64(column)] = value
                else:
                    narrow[np.uint64(row), np.uint64(column)] = value
                if digits > SHORT_NUMBERS_END and kind != NAN:
                    counts[LONG_NUMBERS] = 1
                    if FLOAT32_WHOLE < abs(value) <= FLOAT64_WHOLE and np.float32(value) != value:
                        changed[np.uint64(column)] = True
            elif column < 0:
                labels[row] = np.float32(value)
                while is_blank(byte_at(text, position)):
                    position += 1
                token = position
                has_qid = (
                    text[token] == 113 and text[token + 1] == 105 and text[token + 2] == 100 and text[token + 3] == 58
                )
                if has_qid != wants_qid:
                    return NO_QID if wants_qid else UNEXPECTED_QID, token
                if has_qid:
                    position += 4
                    start = position
                    while byte_at(text, position) > 32 and byte_at(text, position) != 35:
                        position += 1
                    length = position - start
                    if not ends_token(byte_at(text, position)):
                        return BAD_QID, token
                    if length == 0:
                        return EMPTY_QID, token
                    if byte_at(text, position) == 35:
                        # The rest of the id and all features would be taken for a comment.
                        return SIGN_IN_QID, token
                    if (
                        n_runs == 0
                        or runs[n_runs - 1, 2] != length
                        or not _same(text, start, runs[n_runs - 1, 1], length)
                    ):
                        runs[n_runs, 0] = row
                        runs[n_runs, 1] = start
                        runs[n_runs, 2] = length
                        n_runs += 1
                        counts[RUNS] = n_runs

            while is_blank(byte_at(text, position)):
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
            if digit != COLON or position == token:
                is_number = position > token and ends_token(byte_at(text, position))
                return NO_COLON if is_number else BAD_INDEX, token
            if index < first_index or index > last_index or position - token > _INDEX_DIGITS:
                # Leading zeros are harmless, so that the number of digits alone decides nothing.
                while text[token] == 48 and text[token + 1] != 58:
                    token += 1
                if position - token > _INDEX_DIGITS or index > last_index:
                    return INDEX_TOO_LARGE, token
                if index < first_index:
                    return INDEX_ZERO, token
            column = index - first_index
            if column < width:
                at = np.uint64(column)
                if last_row_of[at] == row:
                    return TWICE, token
                last_row_of[at] = row
            elif column >= counts[COLUMNS]:
                counts[COLUMNS] = column + 1
            position += 1

        if byte == 35:
            start, length, position = _docid(text, position + 1)
            docids[row, 0] = start
            docids[row, 1] = length
        row += 1
        position += 1
        counts[DOCUMENTS] = row
    return OK, 0


@njit(cache=True, nogil=True, plain=True)
def gather(text: NDArray[np.uint8], spans: NDArray[np.int64], buffer: NDArray[np.uint8]) -> None:
    """Put the bytes at the spans (start, length) into the buffer, one after the other."""
    position = 0
    for span in range(len(spans)):
        start = spans[span, 0]
        length = spans[span, 1]
        for offset in range(length):
            buffer[position + offset] = text[start + offset]
        position += length
