"""Numbers for strings and for pairs of numbers, given out as they come: what reading logs block by block needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.strings import Strings
from gradrank.runtime.kernels import njit

_FIRST_SLOTS = 1 << 12


class Interner:
    """Numbers distinct strings by first appearance, over any number of blocks.

    Memory goes with the distinct strings, not with those that come: they are copied, and close to each other, so that
    the comparison after a hit finds them in the cache.

    >>> names = Interner()
    >>> first, second = Strings.of(["b", "a", "b"]), Strings.of(["c", "a"])
    >>> names.add(first.buffer, first.offsets[:-1], first.offsets[1:]).tolist()
    [0, 1, 0]
    >>> names.add(second.buffer, second.offsets[:-1], second.offsets[1:]).tolist(), list(names.strings())
    ([2, 1], ['b', 'a', 'c'])
    """

    def __init__(self) -> None:
        self._count = 0
        self._table = np.full(_FIRST_SLOTS, -1, dtype=np.int64)
        self._hashes = np.empty(_FIRST_SLOTS, dtype=np.uint64)
        self._offsets = np.zeros(_FIRST_SLOTS + 1, dtype=np.int64)
        self._text = np.empty(_FIRST_SLOTS * 8, dtype=np.uint8)

    def __len__(self) -> int:
        return self._count

    def strings(self) -> Strings:
        """The distinct strings."""
        offsets = self._offsets[: self._count + 1].copy()
        return Strings(self._text[: offsets[-1]].copy(), offsets)

    def add(self, buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int32]:
        """The numbers of the strings ``buffer[starts[i]:ends[i]]``."""
        codes = np.empty(len(starts), dtype=np.int32)
        row = 0
        while True:
            row, self._count = _number_strings(
                buffer, starts, ends, row, self._count, self._table, self._hashes, self._offsets, self._text, codes
            )
            if row == len(starts):
                return codes
            # No room: for slots, for numbers or for the text.
            if 2 * (self._count + 1) > len(self._table):
                self._table = np.full(2 * len(self._table), -1, dtype=np.int64)
                _place_again(self._table, self._hashes, self._count)
            if self._count + 1 >= len(self._hashes):
                self._hashes = _doubled(self._hashes)
                self._offsets = _doubled(self._offsets)
            need = int(self._offsets[self._count] + ends[row] - starts[row])
            while need > len(self._text):
                self._text = _doubled(self._text)


def intern(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Strings]:
    """Number the distinct strings among ``buffer[starts[i]:ends[i]]`` by first appearance.

    >>> column = Strings.of(["b", "a", "b"])
    >>> codes, distinct = intern(column.buffer, column.offsets[:-1], column.offsets[1:])
    >>> codes.tolist(), list(distinct)
    ([0, 1, 0], ['b', 'a'])
    """
    names = Interner()
    codes = names.add(np.ascontiguousarray(buffer), starts, ends)
    return codes, names.strings()


class PairSums:
    """Sums for distinct pairs of numbers, which are numbered by first appearance.

    >>> sums = PairSums(1)
    >>> sums.add(np.array([1, 1, 2]), np.array([5, 5, 5]), np.array([[1.0], [2.0], [4.0]]))
    >>> [column.tolist() for column in sums.pairs()], sums.values().tolist()
    ([[1, 2], [5, 5]], [[3.0], [4.0]])
    """

    def __init__(self, width: int) -> None:
        self._count = 0
        self._table = np.full(_FIRST_SLOTS, -1, dtype=np.int64)
        self._keys = np.empty(_FIRST_SLOTS, dtype=np.int64)
        self._sums = np.zeros((_FIRST_SLOTS, width))

    def __len__(self) -> int:
        return self._count

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and second numbers of the pairs."""
        keys = self._keys[: self._count]
        return keys >> 32, keys & 0xFFFFFFFF

    def values(self) -> NDArray[np.float64]:
        """Their sums."""
        return self._sums[: self._count].copy()

    def add(self, first: NDArray[Any], second: NDArray[Any], values: NDArray[np.float64]) -> None:
        """Add values to the pairs' sums, one row of values for each pair."""
        row = 0
        while True:
            row, self._count = _sum_pairs(first, second, values, row, self._count, self._table, self._keys, self._sums)
            if row == len(first):
                return
            self._make_room()

    def number(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers of pairs; new ones have sums of zero.

        >>> PairSums(1).number(np.array([1, 2, 1]), np.array([5, 5, 5])).tolist()
        [0, 1, 0]
        """
        codes = np.empty(len(first), dtype=np.int64)
        row = 0
        while True:
            row, self._count = _number_pairs(first, second, row, self._count, self._table, self._keys, codes)
            if row == len(first):
                return codes
            self._make_room()

    def _make_room(self) -> None:
        if 2 * (self._count + 1) > len(self._table):
            self._table = np.full(2 * len(self._table), -1, dtype=np.int64)
            _place_keys_again(self._table, self._keys, self._count)
        if self._count >= len(self._keys):
            self._keys = _doubled(self._keys)
            self._sums = np.concatenate((self._sums, np.zeros_like(self._sums)))


def _doubled(values: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((values, np.empty_like(values)))


@njit(cache=True, nogil=True, inner=True)
def _hash(buffer, begin, end):  # type: ignore[no-untyped-def]
    """FNV-1a; of long strings four at a time, each over every fourth byte, as a product waits for the one before."""
    prime = np.uint64(1099511628211)
    hashed = np.uint64(14695981039346656037)
    at = begin
    if end - begin >= 16:
        second, third, fourth = hashed + np.uint64(1), hashed + np.uint64(2), hashed + np.uint64(3)
        while at + 4 <= end:
            hashed = (hashed ^ np.uint64(buffer[at])) * prime
            second = (second ^ np.uint64(buffer[at + 1])) * prime
            third = (third ^ np.uint64(buffer[at + 2])) * prime
            fourth = (fourth ^ np.uint64(buffer[at + 3])) * prime
            at += 4
        for other in (second, third, fourth):
            hashed = (hashed ^ other ^ (other >> np.uint64(29))) * prime
    for k in range(at, end):
        hashed = (hashed ^ np.uint64(buffer[k])) * prime
    return hashed


@njit(cache=True, nogil=True)
def _number_strings(buffer, starts, ends, row, count, table, hashes, offsets, text, codes):  # type: ignore[no-untyped-def]
    """Number strings from ``row`` on, until one has no room; the high bits of hashes are folded in."""
    mask = np.uint64(len(table) - 1)
    while row < len(starts):
        begin = starts[row]
        length = ends[row] - begin
        hashed = _hash(buffer, begin, ends[row])
        slot = (hashed ^ (hashed >> np.uint64(32))) & mask
        # The upper half of the hash stands beside the number: most others are told apart without a look at them.
        tag = np.int64(hashed >> np.uint64(33))
        while True:
            entry = table[slot]
            if entry < 0:
                if 2 * (count + 1) > len(table) or count + 1 >= len(hashes) or offsets[count] + length > len(text):
                    return row, count
                table[slot] = (tag << np.int64(32)) | np.int64(count)
                hashes[count] = hashed
                at = offsets[count]
                for k in range(length):
                    text[at + k] = buffer[begin + k]
                offsets[count + 1] = at + length
                codes[row] = count
                count += 1
                break
            if entry >> np.int64(32) == tag:
                code = entry & np.int64(0xFFFFFFFF)
                at = offsets[code]
                same = offsets[code + 1] - at == length
                if same:
                    # Without an early end, so that it vectorizes: most strings with the same hash are the same.
                    different = np.uint8(0)
                    for k in range(length):
                        different |= text[at + k] ^ buffer[begin + k]
                    same = different == 0
                if same:
                    codes[row] = code
                    break
            slot = (slot + np.uint64(1)) & mask
        row += 1
    return row, count


@njit(cache=True, nogil=True)
def _place_again(table, hashes, count):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    for code in range(count):
        hashed = hashes[code]
        slot = (hashed ^ (hashed >> np.uint64(32))) & mask
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = (np.int64(hashed >> np.uint64(33)) << np.int64(32)) | np.int64(code)


@njit(cache=True, nogil=True)
def _slot_of(key, mask):  # type: ignore[no-untyped-def]
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(32))) & mask


@njit(cache=True, nogil=True)
def _sum_pairs(first, second, values, row, count, table, keys, sums):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    width = values.shape[1]
    while row < len(first):
        key = (np.int64(first[row]) << np.int64(32)) | np.int64(second[row])
        slot = _slot_of(key, mask)
        while table[slot] >= 0 and keys[table[slot]] != key:
            slot = (slot + np.uint64(1)) & mask
        code = table[slot]
        if code < 0:
            if 2 * (count + 1) > len(table) or count >= len(keys):
                return row, count
            code = count
            table[slot] = code
            keys[code] = key
            for k in range(width):
                sums[code, k] = 0.0
            count += 1
        for k in range(width):
            sums[code, k] += values[row, k]
        row += 1
    return row, count


@njit(cache=True, nogil=True)
def _number_pairs(first, second, row, count, table, keys, codes):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    while row < len(first):
        key = (np.int64(first[row]) << np.int64(32)) | np.int64(second[row])
        slot = _slot_of(key, mask)
        while table[slot] >= 0 and keys[table[slot]] != key:
            slot = (slot + np.uint64(1)) & mask
        code = table[slot]
        if code < 0:
            if 2 * (count + 1) > len(table) or count >= len(keys):
                return row, count
            code = count
            table[slot] = code
            keys[code] = key
            count += 1
        codes[row] = code
        row += 1
    return row, count


@njit(cache=True, nogil=True)
def _place_keys_again(table, keys, count):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    for code in range(count):
        slot = _slot_of(keys[code], mask)
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = code
