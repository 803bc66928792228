"""Average precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared, cut, query_sums, relevant
from gradrank.measures.ndcg import NDCG
from gradrank.measures.parameters import parameter, rel_parameter
from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True)
def _values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):  # type: ignore[no-untyped-def]  # fmt: skip
    for q in range(first, end):
        start = indptr[q]
        stop = start + min(depth[q], retrieved[q])
        total = 0.0
        hits = 0.0
        place = start
        if len(tie_end) == 0:
            # Without a branch: whether a document is relevant is what cannot be predicted.
            for at in range(start, stop):
                found = gain[order[at]]
                hits += found
                total += found * (hits / (at - start + 1))
            place = stop
        while place < stop:
            group_end = tie_end[place]
            if group_end == place + 1:
                if gain[order[place]] > 0.0:
                    hits += 1.0
                    total += hits / (place - start + 1)
            else:
                size = group_end - place
                tied_hits = 0.0
                for at in range(place, group_end):
                    tied_hits += gain[order[at]]
                # At the j-th place of the group stands a relevant document with probability m/t, and given that,
                # (j−1)(m−1)/(t−1) other relevant ones of the group stand before it (McSherry & Najork 2008).
                if tied_hits > 0.0:
                    others = (tied_hits - 1.0) / (size - 1)
                    for at in range(place, min(group_end, stop)):
                        expected = hits + 1.0 + (at - place) * others
                        total += tied_hits / size * expected / (at - start + 1)
                hits += tied_hits
            place = group_end
        out[q] = total / norm[q]


@njit(cache=True, nogil=True, plain=True)
def ap_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: precision at the document's rank minus Σ rel/rank down to it; row 1: 1/rank; beyond the depth nothing."""
    hits = 0.0
    harmonic = 0.0
    for r in range(n):
        i = order[r]
        hits += gain[i]
        worth = 1.0 / ((r + 1) * norm) if r < depth else 0.0
        harmonic += gain[i] * worth
        state[0, i] = hits * worth - harmonic
        state[1, i] = worth


@njit(cache=True, nogil=True, inline="always")
def ap_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """See swap_row.

    With u = row 0 and v = row 1, swapping a relevant document x and a non-relevant one y changes AP by
    u_y − u_x, and by v_y − v_x on top if x stands below y (which moves x up past the documents between them).
    """
    own = state[0, i]
    worth = state[1, i]
    place = rank[i]
    if gain[i] > 0.0:
        for j in range(np.uint64(low), np.uint64(high)):
            extra = state[1, j] - worth if place > rank[j] else 0.0
            out[j] = (1.0 - gain[j]) * (state[0, j] - own + extra)
    else:
        for j in range(np.uint64(low), np.uint64(high)):
            extra = worth - state[1, j] if rank[j] > place else 0.0
            out[j] = gain[j] * (own - state[0, j] + extra)


@dataclass(frozen=True, repr=False)
class MAP(Measure):
    """Average precision; its mean over queries is MAP.

    AP@L = (1/R) Σ_{r≤L} rel(r)·P@r, R = number of relevant documents of the query.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    rel
        Smallest label that counts as relevant.
    denominator
        Divide by all ``relevant`` documents, or by at most the ``cutoff``.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], qid=[1, 1, 1])
    >>> MAP().values([3.0, 2.0, 1.0], data).round(4).tolist()
    [0.8333]
    """

    rel: float = rel_parameter()
    denominator: str = parameter("divide by all relevant documents, or by at most the cut-off", "relevant", "cutoff")

    name: ClassVar[str] = "MAP"
    aliases: ClassVar[tuple[str, ...]] = ("AP",)
    swap: ClassVar[SwapKernels | None] = SwapKernels(ap_prepare, ap_row, state_rows=2)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return _values  # type: ignore[no-any-return]

    def training_target(self) -> Measure:
        """NDCG: what it sees of the grades is one threshold; without a cut-off it stays itself."""
        return NDCG.of_labels(self, "linear") if self.cutoff is not None and self.rel > 0 else super().training_target()

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = relevant(labels, self.rel)
        count = query_sums(gain, indptr)
        norm = np.maximum(count, 1.0)
        if self.denominator == "cutoff" and self.cutoff is not None:
            norm = np.minimum(norm, self.cutoff)
        return Prepared(gain, norm, cut(self.cutoff, indptr), count == 0)
