"""Tables with named columns: pandas, polars and Arrow frames; Parquet, Arrow and CSV files.

One rule says which column is what:

1. A column named by an argument (``qid=``, ``docid=``, ``weight=``, ``labels=``, ``features=``,
   ``ignore=``) has that role and no other.
2. Arrow tables and files written by gradrank carry their roles with them (schema metadata, key
   ``gradrank``), and these hold for the rest.
3. Anything else goes by its name: ``qid`` or ``query_id`` is the query, ``docid`` or ``doc_id`` the
   document id, ``weight`` the query's weight, ``label`` the label named "label" and ``label:NAME`` the
   label named NAME, the first of them being the primary one. An index that pandas stored
   (``__index_level_0__``) is left out, and every other column is a feature.

A null or NaN is a missing feature or an unjudged label. Booleans are 0 and 1; a categorical column of
numbers stands for these numbers. A feature column of text is an error, not a column silently lost.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.compressed import open_for_writing, read_bytes, without_compression_suffix
from gradrank.data.ranking_data import PRIMARY_LABEL, RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError, MissingExtraError
from gradrank.runtime.files import replacing

QID_NAMES = ("qid", "query_id")
DOCID_NAMES = ("docid", "doc_id")
WEIGHT_NAMES = ("weight",)
LABEL_PREFIX = PRIMARY_LABEL + ":"

_METADATA_KEY = b"gradrank"
_TEXT_TYPES = ("string", "large_string", "string_view")
_STORED_INDEX = re.compile(r"__index_level_\d+__")
# A block of rows is turned from columns to rows in cache; row groups are a size other tools read well.
_BLOCK_BYTES = 1 << 23
_ROW_GROUP_BYTES = 1 << 26


class ColumnOptions(TypedDict, total=False):
    """Which column is what, where the names do not tell; see the module's rule."""

    qid: str | None
    """Column of query ids."""
    docid: str | None
    """Column of document ids."""
    weight: str | None
    """Column of query weights, the same number in all rows of a query."""
    labels: str | Sequence[str] | Mapping[str, str] | None
    """Label columns, the primary one first; a mapping gives label name → column; ``()`` = no labels."""
    features: Sequence[str] | None
    """Feature columns; without it all columns that have no other role."""
    ignore: Sequence[str]
    """Columns to leave out."""
    regroup: bool
    """Whether rows of a query that are not consecutive are brought together (default) or refused."""


@dataclass(frozen=True)
class _Roles:
    qid: str
    docid: str | None
    weight: str | None
    labels: Mapping[str, str]
    features: tuple[str, ...]

    def named(self) -> list[str]:
        """The columns that are not features, each once."""
        columns = [self.qid, self.docid, self.weight, *self.labels.values()]
        return list(dict.fromkeys(column for column in columns if column is not None))


# ---------------------------------------------------------------------- frames
def from_frame(frame: Any, **columns: Unpack[ColumnOptions]) -> RankingData:
    """Data from a pandas or polars frame or an Arrow table, columns by the module's rule.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"qid": [1, 1, 2], "label": [0, 1, None], "bm25": [3.5, 7.1, 2.0]})
    >>> data = from_frame(frame)
    >>> data, data.feature_names
    (RankingData(2 queries, 3 documents, 1 features, labels: label), ('bm25',))
    """
    with _arrow_errors(None, "a frame"):
        return _from_table(_as_table(frame), columns, path=None)


def to_frame(data: RankingData, kind: Literal["pandas", "polars", "arrow"] = "pandas") -> Any:
    """The data as a frame: ``qid``, ``docid``, ``weight``, labels and features, one row a document.

    A missing value is a null (NaN in pandas). A role's column whose name a feature already has gets
    ``_`` appended.

    >>> data = RankingData.from_arrays([[3.5], [7.1]], [0, 1], qid=["a", "a"], feature_names=["bm25"])
    >>> to_frame(data)
      qid  label  bm25
    0   a    0.0   3.5
    1   a    1.0   7.1
    """
    table = _to_table(data, 0, data.n_docs)
    if kind == "arrow":
        return table
    if kind == "pandas":
        _require("pandas", "frames")
        return table.to_pandas()
    if kind == "polars":
        return _require("polars", "frames").from_arrow(table)
    raise DataError(f"frame kind is {kind!r}, expected 'pandas', 'polars' or 'arrow'")


