"""A growing file of numbers."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

_COPY_BYTES = 1 << 26


class ArrayFile:
    """A growing file of numbers; the first axis is counted as it grows.

    Parameters
    ----------
    folder
        Where the file is.
    name
        Its name, without ``.bin``.
    dtype
        Type of the numbers.
    row_shape
        Shape of what is appended, without the first axis.

    >>> import tempfile
    >>> file = ArrayFile(Path(tempfile.mkdtemp()), "label-0", "<f4")
    >>> file.append(np.array([1.0, 2.0]))
    >>> file.close()
    >>> file.entry()
    {'dtype': '<f4', 'shape': [2]}
    """

    def __init__(self, folder: Path, name: str, dtype: str, row_shape: tuple[int, ...] = ()) -> None:
        self.name, self.dtype, self.row_shape, self.length = name, np.dtype(dtype), row_shape, 0
        self.path = folder / f"{name}.bin"
        self._file: BinaryIO = self.path.open("wb")

    def append(self, values: NDArray[Any]) -> None:
        """Write further rows."""
        rows = max(1, _COPY_BYTES // max(1, self.dtype.itemsize * math.prod(self.row_shape)))
        for start in range(0, len(values), rows):
            block = np.ascontiguousarray(values[start : start + rows], dtype=self.dtype)
            self._file.write(block.data if block.size else b"")
        self.length += len(values)

    def widen(self, dtype: str) -> None:
        """Go on with a wider type: what is there already is written once more."""
        self.close()
        narrow = self.path.with_suffix(".narrow")
        self.path.rename(narrow)
        shape = (self.length, *self.row_shape)
        written = np.memmap(narrow, dtype=self.dtype, mode="r", shape=shape) if math.prod(shape) else np.empty(shape)
        self.dtype, self.length = np.dtype(dtype), 0
        self._file = self.path.open("wb")
        self.append(written)
        del written  # a file that is mapped cannot be removed everywhere
        narrow.unlink()

    def restart(self, dtype: str) -> None:
        """Forget everything, and go on with a type."""
        self.close()
        self.dtype, self.length = np.dtype(dtype), 0
        self._file = self.path.open("wb")

    def flush(self) -> None:
        """Write what waits to be written."""
        self._file.flush()

    def close(self) -> None:
        """No more will be written."""
        self._file.close()

    def remove(self) -> None:
        """Close and delete the file."""
        with suppress(OSError):  # what could not be written need not be
            self.close()
        self.path.unlink(missing_ok=True)

    def entry(self) -> dict[str, Any]:
        """What the manifest says of the file."""
        return {"dtype": self.dtype.str, "shape": [self.length, *self.row_shape]}


def read_only_map(file: ArrayFile) -> NDArray[Any]:
    """What was written so far, as a memory map."""
    shape = (file.length, *file.row_shape)
    if not math.prod(shape):
        return np.empty(shape, dtype=file.dtype)
    return np.memmap(file.path, dtype=file.dtype, mode="r", shape=shape)
