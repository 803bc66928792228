"""Measures that are a sum over ranks of (gain of the document) × (weight of the rank).

NDCG, DCG, precision, recall, rank-biased precision, winner-takes-all and their variants differ only in the two
factors, so they share one kernel and one swap delta: exchanging ranks p and q changes the sum by
(g_p − g_q)·(w_q − w_p).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import MeasureError
from gradrank.measures.base import FloatArray, IntArray, Measure
from gradrank.measures.swaps import SwapKernels
from gradrank.ranking import longest_list, order_list_with, order_scratch
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

_LARGEST_EXPONENT = 1000.0
# 2^label − 1 of the labels that nearly all data has.
_POWERS = 2.0 ** np.arange(64) - 1.0
# Up to this many ranks, keeping the largest gains in order is faster than sorting all.
_SELECTED = 32


@njit(cache=True, nogil=True, plain=True)
def position_values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):  # type: ignore[no-untyped-def]  # fmt: skip
    """Σ gain × weight over the ranks that count; tied documents share the mean of their gains."""
    for q in range(first, end):
        place = indptr[q]
        stop = place + min(depth[q], retrieved[q])
        total = 0.0
        if len(tie_end) == 0:
            for at in range(place, stop):
                total += gain[order[at]] * weight[at]
        else:
            while place < stop:
                group_end = tie_end[place]
                if group_end == place + 1:
                    total += gain[order[place]] * weight[place]
                else:
                    gains = 0.0
                    for at in range(place, group_end):
                        gains += gain[order[at]]
                    weights = 0.0
                    for at in range(place, min(group_end, stop)):
                        weights += weight[at]
                    total += gains / (group_end - place) * weights
                place = group_end
        out[q] = total / norm[q]


@njit(cache=True, nogil=True, plain=True)
def position_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Gain of each document and weight of its rank; ranks beyond the depth weigh nothing."""
    for i in range(n):
        state[0, i] = gain[i]
        state[1, i] = weight[rank[i]] / norm if rank[i] < depth else 0.0


@njit(cache=True, nogil=True, plain=True, inline="always")
def position_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """See swap_row."""
    own_gain = state[0, i]
    own_weight = state[1, i]
    for j in range(np.uint64(low), np.uint64(high)):
        out[j] = (own_gain - state[0, j]) * (state[1, j] - own_weight)


@njit(cache=True, nogil=True, plain=True)
def _shallow_ideal_sums(first, end, indptr, gain, weight, depth, best, out):  # type: ignore[no-untyped-def]
    """Σ gain × weight of the best order, where few ranks count: keeps only the largest gains, in order."""
    for q in range(first, end):
        start = indptr[q]
        last = depth[q] - 1
        for r in range(depth[q]):
            best[r] = 0.0
        for row in range(start, indptr[q + 1]):
            worth = gain[row]
            if worth > best[last]:
                at = last
                while at > 0 and best[at - 1] < worth:
                    best[at] = best[at - 1]
                    at -= 1
                best[at] = worth
        total = 0.0
        for r in range(depth[q]):
            total += best[r] * weight[start + r]
        out[q] = total


@njit(cache=True, nogil=True, plain=True)
def _ideal_sums(  # type: ignore[no-untyped-def]
    first, end, indptr, gain, weight, depth, order, scratch, out
):  # fmt: skip
    """As _shallow_ideal_sums, for any depth."""
    for q in range(first, end):
        start = indptr[q]
        stop = indptr[q + 1]
        order_list_with(gain[start:stop], stop - start, order, scratch)
        total = 0.0
        for r in range(depth[q]):
            total += gain[start + order[r]] * weight[start + r]
        out[q] = total


@dataclass(frozen=True, repr=False)
class PositionMeasure(Measure):
    """Base of the measures that are a sum over ranks of gain × weight."""

    swap: ClassVar[SwapKernels | None] = SwapKernels(position_prepare, position_row, state_rows=2, single=True)

    def kernel(self) -> Callable[..., None]:
        """See Measure.kernel."""
        return position_values  # type: ignore[no-any-return]


def ideal_sums(
    gain: FloatArray, weight: FloatArray, depth: IntArray, indptr: IntArray, n_jobs: int | None
) -> FloatArray:
    """The largest value that Σ gain × weight can take in each query."""
    out = np.empty(len(indptr) - 1)
    shallow = int(depth.max(initial=0)) <= _SELECTED

    def work(first: int, end: int) -> None:
        if shallow:
            _shallow_ideal_sums(first, end, indptr, gain, weight, depth, np.empty(_SELECTED), out)
        else:
            longest = longest_list(indptr, first, end)
            order = np.empty(longest, np.int64)
            _ideal_sums(first, end, indptr, gain, weight, depth, order, order_scratch(longest), out)

    for_query_blocks(work, indptr, n_jobs)
    return out


def graded_gains(measure: str, labels: NDArray[np.float32], gain: str | tuple[float, ...]) -> FloatArray:
    """What each document is worth; labels below 0 and missing ones are worth nothing.

    >>> graded_gains("NDCG", np.array([0, 1, 2, -1, np.nan], dtype=np.float32), "exp2").tolist()
    [0.0, 1.0, 3.0, 0.0, 0.0]
    """
    if gain == "exp2":
        with np.errstate(invalid="ignore", over="ignore"):
            whole = labels.astype(np.uint8)
        if np.array_equal(whole, labels) and int(whole.max(initial=0)) < len(_POWERS):
            return np.asarray(_POWERS[whole])  # a table is much faster than powers
        largest = float(np.nanmax(labels)) if not np.isnan(labels).all() else 0.0
        if largest > _LARGEST_EXPONENT:
            raise MeasureError(
                f"{measure}: label {largest:g} is too large for the gain 2^label − 1; "
                "use gain=linear or a list of gains"
            )
        gains = np.exp2(np.where(labels > 0, labels, 0.0).astype(np.float64)) - 1.0
        return np.asarray(gains)
    level = np.where(labels > 0, labels, 0.0).astype(np.float64)
    if gain == "linear":
        return level
    table = np.asarray(gain, dtype=np.float64)
    index = level.astype(np.int64)
    if (index != level).any() or int(index.max(initial=0)) >= len(table):
        bad = level[(index != level) | (index >= len(table))][0]
        raise MeasureError(
            f"{measure}: label {bad:g} has no entry in the list of {len(table)} gains (labels 0…{len(table) - 1})"
        )
    return np.asarray(table[index])


def discounts(kind: str, longest: int) -> FloatArray:
    """Weights of the ranks 1, 2, …, ``longest``.

    >>> discounts("letor", 4).round(3).tolist()
    [1.0, 1.0, 0.631, 0.5]
    """
    rank = np.arange(1, longest + 1, dtype=np.float64)
    if kind == "log2":
        return np.asarray(1.0 / np.log2(rank + 1.0))
    if kind == "ln":
        return np.asarray(1.0 / np.log(rank + 1.0))
    if kind == "reciprocal":
        return 1.0 / rank
    return np.asarray(1.0 / np.log2(np.maximum(rank, 2.0)))


def spread(table: FloatArray, indptr: IntArray) -> FloatArray:
    """Lay a table of rank weights over the ranks of every query."""
    sizes = np.diff(indptr)
    positions = np.arange(indptr[-1]) - np.repeat(indptr[:-1], sizes)
    return np.asarray(table[positions])


def highest(values: NDArray[Any], indptr: IntArray) -> NDArray[Any]:
    """Largest value of each query."""
    return np.asarray(np.maximum.reduceat(values, indptr[:-1]))
