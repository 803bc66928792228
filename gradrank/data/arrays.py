"""What users hand over as arrays: whatever NumPy would quietly read as other numbers is refused or mended here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import DataError

# Complex numbers, dates, spans of time, records: NumPy makes some number of each.
_NO_NUMBERS = "cMmV"


def plain_array(values: Any, what: str) -> NDArray[Any]:
    """Values as an array; what stands under a mask is refused, for NumPy would take it for a value.

    Parameters
    ----------
    values
        An array, or whatever becomes one.
    what
        What the values are, for messages.

    >>> plain_array(np.ma.masked_array([1.0, 2.0], mask=[False, True]), "X")
    Traceback (most recent call last):
        ...
    gradrank.errors.DataError: X holds values under a mask, expected a plain array (.filled() makes one)
    >>> plain_array([[1.0, 2.0], [3.0]], "X")
    Traceback (most recent call last):
        ...
    gradrank.errors.DataError: X holds rows of different lengths, expected the same for all
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError(f"{what} {_verb(what)} values under a mask, expected a plain array (.filled() makes one)")
    try:
        return np.asarray(values)
    except ValueError:
        if not isinstance(values, list | tuple):
            raise
        raise DataError(f"{what} {_verb(what)} rows of different lengths, expected the same for all") from None


def unmasked(values: Any) -> Any:
    """NumPy's masked arrays with NaN where they are masked, as NumPy itself would forget the mask; all else as it is.

    >>> unmasked(np.ma.masked_array([3, 4], mask=[False, True])).tolist()
    [3.0, nan]
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    wide: np.ma.MaskedArray[Any, Any] = values if values.dtype.kind == "f" else np.ma.asarray(values, dtype=np.float64)
    return wide.filled(np.nan)


def number_array(values: Any, what: str, dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """Values as floating point numbers; dates, complex numbers and everything else that is no number is refused.

    Parameters
    ----------
    values
        An array, or whatever becomes one.
    what
        What the values are, for messages.
    dtype
        The type of the numbers.

    >>> number_array(np.array(["2026-01-01"], dtype="M8[D]"), "the weights", np.float64)
    Traceback (most recent call last):
        ...
    gradrank.errors.DataError: the weights hold values of type datetime64[D], expected numbers
    """
    given = values if hasattr(values, "dtype") else plain_array(values, what)
    if getattr(given.dtype, "kind", "O") in _NO_NUMBERS:
        raise DataError(f"{what} {_verb(what)} values of type {given.dtype}, expected numbers")
    plain_array(given, what)
    try:
        with np.errstate(over="ignore"):  # infinities are found by whoever checks the result
            return np.asarray(given, dtype=dtype)
    except (TypeError, ValueError):
        raise DataError(f"{what} {_verb(what)} something that is not a number") from None


def _verb(what: str) -> str:
    return "hold" if what.endswith("s") else "holds"


def check_id_numbers(values: NDArray[Any], what: str) -> None:
    """Refuse floating point ids so large that whole numbers beside each other are the same floating point number."""
    if not len(values):
        return
    large = np.abs(values) >= first_gap(values.dtype)
    if large.any():
        row = int(np.argmax(large))
        raise DataError(f"{what} of document {row + 1} is {values[row]:.17g}; {gap_reason(values.dtype)}")


def first_gap(dtype: Any) -> float:
    """The lowest whole number that a floating point type shares with the next one.

    >>> first_gap(np.float32), first_gap(np.float64) == 2**53
    (16777216.0, True)
    """
    return float(2.0 ** (np.finfo(dtype).nmant + 1))


def gap_reason(dtype: Any) -> str:
    """Why floating point ids of this size are refused, and what is taken instead."""
    return f"{dtype} holds numbers of this size with gaps, so that several ids would be one, expected integers or text"
