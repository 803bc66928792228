"""Sums that come out the same in any order, so that a model does not depend on how its data is spread."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

_HALF = 27
# A double holds whole numbers up to 2^53 exactly; a bit stays free for the sign of rounding up.
_EXACT_BITS = 52
# Whole numbers that a float32 holds exactly.
FLOAT32_BITS = 23


def exact_sum(values: NDArray[np.float64]) -> tuple[int, int]:
    """The sum of finite numbers without any rounding: whole number × 2^exponent.

    >>> exact_sum(np.array([0.5, 0.25, 1e300, -1e300]))[0] != 0
    True
    >>> rounded([exact_sum(np.array([0.1, 1e16])), exact_sum(np.array([-1e16]))])
    0.1
    """
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    total, lowest = 0, 0
    for exponent in np.unique(exponents).tolist():
        own = whole[exponents == exponent]
        # In halves, so that sums of billions fit.
        high, low = own >> _HALF, own & ((1 << _HALF) - 1)
        summed = (int(high.sum()) << _HALF) + int(low.sum())
        shift = exponent - 53
        if shift < lowest:
            total, lowest = total << (lowest - shift), shift
        total += summed << (shift - lowest)
    return total, lowest


def rounded(parts: list[tuple[int, int]], divisor: int = 1) -> float:
    """The sum of such sums, divided and rounded once."""
    total = sum((Fraction(whole) * Fraction(2) ** exponent for whole, exponent in parts), Fraction(0))
    return float(total / divisor)


def grid(largest: float, count: int, bits: int = _EXACT_BITS) -> float:
    """The distance of numbers, a power of two, such that sums of ``count`` of them are exact in double precision.

    Parameters
    ----------
    largest
        The largest absolute value.
    count
        How many numbers may be summed.
    bits
        At most so many bits for each number.

    >>> grid(1.0, 1024, bits=10)
    0.0009765625
    """
    if not largest > 0.0:
        return 1.0
    kept = min(bits, _EXACT_BITS - int(np.ceil(np.log2(max(count, 1)))))
    return float(2.0 ** (np.ceil(np.log2(largest)) - kept))


def on_grid(values: NDArray[np.floating], distance: float) -> NDArray[np.float64]:
    """The numbers rounded to multiples of a distance.

    >>> on_grid(np.array([0.3, -0.2]), 0.25).tolist()
    [0.25, -0.25]
    """
    return np.asarray(np.rint(values.astype(np.float64) / distance) * distance)
