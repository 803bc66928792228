"""The hinge loss of pairs with its corner rounded off, and the pairs at the rounded corner.

For a margin m = s_u − s_v the hinge max(0, 1 − m) is replaced, where |1 − m| < width/2, by the parabola that joins its
two arms. Its slope is −α with α = ½ + (1 − m)/width kept within 0…1, its second derivative 1/width at the corner and 0
elsewhere. Whatever scores they come from, such α are a plane below the hinge: Σ α·(1 − m') ≤ Σ max(0, 1 − m').
"""

from __future__ import annotations

import numpy as np

from gradrank.learners.base.label_levels import group_by_level, top_level
from gradrank.ranking import order_list
from gradrank.runtime.kernels import njit

MAX_LEVELS = 16
"""The kernels go through every two levels of labels: with more, a sweep over all pairs of levels would not pay."""


@njit(cache=True, nogil=True, inner=True)
def _by_level(n, scores, level, order, rows, standing, first):  # type: ignore[no-untyped-def]
    """Documents of each level by descending score, scores relative to the first document's. Returns the top level."""
    order_list(scores, order)
    top = top_level(n, level)
    group_by_level(n, order, scores, level, top, rows, standing, first)
    for at in range(first[top + 1]):
        standing[at] -= scores[0]
    return top


@njit(cache=True, nogil=True)
def rounded_hinge(  # type: ignore[no-untyped-def]
    begin, end, indptr, level, factor, scores, width, order, rows, real, gradient, value, mass, steep
):
    """Value, gradient, Σα and number of pairs at the corner of each query from ``begin`` to ``end``."""
    standing, change, sums, squares = real[0], real[1], real[2], real[3]
    first = np.empty(MAX_LEVELS + 1, np.int64)
    half = 0.5 * width
    for q in range(begin, end):
        if factor[q] == 0.0:
            continue
        start = indptr[q]
        n = indptr[q + 1] - start
        top = _by_level(n, scores[start : start + n], level[start : start + n], order, rows, standing, first)
        sums[0] = 0.0
        squares[0] = 0.0
        for at in range(first[top + 1]):
            change[at] = 0.0
            sums[at + 1] = sums[at] + standing[at]
            squares[at + 1] = squares[at] + standing[at] * standing[at]
        total = 0.0
        alphas = 0.0
        corner = 0
        for upper in range(1, top + 1):
            u_begin, u_end = first[upper], first[upper + 1]
            for lower in range(upper):
                v_begin, v_end = first[lower], first[lower + 1]
                # Documents v before `full` are wholly within the margin of u, those up to `part` at the corner.
                full, part = v_begin, v_begin
                for u in range(u_begin, u_end):
                    score = standing[u]
                    while full < v_end and score - standing[full] < 1.0 - half:
                        full += 1
                    while part < v_end and score - standing[part] < 1.0 + half:
                        part += 1
                    reach = 1.0 + half - score
                    count = part - full
                    at_corner = sums[part] - sums[full]
                    alpha = (full - v_begin) + (count * reach + at_corner) / width
                    change[u] -= alpha
                    alphas += alpha
                    corner += count
                    parabola = count * reach * reach + 2.0 * reach * at_corner + squares[part] - squares[full]
                    total += (full - v_begin) * (1.0 - score) + sums[full] - sums[v_begin] + parabola / (2.0 * width)
                full, part = u_end, u_end
                for v in range(v_end - 1, v_begin - 1, -1):
                    score = standing[v]
                    while full > u_begin and standing[full - 1] - score < 1.0 - half:
                        full -= 1
                    while part > u_begin and standing[part - 1] - score < 1.0 + half:
                        part -= 1
                    at_corner = (full - part) * (1.0 + half + score) - (sums[full] - sums[part])
                    change[v] += (u_end - full) + at_corner / width
        for at in range(first[top + 1]):
            gradient[start + rows[at]] = factor[q] * change[at]
        value[q] = factor[q] * total
        mass[q] = factor[q] * alphas
        steep[q] = corner


@njit(cache=True, nogil=True)
def corner_pairs(indptr, level, factor, scores, width, stride, order, rows, standing, better, worse, weight):  # type: ignore[no-untyped-def]
    """Every ``stride``-th pair at the corner: rows of its documents and its weight. Returns how many."""
    first = np.empty(MAX_LEVELS + 1, np.int64)
    half = 0.5 * width
    found = 0
    passed = stride // 2
    for q in range(len(factor)):
        if factor[q] == 0.0:
            continue
        start = indptr[q]
        n = indptr[q + 1] - start
        top = _by_level(n, scores[start : start + n], level[start : start + n], order, rows, standing, first)
        for upper in range(1, top + 1):
            for lower in range(upper):
                full, part = first[lower], first[lower]
                for u in range(first[upper], first[upper + 1]):
                    score = standing[u]
                    while full < first[lower + 1] and score - standing[full] < 1.0 - half:
                        full += 1
                    while part < first[lower + 1] and score - standing[part] < 1.0 + half:
                        part += 1
                    passed += part - full
                    while passed >= stride:
                        passed -= stride
                        better[found] = start + rows[u]
                        worse[found] = start + rows[part - 1 - passed]
                        weight[found] = factor[q]
                        found += 1
    return found
