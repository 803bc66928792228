"""Fields of a file's bytes: where they are, and what they say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.runtime.kernels import njit


def line_of(buffer: NDArray[np.uint8], offset: int) -> int:
    """Number of the line, from 1, that a byte is on."""
    return int(np.count_nonzero(buffer[:offset] == 10)) + 1


def text_of(buffer: NDArray[np.uint8], start: int, end: int) -> str:
    """The bytes of a field as text, shortened for a message."""
    return bytes(buffer[start : min(end, start + 60)]).decode(errors="replace")


@njit(cache=True, nogil=True)
def trimmed(
    buffer: NDArray[np.uint8],
    start: int,
    end: int,
) -> tuple[int, int]:
    while start < end and (buffer[start] == 32 or buffer[start] == 9 or buffer[start] == 13):
        start += 1
    while end > start and (buffer[end - 1] == 32 or buffer[end - 1] == 9 or buffer[end - 1] == 13):
        end -= 1
    return start, end