# ---------------------------------------------------------------------- Parquet
def read_parquet(path: str | Path, **columns: Unpack[ColumnOptions]) -> RankingData:
    """Read a Parquet file, or a folder of them in order of their names (as Spark writes).

    Features go by blocks of rows straight into the matrix; no whole table is held besides it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.parquet"
    >>> write_parquet(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> read_parquet(path)
    RankingData(1 queries, 2 documents, 1 features, labels: label)
    """
    pa, pq = _arrow(), _require("pyarrow.parquet", "parquet")
    path = _existing(path)
    parts = [path]
    if path.is_dir():
        parts = sorted(part for part in path.glob("*.parquet") if not part.name.startswith((".", "_")))
        if not parts:
            raise DataError("holds no .parquet file", path=path)
    with _arrow_errors(path, "Parquet"):
        schema = pq.read_schema(parts[0])
        for part in parts[1:]:
            if pq.read_schema(part).names != schema.names:
                raise DataError(f"has other columns than {parts[0].name}", path=part)
        roles = _resolve(schema.names, _recorded_roles(schema), columns, path)
        # Types may differ from part to part (an integer column with a null elsewhere): let them meet.
        named = pa.concat_tables(
            [_parquet_columns(part, roles.named()) for part in parts], promote_options="permissive"
        )
        return _assemble(named, roles, _parquet_blocks(parts, roles.features), columns.get("regroup", True), path)


def _parquet_columns(path: Path, names: list[str]) -> Any:
    with _require("pyarrow.parquet", "parquet").ParquetFile(path) as file:
        return file.read(columns=names)


def _parquet_blocks(parts: Sequence[Path], names: Sequence[str]) -> Iterator[list[Any]]:
    """Blocks of rows of some columns; one file is open at a time, for there may be thousands."""
    for part in parts if names else ():
        with _require("pyarrow.parquet", "parquet").ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=_block_rows(len(names)), columns=list(names)):
                yield [batch.column(name) for name in names]


def write_parquet(data: RankingData, path: str | Path) -> None:
    """Write a Parquet file that :func:`read_parquet` reads back the same.

    >>> import tempfile, pyarrow.parquet
    >>> path = Path(tempfile.mkdtemp()) / "a.parquet"
    >>> write_parquet(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> pyarrow.parquet.read_schema(path).names
    ['qid', 'label', 'f1']
    """
    pq = _require("pyarrow.parquet", "parquet")
    with replacing(path) as temporary, _write_errors(path):
        blocks = _tables(data)
        first = next(blocks)
        # A dictionary of a feature's many values only makes the file larger.
        repeating = [name for name in first.column_names if name not in data.feature_names]
        with pq.ParquetWriter(temporary, first.schema, compression="zstd", use_dictionary=repeating) as writer:
            writer.write_table(first)
            for table in blocks:
                writer.write_table(table)


# ---------------------------------------------------------------------- Arrow
def read_arrow(path: str | Path, **columns: Unpack[ColumnOptions]) -> RankingData:
    """Read an Arrow IPC file, which is what Feather (version 2) is; streams are read too.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.arrow"
    >>> write_arrow(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> read_arrow(path)
    RankingData(1 queries, 2 documents, 1 features, labels: label)
    """
    pa = _arrow()
    path = _existing(path)
    with _arrow_errors(path, "Arrow"):
        source = pa.memory_map(str(path))
        try:
            table = pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
        return _from_table(table, columns, path)


def write_arrow(data: RankingData, path: str | Path) -> None:
    """Write an Arrow IPC (Feather) file that :func:`read_arrow` reads back the same.

    >>> import tempfile, pyarrow.feather
    >>> path = Path(tempfile.mkdtemp()) / "a.feather"
    >>> write_arrow(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> pyarrow.feather.read_table(path).column_names
    ['qid', 'label', 'f1']
    """
    pa = _arrow()
    with replacing(path) as temporary, _write_errors(path):
        blocks = _tables(data)
        first = next(blocks)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(str(temporary), first.schema, options=options) as writer:
            writer.write_table(first)
            for table in blocks:
                writer.write_table(table)


