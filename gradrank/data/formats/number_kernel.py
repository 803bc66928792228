"""Decimal text to floating point numbers and back, exactly, inside Numba kernels.

Reading gives ``float(token)`` for every token, or a double that rounds to the same float32 where no more is asked for.
Up to 2^53 and 10^±22 one division or multiplication of two exact doubles is rounded once, hence right (Clinger, "How to
read floating point numbers accurately", PLDI 1990). Beyond that the product of the first 18 digits and a rounded
power of ten is off by less than 4 units in the last place of a double, and float32 has 29 bits less: the float32 is
certain unless a rounding boundary lies within that error. For the double itself digits and power are taken as sums
of two doubles, whose product has some 100 bits. A token whose rounding is not certain even so, about one in 10^7 at
worst, is reported as :data:`UNCERTAIN` and left to Python.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gradrank.data.precision import FLOAT32_WHOLE, FLOAT64_WHOLE
from gradrank.runtime.kernels import njit

# What a token is.
NUMBER = 0
NAN = 1
TOO_LARGE = 2
UNCERTAIN = 3
NO_NUMBER = 4

POWERS_OF_TEN = np.array([float(f"1e{exponent}") for exponent in range(129)])
_EXACT_MANTISSA = 2**53
_EXACT_POWER = 22
# One division of a whole number below 10^15 by a power of ten is exact; 15 digits are below 2^53.
_FAST_DIGITS = 15
_MOST_DIGITS = 18  # any number of 18 digits fits into 63 bits
_ROOM_FOR_A_DIGIT = 10 ** (_MOST_DIGITS - 1)
_LARGEST_EXPONENT = 10**15  # above what any file's digits could offset
_ERROR_BOUND = 2.0**-50
# Powers of ten that make the result infinite, or zero, as float32 whatever the 18 digits are.
_CERTAINLY_LARGE = 60
_CERTAINLY_ZERO = -100

# Numbers of up to so many digits are the same decimal again after rounding to float32, whatever their power of ten.
SHORT_NUMBERS_END = 10**6
# What a number counts as that is not a short row of digits, perhaps with a point.
_LONG = 2**62
# Powers of ten from 10^-100 to 10^60 as sums of two doubles.
_POWERS = [Fraction(10) ** exponent for exponent in range(_CERTAINLY_ZERO, _CERTAINLY_LARGE + 1)]
_POWER_HIGH = np.array([float(power) for power in _POWERS])
_POWER_LOW = np.array([float(power - Fraction(high)) for power, high in zip(_POWERS, _POWER_HIGH, strict=True)])
_SPLITTER = 2.0**27 + 1.0
_PRODUCT_ERROR = 2.0**-90  # generous: each of the few roundings is within 2^-105

LONGEST_NUMBER = 24  # bytes that write_float32 needs at most, with room to spare


# What digit_at makes of other characters.
COLON = 10
PLUS = 251
MINUS = 253
POINT = 254


@njit(cache=True, nogil=True, plain=True, inner=True)
def byte_at(text: NDArray[np.uint8], position: int) -> np.uint8:
    """The byte at a position."""
    # An unsigned index spares the test for positions counted from the end, a third of the hot loops.
    byte: np.uint8 = text[np.uint64(position)]
    return byte


@njit(cache=True, nogil=True, plain=True, inner=True)
def digit_at(text: NDArray[np.uint8], position: int) -> np.uint8:
    """Value of the digit at a position; above 9 if it is none."""
    return np.uint8(text[np.uint64(position)] - 48)


@njit(cache=True, nogil=True, plain=True, inner=True)
def is_blank(byte: int) -> bool:
    """Whether a byte separates tokens within a line."""
    return byte == 32 or byte == 9 or byte == 13


@njit(cache=True, nogil=True, plain=True, inner=True)
def ends_token(byte: int) -> bool:
    """Whether a byte is a blank, the end of the line, or the start of a comment."""
    return byte == 32 or byte == 9 or byte == 10 or byte == 13 or byte == 35


@njit(cache=True, nogil=True, plain=True, inner=True)
def _high_half(value: float) -> float:
    """The upper 26 bits of a double, so that products of halves are exact (Dekker, Numerische Mathematik 18, 1971)."""
    scaled = _SPLITTER * value
    return scaled - (scaled - value)


@njit(cache=True, nogil=True, plain=True, inner=True)
def nearest_double(mantissa: int, scale: int, cut: bool) -> tuple[float, bool]:
    """The double nearest to ``mantissa`` times ten to ``scale``, and whether that is certain.

    ``cut`` tells that digits behind the mantissa were dropped.
    """
    high = np.float64(mantissa)
    low = np.float64(mantissa - np.int64(high))
    power = _POWER_HIGH[scale - _CERTAINLY_ZERO]
    product = high * power
    a, b = _high_half(high), _high_half(power)
    rest = ((a * b - product) + a * (power - b) + (high - a) * b) + (high - a) * (power - b)
    rest += high * _POWER_LOW[scale - _CERTAINLY_ZERO] + low * power
    error = product * _PRODUCT_ERROR
    value = product + (rest - error)
    return value, value == product + (rest + error + (power if cut else 0.0))


@njit(cache=True, nogil=True, plain=True, inner=True)
def _unusual_number(
    text: NDArray[np.uint8], first: int, position: int, digits: int, scale: int, mantissa: int, exact: bool
) -> tuple[float, int, int]:
    """Value, end and kind of what the fast path does not read.

    There are ``digits`` digits from ``first`` to ``position``; the number is ``mantissa`` times ten to ``scale`` unless
    they are too many. ``exact`` asks for the double nearest to it.
    """
    byte = byte_at(text, position) | 0x20
    if digits == 0:
        is_nan = (
            position == first and byte == 110 and text[position + 1] | 0x20 == 97 and text[position + 2] | 0x20 == 110
        )
        if is_nan and ends_token(byte_at(text, position + 3)):
            return np.nan, position + 3, NAN
        return 0.0, position, NO_NUMBER
    cut = False
    if digits > _MOST_DIGITS:
        mantissa = 0
        for place in range(first, position):
            digit = digit_at(text, place)
            if digit > 9:  # the point
                continue
            if mantissa < _ROOM_FOR_A_DIGIT:
                mantissa = mantissa * 10 + digit
            else:
                scale += 1
                cut |= digit != 0
    if byte == 101:  # e or E
        position += 1
        sign = byte_at(text, position)
        if sign == 45 or sign == 43:
            position += 1
        exponent = 0
        digits = position
        while digit_at(text, position) <= 9:
            # A cap keeps the exponent from wrapping round.
            if exponent < _LARGEST_EXPONENT:
                exponent = exponent * 10 + digit_at(text, position)
            position += 1
        if position == digits:
            return 0.0, position, NO_NUMBER
        scale += -exponent if sign == 45 else exponent
    if not ends_token(byte_at(text, position)):
        return 0.0, position, NO_NUMBER
    if mantissa == 0 or scale < _CERTAINLY_ZERO:
        return 0.0, position, UNCERTAIN if exact and mantissa != 0 else NUMBER
    if scale > _CERTAINLY_LARGE:
        return 0.0, position, TOO_LARGE
    value = np.float64(mantissa)
    if scale < 0:
        value /= POWERS_OF_TEN[-scale]
    else:
        value *= POWERS_OF_TEN[scale]
    if cut or mantissa > _EXACT_MANTISSA or scale < -_EXACT_POWER or scale > _EXACT_POWER:
        if exact:
            value, certain = nearest_double(mantissa, scale, cut)
        else:
            certain = np.float32(value * (1.0 - _ERROR_BOUND)) == np.float32(value * (1.0 + _ERROR_BOUND))
        if not certain:
            return 0.0, position, UNCERTAIN
    if np.float32(value) == np.inf:
        return 0.0, position, TOO_LARGE
    return value, position, NUMBER


@njit(cache=True, nogil=True, plain=True, forceinline=True)
def parse_number(text: NDArray[np.uint8], position: int, exact: bool) -> tuple[float, int, int, int]:
    """Value, end and kind of the number that starts at a position, and its digits as a whole number.

    ``text`` must have a newline at or after ``position``: every loop stops there at the latest.
    The value is the double nearest to the number if ``exact``, otherwise one that rounds to the same float32. For
    other kinds than :data:`NUMBER` the end is meaningful only where there was a number in form (:data:`NAN`,
    :data:`UNCERTAIN`). The digits are below :data:`SHORT_NUMBERS_END` if float32 keeps the number apart from others as
    short.
    """
    digit = digit_at(text, position)
    negative = digit == MINUS
    if negative or digit == PLUS:
        position += 1
        digit = digit_at(text, position)
    first = position
    mantissa = 0
    while digit <= 9:
        mantissa = mantissa * 10 + digit
        position += 1
        digit = digit_at(text, position)
    digits = position - first
    places = 0
    if digit == POINT:
        position += 1
        point = position
        digit = digit_at(text, position)
        while digit <= 9:
            mantissa = mantissa * 10 + digit
            position += 1
            digit = digit_at(text, position)
        places = position - point
        digits += places
    kind = NUMBER
    if 0 < digits <= _FAST_DIGITS and ends_token(byte_at(text, position)):
        value = np.float64(mantissa)
        if mantissa != 0 and places > 0:
            value /= POWERS_OF_TEN[places]
    else:
        value, position, kind = _unusual_number(text, first, position, digits, -places, mantissa, exact)
        mantissa = _LONG
    if negative:
        value = -value
    return value, position, kind, mantissa


@njit(cache=True, nogil=True)
def write_whole(out: NDArray[np.uint8], position: int, value: int) -> int:
    """Write a whole number of 0 or more; gives the position behind it."""
    length = 1
    rest = value // 10
    while rest > 0:
        length += 1
        rest //= 10
    for place in range(length):
        out[position + length - 1 - place] = 48 + value % 10
        value //= 10
    return position + length


@njit(cache=True, nogil=True)
def _shortest(value: float) -> tuple[int, int]:
    """Mantissa and power of ten of the shortest decimal that reads back as this positive float32."""
    wanted = np.float32(value)
    leading = int(np.floor(np.log10(value)))
    for digits in range(1, 11):
        scale = leading - digits + 1
        if scale < 0:
            mantissa = np.rint(value * POWERS_OF_TEN[-scale])
            back = mantissa / POWERS_OF_TEN[-scale]
        else:
            mantissa = np.rint(value / POWERS_OF_TEN[scale])
            back = mantissa * POWERS_OF_TEN[scale]
        if abs(scale) <= _EXACT_POWER:
            if np.float32(back) == wanted:
                return int(mantissa), scale
        elif np.float32(back * (1.0 - _ERROR_BOUND)) == wanted and np.float32(back * (1.0 + _ERROR_BOUND)) == wanted:
            return int(mantissa), scale
    # Nine digits always do: their error is below 5e-9, half a step of float32 at least 2.9e-8.
    return 0, 0


@njit(cache=True, nogil=True)
def write_float32(out: NDArray[np.uint8], position: int, number: np.float32) -> int:
    """Write the shortest decimal that reads back as this float32; gives the position behind it.

    Whole numbers up to 2^53 are written with all their digits, so that they are the same for whoever reads doubles.
    ``out`` must have room for 24 bytes at ``position``. Plain notation is used for magnitudes from
    1e-5 up to 2^53, otherwise ``1.5e-07`` style without padding: ``15e-8``.
    """
    if np.isnan(number):
        out[position] = 110
        out[position + 1] = 97
        out[position + 2] = 110
        return position + 3
    value = np.float64(number)
    if value < 0 or (value == 0 and np.signbit(value)):
        out[position] = 45
        position += 1
        value = -value
    if value == 0:
        out[position] = 48
        return position + 1
    if FLOAT32_WHOLE <= value <= FLOAT64_WHOLE:  # has no fraction
        return int(write_whole(out, position, np.int64(value)))
    mantissa, scale = _shortest(value)
    while mantissa % 10 == 0:
        mantissa //= 10
        scale += 1
    digits = 1
    rest = mantissa // 10
    while rest > 0:
        digits += 1
        rest //= 10
    magnitude = digits + scale
    if scale >= 0 and magnitude <= 15:
        position = write_whole(out, position, mantissa)
        for _ in range(scale):
            out[position] = 48
            position += 1
        return position
    if scale < 0 and magnitude > 0:
        end = position + digits + 1
        for place in range(-scale):
            out[end - 1 - place] = 48 + mantissa % 10
            mantissa //= 10
        out[end + scale - 1] = 46
        write_whole(out, position, mantissa)
        return end
    if scale < 0 and magnitude > -5:
        out[position] = 48
        out[position + 1] = 46
        position += 2
        for _ in range(-magnitude):
            out[position] = 48
            position += 1
        return int(write_whole(out, position, mantissa))
    position = write_whole(out, position, mantissa)
    out[position] = 101
    position += 1
    if scale < 0:
        out[position] = 45
        position += 1
    return int(write_whole(out, position, abs(scale)))
