"""The loops of the λ constructions.

Every pairwise construction is a choice of three things: which pairs act, what a pair weighs, and the force between its
documents. Rows of weights are filled as in the kernel of :class:`Lambda`; sums are in double precision, as a few pairs
may carry all the weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradrank.measures.swaps import swap_prepare, swap_row
from gradrank.objectives.costs.pair_cost import pair_force
from gradrank.objectives.kernels.lambda_kernel import NORM_DEVIATION, NORM_LOG
from gradrank.ranking import order_list
from gradrank.runtime.kernels import njit, template

# Which pairs act: all, those in the wrong order, rank neighbors, a document with the one at its ideal place, a
# document with the one whose swap changes most.
ALL, MISRANKED, NEIGHBOURS, IDEAL, BEST = range(5)
# What a pair weighs: |ΔM|, |ΔM| with a lower bound, 1.
DELTA, FLOORED, UNIT = range(3)
# The force: that of the pair cost, constant on misranked pairs, a spring's, the inverse of the scores' distance,
# constant up to a margin.
COST_FORCE, STEP_FORCE, SPRING_FORCE, GAP_FORCE, HINGE_FORCE = range(5)
# Changes of a measure that are equal on paper differ in their last bits.
_SAME = 1e-9


class ConstructionOptions(NamedTuple):
    """A construction, as numbers."""

    select: int
    """Which pairs act: one of ALL, MISRANKED, NEIGHBOURS, IDEAL, BEST."""
    weigh: int
    """What a pair weighs: one of DELTA, FLOORED, UNIT."""
    force: int
    """The force on a pair: one of COST_FORCE, STEP_FORCE, SPRING_FORCE, GAP_FORCE, HINGE_FORCE."""
    slope: float
    shift: float
    """Of the pair cost."""
    floor: float
    margin: float
    reach: int
    """Parameters of FLOORED, of SPRING_FORCE, GAP_FORCE and HINGE_FORCE, of NEIGHBOURS."""
    normalize: int


@njit(cache=True, nogil=True)
def _stand(n, score, shuffle, run_end, limit, shuffled, order, rank, place, at_place, ideal):  # type: ignore[no-untyped-def]
    """How the documents of a query stand: order and rank; place = rank among the judged documents (−1: not judged),
    who stands at each place, and the place of each document in the ideal order that keeps documents of equal gain as
    they stand. Documents that pair only with those of their class share the places of that class."""
    for i in range(n):
        shuffled[i] = score[shuffle[i]]
    order_list(shuffled[:n], order)
    judged = 0
    for r in range(n):
        i = shuffle[order[r]]
        order[r] = i
        rank[i] = r
        place[i] = -1
        ideal[i] = -1
        if limit[i] > 0:
            place[i] = judged
            at_place[judged] = i
            judged += 1
    # Documents are laid out by gain: a run of equal gains is filled in the order in which its members stand.
    first = 0
    class_start = 0
    following = 0
    while first < judged:
        end = run_end[first]
        class_end = limit[first]
        if first >= limit[class_start]:
            class_start = first
            following = 0
        for p in range(judged):
            i = at_place[p]
            if first <= i < end:
                while not class_start <= at_place[following] < class_end:
                    following += 1
                ideal[i] = following
                following += 1
        first = end


@njit(cache=True, nogil=True)
def _better(size, partner, best, holder, rank):  # type: ignore[no-untyped-def]
    """Whether a pair's weight beats the best so far; nearly equal ones go by the higher rank of the partner."""
    if size <= 0.0 or size < best * (1.0 - _SAME):
        return False
    return size > best * (1.0 + _SAME) or rank[partner] < rank[holder]


