"""Columns of a table as text, row by row: what is beside the numbers that rankers see."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradrank.data.formats.compressed import read_bytes
from gradrank.data.formats.csv import csv_header, delimiter_of
from gradrank.data.formats.parquet import parquet_parts
from gradrank.data.tables import arrow, arrow_errors, existing, require
from gradrank.errors import DataError


def column_names(path: str | Path, form: str, delimiter: str | None = None) -> list[str]:
    """Names of the columns of a file; none if its format has no columns with names."""
    path = existing(path)
    if form == "csv":
        return csv_header(read_bytes(path), delimiter_of(path, delimiter), path)
    if form == "parquet":
        with arrow_errors(path, "Parquet"):
            return list(require("pyarrow.parquet", "parquet").read_schema(parquet_parts(path)[0]).names)
    if form == "arrow":
        with arrow_errors(path, "Arrow"):
            return list(_arrow_reader(path).schema.names)
    return []


def read_text_columns(
    path: str | Path, form: str, names: Sequence[str], delimiter: str | None = None
) -> dict[str, list[str | None]]:
    """Columns by name, in the order of the file's rows; None where a value is missing.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("qid,market,bm25\\n1,de,0.5\\n1,,0.7\\n")
    >>> read_text_columns(path, "csv", ["market"])
    {'market': ['de', None]}
    """
    path = existing(path)
    if form == "csv":
        pa, pyarrow_csv = arrow(), require("pyarrow.csv", "parquet")
        with arrow_errors(path, "CSV"):
            table = pyarrow_csv.read_csv(
                pa.BufferReader(pa.py_buffer(read_bytes(path))),
                parse_options=pyarrow_csv.ParseOptions(delimiter=delimiter_of(path, delimiter)),
                # Only nothing is missing: NA is a country.
                convert_options=pyarrow_csv.ConvertOptions(
                    include_columns=list(names),
                    column_types={name: pa.large_string() for name in names},
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
    elif form == "parquet":
        with arrow_errors(path, "Parquet"):
            pq = require("pyarrow.parquet", "parquet")
            tables = [pq.ParquetFile(part).read(columns=list(names)) for part in parquet_parts(path)]
            table = arrow().concat_tables(tables, promote_options="permissive")
    elif form == "arrow":
        with arrow_errors(path, "Arrow"):
            table = _arrow_reader(path).read_all().select(list(names))
            table.validate(full=True)
    else:
        raise DataError(f"is of the format {form}, which has no columns of text", path=path)
    return {name: [_text(value) for value in table.column(name).to_pylist()] for name in names}


def _arrow_reader(path: Path) -> Any:
    pa = arrow()
    source = pa.memory_map(str(path))
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _text(value: Any) -> str | None:
    if value is None or value != value:
        return None
    # Whole numbers are written as such, as CSV has them.
    return f"{value:g}" if isinstance(value, float) else str(value)
