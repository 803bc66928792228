"""Files of rows, comma- or tab-separated, with a header: their fields as places in the bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.fields import line_of, trimmed
from gradrank.data.clicks.interning import intern
from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.runtime.kernels import njit


@dataclass(frozen=True, eq=False)
class Rows:
    """The fields of a file of rows, as places in its bytes."""

    buffer: NDArray[np.uint8]
    path: str | Path
    columns: dict[str, int]
    """Places of the wanted columns in ``starts`` and ``ends``."""
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    """Field boundaries, columns × rows."""

    def codes(self, column: str) -> tuple[NDArray[np.int32], Strings]:
        """A column as numbered distinct strings; an empty field is an error."""
        starts, ends = self.starts[self.columns[column]], self.ends[self.columns[column]]
        empty = np.flatnonzero(starts == ends)
        if len(empty):
            self.fail(column, int(empty[0]), "an id")
        return intern(self.buffer, starts, ends)

    def numbers(self, column: str) -> NDArray[np.int64]:
        """A column of whole numbers of 0 or more."""
        place = self.columns[column]
        values = np.empty(self.starts.shape[1], dtype=np.int64)
        bad = _whole_numbers(self.buffer, self.starts[place], self.ends[place], values)
        if bad >= 0:
            self.fail(column, int(bad), "a whole number of 0 or more")
        return values

    def text(self, column: str, row: int) -> str:
        """One field."""
        place = self.columns[column]
        return bytes(self.buffer[self.starts[place, row] : self.ends[place, row]]).decode(errors="replace")

    def fail(self, column: str, row: int, expected: str) -> NoReturn:
        """Raise the error that names file, line, what was found and what was expected."""
        start = int(self.starts[self.columns[column], row])
        raise DataError(
            f"{column} is {self.text(column, row)[:60]!r}, expected {expected}",
            path=self.path,
            line=line_of(self.buffer, start),
        )


def read_rows(
    buffer: NDArray[np.uint8], path: str | Path, separator: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Rows:
    """Cut a file with a header line into the fields of the wanted columns.

    >>> text = np.frombuffer(b"qid,docid\\n7,a\\n", dtype=np.uint8)
    >>> read_rows(text, "log.csv", ",", ("docid",)).text("docid", 0)
    'a'
    """
    buffer = np.ascontiguousarray(buffer)
    newlines = np.flatnonzero(buffer[: 1 << 20] == 10)
    header_end = int(newlines[0]) if len(newlines) else len(buffer)
    header = buffer[:header_end].tobytes().decode(errors="replace")
    names = [name.strip().strip('"') for name in header.split(separator)]
    missing = [name for name in needed if name not in names]
    if missing:
        raise DataError(
            f"header names {', '.join(map(repr, names))[:200]}, expected also {', '.join(map(repr, missing))}",
            path=path,
            line=1,
        )
    wanted = [name for name in (*needed, *optional) if name in names]
    slots = np.full(len(names), -1)
    for slot, name in enumerate(wanted):
        slots[names.index(name)] = slot
    lines = int(np.count_nonzero(buffer[header_end:] == 10)) + 1
    starts = np.empty((len(wanted), lines), dtype=np.int64)
    ends = np.empty((len(wanted), lines), dtype=np.int64)
    count, offset, fields = _cut_rows(buffer, header_end, ord(separator), slots, starts, ends)
    if fields >= 0:
        raise DataError(
            f"row has {fields} fields, expected {len(names)} as in the header"
            if fields > 0
            else "a quoted field is not followed by the next field or the end of its line",
            path=path,
            line=line_of(buffer, offset),
        )
    columns = {name: slot for slot, name in enumerate(wanted)}
    return Rows(buffer, path, columns, starts[:, :count], ends[:, :count])


@njit(cache=True, nogil=True)
def _cut_rows(
    buffer: NDArray[np.uint8],
    begin: int,
    separator: int,
    slots: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Cut rows into fields: number of rows and −1, or the place and field count of a bad row."""
    n = len(buffer)
    count = 0
    i = begin
    while i < n:
        if buffer[i] == 10 or buffer[i] == 13:
            i += 1
            continue
        row_start = i
        column = 0
        while True:
            # Quotation marks enclose a field only in comma-separated files.
            if separator == 44 and i < n and buffer[i] == 34:
                start = i + 1
                end = start
                while end < n and buffer[end] != 34 and buffer[end] != 10:
                    end += 1
                i = end + 1
                if end >= n or buffer[end] != 34:
                    return count, row_start, 0
                if i < n and buffer[i] != separator and buffer[i] != 10 and buffer[i] != 13:
                    return count, row_start, 0
                # Carriage returns belong to the end of the line, and rows end with lines: there is room for no more.
                while i < n and buffer[i] == 13:
                    i += 1
                    if i < n and buffer[i] != 13 and buffer[i] != 10:
                        return count, row_start, 0
            else:
                start = i
                while i < n and buffer[i] != separator and buffer[i] != 10:
                    i += 1
                end = i
                if end > start and buffer[end - 1] == 13:
                    end -= 1
            if column < len(slots) and slots[column] >= 0:
                starts[slots[column], count] = start
                ends[slots[column], count] = end
            column += 1
            if i < n and buffer[i] == separator:
                i += 1
            else:
                break
        if column != len(slots):
            return count, row_start, column
        count += 1
    return count, 0, -1


@njit(cache=True, nogil=True)
def _whole_numbers(
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    values: NDArray[np.int64],
) -> int:
    for row in range(len(starts)):
        start, end = trimmed(buffer, starts[row], ends[row])
        if start == end or end - start > 18:
            return row
        value = np.int64(0)
        for k in range(start, end):
            digit = np.int64(buffer[k]) - 48
            if digit < 0 or digit > 9:
                return row
            value = value * 10 + digit
        values[row] = value
    return -1
