"""Parquet and Arrow files by blocks of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.parquet import parquet_parts
from gradrank.data.precision import PrecisionCheck
from gradrank.data.ranking_data import check_features, check_label
from gradrank.data.roles import Columns, Roles, resolve_roles
from gradrank.data.streaming.source import Rows, Source, Spans, overlaps
from gradrank.data.strings import Strings
from gradrank.data.tables import (
    arrow,
    arrow_errors,
    block_rows,
    check_numeric,
    checked,
    existing,
    id_strings,
    is_numeric,
    numbers,
    recorded_roles,
    require,
    turned,
)
from gradrank.errors import DataError

_MOST_ROWS = 1 << 16
Batch = Mapping[str, Any]
"""Arrow arrays by column name."""


class TableSource(Source):
    """A table by blocks of rows: columns become what their roles say.

    Parameters
    ----------
    path
        The file or folder.
    what
        What it is read as, in messages.
    roles
        Every column's role.
    """

    def __init__(self, path: Path, what: str, roles: Roles) -> None:
        self.path, self.what, self.roles = path, what, roles
        self._whole_ids: dict[str, bool] = {}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The feature columns."""
        return self.roles.features

    @abstractmethod
    def _batches(self, names: Sequence[str], only: Spans | None) -> Iterator[tuple[int, int, Batch]]:
        """First row, number of rows and columns of blocks of rows."""

    def finish(self) -> None:
        """See Source.finish."""
        self.roles.warn_of_left_out(self.path)

    def rows(self, *, wide: bool = False, features: bool = True, only: Spans | None = None) -> Iterator[Rows]:
        """See Source.rows."""
        names = self.roles.features if features else ()
        wanted = list(dict.fromkeys((*self.roles.named(), *names)))
        n_docs = 0
        with arrow_errors(self.path, self.what):
            for first, n_rows, batch in self._batches(wanted, only):
                if n_rows:
                    yield self._block(first, n_rows, batch, names, wide)
                n_docs = first + n_rows
        if n_docs == 0 and only is None:
            raise DataError("there are no documents", path=self.path)

    def _block(self, first: int, n_rows: int, batch: Batch, names: Sequence[str], wide: bool) -> Rows:
        values: NDArray[Any] = np.empty((n_rows, 0), dtype=np.float32)
        if names:
            values = turned(names, [batch[name] for name in names], first, self.path)
        changed = None
        if values.dtype == np.float64:
            check = PrecisionCheck(0, len(names))
            check.look(first, values)
            changed = check.changed
        with np.errstate(over="ignore"):  # infinities are found next
            X: Any = np.ascontiguousarray(values, dtype=np.float64 if wide else np.float32)
        labels = {
            source: numbers("label", column, batch[column], "float32", first, self.path)
            for source, column in self.roles.labels.items()
        }
        try:
            check_features(X, first)
            for source, label in labels.items():
                check_label(source, label, first)
        except DataError as error:
            raise DataError(str(error), path=self.path) from None
        run_rows, run_ids = np.empty(0, dtype=np.int64), None
        if self.roles.qid is not None:
            run_rows, run_ids = _runs(self._ids("qid", self.roles.qid, batch, first))
            empty = np.flatnonzero(np.diff(run_ids.offsets) == 0)
            if len(empty):
                row = first + int(run_rows[empty[0]]) + 1
                raise DataError(f"qid (column {self.roles.qid!r}) is empty in row {row}", path=self.path)
        docid, weight = self.roles.docid, self.roles.weight
        return Rows(
            first=first,
            X=X,
            changed=changed,
            labels=labels,
            run_rows=run_rows,
            run_ids=run_ids,
            docid=None if docid is None else self._ids("docid", docid, batch, first),
            weight=None if weight is None else numbers("weight", weight, batch[weight], "float64", first, self.path),
        )

    def _ids(self, role: str, name: str, batch: Batch, first: int) -> Strings:
        return id_strings(role, name, batch[name], first, self._has_whole_ids(name, batch[name].type), self.path)

    def _has_whole_ids(self, name: str, kind: Any) -> bool:
        """Whether a column of floating point numbers holds whole ones only, in all rows: then they are integers."""
        types = arrow().types
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if not types.is_floating(kind):
            return False
        if name not in self._whole_ids:
            import pyarrow.compute as pc

            whole = True
            for _, _, batch in self._batches([name], None):
                column = batch[name]
                column = column.cast(kind) if types.is_dictionary(column.type) else column
                column = pc.if_else(pc.is_nan(column), None, column)
                whole = whole and pc.all(pc.equal(pc.floor(column), column)).as_py() is not False
            self._whole_ids[name] = whole
        return self._whole_ids[name]

    def checked_weight(self, message: str) -> NoReturn:
        """See Source.checked_weight."""
        raise DataError(
            f"column {self.roles.weight!r}: {message}; if it is a feature, say keep= (--keep-column)", path=self.path
        )


