"""Reciprocal rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared, cut, query_sums, relevant
from gradrank.measures.ndcg import NDCG
from gradrank.measures.parameters import rel_parameter
from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.kernels import njit


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


@njit(cache=True, nogil=True, plain=True)
def rr_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: value of each document's rank; row 1: rank of the first relevant document, and the values of the first and
    the second one's rank."""
    found = 0
    state[1, 0] = -1.0
    state[1, 1] = 0.0
    state[1, 2] = 0.0
    for r in range(n):
        i = order[r]
        worth = 1.0 / (r + 1) if r < depth else 0.0
        state[0, i] = worth
        if gain[i] > 0.0 and found < 2:
            if found == 0:
                state[1, 0] = r
            state[1, 1 + found] = worth
            found += 1


@njit(cache=True, nogil=True, inline="always")
def rr_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """See swap_row.

    If a non-relevant document y takes the first relevant one's place, the second relevant one or the old first,
    now at y's rank, comes first; if it changes with another relevant one, that matters only from above the first.
    """
    winner = state[1, 0]
    first = state[1, 1]
    second = state[1, 2]
    own = state[0, i]
    if gain[i] > 0.0:
        if rank[i] == winner:
            for j in range(np.uint64(low), np.uint64(high)):
                out[j] = (1.0 - gain[j]) * (max(state[0, j], second) - first)
        else:
            for j in range(np.uint64(low), np.uint64(high)):
                out[j] = (1.0 - gain[j]) * max(state[0, j] - first, 0.0)
    else:
        to_winner = max(own, second) - first
        to_others = max(own - first, 0.0)
        for j in range(np.uint64(low), np.uint64(high)):
            out[j] = gain[j] * (to_winner if rank[j] == winner else to_others)


@dataclass(frozen=True, repr=False)
class MRR(Measure):
    """Reciprocal of the rank of the first relevant document, 0 if there is none; its mean over queries is MRR.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    rel
        Smallest label that counts as relevant.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 0, 1], qid=[1, 1, 1])
    >>> MRR().values([3.0, 2.0, 1.0], data).round(4).tolist()
    [0.3333]
    """

    rel: float = rel_parameter()

    name: ClassVar[str] = "MRR"
    aliases: ClassVar[tuple[str, ...]] = ("RR",)
    swap: ClassVar[SwapKernels | None] = SwapKernels(rr_prepare, rr_row, state_rows=2)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return _values  # type: ignore[no-any-return]

    def training_target(self) -> Measure:
        """NDCG: it sees swaps with the first relevant document alone."""
        return NDCG.of_labels(self, "linear") if self.rel > 0 else super().training_target()

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = relevant(labels, self.rel)
        norm = np.ones(len(indptr) - 1)
        return Prepared(gain, norm, cut(self.cutoff, indptr), query_sums(gain, indptr) == 0)
