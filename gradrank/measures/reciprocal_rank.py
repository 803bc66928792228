"""Reciprocal rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gradrank.measures.base import RECIPROCAL_RANK, IntArray, Measure, Prepared, SwapKernels, cut, query_sums, relevant
from gradrank.measures.parameters import rel_parameter


@njit(cache=True, nogil=True)
def _values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):  # type: ignore[no-untyped-def]  # fmt: skip
    for q in range(first, end):
        start = indptr[q]
        stop = start + min(depth[q], retrieved[q])
        value = 0.0
        place = start
        while place < stop:
            group_end = place + 1 if len(tie_end) == 0 else tie_end[place]
            size = group_end - place
            hits = 0.0
            for at in range(place, group_end):
                hits += gain[order[at]]
            if hits > 0.0:
                # Probability that the first relevant document of the group stands at its j-th place.
                chance = hits / size
                for j in range(size - int(hits) + 1):
                    if place + j >= stop:
                        break
                    value += chance / (place + j - start + 1)
                    if j + 1 < size:
                        chance *= (size - hits - j) / (size - j - 1)
                break
            place = group_end
        out[q] = value


@njit(cache=True, nogil=True)
def rr_prepare(n, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Ranks of the first two relevant documents, and the value that each rank would have."""
    found = 0
    state[1, 0] = n
    state[1, 1] = n
    for p in range(n):
        state[0, p] = 1.0 / (p + 1) if p < depth else 0.0
        if gain[p] > 0.0 and found < 2:
            state[1, found] = p
            found += 1
    state[0, n] = 0.0


@njit(cache=True, nogil=True)
def rr_row(p, n, gain, weight, norm, depth, option, state, out):  # type: ignore[no-untyped-def]
    """Swap deltas of rank p with every rank."""
    winner = int(state[1, 0])
    second = int(state[1, 1])
    for q in range(n):
        upper = min(p, q)
        lower = max(p, q)
        delta = 0.0
        if gain[upper] > gain[lower]:
            if upper == winner:
                delta = state[0, min(lower, second)] - state[0, winner]
        elif gain[upper] < gain[lower] and upper < winner:
            delta = state[0, upper] - state[0, winner]
        out[q] = delta


@dataclass(frozen=True, repr=False)
class MRR(Measure):
    """Reciprocal of the rank of the first relevant document, 0 if there is none; its mean over queries is MRR.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 0, 1], qid=[1, 1, 1])
    >>> MRR().values([3.0, 2.0, 1.0], data).round(4).tolist()
    [0.3333]
    """

    rel: float = rel_parameter()

    name: ClassVar[str] = "MRR"
    aliases: ClassVar[tuple[str, ...]] = ("RR",)
    swap: ClassVar[SwapKernels | None] = SwapKernels(RECIPROCAL_RANK, rr_prepare, rr_row)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return _values  # type: ignore[no-any-return]

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, threads: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = relevant(labels, self.rel)
        norm = np.ones(len(indptr) - 1)
        return Prepared(gain, norm, cut(self.cutoff, indptr), query_sums(gain, indptr) == 0)
