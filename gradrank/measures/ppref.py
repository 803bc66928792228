"""Precision of preferences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared, cut
from gradrank.measures.label_levels import count_below, count_up, label_levels
from gradrank.measures.preferences import preference_prepare, preference_row
from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True, plain=True)
def _share(size, taken, top, all_tied):  # type: ignore[no-untyped-def]
    """Probability that ``taken`` of ``size`` documents are drawn, each with the chance top/all_tied."""
    ways = lgamma(size + 1.0) - lgamma(taken + 1.0) - lgamma(size - taken + 1.0)
    chance = top / all_tied
    return np.exp(ways + taken * np.log(chance) + (size - taken) * np.log(1.0 - chance))


@njit(cache=True, nogil=True)
def _across_cutoff(right, all_pairs, n_levels, tied, beneath, unjudged, top):  # type: ignore[no-untyped-def]
    """Expected share of right pairs if ``top`` of the tied documents, drawn at random, stand above the cut-off.

    How many pairs are ordered depends on which levels are drawn: pairs of documents that both stay below are not. So
    a sum over draws, level by level. Its state is the number drawn and Σ (N_l² − b_l²), N_l documents of the level that
    are tied or beneath and b_l those that stay below; the share of pairs needs no more of a draw than these.
    """
    all_tied = unjudged
    widest = 0.0
    squares = 0.0
    judged_below = 0.0
    for level in range(n_levels):
        both = tied[level] + beneath[level]
        all_tied += tied[level]
        widest = max(widest, both) if tied[level] > 0.0 else widest
        squares += both * both
        judged_below += both
    width = int(2.0 * widest * top) + 1
    mass = np.zeros((top + 1, width))
    gained = np.zeros((top + 1, width))
    mass[0, 0] = 1.0
    tied_lower = 0.0
    beneath_lower = 0.0
    for level in range(n_levels):
        size = int(tied[level])
        if size > 0:
            both = size + int(beneath[level])
            new_mass = np.zeros((top + 1, width))
            new_gained = np.zeros((top + 1, width))
            for drawn in range(top + 1):
                for square in range(width):
                    weight = mass[drawn, square]
                    if weight == 0.0:
                        continue
                    for taken in range(min(size, top - drawn) + 1):
                        share = _share(size, taken, top, all_tied)
                        # Lower ones that stay below are surely in order, lower ones drawn as well half the time.
                        won = taken * (beneath_lower + tied_lower - drawn + 0.5 * drawn)
                        at = square + taken * (2 * both - taken)
                        new_mass[drawn + taken, at] += share * weight
                        new_gained[drawn + taken, at] += share * (gained[drawn, square] + won * weight)
            mass = new_mass
            gained = new_gained
        tied_lower += size
        beneath_lower += beneath[level]
    total = 0.0
    for drawn in range(top + 1):
        others = top - drawn
        if others > unjudged:
            continue
        share = _share(unjudged, others, top, all_tied)
        for square in range(width):
            if mass[drawn, square] > 0.0:
                stay = judged_below - drawn
                known = all_pairs - 0.5 * (stay * stay - (squares - square))
                if known > 0.0:
                    total += share * (right * mass[drawn, square] + gained[drawn, square]) / known
    return total / _share(all_tied, top, top, all_tied)


@njit(cache=True, nogil=True)
def _values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):  # type: ignore[no-untyped-def]  # fmt: skip
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        stop = start + min(depth[q], retrieved[q])
        below = np.zeros(n + 1)
        tied = np.zeros(n + 1)
        left = 0.0
        for row in range(start, indptr[q + 1]):
            if gain[row] >= 0.0:
                count_up(below, int(gain[row]), 1.0)
                left += 1.0
        right = 0.0
        ordered = 0.0
        split = -1.0
        place = start
        while place < stop:
            group_end = place + 1 if len(tie_end) == 0 else tie_end[place]
            for at in range(place, group_end):
                if gain[order[at]] >= 0.0:
                    count_up(below, int(gain[order[at]]), -1.0)
                    left -= 1.0
            if group_end > stop:
                tied_levels = np.zeros(n)
                unjudged = 0
                for at in range(place, group_end):
                    if gain[order[at]] >= 0.0:
                        tied_levels[int(gain[order[at]])] += 1.0
                    else:
                        unjudged += 1
                beneath = np.empty(n)
                for level in range(n):
                    beneath[level] = count_below(below, level + 1) - count_below(below, level)
                split = _across_cutoff(right, norm[q], n, tied_levels, beneath, unjudged, stop - place)
                break
            seen = 0.0
            for at in range(place, group_end):
                level = int(gain[order[at]])
                if level >= 0:
                    lower = count_below(below, level)
                    right += lower
                    ordered += lower + left - count_below(below, level + 1)
                    pairs = count_below(tied, level) + seen - count_below(tied, level + 1)
                    right += 0.5 * pairs
                    ordered += pairs
                    count_up(tied, level, 1.0)
                    seen += 1.0
            for at in range(place, group_end):
                if gain[order[at]] >= 0.0:
                    count_up(tied, int(gain[order[at]]), -1.0)
            place = group_end
        if retrieved[q] < depth[q]:
            ordered = norm[q]
        if split >= 0.0:
            out[q] = split
        else:
            out[q] = right / ordered if ordered > 0.0 else 0.0


@njit(cache=True, nogil=True, plain=True)
def ppref_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Rows 0…3: those of preference_prepare; row 4: documents below the cut-off by level; row 5: right pairs, pairs in
    reach, cut-off, judged documents below it."""
    preference_prepare(n, order, rank, gain, weight, 1.0, depth, option, state)
    for level in range(n):
        state[4, level] = 0.0
    right = 0.0
    judged = 0.0
    for r in range(n):
        level = int(gain[order[r]])
        if r < depth:
            right += state[0, order[r]]
        elif level >= 0:
            state[4, level] += 1.0
            judged += 1.0
    out_of_reach = judged * judged
    for level in range(n):
        out_of_reach -= state[4, level] * state[4, level]
    state[5, 0] = right
    state[5, 1] = norm - 0.5 * out_of_reach
    state[5, 2] = depth
    state[5, 3] = judged


