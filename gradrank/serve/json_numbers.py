"""The documents of a JSON request straight into a matrix, where they are plain numbers.

Python's parser makes an object of every number and every name, which takes longer than scoring them. Here a kernel
finds the value of ``documents`` at the top of the request and reads it if it has the plain form: lists of equally many
numbers and nulls, or objects that all have the same names in the same order as the first one, spelt and spaced alike:
all bytes between two values are compared with those of the first object. The rest of the request, which is short, is
left to Python's parser, and so is everything else: text among the values, names in another order, numbers beyond the
range of doubles, anything that is no JSON. So this can only be faster; what is accepted, and what is said of the rest,
is decided in one place, :mod:`~gradrank.serve.requests`.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradrank.serve.json_kernels import NOT_THERE, count_commas, find_value, first_document, object_end, read_documents

# Below this Python's parser is as quick.
_WORTH_IT = 2048
_KEY = np.frombuffer(b'"documents"', dtype=np.uint8)
# Zeros at the end, as the kernels want them.
_PADDING = bytes(16)


class PlainDocuments(NamedTuple):
    """What was read, and the request without it."""

    matrix: NDArray[np.float64]
    names: tuple[str, ...] | None
    """Names of the columns, if documents were objects."""
    rest: bytes
    """The request with null in place of the documents."""


def plain_documents(body: bytes, most_documents: int) -> PlainDocuments | None:
    """The documents of a request as a matrix; None if they are not plain, or too many.

    >>> plain_documents(b'{"documents": [' + b"[1, null, -2.5e1], " * 200 + b"[1, 2, 3]]}", 500).matrix[0].tolist()
    [1.0, nan, -25.0]
    """
    if len(body) < _WORTH_IT:
        return None
    padded = body + _PADDING
    text = np.frombuffer(padded, dtype=np.uint8)
    start = int(find_value(text, 0, _KEY))
    if start < 0:
        return None
    names: tuple[str, ...] | None = None
    at = int(first_document(text, start))
    if at < 0:
        return None
    if body[at] == ord("{"):
        names = _names(body[at : int(object_end(text, at))])
        if not names:
            return None
        width = len(names)
        least = sum(map(len, names)) + 5 * width
    else:
        width = 1 + int(count_commas(text, at))
        least = 2 * width
    # So many bytes at least a document takes: the room is never more than four times the body.
    out = np.empty((min(most_documents, (len(body) - start) // least + 1), width))
    # The first object shows what stands between values.
    between = np.zeros((0 if names is None else width, 2), dtype=np.int64)
    words = np.ndarray(len(padded) - 7, dtype=np.uint64, buffer=padded, strides=(1,))
    count, end = read_documents(text, words, start, between, out)
    if count <= 0 or find_value(text, end, _KEY) != NOT_THERE:
        return None
    return PlainDocuments(out[:count], names, body[:start] + b"null" + body[int(end) :])


def _names(document: bytes) -> tuple[str, ...] | None:
    """Names of the first document; None if it is no object of values, and none of them twice if the kernel reads it."""
    try:
        return tuple(json.loads(document, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> Any:
    raise ValueError(name)
