"""The loop over pairs, for any measure and any pair cost.

A row at a time: the measure fills one document's swap deltas against all worse documents into a scratch row, then the
cost turns the row into forces. Both switch outside the inner loops, which therefore vectorize. Which family of
measures it is decides the kernel's types, so that only that family's code is compiled. Documents are laid out by
descending gain (within the classes of documents that may be paired), so that the worse partners of document i are one
contiguous run, run_end[i]…limit[i], and the loops have no branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.average_precision import ap_prepare, ap_row
from gradrank.measures.base import (
    AVERAGE_PRECISION,
    BPREF,
    EXPECTED_RECIPROCAL_RANK,
    KENDALL,
    POSITION,
    RECIPROCAL_RANK,
    STATE_ROWS,
)
from gradrank.measures.bpref import bpref_prepare, bpref_row
from gradrank.measures.err import err_prepare, err_row
from gradrank.measures.kendall import kendall_prepare, kendall_row
from gradrank.measures.position import position_prepare, position_row
from gradrank.measures.reciprocal_rank import rr_prepare, rr_row
from gradrank.objectives.costs import PRINTED, RANKNET, SIGMOID
from gradrank.ranking import order_list_with, order_scratch
from gradrank.runtime.kernels import njit

# Which of lambda_block's last arguments is given, by family of measures and by cost. Numba drops the branches of
# arguments that are None before it compiles anything.
_FORMS = (POSITION, AVERAGE_PRECISION, RECIPROCAL_RANK, EXPECTED_RECIPROCAL_RANK, KENDALL, BPREF)
FAMILIES = {form: tuple(True if form == other else None for other in _FORMS) for form in _FORMS}
_COSTS = (RANKNET, SIGMOID, PRINTED)
COST_CHOICE = {cost: tuple(True if cost == other else None for other in _COSTS) for cost in _COSTS}
NORM_NONE, NORM_LOG, NORM_DEVIATION = range(3)
# e^±40 and its products stay finite in single precision; beyond it a force is 0 or 1 anyway.
_LARGEST_EXPONENT = 40.0
# A division that may not raise and sums in any order let the compiler work in vectors; the order is fixed when the
# kernel is compiled, so results repeat exactly.
_SUM_IN_ANY_ORDER = {"reassoc", "contract", "nsz"}
# LightGBM's constant: keeps nearly tied pairs from having unbounded weight.
_GAP_FLOOR = np.float32(0.01)


@njit(cache=True, nogil=True, plain=True, inline="always")
def _ranknet_row(low, high, own, share, deltas, powers, lambdas, rhos):  # type: ignore[no-untyped-def]
    """Forces of one document against a run of worse ones; returns its own λ and ρ. ``share`` scales the curvature."""
    own_lambda = np.float32(0.0)
    own_rho = np.float32(0.0)
    for j in range(np.uint64(low), np.uint64(high)):
        p = powers[j] / (own + powers[j])
        force = abs(deltas[j]) * p
        bend = force * (np.float32(1.0) - p) * share
        lambdas[j] -= force
        rhos[j] += bend
        own_lambda += force
        own_rho += bend
    return own_lambda, own_rho


@njit(cache=True, nogil=True, plain=True, inline="always")
def _sigmoid_row(low, high, own, shift, deltas, powers, lambdas, rhos):  # type: ignore[no-untyped-def]
    """As _ranknet_row, for the sigmoid cost; ``shift`` = e^μ."""
    own_lambda = np.float32(0.0)
    own_rho = np.float32(0.0)
    pushed = own * shift
    for j in range(np.uint64(low), np.uint64(high)):
        t = pushed / (pushed + powers[j])
        force = abs(deltas[j]) * t * (np.float32(1.0) - t)
        bend = force * (np.float32(2.0) * t - np.float32(1.0))
        lambdas[j] -= force
        rhos[j] += bend
        own_lambda += force
        own_rho += bend
    return own_lambda, own_rho


@njit(cache=True, nogil=True, plain=True, inline="always")
def _printed_row(low, high, own, deltas, powers, lambdas, rhos):  # type: ignore[no-untyped-def]
    """As _ranknet_row, with RankNet's cost in the place of its derivative."""
    own_lambda = np.float32(0.0)
    own_rho = np.float32(0.0)
    for j in range(np.uint64(low), np.uint64(high)):
        ratio = powers[j] / own
        size = abs(deltas[j])
        force = size * np.log1p(ratio)
        bend = size * (ratio / (np.float32(1.0) + ratio))
        lambdas[j] -= force
        rhos[j] += bend
        own_lambda += force
        own_rho += bend
    return own_lambda, own_rho