# ---------------------------------------------------------------------- CSV
def read_csv(path: str | Path, *, delimiter: str | None = None, **columns: Unpack[ColumnOptions]) -> RankingData:
    """Read a CSV file with a header line; ``.tsv`` files are separated by tabs; may be compressed.

    Ids are taken as they are written (``007`` stays ``007``); an empty or ``NA`` field is missing.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("qid,label,bm25\\n007,1,3.5\\n007,,2\\n")
    >>> data = read_csv(path)
    >>> list(data.qid), data.label().tolist()
    (['007'], [1.0, nan])
    """
    pa, pyarrow_csv = _arrow(), _require("pyarrow.csv", "parquet")
    path = _existing(path)
    delimiter = _delimiter(path, delimiter)
    content = read_bytes(path)
    names = _csv_header(content, delimiter, path)
    roles = _resolve(names, None, columns, path)
    ids = [roles.qid] + ([roles.docid] if roles.docid else [])
    with _arrow_errors(path, "CSV"):
        table = pyarrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(content)),
            parse_options=pyarrow_csv.ParseOptions(delimiter=delimiter),
            convert_options=pyarrow_csv.ConvertOptions(column_types={name: pa.large_string() for name in ids}),
        )
        return _from_table(table, columns, path)


def write_csv(data: RankingData, path: str | Path, *, delimiter: str | None = None) -> None:
    """Write a CSV file with a header line (tabs for ``.tsv``) that :func:`read_csv` reads back the same.

    CSV has no place for roles, so a feature named as a role (``weight``) comes back as that role.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.tsv"
    >>> write_csv(RankingData.from_arrays([[1.5]], [1], qid=["a"]), path)
    >>> path.read_text().splitlines()
    ['"qid"\\t"label"\\t"f1"', '"a"\\t1\\t1.5']
    """
    pyarrow_csv = _require("pyarrow.csv", "parquet")
    options = pyarrow_csv.WriteOptions(delimiter=_delimiter(path, delimiter))
    with open_for_writing(path) as file:
        blocks = _tables(data)
        first = next(blocks)
        with pyarrow_csv.CSVWriter(file, first.schema, write_options=options) as writer:
            writer.write_table(first)
            for table in blocks:
                writer.write_table(table)


def _delimiter(path: str | Path, given: str | None) -> str:
    if given is None:
        return "\t" if without_compression_suffix(path).suffix.lower() == ".tsv" else ","
    if len(given) != 1 or not given.isascii() or given in '"\r\n':
        raise DataError(f"delimiter is {given!r}, expected one character such as ';'", path=path)
    return given


def _csv_header(content: NDArray[np.uint8], delimiter: str, path: Path) -> list[str]:
    line_end = np.flatnonzero(content[: 1 << 24] == ord("\n"))
    header = content[: line_end[0] if len(line_end) else len(content)].tobytes().removeprefix(b"\xef\xbb\xbf")
    try:
        text = header.decode().rstrip("\r")
    except UnicodeDecodeError:
        raise DataError("header is not UTF-8 text", path=path, line=1) from None
    names = next(csv.reader([text], delimiter=delimiter), [])
    if not names:
        raise DataError("is empty, expected a header line with column names", path=path, line=1)
    return names


