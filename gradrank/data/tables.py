"""Arrow tables to ranking data and back: what frames, Parquet, Arrow and CSV files share.

Which column is what, :mod:`gradrank.data.roles` says. A null or NaN is a missing feature or an unjudged label. Booleans
are 0 and 1; a categorical column of numbers stands for these numbers. A feature column of text is an error, not a
column silently lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.arrays import first_gap, gap_reason
from gradrank.data.precision import Matrix, PrecisionCheck
from gradrank.data.ranking_data import PRIMARY_LABEL, RankingData
from gradrank.data.roles import LABEL_PREFIX, Columns, Roles, resolve_roles
from gradrank.data.strings import Strings
from gradrank.errors import DataError, MissingExtraError, NoDocumentsError
from gradrank.runtime.json_text import parse_json

_METADATA_KEY = b"gradrank"
_TEXT_TYPES = ("string", "large_string", "string_view")
_NARROW_TYPES = ("float", "halffloat", "int16", "int8", "uint16", "uint8", "bool", "null")
# A block of rows is turned from columns to rows in cache; row groups are a size other tools read well.
_BLOCK_BYTES = 1 << 23
_ROW_GROUP_BYTES = 1 << 26

FeatureBlocks = Callable[[], Iterator[Sequence[Any]]]
"""Makes blocks of rows of the feature columns, from the first row on; it may be called a second time."""


@dataclass(frozen=True)
class Beside:
    """What is given beside a table, in the order of its rows."""

    labels: Mapping[str, Any] = field(default_factory=dict)
    qid: Any = None
    group: Any = None
    docid: Any = None


# ---------------------------------------------------------------------- table → data
def data_of_table(
    table: Any,
    columns: Columns,
    *,
    regroup: bool = True,
    path: Path | None = None,
    beside: Beside = Beside(),
) -> RankingData:
    """Ranking data from an Arrow table."""
    roles = resolve_roles(table.column_names, columns, recorded_roles(table.schema), path)
    selected = table.select(list(roles.features))
    check_numeric(dict(zip(roles.features, selected.columns, strict=True)), path)

    def blocks() -> Iterator[Sequence[Any]]:
        for batch in selected.to_batches(max_chunksize=block_rows(len(roles.features))) if roles.features else ():
            yield batch.columns

    return assemble(table.select(roles.named()), table.num_rows, roles, blocks, regroup, path, beside)


def assemble(
    named: Any,
    n_docs: int,
    roles: Roles,
    blocks: FeatureBlocks,
    regroup: bool,
    path: Path | None,
    beside: Beside = Beside(),
) -> RankingData:
    """Ranking data from a table of the columns that are not features and blocks of those that are."""
    if n_docs == 0:
        raise NoDocumentsError("there are no documents", path=path)
    if named.num_columns and named.num_rows != n_docs:
        raise DataError(f"says that it has {n_docs} rows, but its columns have {named.num_rows}", path=path)
    X = _feature_matrix(n_docs, roles.features, blocks, path)
    labels = {
        source: numbers("label", column, named.column(column), "float32", 0, path)
        for source, column in roles.labels.items()
    }
    codes, qids = (beside.qid, None) if roles.qid is None else _query_codes(roles.qid, named.column(roles.qid), path)
    try:
        data = RankingData.from_arrays(
            X,
            {**labels, **beside.labels},
            qid=codes,
            group=beside.group,
            docid=beside.docid,
            feature_names=roles.features,
            regroup=regroup or qids is not None,
        )
    except DataError as error:
        raise DataError(str(error), path=path) from None
    if qids is not None and data.rows is not None and not regroup:
        row = _comes_again(codes)
        raise DataError(
            f"rows of query {qids[int(codes[row])]} are not consecutive: it comes again at row {row + 1}", path=path
        )
    if qids is not None:
        # Queries were grouped by number; only now are names needed, one per query instead of one per row.
        data = replace(data, qid=qids[data.from_input_order(codes)[data.indptr[:-1]]])
    if roles.docid is not None:
        docid = _strings("docid", roles.docid, named.column(roles.docid), path)
        data = replace(data, docid=docid if data.rows is None else docid[data.rows])
    if roles.weight is not None:
        column = numbers("weight", roles.weight, named.column(roles.weight), "float64", 0, path)
        try:
            data = data.with_sample_weight(column)
        except DataError as error:
            raise DataError(
                f"column {roles.weight!r}: {error}; if it is a feature, say keep= (--keep-column)", path=path
            ) from None
    if roles.document_weight is not None:
        name = roles.document_weight
        column = numbers("weight", name, named.column(name), "float64", 0, path)
        try:
            data = data.with_document_weight(data.from_input_order(column))
        except DataError as error:
            raise DataError(
                f"column {name!r}: {error}; if it is a feature, say keep= (--keep-column)", path=path
            ) from None
    roles.warn_of_left_out(path)
    return data


def _comes_again(codes: NDArray[np.int64]) -> int:
    """The first row where a query comes again after others; queries are numbered as they first appear."""
    highest = np.maximum.accumulate(codes)
    changed = np.diff(codes, prepend=-1) != 0
    return int(np.flatnonzero(changed & (codes < highest))[0])


def recorded_roles(schema: Any) -> Mapping[str, Any] | None:
    """The roles that gradrank wrote into a schema, if any and if they are whole."""
    text = (schema.metadata or {}).get(_METADATA_KEY)
    if text is None:
        return None
    try:
        recorded = parse_json(text)
    except ValueError:
        return None
    return recorded if _are_roles(recorded) else None


def _are_roles(recorded: Any) -> bool:
    if not isinstance(recorded, dict) or not isinstance(recorded.get("labels"), dict):
        return False
    ids = [recorded.get(role) for role in ("qid", "docid", "weight", "document_weight")]
    features = recorded.get("features", [])
    texts = [*recorded["labels"].values(), *(name for name in ids if name is not None)]
    return isinstance(features, list) and all(isinstance(text, str) for text in (*texts, *features))


def check_numeric(columns: Mapping[str, Any], path: Path | None) -> None:
    """Refuse feature columns that hold text or anything else than numbers, naming all of them."""
    wrong = {name: column for name, column in columns.items() if not is_numeric(column.type)}
    if len(wrong) == 1:
        [(name, column)] = wrong.items()
        raise DataError(_not_a_number("feature", name, column, 0), path=path)
    if wrong:
        listed = ", ".join(f"{name!r} ({_value_type(column.type)})" for name, column in list(wrong.items())[:12])
        more = f" and {len(wrong) - 12} more" if len(wrong) > 12 else ""
        raise DataError(
            f"feature columns {listed}{more} do not hold numbers; encode them as numbers, or leave them out with "
            "ignore= (--ignore-column)",
            path=path,
        )


def is_numeric(kind: Any) -> bool:
    """Whether an Arrow type stands for numbers."""
    types = arrow().types
    kind = _value_type(kind)
    tests = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _value_type(kind: Any) -> Any:
    return kind.value_type if arrow().types.is_dictionary(kind) else kind


def _feature_matrix(n_docs: int, names: Sequence[str], blocks: FeatureBlocks, path: Path | None) -> Matrix:
    """The features, in float32 if that is enough for them."""
    narrow = np.empty((n_docs, len(names)), dtype=np.float32)
    check = PrecisionCheck(n_docs, len(names))
    for start, block in _turned(names, n_docs, blocks, path):
        with np.errstate(over="ignore"):  # infinities are found later
            narrow[start : start + len(block)] = block
        if block.dtype == np.float64:
            check.look(start, block)
    if not check.needs_float64(narrow):
        return narrow
    del narrow
    wide = np.empty((n_docs, len(names)), dtype=np.float64)
    for start, block in _turned(names, n_docs, blocks, path):
        wide[start : start + len(block)] = block
    return wide


def _turned(
    names: Sequence[str], n_docs: int, blocks: FeatureBlocks, path: Path | None
) -> Iterator[tuple[int, NDArray[Any]]]:
    """First row and values of blocks of rows, ``n_docs`` in all; float32 if no column of a block could hold more."""
    start = 0
    for arrays in blocks():
        block = turned(names, arrays, start, path)
        if start + len(block) <= n_docs:
            yield start, block
        start += len(block)
    if names and start != n_docs:
        raise DataError(f"its features have {start} rows, expected {n_docs}", path=path)


def turned(names: Sequence[str], arrays: Sequence[Any], first_row: int, path: Path | None) -> NDArray[Any]:
    """Columns as a matrix of their rows; float32 if no column could hold more."""
    narrow = all(str(_value_type(array.type)) in _NARROW_TYPES for array in arrays)
    dtype: Literal["float32", "float64"] = "float32" if narrow else "float64"
    matrix = np.empty((len(arrays), len(arrays[0])), dtype=dtype)
    for index, (name, array) in enumerate(zip(names, arrays, strict=True)):
        matrix[index] = numbers("feature", name, array, dtype, first_row, path)
    return matrix.T


def numbers(
    role: str, name: str, column: Any, dtype: Literal["float32", "float64"], first_row: int, path: Path | None
) -> NDArray[Any]:
    """A column as floating point numbers, NaN for null."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, types = column.type, pa.types
    if types.is_null(kind):
        return np.full(len(column), np.nan, dtype=dtype)
    if not is_numeric(kind):
        raise DataError(_not_a_number(role, name, column, first_row), path=path)
    if types.is_boolean(kind):
        column = column.cast(pa.uint8())
    # Unsafe casting rounds, which is what is wanted; infinities are found later.
    numbers = column.cast(getattr(pa, dtype)(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, dtype=dtype)


def _not_a_number(role: str, name: str, column: Any, first_row: int) -> str:
    advice = "; encode it as numbers, or leave it out with ignore= (--ignore-column)" if role == "feature" else ""
    if str(_value_type(column.type)) in _TEXT_TYPES:
        for row, value in enumerate(column.to_pylist()):
            try:
                float(value if value is not None else "nan")
            except ValueError:
                return f"{role} column {name!r} holds {value!r} in row {first_row + row + 1}, expected a number{advice}"
    return f"{role} column {name!r} holds values of type {column.type}, expected numbers{advice}"


def _id_column(role: str, name: str, column: Any, path: Path | None) -> Any:
    """A column of ids as one Arrow array without nulls, whole floating point numbers as integers."""
    pa = arrow()
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = _checked_float_ids(role, name, column, 0, path)
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


def _checked_float_ids(role: str, name: str, column: Any, first_row: int, path: Path | None) -> Any:
    """Floating point ids with null for NaN; refused if they are too large to tell whole numbers apart."""
    import pyarrow.compute as pc

    column = pc.if_else(pc.is_nan(column), None, column)
    dtype = np.dtype(column.type.to_pandas_dtype())
    large = pc.greater_equal(pc.abs(column), arrow().scalar(first_gap(dtype), column.type))
    if pc.any(large).as_py():
        row = pc.index(large, True).as_py()
        found = f"{role} (column {name!r}) is {column[row].as_py():.17g} in row {first_row + row + 1}"
        raise DataError(f"{found}; {gap_reason(dtype)}", path=path)
    return column


def id_strings(role: str, name: str, column: Any, first_row: int, whole: bool, path: Path | None) -> Strings:
    """Part of a column of ids as text; ``whole`` tells that all of its floating point numbers are integers."""
    pa = arrow()
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = _checked_float_ids(role, name, column, first_row, path)
        column = column.cast(pa.int64()) if whole else column
    elif pa.types.is_nested(column.type):
        raise DataError(
            f"{role} column {name!r} holds values of type {column.type}, expected text or numbers", path=path
        )
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"{role} (column {name!r}) is missing in row {first_row + row + 1}", path=path)
    return _arrow_strings(column)


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
    array = array.cast(arrow().large_string())
    _, offset_buffer, text = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    buffer = np.frombuffer(text, dtype=np.uint8) if text else np.empty(0, dtype=np.uint8)
    return Strings(buffer[offsets[0] : offsets[-1]], offsets - offsets[0])


