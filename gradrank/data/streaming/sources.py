"""The source of blocks of rows for a file of any format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from gradrank.data.formats.binary import open_binary
from gradrank.data.formats.file_formats import FileFormat
from gradrank.data.ranking_data import RankingData
from gradrank.data.roles import Columns
from gradrank.data.streaming.csv_source import CsvSource
from gradrank.data.streaming.letor_source import LetorSource
from gradrank.data.streaming.source import Rows, Source, Spans, overlaps
from gradrank.data.streaming.table_source import ArrowSource, ParquetSource
from gradrank.errors import DataError

_BLOCK_BYTES = 1 << 24

STREAMED = ("letor", "csv", "parquet", "arrow", "binary")
"""Names of the formats that are read by blocks of rows; others are read whole."""


def open_source(
    path: Path,
    form: FileFormat,
    options: Mapping[str, Any] | None = None,
    *,
    pipe: IO[bytes] | None = None,
    width: int | None = None,
    owner: str = "the model",
) -> Source:
    """Blocks of rows of a file, or of a pipe.

    Parameters
    ----------
    path
        The file or folder, or the name of the pipe in messages.
    form
        The format.
    options
        Options of the format's reader; whether rows are regrouped is left to whoever takes the blocks.
    pipe
        What is read instead of the file, once: LETOR text or CSV.
    width, owner
        The number of features of LETOR text that fits, and whose it is.
    """
    given = {name: value for name, value in (options or {}).items() if name != "regroup"}
    if form.name == "letor":
        return LetorSource(path, pipe, width=width, owner=owner, **given)
    if pipe is not None and form.name != "csv":
        raise DataError(f"{form.name} cannot be read from standard input: give a file, or LETOR text or CSV", path=path)
    if form.name == "csv":
        delimiter = given.pop("delimiter", None)
        return CsvSource(path, Columns(**given), pipe, delimiter=delimiter)
    if form.name == "parquet":
        return ParquetSource(path, Columns(**given))
    if form.name == "arrow":
        return ArrowSource(path, Columns(**given))
    return DataSource(open_binary(path), path)


class DataSource(Source):
    """Ranking data, mostly a memory map, by blocks of rows.

    Parameters
    ----------
    data
        The data.
    path
        Its name in messages.

    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7])
    >>> [rows.X.tolist() for rows in DataSource(data, Path("a")).rows()]
    [[[1.0], [2.0]]]
    """

    def __init__(self, data: RankingData, path: Path) -> None:
        self.data, self.path = data, path
        self.size = data.X.nbytes
        self._read = 0

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The data's features."""
        return self.data.feature_names

    def read_so_far(self) -> int:
        """See Source.read_so_far."""
        return self._read

    def rows(self, *, wide: bool = False, features: bool = True, only: Spans | None = None) -> Iterator[Rows]:
        """See Source.rows; features come in the precision that the data has."""
        X = self.data.X
        step = max(1, _BLOCK_BYTES // max(1, X.itemsize * X.shape[1]))
        self._read = 0
        for start in range(0, len(X), step):
            end = min(start + step, len(X))
            if overlaps(start, end, only):
                # A copy: pages of the file are given back when the block is.
                block: Any = np.array(X[start:end] if features else X[start:end, :0])
                yield Rows(start, block)
            self._read += (end - start) * X.itemsize * X.shape[1]
