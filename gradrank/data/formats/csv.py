"""CSV files with a header line, also separated by tabs or other characters, also compressed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.compressed import open_for_writing, read_bytes, without_compression_suffix
from gradrank.data.precision import FLOAT32_WHOLE, row_blocks
from gradrank.data.ranking_data import RankingData
from gradrank.data.roles import Columns, LabelChoice, Roles, resolve_roles
from gradrank.data.tables import arrow, arrow_errors, data_of_table, existing, require, row_groups
from gradrank.errors import DataError
from gradrank.runtime.suggestions import known_keywords

# Text of this size Arrow reads as one block, whatever stands within quotes.
_WHOLE_BYTES = 1 << 20


@known_keywords
def read_csv(
    path: str | Path,
    *,
    delimiter: str | None = None,
    qid: str | None = None,
    labels: LabelChoice = None,
    docid: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    regroup: bool = True,
) -> RankingData:
    """Read a CSV file with a header line; ``.tsv`` files are separated by tabs; may be compressed.

    Ids are taken as they are written (``007`` stays ``007``); an empty or ``NA`` field is missing.

    Parameters
    ----------
    path
        The file.
    delimiter
        The character between fields; a comma by default, a tab for files that end in ``.tsv``.
    qid, labels, docid, weight, features, keep, ignore, regroup
        Which column is what; see :func:`gradrank.data.frames.from_frame`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("qid,label,bm25\\n007,1,3.5\\n007,,2\\n")
    >>> data = read_csv(path)
    >>> list(data.qid), data.label().tolist()
    (['007'], [1.0, nan])
    """
    pa, pyarrow_csv = arrow(), require("pyarrow.csv", "parquet")
    columns = Columns(qid=qid, labels=labels, docid=docid, weight=weight, features=features, keep=keep, ignore=ignore)
    path = existing(path)
    delimiter = delimiter_of(path, delimiter)
    content = read_bytes(path)
    roles = resolve_roles(csv_header(content, delimiter, path), columns, path=path)
    wanted = list(dict.fromkeys((*roles.named(), *roles.features)))
    # Arrow cuts large text into blocks, and looks for quotes around newlines only if it is told to.
    quoted = len(content) > _WHOLE_BYTES and has_quoted_newline(content)

    def read(types: Mapping[str, Any]) -> Any:
        return pyarrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(content)),
            parse_options=pyarrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=quoted),
            convert_options=pyarrow_csv.ConvertOptions(column_types=types),
        )

    with arrow_errors(path, "CSV"):
        return data_of_table(typed_table(read, roles, wanted), columns, regroup=regroup, path=path)


def has_quoted_newline(content: NDArray[np.uint8]) -> bool:
    """Whether a newline may stand within quotes: an odd number of them is before it.

    >>> has_quoted_newline(np.frombuffer(b'"a","b"\\n', np.uint8))
    False
    >>> has_quoted_newline(np.frombuffer(b'"a\\nb"\\n', np.uint8))
    True
    """
    before = 0
    for start in range(0, len(content), _WHOLE_BYTES):
        block = content[start : start + _WHOLE_BYTES]
        quotes, newlines = np.flatnonzero(block == ord('"')), np.flatnonzero(block == ord("\n"))
        if ((np.searchsorted(quotes, newlines) + before) & 1).any():
            return True
        before += len(quotes)
    return False


def typed_table(read: Callable[[Mapping[str, Any]], Any], roles: Roles, wanted: Sequence[str]) -> Any:
    """A table whose ids are text as it is written, and whose numbers are float64, which keeps the sign of −0.

    ``read`` takes the types of columns; those of columns that hold something else are found out.
    """
    pa = arrow()
    ids = {name: pa.large_string() for name in (roles.qid, roles.docid) if name is not None}
    numbers = {name: pa.float64() for name in wanted if name not in ids}
    try:
        return read({**ids, **numbers})
    except pa.ArrowInvalid as error:
        if "conversion error" not in str(error):
            raise
    found = read(ids).schema
    for name in list(numbers):
        kind = found.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            del numbers[name]
    return read({**ids, **numbers})


def write_csv(data: RankingData, path: str | Path, *, delimiter: str | None = None) -> None:
    """Write a CSV file with a header line (tabs for ``.tsv``) that :func:`read_csv` reads back the same.

    CSV has no place for roles, so a feature named as a role (``weight``) comes back as that role.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.tsv"
    >>> write_csv(RankingData.from_arrays([[1.5]], [1], qid=["a"]), path)
    >>> path.read_text().splitlines()
    ['"qid"\\t"label"\\t"f1"', '"a"\\t1\\t1.5']
    """
    pyarrow_csv = require("pyarrow.csv", "parquet")
    options = pyarrow_csv.WriteOptions(delimiter=delimiter_of(path, delimiter))
    with open_for_writing(path) as file:
        tables = row_groups(data)
        first = next(tables)
        schema = _with_whole_numbers(data, first.schema)
        with pyarrow_csv.CSVWriter(file, schema, write_options=options) as writer:
            writer.write_table(first.cast(schema))
            for table in tables:
                writer.write_table(table.cast(schema))


def _with_whole_numbers(data: RankingData, schema: Any) -> Any:
    """The schema with float64 for features whose whole numbers float32 would write with fewer digits than they have."""
    largest = np.zeros(data.n_features)
    for start, end in row_blocks(data.n_docs, data.n_features):
        largest = np.fmax(largest, np.fmax.reduce(np.abs(data.X[start:end]), axis=0))
    for name in (data.feature_names[column] for column in np.flatnonzero(largest > FLOAT32_WHOLE)):
        schema = schema.set(schema.get_field_index(name), arrow().field(name, arrow().float64()))
    return schema


def delimiter_of(path: str | Path, given: str | None) -> str:
    """The character between fields: the one given, or a tab for ``.tsv``, or a comma."""
    if given is None:
        return "\t" if without_compression_suffix(path).suffix.lower() == ".tsv" else ","
    if len(given) != 1 or not given.isascii() or given in '"\r\n':
        raise DataError(f"delimiter is {given!r}, expected one character such as ';'", path=path)
    return given


def csv_header(content: NDArray[np.uint8], delimiter: str, path: Path) -> list[str]:
    """The names of the columns, from a file's first bytes."""
    line_end = np.flatnonzero(content[: 1 << 24] == ord("\n"))
    header = content[: line_end[0] if len(line_end) else len(content)].tobytes().removeprefix(b"\xef\xbb\xbf")
    try:
        text = header.decode().rstrip("\r")
    except UnicodeDecodeError:
        raise DataError("header is not UTF-8 text", path=path, line=1) from None
    try:
        names = next(csv.reader([text], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise DataError(f"header cannot be read: {error}", path=path, line=1) from None
    if not names:
        raise DataError("is empty, expected a header line with column names", path=path, line=1)
    return names
