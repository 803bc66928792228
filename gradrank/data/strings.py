"""A column of strings held as one byte buffer, so that millions of document ids stay small."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import overload

import numpy as np
from numpy.typing import NDArray


class Strings:
    """An immutable column of UTF-8 strings: ``bytes[offsets[i]:offsets[i + 1]]`` is string ``i``.

    Millions of ids cost their own bytes plus eight each, whatever the longest one is, and both
    arrays may be memory maps.

    >>> names = Strings.of(["a", "", "déjà"])
    >>> names[2], len(names), list(names)
    ('déjà', 3, ['a', '', 'déjà'])
    >>> list(names[np.array([2, 0])])
    ['déjà', 'a']
    """

    __slots__ = ("buffer", "offsets")

    def __init__(self, buffer: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.buffer = buffer
        self.offsets = offsets

    @classmethod
    def of(cls, values: Iterable[object]) -> Strings:
        """Make a column from any values; each is converted with ``str``."""
        # Lone surrogates are not text; their escapes are.
        encoded = [str(value).encode(errors="backslashreplace") for value in values]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(item) for item in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int | np.integer) -> str: ...
    @overload
    def __getitem__(self, index: slice | NDArray[np.int64]) -> Strings: ...
    def __getitem__(self, index: int | np.integer | slice | NDArray[np.int64]) -> str | Strings:
        if isinstance(index, int | np.integer):
            position = int(index) + (len(self) if index < 0 else 0)
            if not 0 <= position < len(self):
                raise IndexError(f"string {index} of {len(self)}")
            return self.buffer[self.offsets[position] : self.offsets[position + 1]].tobytes().decode(errors="replace")
        return self._take(np.arange(len(self))[index])

    def _take(self, rows: NDArray[np.int64]) -> Strings:
        starts = np.asarray(self.offsets)[rows]
        lengths = np.asarray(self.offsets)[rows + 1] - starts
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        # Byte k of the result comes from its string's start plus its place in that string.
        source = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Strings(np.asarray(self.buffer)[source], offsets)

    def __iter__(self) -> Iterator[str]:
        text = np.asarray(self.buffer).tobytes()
        offsets = self.offsets.tolist()
        for start, end in itertools.pairwise(offsets):
            yield text[start:end].decode(errors="replace")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strings):
            return NotImplemented
        return (
            len(self) == len(other)
            and bool(np.array_equal(np.diff(self.offsets), np.diff(other.offsets)))
            and list(self) == list(other)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(repr(value) for value in self[:3])
        return f"Strings([{shown}{', …' if len(self) > 3 else ''}], n={len(self)})"

    def to_list(self) -> list[str]:
        """All strings as a Python list."""
        return list(self)
