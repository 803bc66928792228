"""Reading UBJSON, the binary JSON that XGBoost saves models in (ubjson.org, draft 12)."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from gradrank.errors import ModelError

# Marker -> numpy type; UBJSON is big-endian.
_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_WHOLE = (b"i", b"U", b"I", b"l", b"L")
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_DEEPEST = 100


def parse_ubjson(content: bytes) -> Any:
    """The value a UBJSON document holds; typed arrays come as numpy arrays.

    >>> parse_ubjson(b"{i\\x01a[$U#i\\x02\\x05\\x06i\\x01bSi\\x02hi}")
    {'a': array([5, 6], dtype=uint8), 'b': 'hi'}
    """
    try:
        return _Reader(content).value()
    except ModelError:
        raise
    except (struct.error, IndexError, KeyError, UnicodeDecodeError, ValueError) as error:
        raise ModelError(f"is not whole or valid UBJSON ({error})") from None


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.place + count > len(self.content):
            raise ValueError("it breaks off")
        piece = self.content[self.place : self.place + count]
        self.place += count
        return piece

    def skip_if(self, marker: bytes) -> bool:
        if self.content[self.place : self.place + 1] != marker:
            return False
        self.place += 1
        return True

    def length(self) -> int:
        marker = self.take(1)
        if marker not in _WHOLE:
            raise ValueError(f"a length of type {marker!r}")
        return int(self.of_type(marker, 0))

    def string(self) -> str:
        return self.take(self.length()).decode("utf-8")

    def value(self, depth: int = 0) -> Any:
        return self.of_type(self.take(1), depth)

    def of_type(self, marker: bytes, depth: int) -> Any:
        if marker in _NUMBERS:
            dtype = np.dtype(_NUMBERS[marker])
            return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == b"S":
            return self.string()
        if marker == b"C":
            return self.take(1).decode("ascii")
        if marker == b"H":
            return float(self.string())
        if depth >= _DEEPEST:
            raise ValueError("it is nested too deeply")
        if marker == b"[":
            return self.array(depth)
        if marker == b"{":
            return self.mapping(depth)
        raise ValueError(f"unknown marker {marker!r}")

    def container(self) -> tuple[bytes | None, int | None]:
        """Element type and count, where the container states them."""
        element = self.take(1) if self.skip_if(b"$") else None
        count = self.length() if self.skip_if(b"#") else None
        if element is not None and count is None:
            raise ValueError("a typed container without a count")
        # Everything that is counted takes a byte at least, but for constants of one type: a few bytes could ask for any
        # number of them, again and again, and nobody writes them.
        if element in _CONSTANTS:
            raise ValueError("a container of constants")
        if count is not None and not 0 <= count <= len(self.content) - self.place:
            raise ValueError("it breaks off, or counts more than it holds")
        return element, count

    def array(self, depth: int) -> Any:
        element, count = self.container()
        if element in _NUMBERS and count is not None:
            dtype = np.dtype(_NUMBERS[element])
            return np.frombuffer(self.take(count * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))
        items: list[Any] = []
        while len(items) < count if count is not None else not self.skip_if(b"]"):
            items.append(self.value(depth + 1) if element is None else self.of_type(element, depth + 1))
        return items

    def mapping(self, depth: int) -> dict[str, Any]:
        element, count = self.container()
        result: dict[str, Any] = {}
        read = 0
        while read < count if count is not None else not self.skip_if(b"}"):
            key = self.string()
            if key in result:
                raise ValueError(f"{key[:40]!r} is given twice")
            result[key] = self.value(depth + 1) if element is None else self.of_type(element, depth + 1)
            read += 1
        return result


_MARKERS = {"i1": b"i", "u1": b"U", "i2": b"I", "i4": b"l", "i8": b"L", "f4": b"d", "f8": b"D"}


def format_ubjson(value: Any) -> bytes:
    """A value as UBJSON; numpy arrays of one dimension become typed arrays, as XGBoost wants them.

    >>> parse_ubjson(format_ubjson({"a": [1, "x", None], "b": np.array([0.5], dtype=np.float32)}))
    {'a': [1, 'x', None], 'b': array([0.5], dtype=float32)}
    """
    if isinstance(value, np.ndarray):
        kind = value.dtype.str[1:]
        return b"[$" + _MARKERS[kind] + b"#" + _length(len(value)) + value.astype(f">{kind}").tobytes()
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, int):
        return _length(value)
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + _text(value)
    if isinstance(value, dict):
        return b"{" + b"".join(_text(key) + format_ubjson(item) for key, item in value.items()) + b"}"
    return b"[#" + _length(len(value)) + b"".join(map(format_ubjson, value))


def _length(value: int) -> bytes:
    return b"L" + struct.pack(">q", value)


def _text(text: str) -> bytes:
    content = text.encode()
    return _length(len(content)) + content