# ---------------------------------------------------------------------- data → table
def _column_names(data: RankingData) -> tuple[str, str, str, str, dict[str, str]]:
    """Names of the query, document, weight, document weight and label columns, apart from all feature names."""
    taken = set(data.feature_names)

    def free(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    labels = {source: free(source if source == PRIMARY_LABEL else LABEL_PREFIX + source) for source in data.labels}
    return free("qid"), free("docid"), free("weight"), free("document_weight"), labels


def to_table(data: RankingData, start: int, end: int) -> Any:
    """Rows ``start`` to ``end`` as an Arrow table that carries the columns' roles."""
    pa = arrow()
    qid, docid, weight, document_weight, labels = _column_names(data)
    query = np.searchsorted(data.indptr, np.arange(start, end), side="right") - 1
    ids = _string_array(data.qid[query[0] : query[-1] + 1])
    columns = {qid: ids.take(pa.array(query - query[0]))}
    if data.docid is not None:
        columns[docid] = _string_array(data.docid[start:end])
    if data.weight is not None:
        columns[weight] = pa.array(data.weight[query])
    if data.document_weight is not None:
        columns[document_weight] = pa.array(data.document_weight[start:end])
    for source, name in labels.items():
        columns[name] = _nullable(data.labels[source][start:end])
    for name, column in zip(data.feature_names, np.ascontiguousarray(data.X[start:end].T), strict=True):
        columns[name] = _nullable(column)
    roles = {
        "qid": qid,
        "docid": None if data.docid is None else docid,
        "weight": None if data.weight is None else weight,
        "document_weight": None if data.document_weight is None else document_weight,
        "labels": labels,
        "features": list(data.feature_names),
    }
    return pa.table(columns, metadata={_METADATA_KEY: json.dumps(roles).encode()})


def row_groups(data: RankingData) -> Iterator[Any]:
    """All rows as tables of row-group size, so that a memory map is never copied whole."""
    rows = max(1024, _ROW_GROUP_BYTES // (data.X.itemsize * max(1, data.n_features)))
    for start in range(0, data.n_docs, rows):
        yield to_table(data, start, min(start + rows, data.n_docs))


def _nullable(column: NDArray[Any]) -> Any:
    return arrow().array(np.ascontiguousarray(column), from_pandas=True)


def _string_array(strings: Strings) -> Any:
    pa = arrow()
    offsets = np.ascontiguousarray(strings.offsets, dtype=np.int64)
    buffer = np.ascontiguousarray(strings.buffer)
    array = pa.LargeStringArray.from_buffers(len(strings), pa.py_buffer(offsets), pa.py_buffer(buffer))
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(list(strings), type=pa.large_string())  # ids of a file that was not UTF-8
    return array


# ---------------------------------------------------------------------- packages and errors
def require(module: str, extra: str) -> Any:
    """An optional package, or the error that says how to install it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(module.partition(".")[0], extra) from None


def arrow() -> Any:
    """The package pyarrow."""
    return require("pyarrow", "parquet")


def block_rows(n_features: int) -> int:
    """Number of rows that are turned from columns to rows at once."""
    return max(256, _BLOCK_BYTES // (4 * max(1, n_features)))


def existing(path: str | Path) -> Path:
    """The path of a file or folder that is there."""
    path = Path(path)
    if not path.exists():
        raise DataError("does not exist", path=path)
    return path


def checked(table: Any) -> Any:
    """A table or batch that was read from a file, every offset and index in it looked at.

    Arrow takes a file at its word and maps it: what is wrong there would be read outside of memory.
    """
    table.validate(full=True)
    return table


@contextmanager
def arrow_errors(path: Path | None, what: str) -> Iterator[None]:
    """Turn what pyarrow raises for a broken file, or a type it cannot convert, into our error."""
    pa = arrow()
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"cannot be read as {what}: {reason}", path=path) from None


@contextmanager
def write_errors(path: str | Path) -> Iterator[None]:
    """Turn what the system raises for a file that cannot be written into our error."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", path=path) from None
