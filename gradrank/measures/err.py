"""Expected reciprocal rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import MeasureError
from gradrank.measures.base import IntArray, Measure, Prepared, cut
from gradrank.measures.ndcg import NDCG
from gradrank.measures.parameters import parameter
from gradrank.measures.position import highest
from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True)
def _values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):  # type: ignore[no-untyped-def]  # fmt: skip
    for q in range(first, end):
        start = indptr[q]
        stop = start + min(depth[q], retrieved[q])
        going_on = 1.0
        total = 0.0
        place = start
        while place < stop:
            group_end = place + 1 if len(tie_end) == 0 else tie_end[place]
            size = group_end - place
            if size == 1:
                stops = gain[order[place]]
                total += going_on * stops / (place - start + 1)
                going_on *= 1.0 - stops
            else:
                # passing[j] = mean over all sets of j tied documents of the chance to pass all of them; documents
                # are added one by one: a random set of j of m documents holds the newest with probability j/m.
                # Only the ranks that count are needed, and the last entry (all passed) is a plain product.
                kept = min(size, stop - place)
                passing = np.zeros(kept + 1)
                passing[0] = 1.0
                passed_all = 1.0
                for m in range(1, size + 1):
                    passes = 1.0 - gain[order[place + m - 1]]
                    passed_all *= passes
                    for j in range(min(m, kept), 0, -1):
                        passing[j] = (1.0 - j / m) * passing[j] + j / m * passes * passing[j - 1]
                for j in range(kept):
                    total += going_on * (passing[j] - passing[j + 1]) / (place + j - start + 1)
                going_on *= passed_all
            place = group_end
        out[q] = total


@njit(cache=True, nogil=True, plain=True)
def err_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """For each document: (0) chance to reach its rank times the rank's worth, (1, 2) ERR of the ranks above it without
    and with it, (3) 1/(1 − R)."""
    reach = 1.0
    total = 0.0
    for r in range(n):
        i = order[r]
        worth = reach / (r + 1) if r < depth else 0.0
        state[0, i] = worth
        state[1, i] = total
        total += worth * gain[i]
        state[2, i] = total
        state[3, i] = 1.0 / (1.0 - gain[i])
        reach *= 1.0 - gain[i]


@njit(cache=True, nogil=True, inline="always")
def err_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """See swap_row.

    With D the worth of a rank, S the expected worth of stopping between ranks a < b (having passed a) and B the chance
    to pass everything between them, swapping a and b adds reach(a)·(R_b − R_a)·(D_a − S − B·D_b); S and B are
    differences and quotients of running sums (R < 1 always, so that nothing is divided by 0).
    """
    place = rank[i]
    own = gain[i]
    reach = state[0, i]
    above = state[1, i]
    through = state[2, i]
    passing = state[3, i]
    for j in range(np.uint64(low), np.uint64(high)):
        difference = gain[j] - own
        below_me = difference * (reach - (state[1, j] - through + state[0, j]) * passing)
        above_me = -difference * (state[0, j] - (above - state[2, j] + reach) * state[3, j])
        out[j] = below_me if place < rank[j] else above_me
    if low <= i < high:
        out[i] = 0.0


@dataclass(frozen=True, repr=False)
class ERR(Measure):
    """Expected reciprocal rank of the document that satisfies the user (Chapelle et al. 2009).

    ERR@k = Σ_{r≤k} (1/r)·R(l(r))·Π_{t<r} (1 − R(l(t))), R(l) = (2^l − 1)/2^{top}.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    top
        The top grade: a number, or ``query`` for the query's largest label.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, [4, 0], qid=[1, 1])
    >>> ERR().values([2.0, 1.0], data).tolist()
    [0.9375]
    """

    top: float | str = parameter("the top grade: a number, or the query's largest label", "query", low=0.0)

    name: ClassVar[str] = "ERR"
    swap: ClassVar[SwapKernels | None] = SwapKernels(err_prepare, err_row, state_rows=4)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return _values  # type: ignore[no-any-return]

    def training_target(self) -> Measure:
        """NDCG: behind a document that satisfies, ERR hardly sees a swap."""
        return NDCG.of_labels(self, "exp2")

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        level = np.where(labels > 0, labels, 0.0).astype(np.float64)
        largest = highest(level, indptr)
        if isinstance(self.top, str):
            top = np.repeat(largest, np.diff(indptr))
        else:
            top = np.full(len(level), self.top)
            if largest.max(initial=0.0) > self.top:
                raise MeasureError(
                    f"{self.name}: label {largest.max():g} is above the top grade {self.top:g}; "
                    f"give the scale's top grade, e.g. {self.name}(top={np.ceil(largest.max()):g})"
                )
        # (2^l − 1)/2^top, written so that large position labels do not overflow.
        gain = np.exp2(level - top) - np.exp2(-top)
        norm = np.ones(len(largest))
        return Prepared(gain, norm, cut(self.cutoff, indptr), largest <= 0.0)
