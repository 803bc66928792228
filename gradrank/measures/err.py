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

_LEAST_PASSING = 2.0**-20
_LONG_TIE = 1024
# What is smaller than this in comparison does not change a sum in double precision.
_NOTHING = 1e-20


@njit(cache=True, nogil=True, inner=True)
def _expected_worth(k, m, n, above, kept):  # type: ignore[no-untyped-def]
    """Mean of 1/(above + x) over the place x of the k-th of m documents that stand among n at random; 0 beyond kept.

    P(x) is proportional to C(x − 1, k − 1)·C(n − x, m − k): from the mean of x outwards, each by its neighbor.
    """
    middle = min(max(int(k * (n + 1.0) / (m + 1.0)), k), n - m + k)
    everything = 0.0
    worth = 0.0
    chance = 1.0
    for x in range(middle, n - m + k + 1):
        everything += chance
        if x <= kept:
            worth += chance / (above + x)
        factor = x / (x - k + 1.0) * ((n - x - m + k) / (n - x)) if x < n else 0.0
        chance *= factor
        if chance < _NOTHING * everything and factor < 1.0:
            break
    chance = 1.0
    for x in range(middle, k, -1):
        factor = (x - k) / (x - 1.0) * ((n - x + 1.0) / (n - x - m + k + 1.0))
        chance *= factor
        everything += chance
        if x - 1 <= kept:
            worth += chance / (above + x - 1)
        if chance < _NOTHING * everything and factor < 1.0:
            break
    return worth / everything


@njit(cache=True, nogil=True, inner=True)
def _long_tie(gain, order, place, group_end, above, kept):  # type: ignore[no-untyped-def]
    """ERR of tied documents from rank above + 1 on, and the chance to pass all of them, for many documents.

    Only those of the m documents with a gain stop anybody: the user comes to the k-th of them with the mean chance
    to pass k − 1 of them, which by Maclaurin's inequality is at most the (k − 1)-th power of the mean chance to pass
    one; from where this is nothing, no more are looked at.
    """
    m = 0
    mean = 0.0
    passed_all = 1.0
    for at in range(place, group_end):
        if gain[order[at]] > 0.0:
            m += 1
            mean += 1.0 - gain[order[at]]
            passed_all *= 1.0 - gain[order[at]]
    if m == 0:
        return 0.0, 1.0
    mean /= m
    needed = m
    if mean <= 0.0:
        needed = 1
    elif mean < 1.0:
        needed = int(min(float(m), np.log(_NOTHING) / np.log(mean) + 1.0))
    needed = max(1, needed)
    passing = np.zeros(needed + 1)
    passing[0] = 1.0
    seen = 0
    for at in range(place, group_end):
        stops = gain[order[at]]
        if stops > 0.0:
            seen += 1
            for j in range(min(seen, needed), 0, -1):
                passing[j] = (1.0 - j / seen) * passing[j] + j / seen * (1.0 - stops) * passing[j - 1]
    total = 0.0
    for k in range(1, needed + 1):
        stopping = passing[k - 1] - passing[k]
        total += stopping * _expected_worth(k, m, group_end - place, above, kept)
    return total, passed_all


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
            elif size > _LONG_TIE:
                worth, passed_all = _long_tie(gain, order, place, group_end, place - start, min(size, stop - place))
                total += going_on * worth
                going_on *= passed_all
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
    and with it, (3) 1/(1 − R); nobody is so sure to stop that running sums could not tell what comes behind."""
    reach = 1.0
    total = 0.0
    for r in range(n):
        i = order[r]
        worth = reach / (r + 1) if r < depth else 0.0
        state[0, i] = worth
        state[1, i] = total
        total += worth * gain[i]
        state[2, i] = total
        passes = max(1.0 - gain[i], _LEAST_PASSING)
        state[3, i] = 1.0 / passes
        reach *= passes


@njit(cache=True, nogil=True, inline="always")
def err_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """See swap_row.

    With D the worth of a rank, S the expected worth of stopping between ranks a < b (having passed a) and B the chance
    to pass everything between them, swapping a and b adds reach(a)·(R_b − R_a)·(D_a − S − B·D_b); S and B are
    differences and quotients of running sums (1 − R is 2⁻²⁰ or more, so that nothing is divided by 0, and what is
    behind a document of top grade 20 or more keeps half of its digits).
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
