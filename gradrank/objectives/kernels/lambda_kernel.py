"""The loop over pairs, for any measure and any pair cost.

A row at a time: the measure fills one document's swap deltas against all worse documents into a scratch row, then the
cost turns the row into forces. The kernel is a template, compiled for one family of measures and one cost at a time;
the loops over a row have no branch and vectorize.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.swaps import SwapKernels, swap_prepare, swap_row
from gradrank.objectives.costs.pair_cost import force_row
from gradrank.ranking import OrderScratch, order_list_with, order_scratch
from gradrank.runtime.kernels import njit, template

NORM_NONE, NORM_LOG, NORM_DEVIATION = range(3)
# e^±40 and its products stay finite in single precision; beyond it a force is 0 or 1 anyway.
_LARGEST_EXPONENT = 40.0
# A division that may not raise and sums in any order let the compiler work in vectors; the order is fixed when the
# kernel is compiled, so results repeat exactly.
_SUM_IN_ANY_ORDER = {"reassoc", "contract", "nsz"}
# LightGBM's constant: keeps nearly tied pairs from having unbounded weight.
_GAP_FLOOR = np.float32(0.01)


class LambdaOptions(NamedTuple):
    """The options of a λ-gradient, as numbers."""

    slope: float
    shift: float
    """Of the pair cost."""
    misranked: bool
    """Whether only pairs in the wrong order act."""
    truncation: int
    """Pairs of which both documents stand at this rank (from 0) or below do not act."""
    normalize: int
    """One of NORM_NONE, NORM_LOG, NORM_DEVIATION."""
    gap: bool
    """Whether |ΔM| is divided by the distance of the scores."""
    count_pairs: bool
    """Whether pairs that have an effect are counted."""


class LambdaOutput(NamedTuple):
    """Where results go."""

    lambdas: NDArray[np.float32]
    rhos: NDArray[np.float32]
    """λ and ρ of each row of the data; what is computed is added."""
    pairs: NDArray[np.int64]
    """Number of pairs of each query that had an effect, if they are counted."""
    ranks: NDArray[np.int32]
    """Rank of each row of the data, read if it is 0 or more and written if not; empty = neither."""


class LambdaScratch(NamedTuple):
    """Scratch arrays for one query: kernels get them from Python, as code that makes arrays is slow to compile."""

    score: NDArray[np.float64]
    shuffled: NDArray[np.float64]
    order: NDArray[np.int64]
    rank: NDArray[np.int64]
    standing: NDArray[np.float32]
    powers: NDArray[np.float32]
    lambdas: NDArray[np.float32]
    rhos: NDArray[np.float32]
    state: NDArray[Any]
    ordering: OrderScratch


def lambda_scratch(longest: int, family: SwapKernels) -> LambdaScratch:
    """The scratch arrays of lambda_block, for lists up to a length."""
    return LambdaScratch(
        score=np.empty(longest),
        shuffled=np.empty(longest),
        order=np.empty(longest, np.int64),
        rank=np.empty(longest, np.int64),
        standing=np.empty(longest, np.float32),
        powers=np.empty(longest, np.float32),
        lambdas=np.empty(longest, np.float32),
        rhos=np.empty(longest, np.float32),
        state=family.state(longest, exact=False),
        ordering=order_scratch(longest),
    )


@njit(cache=True, nogil=True, plain=True, inner=True)
def _not_zero(low, high, deltas):  # type: ignore[no-untyped-def]
    """How many of a run of swaps change the measure: the pairs that have an effect.

    A sum of λ's in single precision may stay as it is when a small one is added: it does not tell.
    """
    found = 0
    for j in range(np.uint64(low), np.uint64(high)):
        if deltas[j] != 0.0:
            found += 1
    return found


@template(
    swap_prepare, swap_row, force_row, cache=True, nogil=True, fastmath=_SUM_IN_ANY_ORDER, error_model="numpy"
)  # fmt: skip
def lambda_block(first, end, scores, layout, gains, options, out, scratch):  # type: ignore[no-untyped-def]
    """Add λ and ρ of the queries first…end to what is there."""
    indptr = layout.indptr
    rows = layout.rows
    shuffle = layout.shuffle
    run_end = layout.run_end
    limit = layout.limit
    weight = gains.weight
    option = gains.option
    slope = options.slope
    misranked = options.misranked
    truncation = options.truncation
    count = options.count_pairs
    document_weight = layout.document_weight
    weighted = len(document_weight) > 0
    ranks = out.ranks
    pairs = out.pairs
    score = scratch.score
    shuffled = scratch.shuffled
    order = scratch.order
    rank = scratch.rank
    standing = scratch.standing
    powers = scratch.powers
    lambdas = scratch.lambdas
    rhos = scratch.rhos
    state = scratch.state
    # Made here, not passed in: LLVM then knows that it does not overlap with what it is computed from.
    deltas = np.empty(len(score), np.float32)
    e_shift = np.float32(np.exp(options.shift))
    force_scale = np.float32(slope)
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        pairs[q] = 0
        if n < 2 or not layout.active[q]:
            continue  # nothing to order; the output starts at 0
        low_score = np.inf
        high_score = -np.inf
        for i in range(n):
            value = scores[rows[start + i]]
            score[i] = value
            if value < low_score:
                low_score = value
            if value > high_score:
                high_score = value
        if len(ranks) and ranks[rows[start]] >= 0:
            # Another tier has sorted this query.
            for i in range(n):
                known = np.int64(ranks[rows[start + i]])
                rank[i] = known
                order[known] = i
        else:
            # Tied documents stand in a seeded random order: the layout is sorted by label.
            for i in range(n):
                shuffled[i] = score[shuffle[start + i]]
            order_list_with(shuffled, n, order, scratch.ordering)
            for r in range(n):
                i = shuffle[start + order[r]]
                order[r] = i
                rank[i] = r
            if len(ranks):
                for i in range(n):
                    ranks[rows[start + i]] = rank[i]
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
        own_gain = gains.gain[start : start + n]
        own_weight = weight[start : start + n] if len(weight) else weight
        query_norm = gains.norm[q]
        swap_prepare(n, order, rank, own_gain, own_weight, query_norm, gains.depth[q], option, state)
        # Normalization is by what the λ's would be without weights of documents, which it would cancel otherwise.
        total = 0.0
        bare = 0.0
        own_factor = np.float32(1.0)  # of the row at hand
        for i in range(joined):
            low = run_end[start + i]
            high = limit[start + i]
            if low >= high:
                continue
            swap_row(i, low, high, n, order, rank, own_gain, query_norm, option, state, deltas)
            place = rank[i]
            if misranked:
                for j in range(np.uint64(low), np.uint64(high)):
                    if rank[j] > place:
                        deltas[j] = 0.0
            if place >= truncation:
                for j in range(np.uint64(low), np.uint64(high)):
                    if rank[j] >= truncation:
                        deltas[j] = 0.0
            if options.gap and low_score < high_score:
                own_standing = standing[i]
                for j in range(np.uint64(low), np.uint64(high)):
                    deltas[j] /= _GAP_FLOOR + abs(own_standing - standing[j])
            if weighted:
                # By the weight of the better document, which this row belongs to.
                own_factor = document_weight[start + i]
                for j in range(np.uint64(low), np.uint64(high)):
                    deltas[j] *= own_factor
            if count:
                pairs[q] += _not_zero(low, high, deltas)
            pushed, bent = force_row(low, high, powers[i], force_scale, e_shift, deltas, powers, lambdas, rhos)
            lambdas[i] += pushed
            rhos[i] += bent
            total += float(pushed)
            if weighted and own_factor > 0.0:
                bare += float(pushed) / float(own_factor)
        if not weighted:
            bare = total
        scale = layout.query_weight[q] * slope
        if options.normalize == NORM_LOG:
            # The sum of all λ's absolute parts is twice the sum over pairs.
            both = 2.0 * bare * slope
            if both > 0.0:
                scale *= np.log2(1.0 + both) / both
        elif options.normalize == NORM_DEVIATION:
            squares = 0.0
            for i in range(joined):
                squares += np.float64(lambdas[i]) * np.float64(lambdas[i])
            # The λ's of a query add up to 0, so their mean square is their variance.
            deviation = np.sqrt(squares / n) * slope
            if deviation > 0.0:
                scale /= deviation
                if weighted and bare > 0.0:
                    scale *= total / bare
        for i in range(joined):
            row = rows[start + i]
            out.lambdas[row] += lambdas[i] * scale
            out.rhos[row] += rhos[i] * scale
