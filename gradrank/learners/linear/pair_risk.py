"""The hinge loss over all pairs of different labels: RankSVM's risk, in O(n log n) per query."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.learners.base.label_levels import group_by_level, label_levels, pair_counts, top_level
from gradrank.learners.linear.newton import Corner, Smoothed
from gradrank.learners.linear.scaled_features import Vector
from gradrank.learners.linear.smooth_pairs import MAX_LEVELS, corner_pairs, rounded_hinge
from gradrank.ranking import longest_list, order_list
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

PairWeights = Literal["mean", "sum"]


class PairOracle:
    """Σ_q w_q·Σ_{(u,v): y_u > y_v} max(0, 1 − (s_u − s_v)) and its subgradient (Joachims 2002, 2006).

    How many pairs of a document are within the margin is counted by a sweep over the sorted scores with a Fenwick tree
    over the labels (for few labels by merging their sorted lists), so no pair is enumerated. With ``pairs="mean"`` a
    query counts w_q divided by its number of pairs; with ``"sum"`` every pair counts w_q. With weights of documents a
    pair also counts with that of its better document, whatever their mean. Unjudged documents are in no pair.

    >>> oracle = PairOracle(np.array([1, 0], dtype=np.float32), np.array([0, 2]))
    >>> value, gradient = oracle(np.array([0.25, 0.0]))
    >>> value.tolist(), gradient.tolist()
    ([0.75], [[-1.0, 1.0]])
    """

    parts = 1

    def __init__(
        self,
        labels: NDArray[np.float32],
        indptr: NDArray[np.int64],
        *,
        pairs: PairWeights = "mean",
        weight: Vector | None = None,
        document_weight: Vector | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._indptr = indptr
        self._threads = n_jobs
        self._level = label_levels(labels, indptr)
        self.pairs = pair_counts(self._level, indptr)
        """Number of pairs of each query."""
        factor = np.ones(len(self.pairs)) if weight is None else weight.astype(np.float64)
        if pairs == "mean":
            factor = factor / np.maximum(self.pairs, 1)
        self._factor = np.where(self.pairs > 0, factor, 0.0)
        self._weighted = document_weight is not None
        self._document_weight = np.empty(0) if document_weight is None else document_weight.astype(np.float64)

    def __call__(self, scores: Vector) -> tuple[Vector, Vector]:
        """Value, and subgradient with respect to the scores."""
        gradient = np.zeros(len(scores))
        value = np.zeros(len(self._indptr) - 1)

        def work(first: int, end: int) -> None:
            if self._weighted:
                fenwick = np.empty((2, longest_list(self._indptr, first, end) + 2))
                _weighted_hinge(first, end, self._indptr, self._level, self._factor, self._document_weight, scores,
                                fenwick, gradient, value)  # fmt: skip
            else:
                _hinge(first, end, self._indptr, self._level, self._factor, scores, gradient, value)

        for_query_blocks(work, self._indptr, self._threads)
        return np.array([value.sum()]), gradient[None]

    @property
    def can_be_smoothed(self) -> bool:
        """Whether the labels are few enough for ``smoothed``, which knows no weights of documents."""
        return bool(self._level.max(initial=0) < MAX_LEVELS) and not self._weighted

    def smoothed(self, scores: Vector, width: float) -> Smoothed:
        """The same risk with the corner of the hinge rounded off over ``width``.

        >>> oracle = PairOracle(np.array([1, 0], dtype=np.float32), np.array([0, 2]))
        >>> smooth = oracle.smoothed(np.array([1.0, 0.0]), 0.5)  # in the middle of the corner
        >>> smooth.value, smooth.gradient.tolist(), smooth.at_corner
        (0.0625, [-0.5, 0.5], 1)
        """
        gradient = np.zeros(len(scores))
        n_queries = len(self._indptr) - 1
        value, mass = np.zeros((2, n_queries))
        steep = np.zeros(n_queries, dtype=np.int64)

        def work(first: int, end: int) -> None:
            whole, real = self._scratch(first, end)
            rounded_hinge(first, end, self._indptr, self._level, self._factor, scores, width,
                          whole[0], whole[1], real, gradient, value, mass, steep)  # fmt: skip

        for_query_blocks(work, self._indptr, self._threads)
        return Smoothed(float(value.sum()), gradient, float(mass.sum()), int(steep.sum()))

    def corner(self, scores: Vector, width: float, expected: int, at_most: int) -> Corner:
        """Evenly spread pairs at the rounded corner, each for several; ``at_most`` if ``expected`` are there."""
        stride = max(1, -(-expected // at_most))
        better, worse = np.empty((2, int(self.pairs.sum()) // stride + 1), dtype=np.int64)
        weight = np.empty(len(better))
        whole, real = self._scratch(0, len(self._indptr) - 1)
        found = corner_pairs(self._indptr, self._level, self._factor, scores, width, stride,
                             whole[0], whole[1], real[0], better, worse, weight)  # fmt: skip
        return Corner(better[:found], worse[:found], stride * weight[:found] / width)

    def _scratch(self, first: int, end: int) -> tuple[NDArray[np.int64], Vector]:
        longest = longest_list(self._indptr, first, end)
        return np.empty((2, longest), dtype=np.int64), np.empty((4, longest + 1))


# Up to so many levels, going through their lists pair by pair beats one sweep with the Fenwick tree.
_FEW_LEVELS = 6


@njit(cache=True, nogil=True)
def _add(tree, place):  # type: ignore[no-untyped-def]
    place += 1
    while place < len(tree):
        tree[place] += 1
        place += place & -place


@njit(cache=True, nogil=True)
def _count_below(tree, place):  # type: ignore[no-untyped-def]
    """Number of entries at places below this one."""
    total = 0
    while place > 0:
        total += tree[place]
        place -= place & -place
    return total


@njit(cache=True, nogil=True)
def _by_sweep(n, order, s, y, tree, g):  # type: ignore[no-untyped-def]
    """Pairs within the margin; each adds −1 to the gradient of its better and +1 to that of its worse document."""
    active = 0
    # Both sweeps test s_u − s_v < 1 in the same rounding, so that each pair is in both or in none.
    tree[:] = 0
    behind = 0
    for place in range(n):
        u = order[place]
        while behind < n and s[u] - s[order[behind]] < 1.0:
            if y[order[behind]] >= 0:
                _add(tree, y[order[behind]])
            behind += 1
        if y[u] > 0:
            found = _count_below(tree, y[u])
            active += found
            g[u] -= found
    tree[:] = 0
    ahead = n - 1
    judged = 0
    for place in range(n - 1, -1, -1):
        v = order[place]
        while ahead >= 0 and s[order[ahead]] - s[v] < 1.0:
            if y[order[ahead]] >= 0:
                _add(tree, y[order[ahead]])
                judged += 1
            ahead -= 1
        if y[v] >= 0:
            g[v] += judged - _count_below(tree, y[v] + 1)
    return active


@njit(cache=True, nogil=True)
def _by_levels(n, order, s, y, top, rows, standing, change, first, g):  # type: ignore[no-untyped-def]
    """The same for few levels: the documents of each level by descending score, then every two levels merged."""
    group_by_level(n, order, s, y, top, rows, standing, first)
    for at in range(first[top + 1]):
        change[at] = 0.0
    active = 0
    for upper in range(1, top + 1):
        end = first[upper + 1]
        for lower in range(upper):
            v = first[lower]
            start = v
            stop = first[lower + 1]
            for u in range(first[upper], end):
                score = standing[u]
                while v < stop and score - standing[v] < 1.0:
                    change[v] += end - u  # within the margin of this document and of all that are scored lower
                    v += 1
                change[u] -= v - start
                active += v - start
    for at in range(first[top + 1]):
        g[rows[at]] = change[at]
    return active


@njit(cache=True, nogil=True)
def _hinge(first, end, indptr, level, factor, scores, gradient, value):  # type: ignore[no-untyped-def]
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    order = np.empty(longest, np.int64)
    rows = np.empty(longest, np.int64)
    standing = np.empty(longest, np.float64)
    change = np.empty(longest, np.float64)
    fenwick = np.zeros(longest + 2, np.int64)
    for q in range(first, end):
        if factor[q] == 0.0:
            continue
        start = indptr[q]
        n = indptr[q + 1] - start
        s = scores[start : start + n]
        y = level[start : start + n]
        g = gradient[start : start + n]
        order_list(s, order)
        top = top_level(n, y)
        if top < _FEW_LEVELS:
            active = _by_levels(n, order, s, y, top, rows, standing, change, fenwick, g)
        else:
            active = _by_sweep(n, order, s, y, fenwick[: top + 2], g)
        total = 0.0
        for i in range(n):
            total += g[i] * (s[i] - s[0])
            g[i] *= factor[q]
        value[q] = factor[q] * (active + total)


@njit(cache=True, nogil=True)
def _add_weight(tree, place, weight):  # type: ignore[no-untyped-def]
    place += 1
    while place < len(tree):
        tree[place] += weight
        place += place & -place


@njit(cache=True, nogil=True)
def _weighted_hinge(first, end, indptr, level, factor, weight, scores, fenwick, gradient, value):  # type: ignore[no-untyped-def]
    """As ``_by_sweep``; each pair counts with the weight of its better document."""
    order = np.empty(fenwick.shape[1], np.int64)
    for q in range(first, end):
        if factor[q] == 0.0:
            continue
        start = indptr[q]
        n = indptr[q + 1] - start
        s = scores[start : start + n]
        y = level[start : start + n]
        w = weight[start : start + n]
        g = gradient[start : start + n]
        order_list(s, order)
        top = top_level(n, y)
        worse = fenwick[0, : top + 2]
        worse[:] = 0.0
        behind = 0
        total = 0.0
        for place in range(n):
            u = order[place]
            while behind < n and s[u] - s[order[behind]] < 1.0:
                if y[order[behind]] >= 0:
                    _add_weight(worse, y[order[behind]], 1.0)
                behind += 1
            if y[u] > 0:
                found = w[u] * _count_below(worse, y[u])
                total += found
                g[u] -= found
        # Levels from the top, so that weights of better documents are a sum and no difference of sums.
        better = fenwick[1, : top + 2]
        better[:] = 0.0
        ahead = n - 1
        for place in range(n - 1, -1, -1):
            v = order[place]
            while ahead >= 0 and s[order[ahead]] - s[v] < 1.0:
                if y[order[ahead]] >= 0:
                    _add_weight(better, top - y[order[ahead]], w[order[ahead]])
                ahead -= 1
            if y[v] >= 0:
                g[v] += _count_below(better, top - y[v])
        for i in range(n):
            total += g[i] * (s[i] - s[0])
            g[i] *= factor[q]
        value[q] = factor[q] * total
