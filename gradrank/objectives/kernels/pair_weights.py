"""Weights of pairs that are no swap deltas, in the form of :class:`SwapKernels`: the loop over pairs takes them."""

from __future__ import annotations

import numpy as np

from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.kernels import njit


# ---------------------------------------------------------------------- LambdaLoss
@njit(cache=True, nogil=True, plain=True)
def loss1_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: gain of a document times the discount of its rank, over the ideal sum."""
    for i in range(n):
        state[0, i] = gain[i] * weight[rank[i]] / norm


@njit(cache=True, nogil=True, plain=True, inline="always")
def loss1_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """The better document's discounted gain, whatever the other one."""
    own = state[0, i]
    for j in range(np.uint64(low), np.uint64(high)):
        out[j] = own


@njit(cache=True, nogil=True, plain=True)
def loss2_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: gain over the ideal sum; row 1: nothing; row 2: what one more rank of distance costs."""
    for i in range(n):
        state[0, i] = gain[i] / norm
        state[1, i] = 0.0
    for d in range(1, n):
        state[2, d] = abs(weight[d - 1] - weight[d])


@njit(cache=True, nogil=True, plain=True)
def loss2pp_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: gain over the ideal sum; row 1: discount of the document's rank; row 2: μ times that of loss2."""
    for i in range(n):
        state[0, i] = gain[i] / norm
        state[1, i] = weight[rank[i]]
    for d in range(1, n):
        state[2, d] = option * abs(weight[d - 1] - weight[d])


@njit(cache=True, nogil=True, plain=True, inline="always")
def loss2_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """(ρ_ij + μδ_ij)·(G_i − G_j)."""
    own = state[0, i]
    discount = state[1, i]
    place = rank[i]
    for j in range(np.uint64(low), np.uint64(high)):
        out[j] = (own - state[0, j]) * (abs(discount - state[1, j]) + state[2, abs(place - rank[j])])


# ---------------------------------------------------------------------- LambdaWide
@njit(cache=True, nogil=True, plain=True)
def wide_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: gain over the ideal sum; row 1: discount of the document's rank."""
    for i in range(n):
        state[0, i] = gain[i] / norm
        state[1, i] = weight[rank[i]]


@njit(cache=True, nogil=True, plain=True, inline="always")
def wide_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """(ρ_ij + μ)·(G_i − G_j)."""
    own = state[0, i]
    discount = state[1, i]
    more = np.float32(option)
    for j in range(np.uint64(low), np.uint64(high)):
        out[j] = (own - state[0, j]) * (abs(discount - state[1, j]) + more)


# ---------------------------------------------------------------------- LambdaGap
@njit(cache=True, nogil=True, plain=True)
def gap_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: nothing to add; row 1: the cut-off."""
    for i in range(n):
        state[0, i] = 0.0
    state[1, 0] = depth


@njit(cache=True, nogil=True, plain=True)
def gap_precision_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: whether a document stands above the cut-off; row 1: the cut-off."""
    for i in range(n):
        state[0, i] = 1.0 if rank[i] < depth else 0.0
    state[1, 0] = depth


@njit(cache=True, nogil=True, plain=True)
def gap_arp_prepare(n, order, rank, gain, weight, norm, depth, option, state):  # type: ignore[no-untyped-def]
    """Row 0: ranks by which a document stands below the cut-off; row 1: the cut-off."""
    for i in range(n):
        state[0, i] = max(rank[i] + 1 - depth, 0)
    state[1, 0] = depth


@njit(cache=True, nogil=True, plain=True, inline="always")
def gap_s_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """μ for documents just k ranks apart, plus what is added."""
    own = state[0, i]
    place = rank[i]
    k = np.int64(state[1, 0])
    for j in range(np.uint64(low), np.uint64(high)):
        out[j] = abs(own - state[0, j]) + (option if abs(place - rank[j]) == k else 0.0)


@njit(cache=True, nogil=True, plain=True, inline="always")
def gap_x_row(i, low, high, n, order, rank, gain, norm, option, state, out):  # type: ignore[no-untyped-def]
    """μ for documents k or more ranks apart, plus what is added."""
    own = state[0, i]
    place = rank[i]
    k = np.int64(state[1, 0])
    for j in range(np.uint64(low), np.uint64(high)):
        out[j] = abs(own - state[0, j]) + (option if abs(place - rank[j]) >= k else 0.0)


LOSS_SCHEMES = {
    "loss1": SwapKernels(loss1_prepare, loss1_row, state_rows=1, single=True),
    "loss2": SwapKernels(loss2_prepare, loss2_row, state_rows=3, single=True),
    "loss2pp": SwapKernels(loss2pp_prepare, loss2_row, state_rows=3, single=True),
}
"""The pair weights of LambdaLoss by name; ``option`` is μ."""

WIDE = SwapKernels(wide_prepare, wide_row, state_rows=2, single=True)
"""The pair weights of LambdaWide; ``option`` is μ."""

_ADDED = {"none": gap_prepare, "precision": gap_precision_prepare, "arp": gap_arp_prepare}
_FORMS = {"s": gap_s_row, "x": gap_x_row}
GAP_SCHEMES = {
    (form, added): SwapKernels(prepare, row, state_rows=2, single=True)
    for form, row in _FORMS.items()
    for added, prepare in _ADDED.items()
}
"""The pair weights of LambdaGap by form and by what is added; ``option`` is μ."""
