"""CSV files by blocks of rows, plain or compressed, from files and pipes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.csv import csv_header, delimiter_of, typed_table
from gradrank.data.roles import Columns, resolve_roles
from gradrank.data.streaming.pieces import TextPieces
from gradrank.data.streaming.source import Spans, overlaps
from gradrank.data.streaming.table_source import Batch, TableSource
from gradrank.data.tables import arrow, arrow_errors, require
from gradrank.errors import DataError

_ROW_NUMBER = re.compile(r"Row #(\d+)")


_LONGEST_HELD = 1 << 20


class CsvSource(TableSource):
    """A CSV file with a header line, by blocks of rows.

    Numbers are read as numbers block by block; in a block where that fails the columns' types are found out, as reading
    the whole file would do.

    Parameters
    ----------
    path
        The file, or the name of the pipe in messages.
    columns
        Which column is what.
    pipe
        What is read instead of the file, once.
    delimiter
        The character between fields.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("qid,label,bm25\\n7,1,3.5\\n7,,2\\n")
    >>> [(rows.X.tolist(), list(rows.run_ids)) for rows in CsvSource(path, Columns()).rows()]
    [([[3.5], [2.0]], ['7'])]
    """

    def __init__(
        self,
        path: Path,
        columns: Columns,
        pipe: IO[bytes] | None = None,
        *,
        delimiter: str | None = None,
        pieces: TextPieces | None = None,
    ) -> None:
        arrow()
        self.pieces = TextPieces(path, pipe) if pieces is None else pieces
        self._columns, self._given_delimiter = columns, delimiter
        self._delimiter = delimiter_of(path, delimiter)
        if not self.pieces.again:
            self.pieces.hold_head(0)  # the header is looked at before the rows are
        text = next(iter(self.pieces.head_alone() if not self.pieces.again else self.pieces), np.empty(0, np.uint8))
        self._header = csv_header(text, self._delimiter, path)
        super().__init__(path, "CSV", resolve_roles(self._header, columns, path=path))
        self.size = self.pieces.size
        self._piece_rows: list[int] = []
        self._zero_or_one = np.ones(len(self._header), dtype=bool)
        self._boolean: dict[str, int] = {}

    @property
    def again(self) -> bool:  # type: ignore[override]
        """Whether the text can be read a second time."""
        return self.pieces.again

    def read_so_far(self) -> int:
        """See Source.read_so_far."""
        return self.pieces.read

    def hold_head(self, most_bytes: int) -> bool:
        """See Source.hold_head."""
        return self.pieces.hold_head(most_bytes)

    def of_head(self) -> CsvSource:
        """See Source.of_head."""
        delimiter = self._given_delimiter
        return CsvSource(self.path, self._columns, delimiter=delimiter, pieces=self.pieces.head_alone())

    def _batches(self, names: Sequence[str], only: Spans | None) -> Iterator[tuple[int, int, Batch]]:
        first_row, lines, found = 0, 0, []
        for number, piece in enumerate(_whole_rows(self.pieces)):
            text = piece
            if number == 0:
                behind = np.flatnonzero(piece == 10)
                text = piece[behind[0] + 1 :] if len(behind) else piece[:0]
                lines = 1
            if only is not None and number < len(self._piece_rows):
                n_rows = self._piece_rows[number]
                table = None
                if overlaps(first_row, first_row + n_rows, only):
                    table = self._table(text, names, first_row, lines)
            else:
                table = self._table(text, names, first_row, lines)
                n_rows = table.num_rows
            if table is not None:
                yield first_row, n_rows, {name: table.column(name).combine_chunks() for name in names}
            lines += int(np.count_nonzero(text == 10))
            first_row += n_rows
            found.append(n_rows)
        if only is None:
            self._piece_rows = found

    def _table(self, text: NDArray[np.uint8], names: Sequence[str], first_row: int, lines: int) -> Any:
        """The rows of a piece of text."""
        pa = arrow()
        ids = {name: pa.large_string() for name in (self.roles.qid, self.roles.docid) if name is not None}
        if not text.size or not text.tobytes().strip(b"\r\n"):
            return pa.table({name: pa.array([], ids.get(name, pa.float64())) for name in names})
        with arrow_errors(self.path, "CSV"):
            table = typed_table(lambda types: self._read(text, names, types, lines), self.roles, names)
        self._note_booleans(table, names, first_row)
        return table

    def _read(
        self, text: NDArray[np.uint8], names: Sequence[str], types: Mapping[str, Any], lines: int, threads: bool = True
    ) -> Any:
        pa, pyarrow_csv = arrow(), require("pyarrow.csv", "parquet")
        try:
            return pyarrow_csv.read_csv(
                pa.BufferReader(pa.py_buffer(np.ascontiguousarray(text))),
                # One block, so that types are found out for the piece as a whole.
                read_options=pyarrow_csv.ReadOptions(
                    column_names=self._header, block_size=len(text) + 1, use_threads=threads
                ),
                parse_options=pyarrow_csv.ParseOptions(delimiter=self._delimiter),
                convert_options=pyarrow_csv.ConvertOptions(column_types=types, include_columns=list(names)),
            )
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
            if "conversion error" in reason:
                raise
            if threads:  # only one thread knows the row's number
                return self._read(text, names, types, lines, threads=False)
            row = _ROW_NUMBER.search(reason)
            if row is None:
                raise
            said = reason.replace(row[0] + ": ", "")
            raise DataError(f"cannot be read as CSV: {said}", path=self.path, line=lines + int(row[1])) from None

    def _note_booleans(self, table: Any, names: Sequence[str], first_row: int) -> None:
        for name in names:
            if arrow().types.is_boolean(table.column(name).type):
                self._boolean.setdefault(name, first_row)

    def _block(self, first: int, n_rows: int, batch: Batch, names: Sequence[str], wide: bool) -> Any:
        rows = super()._block(first, n_rows, batch, names, wide)
        # "true" is 1, but not in a column of other numbers.
        self._zero_or_one[: len(names)] &= ((rows.X == 0) | (rows.X == 1) | np.isnan(rows.X)).all(axis=0)
        for name, row in self._boolean.items():
            if name in names and not self._zero_or_one[list(names).index(name)]:
                raise DataError(
                    f"feature column {name!r} holds true or false from row {row + 1} on and numbers elsewhere, "
                    "expected numbers",
                    path=self.path,
                )
        return rows


def _whole_rows(pieces: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """Pieces of text that end behind a row: a newline within quotes ends none.

    >>> text = (np.frombuffer(piece, np.uint8) for piece in (b'1,"a\\n', b'b"\\n2,c\\n', b'3'))
    >>> [piece.tobytes() for piece in _whole_rows(text)]
    [b'1,"a\\nb"\\n2,c\\n', b'3']
    """
    held = np.empty(0, dtype=np.uint8)
    for piece in pieces:
        text = np.concatenate((held, piece)) if len(held) else piece
        end = _end_of_rows(text)
        if end:
            yield text[:end]
        held = text[end:]
    if len(held):
        yield held


def _end_of_rows(text: NDArray[np.uint8]) -> int:
    newlines, quotes = np.flatnonzero(text == ord("\n")), np.flatnonzero(text == ord('"'))
    if not len(newlines):
        return 0
    outside = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    end = int(outside[-1]) + 1 if len(outside) else 0
    # A quote that stands for inches, say, has no other: what is held back must not grow.
    return end if len(text) - end <= _LONGEST_HELD else int(newlines[-1]) + 1
