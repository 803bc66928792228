"""Documents as binary batches: a NumPy array (``.npy``) or an Arrow IPC stream.

Both are read without trusting them: nothing is unpickled, sizes are compared with the body before memory is taken, and
compressed or dictionary-encoded Arrow, which a few bytes could make huge, is refused.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.serve.request_error import RequestError, shown
from gradrank.serve.requests import Documents, RankRequest, check_count, checked_request, query_fields

DOCID = "docid"
"""The Arrow column that names the documents."""
_LONGEST_HEADER = 4096
_RECORD_BATCH, _SCHEMA = 3, 1


# ---------------------------------------------------------------------- NumPy
def parse_npy_request(body: bytes, pairs: Mapping[str, str], most_documents: int) -> RankRequest:
    """A request whose body is a ``.npy`` file of documents × features, in the order of the model's features.

    >>> file = io.BytesIO()
    >>> np.save(file, np.array([[1.0, 2.0]], dtype=np.float32))
    >>> parse_npy_request(file.getvalue(), {"k": "1"}, 10).documents.matrix.tolist()
    [[1.0, 2.0]]
    """
    matrix = _npy_matrix(body, most_documents)
    return checked_request(Documents(len(matrix), matrix=matrix, coded=True), query_fields(pairs))


def _npy_matrix(body: bytes, most_documents: int) -> NDArray[Any]:
    file = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, by_columns, dtype = read(file, max_header_size=_LONGEST_HEADER)
    except Exception:  # whatever a parser of Python literals makes of a stranger's text
        raise RequestError("the body is not a .npy file of version 1 or 2") from None
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise RequestError(f"the array holds values of type {shown(str(dtype))}, expected numbers of up to 64 bits")
    if len(shape) != 2 or min(shape) < 1:
        raise RequestError(f"the array has shape {shown(shape)}, expected documents × features, at least one of each")
    check_count(shape[0], most_documents)
    start = file.tell()
    if len(body) - start != shape[0] * shape[1] * dtype.itemsize:
        raise RequestError(
            f"the array's {shape[0]:,} × {shape[1]:,} numbers do not fill the body: it has {len(body) - start:,} bytes"
        )
    matrix = np.frombuffer(body, dtype=dtype, offset=start).reshape(shape, order="F" if by_columns else "C")
    return _finite(matrix)


def _finite(matrix: NDArray[Any]) -> NDArray[Any]:
    """As float32 or float64; NaN is a missing value, infinity an error."""
    if matrix.dtype not in (np.float32, np.float64):
        narrow = matrix.dtype.kind in "fb" or matrix.dtype.itemsize <= 2
        matrix = matrix.astype(np.float32 if narrow else np.float64)
    matrix = np.ascontiguousarray(matrix, dtype=matrix.dtype.newbyteorder("="))
    if np.isinf(matrix).any():
        row, column = np.argwhere(np.isinf(matrix))[0]
        raise RequestError(f"feature {column + 1} of document {row + 1} is infinite, expected a finite number or NaN")
    return matrix


# ---------------------------------------------------------------------- Arrow
def parse_arrow_request(body: bytes, pairs: Mapping[str, str], most_documents: int) -> RankRequest:
    """A request whose body is an Arrow IPC stream; columns are features by name, ``docid`` names the documents."""
    try:
        import pyarrow
    except ImportError:
        raise RequestError(
            "Arrow needs the package pyarrow, which this server does not have", 415, "content type"
        ) from None
    try:
        documents, ids = _arrow_documents(_arrow_table(body, most_documents, pyarrow), pyarrow)
    except RequestError:
        raise
    # A spoilt stream may go wrong late: names that are no text, buffers that are too short.
    except (
        pyarrow.ArrowException,
        ValueError,
        TypeError,
        OSError,
        OverflowError,
        struct.error,
        IndexError,
        MemoryError,
    ):
        raise RequestError("the body is not an Arrow IPC stream") from None
    return checked_request(documents, query_fields(pairs), ids)


def _arrow_documents(table: Any, pyarrow: Any) -> tuple[Documents, list[Any] | None]:
    """The features of a table as a matrix, and the documents' names if it has them."""
    ids = None
    if DOCID in table.column_names:
        column = table.column(DOCID)
        types, kind = pyarrow.types, column.type
        if not (types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)):
            raise RequestError(f"column {DOCID!r} is of type {shown(str(kind))}, expected text or whole numbers")
        if column.null_count:
            raise RequestError(f"column {DOCID!r} lacks {column.null_count:,} values, expected a name of each document")
        ids = column.to_pylist()
        table = table.drop_columns([DOCID])
    names = tuple(table.column_names)
    if not names:
        raise RequestError("the stream has no columns of features")
    if len(set(names)) < len(names):
        raise RequestError("the stream has two columns of one name")
    matrix = np.empty((table.num_rows, len(names)), dtype=_dtype(table, pyarrow))
    for place, column in enumerate(table.columns):
        # True and false with gaps would become objects.
        plain = column.cast(pyarrow.uint8()) if pyarrow.types.is_boolean(column.type) else column
        matrix[:, place] = plain.to_numpy()
    return Documents(table.num_rows, matrix=_finite(matrix), names=names, coded=True), ids


def _dtype(table: Any, pyarrow: Any) -> type[np.floating[Any]]:
    types = pyarrow.types
    narrow = True
    for field in table.schema:
        kind = field.type
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
            raise RequestError(f"column {shown(field.name)} is of type {shown(str(kind))}, expected numbers")
        narrow &= kind.bit_width <= 16 or kind == pyarrow.float32()
    return np.float32 if narrow else np.float64


def _arrow_table(body: bytes, most_documents: int, pyarrow: Any) -> Any:
    _check_messages(body, pyarrow)
    reader = pyarrow.ipc.open_stream(pyarrow.py_buffer(body))
    batches, count = [], 0
    for batch in reader:
        count += batch.num_rows
        check_count(count, most_documents)
        batch.validate(full=True)
        batches.append(batch)
    if not count:
        raise RequestError("the stream has no documents")
    return pyarrow.Table.from_batches(batches)


def _check_messages(body: bytes, pyarrow: Any) -> None:
    """Only plain record batches after a schema: what else there is can be far larger than the body."""
    reader = pyarrow.ipc.MessageReader.open_stream(pyarrow.py_buffer(body))
    first = True
    for message in reader:
        kind, compressed = _message_facts(message.metadata.to_pybytes())
        if kind != (_SCHEMA if first else _RECORD_BATCH):
            raise RequestError("the stream holds dictionaries or tensors, expected plain columns of numbers")
        if compressed:
            raise RequestError("the stream is compressed, expected plain buffers")
        first = False


def _message_facts(metadata: bytes) -> tuple[int, bool]:
    """Kind of a message, and whether its record batch is compressed, from the flat buffer that describes it.

    Arrow's ``Message`` has its kind as field 1 and its header as field 2; a ``RecordBatch`` its compression as field 3.
    """

    def field(table: int, number: int) -> int:
        offset = table - struct.unpack_from("<i", metadata, table)[0]
        size = struct.unpack_from("<H", metadata, offset)[0]
        at = 4 + 2 * number
        return int(struct.unpack_from("<H", metadata, offset + at)[0]) if at < size else 0

    root = struct.unpack_from("<I", metadata, 0)[0]
    kind_at, header_at = field(root, 1), field(root, 2)
    kind = metadata[root + kind_at] if kind_at else 0
    if kind != _RECORD_BATCH or not header_at:
        return kind, False
    header = root + header_at
    header += struct.unpack_from("<I", metadata, header)[0]
    return kind, field(header, 3) != 0