# ---------------------------------------------------------------------- roles
def _resolve(
    names: Sequence[str], recorded: Mapping[str, Any] | None, columns: ColumnOptions, path: Path | None
) -> _Roles:
    """Give every column its role, by the rule of this module."""
    present = set(names)
    if len(present) != len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise DataError(f"column {twice!r} comes twice", path=path)
    labels = _label_columns(columns.get("labels"))
    features, ignore = columns.get("features"), tuple(columns.get("ignore") or ())
    given: dict[str, str] = {}
    for role, column in (
        ("qid", columns.get("qid")),
        ("docid", columns.get("docid")),
        ("weight", columns.get("weight")),
        *(("labels", column) for column in (labels or {}).values()),
        *(("features", column) for column in features or ()),
        *(("ignore", column) for column in ignore),
    ):
        if column is None:
            continue
        if column not in present:
            raise DataError(f"there is no column {column!r} for {role}; the columns are {_listed(names)}", path=path)
        if column in given:
            raise DataError(f"column {column!r} is named for {given[column]} and for {role}", path=path)
        given[column] = role
    free = [name for name in names if name not in given and not _STORED_INDEX.fullmatch(name)]

    def detect(role: Literal["qid", "docid", "weight"], by_name: tuple[str, ...]) -> str | None:
        chosen = columns.get(role)
        if chosen is not None:
            return chosen
        candidates = by_name if recorded is None else (recorded.get(role),)
        return next((name for name in candidates if name in free), None)

    qid = detect("qid", QID_NAMES)
    if qid is None:
        raise DataError(
            f"there is no column {' or '.join(map(repr, QID_NAMES))} and none is named by qid=; "
            f"the columns are {_listed(names)}",
            path=path,
        )
    docid, weight = detect("docid", DOCID_NAMES), detect("weight", WEIGHT_NAMES)
    if labels is None:
        if recorded is not None:
            labels = {source: name for source, name in recorded["labels"].items() if name in free}
        else:
            found = [name for name in free if name == PRIMARY_LABEL or name.startswith(LABEL_PREFIX)]
            labels = _label_columns([name for name in found if name not in (qid, docid, weight)])
    used = {qid, docid, weight, *(labels or {}).values()}
    if features is None:
        features = [name for name in free if name not in used]
        if "" in features:
            raise DataError("has a column without a name; if it is a row index, pass ignore=['']", path=path)
    return _Roles(qid, docid, weight, labels or {}, tuple(features))


def _label_columns(labels: str | Sequence[str] | Mapping[str, str] | None) -> dict[str, str] | None:
    if labels is None or isinstance(labels, Mapping):
        return None if labels is None else dict(labels)
    chosen = [labels] if isinstance(labels, str) else labels
    result: dict[str, str] = {}
    for column in chosen:
        source = column.removeprefix(LABEL_PREFIX) or column
        if source in result:
            raise DataError(f"columns {result[source]!r} and {column!r} both give the label {source!r}")
        result[source] = column
    return result


def _recorded_roles(schema: Any) -> Mapping[str, Any] | None:
    """The roles that gradrank wrote into a schema, if any and if they are whole."""
    text = (schema.metadata or {}).get(_METADATA_KEY)
    if text is None:
        return None
    try:
        recorded = json.loads(text)
    except ValueError:
        return None
    return recorded if isinstance(recorded, dict) and isinstance(recorded.get("labels"), dict) else None


def _listed(names: Sequence[str], limit: int = 12) -> str:
    return ", ".join(map(repr, names[:limit])) + (f" and {len(names) - limit} more" if len(names) > limit else "")


# ---------------------------------------------------------------------- table → data
def _from_table(table: Any, columns: ColumnOptions, path: Path | None) -> RankingData:
    roles = _resolve(table.column_names, _recorded_roles(table.schema), columns, path)
    selected = table.select(list(roles.features))
    for name, column in zip(roles.features, selected.columns, strict=True):
        if str(column.type) in _TEXT_TYPES:  # here, so that the value that made it text is found in any block
            raise DataError(_not_a_number("feature", name, column, 0), path=path)
    blocks = (
        batch.columns
        for batch in (selected.to_batches(max_chunksize=_block_rows(len(roles.features))) if roles.features else ())
    )
    return _assemble(table.select(roles.named()), roles, blocks, columns.get("regroup", True), path)


def _assemble(
    named: Any, roles: _Roles, feature_blocks: Iterable[Sequence[Any]], regroup: bool, path: Path | None
) -> RankingData:
    """Data from a table of the named columns and blocks of the feature columns."""
    n_docs = named.num_rows
    if n_docs == 0:
        raise DataError("there are no documents", path=path)
    X = np.empty((n_docs, len(roles.features)), dtype=np.float32)
    start = 0
    for arrays in feature_blocks:
        end = start + len(arrays[0])
        turned = np.empty((len(arrays), end - start), dtype=np.float32)
        for index, (name, array) in enumerate(zip(roles.features, arrays, strict=True)):
            turned[index] = _numbers("feature", name, array, "float32", start, path)
        X[start:end] = turned.T
        start = end
    labels = {
        source: _numbers("label", column, named.column(column), "float32", 0, path)
        for source, column in roles.labels.items()
    }
    codes, qids = _query_codes(roles.qid, named.column(roles.qid), path)
    docid = None if roles.docid is None else _strings("docid", roles.docid, named.column(roles.docid), path)
    try:
        data = RankingData.from_arrays(X, labels, qid=codes, feature_names=roles.features, regroup=regroup)
    except DataError as error:
        raise DataError(str(error), path=path) from None
    # Queries were grouped by number; only now are names needed, one a query instead of one a row.
    data = replace(data, qid=qids[data.from_input_order(codes)[data.indptr[:-1]]])
    if docid is not None:
        data = replace(data, docid=docid if data.rows is None else docid[data.rows])
    if roles.weight is not None:
        column = _numbers("weight", roles.weight, named.column(roles.weight), "float64", 0, path)
        data = data.with_weight(_weight_of_query(data, roles.weight, data.from_input_order(column), path))
    return data