@njit(cache=True, nogil=True, plain=True, inner=True)
def _changed(low, high, lambdas, before):  # type: ignore[no-untyped-def]
    """How many of a run of λ's have changed: the pairs that had an effect."""
    changed = 0
    for j in range(np.uint64(low), np.uint64(high)):
        if lambdas[j] != before[j]:
            changed += 1
    return changed


def lambda_scratch(longest: int) -> tuple[NDArray[Any], ...]:
    """The scratch arrays of lambda_block, for lists up to a length."""
    return (
        np.empty(longest),
        np.empty(longest),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        *(np.empty(longest, np.float32) for _ in range(5)),
        np.zeros((STATE_ROWS, longest + 2)),
        np.zeros((2, longest), np.float32),
        *order_scratch(longest),
    )


@njit(cache=True, nogil=True, fastmath=_SUM_IN_ANY_ORDER, error_model="numpy")
def lambda_block(  # type: ignore[no-untyped-def]
    first, end, indptr, scores, layout, run_end, limit, shuffle, gain, weight, norm, depth, active, query_weight,
    option, slope, shift, misranked, truncation, normalize, gap_scaled, count, ranks, lambdas_out, rhos_out, pairs,
    score, shuffled, order, rank, standing, powers, lambdas, before, rhos, exact, fast, rough, count_above, taken,
    merged, position, average_precision, reciprocal_rank, expected_reciprocal_rank, kendall, bpref, ranknet, sigmoid,
    printed,
):  # fmt: skip
    """λ and ρ of the queries first…end.

    The last arguments are those of lambda_scratch, then one of FAMILIES and one of COST_CHOICE.
    """
    # Made here, not passed in: LLVM then knows that it does not overlap with what it is computed from.
    deltas = np.empty(len(score), np.float32)
    e_shift = np.float32(np.exp(shift))
    force_scale = np.float32(slope)
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        pairs[q] = 0
        if n < 2 or not active[q]:
            continue  # nothing to order; the output starts at 0
        low_score = np.inf
        high_score = -np.inf
        for i in range(n):
            value = scores[layout[start + i]]
            score[i] = value
            if value < low_score:
                low_score = value
            if value > high_score:
                high_score = value
        if len(ranks) and ranks[layout[start]] >= 0:
            # Another tier has sorted this query.
            for i in range(n):
                known = np.int64(ranks[layout[start + i]])
                rank[i] = known
                order[known] = i
        else:
            # Tied documents stand in a seeded random order: the layout is sorted by label.
            for i in range(n):
                shuffled[i] = score[shuffle[start + i]]
            order_list_with(shuffled, n, order, rough, count_above, taken, merged)
            for r in range(n):
                i = shuffle[start + order[r]]
                order[r] = i
                rank[i] = r
            if len(ranks):
                for i in range(n):
                    ranks[layout[start + i]] = rank[i]
        center = 0.5 * (low_score + high_score)
        # Documents that join no pair come last.
        joined = n
        while limit[start + joined - 1] == 0:
            joined -= 1
        for i in range(joined):
            standing[i] = score[i] - center
            exponent = slope * (score[i] - center)
            if exponent > _LARGEST_EXPONENT:
                exponent = _LARGEST_EXPONENT
            elif exponent < -_LARGEST_EXPONENT:
                exponent = -_LARGEST_EXPONENT
            powers[i] = np.exp(exponent)
            lambdas[i] = 0.0
            rhos[i] = 0.0
        own_gain = gain[start : start + n]
        own_weight = weight[start : start + n] if len(weight) else weight
        query_norm = norm[q]
        query_depth = depth[q]
        if position is not None:
            position_prepare(n, order, rank, own_gain, own_weight, query_norm, query_depth, option, fast)
        elif average_precision is not None:
            ap_prepare(n, order, rank, own_gain, own_weight, query_norm, query_depth, option, exact)
        elif reciprocal_rank is not None:
            rr_prepare(n, order, rank, own_gain, own_weight, query_norm, query_depth, option, exact)
        elif expected_reciprocal_rank is not None:
            err_prepare(n, order, rank, own_gain, own_weight, query_norm, query_depth, option, exact)
        elif kendall is not None:
            kendall_prepare(n, order, rank, own_gain, own_weight, query_norm, query_depth, option, exact)
        elif bpref is not None:
            bpref_prepare(n, order, rank, own_gain, own_weight, query_norm, query_depth, option, exact)
        total = 0.0
        for i in range(joined):
            low = run_end[start + i]
            high = limit[start + i]
            if low >= high:
                continue
            if position is not None:
                position_row(i, low, high, n, order, rank, own_gain, query_norm, option, fast, deltas)
            elif average_precision is not None:
                ap_row(i, low, high, n, order, rank, own_gain, query_norm, option, exact, deltas)
            elif reciprocal_rank is not None:
                rr_row(i, low, high, n, order, rank, own_gain, query_norm, option, exact, deltas)
            elif expected_reciprocal_rank is not None:
                err_row(i, low, high, n, order, rank, own_gain, query_norm, option, exact, deltas)
            elif kendall is not None:
                kendall_row(i, low, high, n, order, rank, own_gain, query_norm, option, exact, deltas)
            elif bpref is not None:
                bpref_row(i, low, high, n, order, rank, own_gain, query_norm, option, exact, deltas)
            place = rank[i]
            if misranked:
                for j in range(np.uint64(low), np.uint64(high)):
                    if rank[j] > place:
                        deltas[j] = 0.0
            if place >= truncation:
                for j in range(np.uint64(low), np.uint64(high)):
                    if rank[j] >= truncation:
                        deltas[j] = 0.0
            if gap_scaled and low_score < high_score:
                own_standing = standing[i]
                for j in range(np.uint64(low), np.uint64(high)):
                    deltas[j] /= _GAP_FLOOR + abs(own_standing - standing[j])
            if count:
                for j in range(np.uint64(low), np.uint64(high)):
                    before[j] = lambdas[j]
            pushed = np.float32(0.0)
            bent = np.float32(0.0)
            if ranknet is not None:
                pushed, bent = _ranknet_row(low, high, powers[i], force_scale, deltas, powers, lambdas, rhos)
            elif sigmoid is not None:
                pushed, bent = _sigmoid_row(low, high, powers[i], e_shift, deltas, powers, lambdas, rhos)
            elif printed is not None:
                pushed, bent = _printed_row(low, high, powers[i], deltas, powers, lambdas, rhos)
            lambdas[i] += pushed
            rhos[i] += bent
            total += float(pushed)
            if count:
                pairs[q] += _changed(low, high, lambdas, before)
        scale = query_weight[q] * slope
        if normalize == NORM_LOG:
            # The sum of all λ's absolute parts is twice the sum over pairs.
            both = 2.0 * total * slope
            if both > 0.0:
                scale *= np.log2(1.0 + both) / both
        elif normalize == NORM_DEVIATION:
            squares = 0.0
            for i in range(joined):
                squares += np.float64(lambdas[i]) * np.float64(lambdas[i])
            # The λ's of a query add up to 0, so their mean square is their variance.
            deviation = np.sqrt(squares / n) * slope
            if deviation > 0.0:
                scale /= deviation
        for i in range(joined):
            row = layout[start + i]
            lambdas_out[row] += lambdas[i] * scale
            rhos_out[row] += rhos[i] * scale
