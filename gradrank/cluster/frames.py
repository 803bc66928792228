"""Messages between processes: plain values and arrays as bytes, never pickles."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

_LENGTH = struct.Struct("<Q")
_ARRAY = "__array__"


def encode(value: Any) -> bytes:
    """Plain values (dicts, lists, text, numbers), arrays and bytes as one string of bytes.

    >>> decode(encode({"a": np.arange(3), "b": [1.5, "x", b"raw"]}))
    {'a': array([0, 1, 2]), 'b': [1.5, 'x', b'raw']}
    """
    arrays: list[bytes | memoryview] = []
    head = json.dumps(_without_arrays(value, arrays)).encode()
    return b"".join([_LENGTH.pack(len(head)), head, *arrays])


def decode(content: bytes | memoryview) -> Any:
    """The inverse of :func:`encode`; arrays are read-only."""
    view = memoryview(content)
    (length,) = _LENGTH.unpack(view[: _LENGTH.size])
    end = _LENGTH.size + length
    return _with_arrays(json.loads(bytes(view[_LENGTH.size : end])), view[end:])


def _without_arrays(value: Any, arrays: list[bytes | memoryview]) -> Any:
    if isinstance(value, dict):
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(item, arrays) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return {_ARRAY: [_kept(bytes(value), arrays), len(value), None, None]}
    if isinstance(value, np.ndarray):
        # A view, so that large arrays are copied once, into the message.
        content = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
        return {_ARRAY: [_kept(content, arrays), len(content), value.dtype.str, list(value.shape)]}
    return value.item() if isinstance(value, np.generic) else value


def _kept(content: bytes | memoryview, arrays: list[bytes | memoryview]) -> int:
    start = sum(map(len, arrays))
    arrays.append(content)
    return start


def _with_arrays(value: Any, arrays: memoryview) -> Any:
    if isinstance(value, list):
        return [_with_arrays(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY not in value:
        return {key: _with_arrays(item, arrays) for key, item in value.items()}
    start, length, kind, shape = value[_ARRAY]
    content = arrays[start : start + length]
    if kind is None:
        return bytes(content)
    made = np.frombuffer(content, dtype=kind).reshape(shape)
    made.flags.writeable = False
    return made


def write_frame(stream: Any, value: Any) -> None:
    """Write one message to a pipe."""
    content = encode(value)
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def read_frame(stream: Any) -> Any | None:
    """Read one message from a pipe; None at its end, as for a message that is None."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    return decode(content) if len(content) == length else None