@njit(cache=True, nogil=True, plain=True)
def ppref_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """See swap_row.

    Right pairs change as in preference_row. Pairs in reach change if the swap crosses the cut-off: those of the
    document that goes down with others below leave, those of the document that comes up enter.
    """
    preference_row(i, low, high, n, order, rank, gain, norm, option, state, out)
    right = state[5, 0]
    reach = state[5, 1]
    depth = state[5, 2]
    judged = state[5, 3]
    now = right / reach if reach > 0.0 else 0.0
    for j in range(low, high):
        upper = i if rank[i] < rank[j] else j
        lower = j if upper == i else i
        new_reach = reach
        if rank[upper] < depth <= rank[lower]:
            up = int(gain[upper])
            down = int(gain[lower])
            if down >= 0:
                new_reach += judged - state[4, down]
            if up >= 0:
                # Among the others below: without the document that comes up.
                new_reach -= judged - state[4, up]
                if down >= 0 and down != up:
                    new_reach += 1.0
        out[j] = (right + out[j]) / new_reach - now if new_reach > 0.0 else -now


@dataclass(frozen=True, repr=False)
class PPref(Measure):
    """Precision of preferences: share of the judged pairs in reach of the first k ranks that are in order.

    Carterette & Bennett (2008), Evaluation measures for preference judgments:
    ppref@k = #{(i, j): l_i > l_j, r_i < r_j, r_i ≤ k} / #{(i, j): l_i > l_j, min(r_i, r_j) ≤ k}. A pair is judged if
    both documents are and their labels differ. The ideal order has 1 at every k, so that the normalized form is the
    measure itself; without cut-off it is (1 + τ)/2. If none of the first k is in a judged pair it is 0; a list with
    fewer documents retrieved than count is held to all pairs.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`; unjudged documents keep their ranks and are in no pair. One of them among the first k
        takes its place from pairs right and wrong alike, so that ``ties`` by label bound judged lists only.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 2, 0], qid=[1, 1, 1])
    >>> PPref(1).values([3.0, 2.0, 1.0], data).tolist(), PPref(2).values([3.0, 2.0, 1.0], data).round(4).tolist()
    ([0.5], [0.6667])
    """

    name: ClassVar[str] = "PPref"
    swap: ClassVar[SwapKernels | None] = SwapKernels(ppref_prepare, ppref_row, state_rows=6)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return _values  # type: ignore[no-any-return]

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        level, pairs, _ = label_levels(labels, indptr, n_jobs)
        return Prepared(level, pairs, cut(self.cutoff, indptr), pairs == 0.0, np.ones(len(level)))