def _runs(ids: Strings) -> tuple[NDArray[np.int64], Strings]:
    """Where runs of equal ids begin, and the id of each."""
    values = ids.to_list()
    starts = [row for row, value in enumerate(values) if row == 0 or value != values[row - 1]]
    rows = np.array(starts, dtype=np.int64)
    return rows, ids[rows]


def _check_rows(path: Path, said: int, found: int) -> None:
    if said != found:
        raise DataError(f"says that it has {said} rows, but its columns have {found}", path=path)


class ParquetSource(TableSource):
    """Parquet files by blocks of rows; a folder of them in order of their names.

    >>> import tempfile
    >>> from gradrank import RankingData, write_data
    >>> path = Path(tempfile.mkdtemp()) / "a.parquet"
    >>> write_data(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> [rows.X.tolist() for rows in ParquetSource(path, Columns()).rows()]
    [[[1.0], [2.0]]]
    """

    def __init__(self, path: Path, columns: Columns) -> None:
        pa, pq = arrow(), require("pyarrow.parquet", "parquet")
        path = existing(path)
        self._parts = parquet_parts(path)
        with arrow_errors(path, "Parquet"):
            schemas = [pq.read_schema(part) for part in self._parts]
            for part, schema in zip(self._parts[1:], schemas[1:], strict=True):
                if schema.names != schemas[0].names:
                    raise DataError(f"has other columns than {self._parts[0].name}", path=part)
            roles = resolve_roles(schemas[0].names, columns, recorded_roles(schemas[0]), path)
            wrong = [name for name in roles.features if not is_numeric(schemas[0].field(name).type)]
            if wrong:
                with pq.ParquetFile(self._parts[0]) as file:
                    table = checked(file.read(columns=wrong))
                check_numeric({name: table.column(name) for name in wrong}, path)
            # Types may differ from part to part (an integer column with a null elsewhere): let them meet.
            named = [pa.schema([schema.field(name) for name in roles.named()]) for schema in schemas]
            met = pa.unify_schemas(named, promote_options="permissive")
            self._types = {name: met.field(name).type for name in roles.named()}
        super().__init__(path, "Parquet", roles)
        self.size = sum(part.stat().st_size for part in self._parts)
        self._read = 0

    def read_so_far(self) -> int:
        """See Source.read_so_far."""
        return self._read

    def _batches(self, names: Sequence[str], only: Spans | None) -> Iterator[tuple[int, int, Batch]]:
        pq = require("pyarrow.parquet", "parquet")
        first = self._read = 0
        for part in self._parts:
            with pq.ParquetFile(part) as file:
                groups = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
                _check_rows(part, file.metadata.num_rows, sum(groups))
                for group, n_rows in enumerate(groups):
                    if not overlaps(first, first + n_rows, only):
                        first += n_rows
                        continue
                    if not names:
                        yield first, n_rows, {}
                        first += n_rows
                        continue
                    rows, end = min(_MOST_ROWS, block_rows(len(names))), first + n_rows
                    for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=list(names)):
                        checked(batch)
                        yield first, len(batch), {name: self._met(name, batch.column(name)) for name in names}
                        first += len(batch)
                    _check_rows(part, n_rows, n_rows + first - end)
                    self._read += part.stat().st_size // max(1, len(groups))

    def _met(self, name: str, column: Any) -> Any:
        kind = self._types.get(name)
        return column if kind is None or column.type == kind else column.cast(kind)


class ArrowSource(TableSource):
    """An Arrow IPC file or stream by its record batches; the file is mapped, not held.

    >>> import tempfile
    >>> from gradrank import RankingData, write_data
    >>> path = Path(tempfile.mkdtemp()) / "a.arrow"
    >>> write_data(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> [rows.X.tolist() for rows in ArrowSource(path, Columns()).rows()]
    [[[1.0], [2.0]]]
    """

    def __init__(self, path: Path, columns: Columns) -> None:
        path = existing(path)
        self.path = path
        with arrow_errors(path, "Arrow"):
            schema = self._reader().schema
            roles = resolve_roles(schema.names, columns, recorded_roles(schema), path)
            wrong = [name for name in roles.features if not is_numeric(schema.field(name).type)]
            for _, _, batch in self._batches(wrong, None) if wrong else ():
                check_numeric(batch, path)
        super().__init__(path, "Arrow", roles)
        self.size = path.stat().st_size

    def _reader(self) -> Any:
        pa = arrow()
        source = pa.memory_map(str(self.path))
        try:
            return pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source)

    def _batches(self, names: Sequence[str], only: Spans | None) -> Iterator[tuple[int, int, Batch]]:
        reader = self._reader()
        whole = reader
        if hasattr(reader, "num_record_batches"):
            whole = (reader.get_batch(index) for index in range(reader.num_record_batches))
        first, rows = 0, min(_MOST_ROWS, block_rows(len(names)))
        for batch in whole:
            checked(batch)
            for start in range(0, len(batch), rows):
                block = batch.slice(start, rows)
                if overlaps(first, first + len(block), only):
                    yield first, len(block), {name: block.column(name) for name in names}
                first += len(block)