def _weight_of_query(
    data: RankingData, name: str, column: NDArray[np.float64], path: Path | None
) -> NDArray[np.float64]:
    weight = column[data.indptr[:-1]]
    query = data.query_of_row()
    wrong = np.flatnonzero((column != weight[query]) | ~np.isfinite(column) | (column < 0))
    if len(wrong):
        row, number = int(wrong[0]), int(query[wrong[0]])
        first = weight[number]
        expected = f"{first:g} as in its first row" if np.isfinite(first) and first >= 0 else "a number of 0 or more"
        raise DataError(
            f"weight (column {name!r}) of query {data.qid[number]} is {column[row]:g} in one row, expected {expected}",
            path=path,
        )
    return weight


def _numbers(
    role: str, name: str, column: Any, dtype: Literal["float32", "float64"], first_row: int, path: Path | None
) -> NDArray[Any]:
    """A column as floating point numbers, NaN for null."""
    pa = _arrow()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, types = column.type, pa.types
    if types.is_null(kind):
        return np.full(len(column), np.nan, dtype=dtype)
    if not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        raise DataError(_not_a_number(role, name, column, first_row), path=path)
    if types.is_boolean(kind):
        column = column.cast(pa.uint8())
    # Unsafe casting rounds to float32, which is what is wanted; infinities are found later.
    numbers = column.cast(getattr(pa, dtype)(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, dtype=dtype)


def _not_a_number(role: str, name: str, column: Any, first_row: int) -> str:
    advice = "; encode it as numbers, or leave it out with ignore=" if role == "feature" else ""
    if str(column.type) in _TEXT_TYPES:
        for row, value in enumerate(column.to_pylist()):
            try:
                float(value if value is not None else "nan")
            except ValueError:
                return f"{role} column {name!r} holds {value!r} in row {first_row + row + 1}, expected a number{advice}"
    return f"{role} column {name!r} holds values of type {column.type}, expected numbers{advice}"


def _id_column(role: str, name: str, column: Any, path: Path | None) -> Any:
    """A column of ids as one Arrow array without nulls, whole floating point numbers as integers."""
    pa = _arrow()
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        # pandas makes integers with a gap floating point numbers; 1.0 and 1 are the same query.
        if pc.all(pc.equal(pc.floor(column), column)).as_py():
            column = column.cast(pa.int64())
    elif pa.types.is_nested(column.type):
        raise DataError(
            f"{role} column {name!r} holds values of type {column.type}, expected text or numbers", path=path
        )
    elif not pa.types.is_integer(column.type):
        column = column.cast(pa.large_string())  # 64-bit offsets, so that the chunks fit into one array
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"{role} (column {name!r}) is missing in row {row + 1}", path=path)
    return column.combine_chunks()


def _query_codes(name: str, column: Any, path: Path | None) -> tuple[NDArray[np.int64], Strings]:
    """For each row the number of its query id, and the ids."""
    import pyarrow as pa

    encoded = _id_column("qid", name, column, path).dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    ids = _arrow_strings(encoded.dictionary)
    empty = np.flatnonzero(np.diff(ids.offsets) == 0)
    if len(empty):
        row = int(np.flatnonzero(codes == empty[0])[0])
        raise DataError(f"qid (column {name!r}) is empty in row {row + 1}", path=path)
    return codes, ids


def _strings(role: str, name: str, column: Any, path: Path | None) -> Strings:
    return _arrow_strings(_id_column(role, name, column, path))


def _arrow_strings(array: Any) -> Strings:
    """An Arrow array as strings, sharing its buffer."""
    array = array.cast(_arrow().large_string())
    _, offset_buffer, text = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    buffer = np.frombuffer(text, dtype=np.uint8) if text else np.empty(0, dtype=np.uint8)
    return Strings(buffer[offsets[0] : offsets[-1]], offsets - offsets[0])


