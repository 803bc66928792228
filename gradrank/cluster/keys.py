"""A number for each query that depends on its id alone: random draws by it do not depend on where the query is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.data.strings import Strings
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True)
def _hash(buffer, offsets, out):  # type: ignore[no-untyped-def]
    for row in range(len(out)):
        # FNV-1a, then the last step of SplitMix64 to spread the bits.
        bits = np.uint64(0xCBF29CE484222325)
        for at in range(offsets[row], offsets[row + 1]):
            bits = (bits ^ np.uint64(buffer[at])) * np.uint64(0x100000001B3)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        out[row] = bits ^ (bits >> np.uint64(31))


def query_keys(ids: Strings) -> NDArray[np.uint64]:
    """A 64-bit number for each id.

    >>> keys = query_keys(Strings.of(["a", "b", "a"]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    out = np.empty(len(ids), dtype=np.uint64)
    _hash(np.asarray(ids.buffer), np.asarray(ids.offsets), out)
    return out
