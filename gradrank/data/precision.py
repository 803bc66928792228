"""Whether features fit into float32, or have to be kept in float64.

Features are held in float32, which has 24 bits: seven digits. That is more than enough for what is measured, and too
little for what is counted or dated: around 1.7 billion, where today's epoch seconds are, float32 knows only every
128th number. So the whole matrix is kept in float64 if one of its features needs it:

1. a feature without fractions (as float32 has it) that holds a number between 2^24 and 2^53, or their negatives,
   which float32 changes: seconds, identifiers, large counts;
2. any other feature, if more than 2 in 1,000 of its distinct values become equal in float32. For this up to 4,096
   rows are looked at, in four blocks spread over the data. (Of as many random numbers of one magnitude float32 makes
   0.25 in 1,000 equal: seven digits are enough for these.)

Numbers beyond the range of float32 (about ±3.4e38) are refused in either case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32] | NDArray[np.float64]
"""Features, documents × features, in the precision that they need."""

# Up to here float32, and float64, have every whole number.
FLOAT32_WHOLE = 2.0**24
FLOAT64_WHOLE = 2.0**53
_LOST_SHARE = 0.002
_SAMPLE_BLOCKS = 4
_SAMPLE_BLOCK_ROWS = 1024
_BLOCK_BYTES = 1 << 22
# Types whose every value is a float32.
_NARROW_TYPES = ("float32", "float16", "int16", "int8", "uint16", "uint8", "bool")


def is_narrow(dtype: Any) -> bool:
    """Whether float32 has every number of a type.

    >>> is_narrow(np.int16), is_narrow(np.int32)
    (True, False)
    """
    return np.dtype(dtype).name in _NARROW_TYPES


def fitting_matrix(values: NDArray[Any]) -> Matrix:
    """A matrix of numbers as float32, or as float64 if a feature needs it; not copied if it has the right type already.

    >>> seconds = np.array([[1_700_000_000], [1_700_000_001]])
    >>> fitting_matrix(seconds).tolist(), fitting_matrix(seconds % 10).dtype
    ([[1700000000.0], [1700000001.0]], dtype('float32'))
    """
    if is_narrow(values.dtype):
        return values.astype(np.float32, copy=False)
    narrow = np.empty(values.shape, dtype=np.float32)
    check = PrecisionCheck(*values.shape)
    with np.errstate(over="ignore"):  # infinities are found by whoever checks the result
        for start, end in row_blocks(*values.shape):
            block = values[start:end].astype(np.float64, copy=False)
            narrow[start:end] = block
            check.look(start, block)
    return values.astype(np.float64, copy=False) if check.needs_float64(narrow) else narrow


def row_blocks(n_docs: int, n_features: int) -> Iterator[tuple[int, int]]:
    """First row and end of blocks of rows that stay in a core's cache."""
    step = max(1, _BLOCK_BYTES // (8 * max(1, n_features)))
    for start in range(0, n_docs, step):
        yield start, min(start + step, n_docs)


def sampled_rows(n_docs: int) -> list[tuple[int, int]]:
    """First row and end of the blocks of rows in which distinct values are counted.

    >>> sampled_rows(4000), sampled_rows(20_000)
    ([(0, 4000)], [(0, 1024), (6325, 7349), (12650, 13674), (18976, 20000)])
    """
    if n_docs <= _SAMPLE_BLOCKS * _SAMPLE_BLOCK_ROWS:
        return [(0, n_docs)]
    starts = np.linspace(0, n_docs - _SAMPLE_BLOCK_ROWS, _SAMPLE_BLOCKS).astype(np.int64).tolist()
    return [(start, start + _SAMPLE_BLOCK_ROWS) for start in starts]


class PrecisionCheck:
    """Looks at features block by block, in any order, and tells in the end whether float32 loses too much of them.

    >>> check = PrecisionCheck(2, 1)
    >>> block = np.array([[16777216.0], [16777217.0]])
    >>> check.look(0, block)
    >>> check.needs_float64(block.astype(np.float32))
    True
    """

    def __init__(self, n_docs: int, n_features: int) -> None:
        self.changed = np.zeros(n_features, dtype=bool)
        """Features with a number from 2^24 to 2^53, or its negative, that float32 changes."""
        self._sampled = sampled_rows(n_docs)
        self._sample: list[NDArray[np.float64]] = []

    def look(self, first_row: int, block: NDArray[np.float64]) -> None:
        """Take in rows of float64, the first of which is row ``first_row`` of the data."""
        if block.size == 0:
            return
        largest = np.fmax.reduce(np.abs(block), axis=0)
        for column in np.flatnonzero((largest > FLOAT32_WHOLE) & ~self.changed):
            size = np.abs(block[:, column])
            size = size[(size > FLOAT32_WHOLE) & (size <= FLOAT64_WHOLE)]
            self.changed[column] = (size.astype(np.float32) != size).any()
        for start, end in self._sampled:
            start, end = max(start, first_row), min(end, first_row + len(block))
            if start < end:
                self._sample.append(block[start - first_row : end - first_row].copy())

    def needs_float64(self, narrow: Matrix | Iterable[Matrix]) -> bool:
        """Whether a feature needs float64, given all features as float32, whole or in blocks of rows."""
        suspects = np.flatnonzero(self.changed)
        if len(suspects):
            whole = np.ones(len(suspects), dtype=bool)
            for block in _slices(narrow) if isinstance(narrow, np.ndarray) else narrow:
                values = block[:, suspects]
                whole &= ~((values != np.rint(values)) & ~np.isnan(values)).any(axis=0)
            if whole.any():
                return True
        return bool(self._sample) and _loses_values(np.concatenate(self._sample))


def _slices(matrix: Matrix) -> Iterator[Matrix]:
    for start, end in row_blocks(*matrix.shape):
        yield matrix[start:end]


def _loses_values(sample: NDArray[np.float64]) -> bool:
    """Whether float32 makes too many of a feature's distinct values equal."""
    with np.errstate(over="ignore"):
        inexact = ((sample.astype(np.float32) != sample) & ~np.isnan(sample)).any(axis=0)
        for column in np.flatnonzero(inexact):
            values = np.sort(sample[:, column])
            values = values[: len(values) - int(np.isnan(values).sum())]
            narrow = values.astype(np.float32)
            # Rounding keeps the order, so that values that become equal are neighbors.
            differ = values[1:] != values[:-1]
            lost = int(np.count_nonzero(differ & (narrow[1:] == narrow[:-1])))
            if lost > _LOST_SHARE * (1 + int(np.count_nonzero(differ))):
                return True
    return False
