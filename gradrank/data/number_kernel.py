"""Decimal text to float32 and back, exactly, inside Numba kernels.

Reading gives ``np.float32(float(token))`` for every token. Up to 2^53 and 10^±22 one division or
multiplication of two exact doubles is rounded once, hence right (Clinger, "How to read floating point
numbers accurately", PLDI 1990). Beyond that the product of the first 19 digits and a rounded power
of ten is off by less than 4 units in the last place of a double, and float32 has 29 bits less: the
result is certain unless a rounding boundary of float32 lies within that error. Such a token, about one
in 10^7 at worst, is reported as :data:`UNCERTAIN` and left to Python.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.kernels import njit

# What a token is.
NUMBER = 0
NAN = 1
INFINITE = 2
TOO_LARGE = 3
UNCERTAIN = 4
NO_NUMBER = 5

POWERS_OF_TEN = np.array([float(f"1e{exponent}") for exponent in range(129)])
_EXACT_MANTISSA = np.uint64(2**53)
_EXACT_POWER = 22
_MOST_DIGITS = 19  # any number of 19 digits fits into 64 bits
_ERROR_BOUND = 2.0**-50
# Decimal magnitudes from which the result is infinite, or zero, as float32 whatever the digits are.
_CERTAINLY_LARGE = 60
_CERTAINLY_ZERO = -80

LONGEST_NUMBER = 24  # bytes that write_float32 needs at most, with room to spare


# What digit_at makes of a colon and of a point.
COLON = 10
POINT = 254


@njit(cache=True, nogil=True, inner=True)
def byte_at(text: NDArray[np.uint8], position: int) -> np.uint8:
    """The byte at a position."""
    # An unsigned index spares the test for positions counted from the end, a third of the hot loops.
    byte: np.uint8 = text[np.uint64(position)]
    return byte


@njit(cache=True, nogil=True, inner=True)
def digit_at(text: NDArray[np.uint8], position: int) -> np.uint8:
    """Value of the digit at a position; above 9 if it is none."""
    return np.uint8(text[np.uint64(position)] - 48)


@njit(cache=True, nogil=True, inner=True)
def ends_token(byte: int) -> bool:
    """Whether a byte is a blank, the end of the line, or the start of a comment."""
    return byte == 32 or byte == 9 or byte == 10 or byte == 13 or byte == 35


@njit(cache=True, nogil=True, inner=True)
def _is_word(text: NDArray[np.uint8], position: int, word: NDArray[np.uint8]) -> bool:
    for offset in range(len(word)):
        if text[position + offset] | 0x20 != word[offset]:
            return False
    return bool(ends_token(text[position + len(word)]))


_NAN_WORD = np.frombuffer(b"nan", dtype=np.uint8)
_INF_WORD = np.frombuffer(b"inf", dtype=np.uint8)
_INFINITY_WORD = np.frombuffer(b"infinity", dtype=np.uint8)


@njit(cache=True, nogil=True)
def parse_number(text: NDArray[np.uint8], position: int) -> tuple[float, int, int]:
    """Value, end and kind of the number that starts at a position.

    ``text`` must have a newline at or after ``position``: every loop stops there at the latest.
    The value is a double whose float32 rounding is right. For other kinds than :data:`NUMBER` the
    end is meaningful only where there was a number in form (:data:`NAN`, :data:`UNCERTAIN`).
    """
    sign = 1.0
    if byte_at(text, position) == 45:
        sign = -1.0
        position += 1
    elif byte_at(text, position) == 43:
        position += 1

    mantissa = np.uint64(0)
    significant = 0
    scale = 0
    digits = 0
    in_fraction = False
    cut = False
    while True:
        digit = digit_at(text, position)
        if digit <= 9:
            digits += 1
            if significant < _MOST_DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(digit)
                if mantissa != 0:
                    significant += 1
                if in_fraction:
                    scale -= 1
            else:
                cut = cut or digit != 0
                if not in_fraction:
                    scale += 1
        elif digit == POINT and not in_fraction:
            in_fraction = True
        else:
            break
        position += 1

    if digits == 0:
        if in_fraction:
            return 0.0, position, NO_NUMBER
        if _is_word(text, position, _NAN_WORD):
            return np.nan, position + 3, NAN
        if _is_word(text, position, _INF_WORD) or _is_word(text, position, _INFINITY_WORD):
            return 0.0, position, INFINITE
        return 0.0, position, NO_NUMBER

    if byte_at(text, position) | 0x20 == 101:  # e or E
        position += 1
        falling = byte_at(text, position) == 45
        if falling or byte_at(text, position) == 43:
            position += 1
        if digit_at(text, position) > 9:
            return 0.0, position, NO_NUMBER
        exponent = 0
        while digit_at(text, position) <= 9:
            # A cap keeps the exponent from wrapping round, above what any file's digits could offset.
            if exponent < 10**15:
                exponent = exponent * 10 + digit_at(text, position)
            position += 1
        scale += -exponent if falling else exponent
    if not ends_token(byte_at(text, position)):
        return 0.0, position, NO_NUMBER

    if mantissa == 0 or significant + scale < _CERTAINLY_ZERO:
        return sign * 0.0, position, NUMBER
    if significant + scale > _CERTAINLY_LARGE:
        return 0.0, position, TOO_LARGE
    value = np.float64(mantissa)
    if scale < 0:
        value /= POWERS_OF_TEN[-scale]
    else:
        value *= POWERS_OF_TEN[scale]
    if cut or mantissa > _EXACT_MANTISSA or abs(scale) > _EXACT_POWER:
        low = np.float32(value * (1.0 - _ERROR_BOUND))
        high = np.float32(value * (1.0 + _ERROR_BOUND))
        if low != high:
            return 0.0, position, UNCERTAIN
    if np.isinf(np.float32(value)):
        return 0.0, position, TOO_LARGE
    return sign * value, position, NUMBER


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

    ``out`` must have room for 24 bytes at ``position``. Plain notation is used for magnitudes from
    1e-5 up to 1e15, otherwise ``1.5e-07`` style without padding: ``15e-8``.
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
