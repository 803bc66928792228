"""Rounding at random: numbers with few levels whose sums are true on average."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

_ROWS_PER_BLOCK = 4096


@njit(cache=True, nogil=True)
def _round_at_random(start, stop, values, scale, levels, key, out):  # type: ignore[no-untyped-def]
    for row in range(start, stop):
        # SplitMix64 (Steele, Lea, Flood 2014): a row's random number depends on the key and the row alone.
        bits = np.uint64(key) + np.uint64(row + 1) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
        chance = np.float32(bits >> np.uint64(40)) * np.float32(2.0**-24)
        level = np.floor(values[row] / scale + chance)
        out[row] = min(max(level, -levels), levels) * scale


def rounded_at_random(
    values: NDArray[np.float32], levels: int, key: int, n_jobs: int | None = None
) -> NDArray[np.float32]:
    """Multiples of the largest absolute value ÷ ``levels``: each value goes up or down by chance, true on average.

    >>> values = np.array([1.0, 0.25, 0.0, -1.0], dtype=np.float32)
    >>> rounded_at_random(values, 4, key=7).tolist()
    [1.0, 0.25, 0.0, -1.0]
    """
    out = np.zeros_like(values)
    scale = np.float32(np.abs(values).max(initial=0.0) / levels)
    if scale > 0.0:
        edges = np.append(np.arange(0, len(values), _ROWS_PER_BLOCK), len(values))

        def work(first: int, end: int) -> None:
            _round_at_random(int(edges[first]), int(edges[end]), values, scale, np.float32(levels), key, out)

        for_query_blocks(work, edges, n_jobs)
    return out