def _as_table(frame: Any) -> Any:
    """Any supported frame as an Arrow table."""
    pa = _arrow()
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    package = type(frame).__module__.partition(".")[0]
    if package == "polars" and hasattr(frame, "collect"):
        frame = frame.collect()
    if package == "polars" and hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if package == "pandas" and hasattr(frame, "columns"):
        names = [str(name) for name in frame.columns]
        arrays = []
        for position, name in enumerate(names):
            try:
                arrays.append(pa.array(frame.iloc[:, position], from_pandas=True))
            except (pa.ArrowException, TypeError, ValueError):
                raise DataError(f"column {name!r} holds values of several types, expected one type") from None
        return pa.Table.from_arrays(arrays, names=names)
    raise DataError(f"frame is a {type(frame).__qualname__}, expected a pandas or polars DataFrame or an Arrow table")


# ---------------------------------------------------------------------- data → table
def _column_names(data: RankingData) -> tuple[str, str, str, dict[str, str]]:
    """Names of the query, document, weight and label columns, apart from all feature names."""
    taken = set(data.feature_names)

    def free(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    labels = {source: free(source if source == PRIMARY_LABEL else LABEL_PREFIX + source) for source in data.labels}
    return free("qid"), free("docid"), free("weight"), labels


def _to_table(data: RankingData, start: int, end: int) -> Any:
    """Rows ``start`` to ``end`` as an Arrow table that carries the columns' roles."""
    pa = _arrow()
    qid, docid, weight, labels = _column_names(data)
    query = np.searchsorted(data.indptr, np.arange(start, end), side="right") - 1
    ids = _string_array(data.qid[query[0] : query[-1] + 1])
    columns = {qid: ids.take(pa.array(query - query[0]))}
    if data.docid is not None:
        columns[docid] = _string_array(data.docid[start:end])
    if data.weight is not None:
        columns[weight] = pa.array(data.weight[query])
    for source, name in labels.items():
        columns[name] = _nullable(data.labels[source][start:end])
    for name, column in zip(data.feature_names, np.ascontiguousarray(data.X[start:end].T), strict=True):
        columns[name] = _nullable(column)
    roles = {
        "qid": qid,
        "docid": None if data.docid is None else docid,
        "weight": None if data.weight is None else weight,
        "labels": labels,
    }
    return pa.table(columns, metadata={_METADATA_KEY: json.dumps(roles).encode()})


def _tables(data: RankingData) -> Iterator[Any]:
    """All rows as tables of row-group size, so that a memory map is never copied whole."""
    rows = max(1024, _ROW_GROUP_BYTES // (4 * max(1, data.n_features)))
    for start in range(0, data.n_docs, rows):
        yield _to_table(data, start, min(start + rows, data.n_docs))


def _nullable(column: NDArray[np.float32]) -> Any:
    return _arrow().array(np.ascontiguousarray(column), from_pandas=True)


def _string_array(strings: Strings) -> Any:
    pa = _arrow()
    offsets = np.ascontiguousarray(strings.offsets, dtype=np.int64)
    buffer = np.ascontiguousarray(strings.buffer)
    array = pa.LargeStringArray.from_buffers(len(strings), pa.py_buffer(offsets), pa.py_buffer(buffer))
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(list(strings), type=pa.large_string())  # ids of a file that was not UTF-8
    return array


# ---------------------------------------------------------------------- packages and errors
def _require(module: str, extra: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(module.partition(".")[0], extra) from None


def _arrow() -> Any:
    return _require("pyarrow", "parquet")


def _block_rows(n_features: int) -> int:
    return max(256, _BLOCK_BYTES // (4 * max(1, n_features)))


def _existing(path: str | Path) -> Path:
    path = Path(path)
    if not path.exists():
        raise DataError("does not exist", path=path)
    return path


@contextmanager
def _arrow_errors(path: Path | None, what: str) -> Iterator[None]:
    """Turn what pyarrow raises for a broken file, or a type it cannot convert, into our error."""
    pa = _arrow()
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"cannot be read as {what}: {reason}", path=path) from None


@contextmanager
def _write_errors(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", path=path) from None