@njit(cache=True, nogil=True)
def _find_best(low, high, i, weights, rank, best, partner):  # type: ignore[no-untyped-def]
    """Keep for both documents of each pair the partner with the largest weight."""
    for j in range(low, high):
        if _better(weights[j], j, best[i], partner[i], rank):
            best[i] = weights[j]
            partner[i] = j
        if _better(weights[j], i, best[j], partner[j], rank):
            best[j] = weights[j]
            partner[j] = i


@njit(cache=True, nogil=True)
def _weigh(low, high, kind, floor, weights):  # type: ignore[no-untyped-def]
    """Turn a row of swap deltas into the weights of the pairs."""
    for j in range(low, high):
        size = abs(weights[j])
        if kind == FLOORED:
            size = max(size, floor)
        elif kind == UNIT:
            size = 1.0
        weights[j] = size


@njit(cache=True, nogil=True)
def _own_force(kind, o, misranked, margin):  # type: ignore[no-untyped-def]
    """As pair_force, for the forces that constructions have of their own (no derivative: 0)."""
    if kind == SPRING_FORCE:
        return (margin - o, 1.0) if o < margin else (0.0, 0.0)
    if kind == GAP_FORCE:
        return 1.0 / (abs(o) + margin), 0.0
    if kind == HINGE_FORCE:
        return (1.0 if o < margin else 0.0), 0.0
    return (1.0 if misranked else 0.0), 0.0


@template(swap_prepare, swap_row, pair_force, cache=True, nogil=True)
def construction_block(first, end, scores, layout, gains, options, state, lambdas_out, rhos_out, pairs):  # type: ignore[no-untyped-def]  # fmt: skip
    """Add λ and ρ of the queries first…end to what is there.

    ``layout`` is a PairLayout, ``gains`` are Gains, ``state`` the scratch rows of the swap deltas.
    """
    indptr = layout.indptr
    rows = layout.rows
    norm = gains.norm
    weight = gains.weight
    option = gains.option
    select = options.select
    weigh = options.weigh
    document_weight = layout.document_weight
    longest = 2
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    score = np.empty(longest)
    shuffled = np.empty(longest)
    order = np.empty(longest, np.int64)
    rank = np.empty(longest, np.int64)
    place = np.empty(longest, np.int64)
    at_place = np.empty(longest, np.int64)
    ideal = np.empty(longest, np.int64)
    partner = np.empty(longest, np.int64)
    best = np.empty(longest)
    weights = np.empty(longest)
    lambdas = np.empty(longest)
    rhos = np.empty(longest)
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        if n < 2 or not layout.active[q]:
            continue  # nothing to order; the output starts at 0
        own_gain = gains.gain[start : start + n]
        own_weight = weight[start : start + n] if len(weight) else weight
        ends = layout.run_end[start : start + n]
        limits = layout.limit[start : start + n]
        for i in range(n):
            score[i] = scores[rows[start + i]]
            lambdas[i] = 0.0
            rhos[i] = 0.0
            best[i] = 0.0
            partner[i] = i
        own_shuffle = layout.shuffle[start : start + n]
        _stand(n, score, own_shuffle, ends, limits, shuffled, order, rank, place, at_place, ideal)
        swap_prepare(n, order, rank, own_gain, own_weight, norm[q], gains.depth[q], option, state)
        least = options.floor / norm[q]
        if select == BEST:
            for i in range(n):
                low = ends[i]
                high = limits[i]
                if low < high:
                    swap_row(i, low, high, n, order, rank, own_gain, norm[q], option, state, weights)
                    _weigh(low, high, weigh, least, weights)
                    _find_best(low, high, i, weights, rank, best, partner)
        total = 0.0
        bare = 0.0
        for i in range(n):
            low = ends[i]
            high = limits[i]
            if low >= high:
                continue
            swap_row(i, low, high, n, order, rank, own_gain, norm[q], option, state, weights)
            _weigh(low, high, weigh, least, weights)
            own_factor = np.float64(document_weight[start + i]) if len(document_weight) else 1.0
            for j in range(low, high):
                acts = True
                if select == MISRANKED:
                    acts = rank[i] > rank[j]
                elif select == NEIGHBOURS:
                    acts = abs(place[i] - place[j]) <= options.reach
                elif select == IDEAL:
                    acts = place[j] == ideal[i] or place[i] == ideal[j]
                elif select == BEST:
                    acts = partner[i] == j or partner[j] == i
                if not acts:
                    continue
                o = score[i] - score[j]
                if options.force == COST_FORCE:
                    pull, bend = pair_force(o, options.slope, options.shift)
                else:
                    pull, bend = _own_force(options.force, o, rank[i] > rank[j], options.margin)
                pull *= weights[j] * own_factor
                bend *= weights[j] * own_factor
                lambdas[i] += pull
                lambdas[j] -= pull
                rhos[i] += bend
                rhos[j] += bend
                total += pull
                if own_factor > 0.0:
                    bare += pull / own_factor
                pairs[q] += pull != 0.0
        scale = layout.query_weight[q]
        if len(document_weight) == 0:
            bare = total
        # Normalization is by what the λ's would be without weights of documents, which it would cancel otherwise.
        if options.normalize == NORM_LOG and bare > 0.0:
            scale *= np.log2(1.0 + 2.0 * bare) / (2.0 * bare)
        elif options.normalize == NORM_DEVIATION:
            squares = 0.0
            for i in range(n):
                squares += lambdas[i] * lambdas[i]
            if squares > 0.0:
                scale /= np.sqrt(squares / n)
                if bare > 0.0:
                    scale *= total / bare
        for i in range(n):
            lambdas_out[rows[start + i]] += lambdas[i] * scale
            rhos_out[rows[start + i]] += rhos[i] * scale


