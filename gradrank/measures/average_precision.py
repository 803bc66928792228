"""Average precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gradrank.measures.base import (
    AVERAGE_PRECISION,
    IntArray,
    Measure,
    Prepared,
    SwapKernels,
    cut,
    query_sums,
    relevant,
)
from gradrank.measures.parameters import parameter, rel_parameter


@njit(cache=True, nogil=True)
def _values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):  # type: ignore[no-untyped-def]  # fmt: skip
    for q in range(first, end):
        start = indptr[q]
        stop = start + min(depth[q], retrieved[q])
        total = 0.0
        hits = 0.0
        place = start
        while place < stop:
            group_end = place + 1 if len(tie_end) == 0 else tie_end[place]
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


@njit(cache=True, nogil=True)
def ap_prepare(n, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Running number of relevant documents, and running sum of rel/rank over the ranks that count."""
    hits = 0.0
    harmonic = 0.0
    for p in range(n):
        hits += gain[p]
        if p < depth:
            harmonic += gain[p] / (p + 1)
        state[0, p] = hits
        state[1, p] = harmonic


@njit(cache=True, nogil=True)
def ap_row(p, n, gain, weight, norm, depth, option, state, out):  # type: ignore[no-untyped-def]
    """Swap deltas of rank p with every rank."""
    for q in range(n):
        if gain[p] == gain[q]:
            out[q] = 0.0
            continue
        upper = min(p, q)
        lower = max(p, q)
        at_upper = 1.0 / (upper + 1) if upper < depth else 0.0
        at_lower = 1.0 / (lower + 1) if lower < depth else 0.0
        between = state[1, lower - 1] - state[1, upper]
        if gain[upper] > gain[lower]:
            delta = state[0, lower] * at_lower - state[0, upper] * at_upper - between
        else:
            delta = (state[0, upper] + 1.0) * at_upper - state[0, lower] * at_lower + between
        out[q] = delta / norm


@dataclass(frozen=True, repr=False)
class MAP(Measure):
    """Average precision; its mean over queries is MAP.

    AP@L = (1/R) Σ_{r≤L} rel(r)·P@r, R = number of relevant documents of the query.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], qid=[1, 1, 1])
    >>> MAP().values([3.0, 2.0, 1.0], data).round(4).tolist()
    [0.8333]
    """

    rel: float = rel_parameter()
    denominator: str = parameter("divide by all relevant documents, or by at most the cut-off", "relevant", "cutoff")

    name: ClassVar[str] = "MAP"
    aliases: ClassVar[tuple[str, ...]] = ("AP",)
    swap: ClassVar[SwapKernels | None] = SwapKernels(AVERAGE_PRECISION, ap_prepare, ap_row)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return _values  # type: ignore[no-any-return]

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, threads: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = relevant(labels, self.rel)
        count = query_sums(gain, indptr)
        norm = np.maximum(count, 1.0)
        if self.denominator == "cutoff" and self.cutoff is not None:
            norm = np.minimum(norm, self.cutoff)
        return Prepared(gain, norm, cut(self.cutoff, indptr), count == 0)
