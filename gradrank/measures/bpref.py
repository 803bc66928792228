"""Binary preference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared, query_sums, relevant
from gradrank.measures.parameters import rel_parameter
from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True, plain=True)
def _credit(above, n_relevant, n_nonrelevant):  # type: ignore[no-untyped-def]
    """Credit of a relevant document with so many judged non-relevant ones above it."""
    if above <= 0.0:
        return 1.0
    return 1.0 - min(above, n_relevant) / min(n_relevant, n_nonrelevant)


@njit(cache=True, nogil=True)
def _values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):  # type: ignore[no-untyped-def]  # fmt: skip
    for q in range(first, end):
        start = indptr[q]
        n_relevant = 0.0
        n_nonrelevant = 0.0
        for row in range(start, indptr[q + 1]):
            if gain[row] == 1.0:
                n_relevant += 1.0
            elif gain[row] == 0.0:
                n_nonrelevant += 1.0
        stop = start + retrieved[q]
        above = 0.0
        total = 0.0
        place = start
        while place < stop:
            group_end = place + 1 if len(tie_end) == 0 else tie_end[place]
            hits = 0.0
            misses = 0
            for at in range(place, group_end):
                if gain[order[at]] == 1.0:
                    hits += 1.0
                elif gain[order[at]] == 0.0:
                    misses += 1
            if hits > 0.0:
                # Of the tied non-relevant documents, 0, 1, …, all stand above a given relevant one, equally likely.
                credit = 0.0
                for extra in range(misses + 1):
                    credit += _credit(above + extra, n_relevant, n_nonrelevant)
                total += hits * credit / (misses + 1)
            above += misses
            place = group_end
        out[q] = total / norm[q]


@njit(cache=True, nogil=True, plain=True)
def bpref_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """For each document: (0) judged non-relevant ones above it; running change of the relevant documents' credit when
    (1) one more or (2, 3) one less stands above them, (3) without the document itself. Row 4: the two counts."""
    n_relevant = 0.0
    n_nonrelevant = 0.0
    for i in range(n):
        if gain[i] == 1.0:
            n_relevant += 1.0
        elif gain[i] == 0.0:
            n_nonrelevant += 1.0
    state[4, 0] = n_relevant
    state[4, 1] = n_nonrelevant
    above = 0.0
    more = 0.0
    less = 0.0
    for r in range(n):
        i = order[r]
        state[0, i] = above
        state[3, i] = less
        if gain[i] == 1.0 and n_nonrelevant > 0.0:
            credit = _credit(above, n_relevant, n_nonrelevant)
            more += _credit(above + 1.0, n_relevant, n_nonrelevant) - credit
            less += _credit(above - 1.0, n_relevant, n_nonrelevant) - credit
        elif gain[i] == 0.0:
            above += 1.0
        state[1, i] = more
        state[2, i] = less


@njit(cache=True, nogil=True, plain=True)
def bpref_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """See swap_row."""
    n_relevant = state[4, 0]
    n_nonrelevant = state[4, 1]
    for j in range(low, high):
        upper = i if rank[i] < rank[j] else j
        lower = j if upper == i else i
        up = gain[upper]
        down = gain[lower]
        if up == down or n_nonrelevant == 0.0:
            out[j] = 0.0
            continue
        delta = 0.0
        # What stands between sees one more above if a non-relevant document comes up, one less if one goes down.
        if down == 0.0:
            delta += state[1, lower] - state[1, upper]
        elif up == 0.0:
            delta += state[3, lower] - state[2, upper]
        if up == 1.0:
            arrived = 1.0 if down == 0.0 else 0.0
            delta += _credit(state[0, lower] + arrived, n_relevant, n_nonrelevant)
            delta -= _credit(state[0, upper], n_relevant, n_nonrelevant)
        elif down == 1.0:
            delta += _credit(state[0, upper], n_relevant, n_nonrelevant)
            delta -= _credit(state[0, lower], n_relevant, n_nonrelevant)
        out[j] = delta / norm


@dataclass(frozen=True, repr=False)
class Bpref(Measure):
    """Binary preference: how seldom judged non-relevant documents stand above relevant ones (Buckley & Voorhees 2004).

    bpref = (1/R) Σ_{relevant d} (1 − min(nonrelevant above d, R)/min(R, N)), R relevant and N judged non-relevant
    documents; unjudged documents do not count.

    Parameters
    ----------
    rel
        Smallest label that counts as relevant.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 4, [1, 0, 1, float("nan")], qid=[1, 1, 1, 1])
    >>> Bpref().values([3.0, 2.0, 1.0, 4.0], data).tolist()
    [0.5]
    """

    rel: float = rel_parameter()

    name: ClassVar[str] = "Bpref"
    takes_cutoff: ClassVar[bool] = False
    swap: ClassVar[SwapKernels | None] = SwapKernels(bpref_prepare, bpref_row, state_rows=5)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return _values  # type: ignore[no-any-return]

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        found = relevant(labels, self.rel)
        count = query_sums(found, indptr)
        gain = np.where(np.isnan(labels), -1.0, found)
        return Prepared(gain, np.maximum(count, 1.0), np.diff(indptr), count == 0)
