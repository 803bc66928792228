"""Measures that are a sum over correctly ordered pairs of the weight of the upper document's rank.

Rank r earns w(r) for each judged document below it that has a lower label. Recall of preferences and the weighted
measures differ only in weights and divisor, so they share one kernel and one swap delta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gradrank.measures.base import FloatArray, IntArray, Measure
from gradrank.measures.label_levels import count_below, count_up
from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks


@njit(cache=True, nogil=True)
def _values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):  # type: ignore[no-untyped-def]  # fmt: skip
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        stop = start + min(depth[q], retrieved[q])
        below = np.zeros(n + 1)
        tied = np.zeros(n + 1)
        for row in range(start, indptr[q + 1]):
            if gain[row] >= 0.0:
                count_up(below, int(gain[row]), 1.0)
        total = 0.0
        place = start
        while place < stop:
            group_end = place + 1 if len(tie_end) == 0 else tie_end[place]
            size = group_end - place
            weights = 0.0
            # Of a tied pair the upper stands at the j-th place with probability (t − j)/(t(t − 1)/2).
            pair_weights = 0.0
            for at in range(place, min(group_end, stop)):
                weights += weight[at]
                pair_weights += weight[at] * (group_end - 1 - at)
            for at in range(place, group_end):
                if gain[order[at]] >= 0.0:
                    count_up(below, int(gain[order[at]]), -1.0)
            lower = 0.0
            tied_pairs = 0.0
            seen = 0.0
            for at in range(place, group_end):
                level = int(gain[order[at]])
                if level >= 0:
                    lower += count_below(below, level)
                    if size > 1:
                        tied_pairs += count_below(tied, level) + seen - count_below(tied, level + 1)
                        count_up(tied, level, 1.0)
                        seen += 1.0
            total += lower * weights / size
            if size > 1:
                total += tied_pairs * pair_weights / (size * (size - 1.0))
                for at in range(place, group_end):
                    if gain[order[at]] >= 0.0:
                        count_up(tied, int(gain[order[at]]), -1.0)
            place = group_end
        out[q] = total / norm[q]


@njit(cache=True, nogil=True, plain=True)
def preference_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: lower documents below the document; row 1: weight by rank; rows 2 and 3 are trees of the row function."""
    tree = state[2]
    for at in range(n + 1):
        tree[at] = 0.0
    for r in range(n - 1, -1, -1):
        i = order[r]
        level = int(gain[i])
        state[0, i] = 0.0
        state[1, r] = weight[r] / norm if r < depth else 0.0
        if level >= 0:
            state[0, i] = count_below(tree, level)
            count_up(tree, level, 1.0)


@njit(cache=True, nogil=True, plain=True)
def preference_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """See swap_row.

    Documents x at rank a and y at rank b below swap. What stands between them gains w for x below it and loses w for y;
    y at a has beneath it, of lower documents, those that it had, those between and perhaps x; x at b loses these.
    """
    own = int(gain[i])
    place = rank[i]
    out[i] = 0.0
    counts = state[2]
    weights = state[3]
    for direction in (1, -1):
        for at in range(n + 1):
            counts[at] = 0.0
            weights[at] = 0.0
        total_weight = 0.0
        own_lower = 0.0
        own_higher_weight = 0.0
        r = place + direction
        while 0 <= r < n:
            j = order[r]
            level = int(gain[j])
            lower = 0.0
            higher_weight = 0.0
            if level >= 0:
                lower = count_below(counts, level)
                higher_weight = total_weight - count_below(weights, level + 1)
            both = own >= 0 and level >= 0
            own_above = 1.0 if both and own > level else 0.0
            other_above = 1.0 if both and level > own else 0.0
            if direction == 1:
                between = own_higher_weight - higher_weight
                up = state[1, place] * (state[0, j] + lower + other_above - state[0, i])
                down = state[1, r] * (state[0, i] - own_lower - own_above - state[0, j])
            else:
                between = higher_weight - own_higher_weight
                up = state[1, r] * (state[0, i] + own_lower + own_above - state[0, j])
                down = state[1, place] * (state[0, j] - lower - other_above - state[0, i])
            out[j] = up + down + between
            if level >= 0:
                count_up(counts, level, 1.0)
                count_up(weights, level, state[1, r])
                total_weight += state[1, r]
                own_lower += own_above
                own_higher_weight += other_above * state[1, r]
            r += direction


@njit(cache=True, nogil=True)
def _lower_counts(first, end, indptr, level, out):  # type: ignore[no-untyped-def]
    for q in range(first, end):
        start = indptr[q]
        stop = indptr[q + 1]
        tree = np.zeros(stop - start + 1)
        for row in range(start, stop):
            if level[row] >= 0.0:
                count_up(tree, int(level[row]), 1.0)
        for row in range(start, stop):
            out[row] = count_below(tree, int(level[row])) if level[row] >= 0.0 else 0.0


def lower_counts(level: FloatArray, indptr: IntArray, n_jobs: int | None) -> FloatArray:
    """Number of judged documents of the query with a lower level than the document's.

    >>> lower_counts(np.array([1.0, 0.0, 2.0, -1.0]), np.array([0, 4]), 1).tolist()
    [1.0, 0.0, 2.0, 0.0]
    """
    out = np.empty(len(level))

    def work(first: int, end: int) -> None:
        _lower_counts(first, end, indptr, level, out)

    for_query_blocks(work, indptr, n_jobs)
    return out


@dataclass(frozen=True, repr=False)
class PreferenceMeasure(Measure):
    """Base of the measures that are a sum over correctly ordered pairs."""

    swap: ClassVar[SwapKernels | None] = SwapKernels(preference_prepare, preference_row, state_rows=4)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return _values  # type: ignore[no-any-return]