@njit(cache=True, nogil=True)
def standing_block(first, end, scores, layout, order_out, rank_out, target_out):  # type: ignore[no-untyped-def]
    """Order and ranks of the queries first…end, and the rank to which each document would have to move (its own: none).

    All in the documents' layout; ``order_out`` holds places of the layout."""
    indptr = layout.indptr
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    score = np.empty(longest)
    shuffled = np.empty(longest)
    order = np.empty(longest, np.int64)
    rank = np.empty(longest, np.int64)
    place = np.empty(longest, np.int64)
    at_place = np.empty(longest, np.int64)
    ideal = np.empty(longest, np.int64)
    for q in range(first, end):
        start = indptr[q]
        stop = indptr[q + 1]
        n = stop - start
        for i in range(n):
            score[i] = scores[layout.rows[start + i]]
        _stand(n, score, layout.shuffle[start:stop], layout.run_end[start:stop], layout.limit[start:stop], shuffled,
               order, rank, place, at_place, ideal)  # fmt: skip
        for i in range(n):
            order_out[start + i] = start + order[i]
            rank_out[start + i] = rank[i]
            target_out[start + i] = rank[i]
            if layout.active[q] and ideal[i] >= 0:
                target_out[start + i] = rank[at_place[ideal[i]]]


@njit(cache=True, nogil=True)
def fill_trials(movers, query, indptr, order, rank, target, gains, trial_indptr, trial_order, trial_gains):  # type: ignore[no-untyped-def]  # fmt: skip
    """One list for each document that moves: the query's documents with this one taken out and put in at its target."""
    for t in range(len(movers)):
        mover = movers[t]
        start = indptr[query[t]]
        n = indptr[query[t] + 1] - start
        base = trial_indptr[t]
        for i in range(n):
            trial_gains.gain[base + i] = gains.gain[start + i]
        if len(gains.weight):
            for r in range(n):
                trial_gains.weight[base + r] = gains.weight[start + r]
        source = 0
        for r in range(n):
            if r == target[mover]:
                trial_order[base + r] = base + mover - start
                continue
            if source == rank[mover]:
                source += 1
            trial_order[base + r] = base + order[start + source] - start
            source += 1
