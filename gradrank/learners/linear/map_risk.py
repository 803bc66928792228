"""SVMmap's risk: a convex bound of 1 − average precision (Yue, Finley, Radlinski, Joachims 2007)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.learners.linear.convex_risk import Oracle
from gradrank.learners.linear.scaled_features import Vector
from gradrank.ranking import order_list
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks


class AveragePrecisionOracle:
    """Σ_q w_q·max_z [1 − AP(z, y) + wΨ(z) − wΨ(y)] over all rankings z of the query's documents.

    wΨ(z) = 1/(|R||N|) Σ_{i∈R, j∈N} ±(s_i − s_j), + where z has i above j. The maximizing z keeps relevant
    and other documents sorted by score among themselves and interleaves them. How far the j-th other document goes up
    is a maximum over |R| + 1 places that never moves up with growing j, so halving finds all in O(n log n).
    Relevant: label of ``rel`` or more. Queries where all or no documents are relevant have no loss.

    >>> oracle = AveragePrecisionOracle(np.array([1, 0], dtype=np.float32), np.array([0, 2]))
    >>> value, gradient = oracle(np.array([0.1, 0.0]))
    >>> value.round(3).tolist(), gradient.tolist()
    ([0.3], [[-2.0, 2.0]])
    """

    parts = 1

    def __init__(
        self,
        labels: NDArray[np.float32],
        indptr: NDArray[np.int64],
        *,
        rel: float = 1.0,
        weight: Vector | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._indptr = indptr
        self._threads = n_jobs
        # 1 relevant, 0 not, −1 takes no part.
        self._side = np.where(np.isnan(labels), -1, labels >= np.float32(rel)).astype(np.int64)
        relevant, others = (np.add.reduceat(self._side == side, indptr[:-1]) for side in (1, 0))
        self.counted = (relevant > 0) & (others > 0)
        """Queries that have a loss."""
        self._weight = np.ones(len(indptr) - 1) if weight is None else weight.astype(np.float64)

    def __call__(self, scores: Vector) -> tuple[Vector, Vector]:
        """Value, and subgradient with respect to the scores."""
        gradient = np.zeros(len(scores))
        value = np.zeros(len(self._indptr) - 1)

        def work(first: int, end: int) -> None:
            _one_cut(first, end, self._indptr, self._side, self._weight, scores, gradient, value)

        for_query_blocks(work, self._indptr, self._threads)
        return np.array([value.sum()]), gradient[None]


class OrderOracle:
    """SVMmap's risk for a total order: the mean over the cuts c = 1…|T|−1 in which the first c are relevant.

    T are the documents of a query with a positive position label; the others take no part. Each cut has its own most
    violated ranking, so the mean is convex and bounds 1 − (mean AP over the cuts).

    >>> labels = np.array([3, 1, 2, 0], dtype=np.float32)
    >>> value, gradient = OrderOracle(labels, np.array([0, 4]))(np.array([3.0, 1.0, 2.0, 9.0]))
    >>> value.tolist(), gradient.tolist()
    ([0.0], [[0.0, 0.0, 0.0, 0.0]])
    """

    parts = 1

    def __init__(
        self,
        labels: NDArray[np.float32],
        indptr: NDArray[np.int64],
        *,
        weight: Vector | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._threads = n_jobs
        query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        inside = np.flatnonzero(labels > 0)
        # Documents of T only, best first: then a cut is a prefix.
        self._rows = inside[np.lexsort((-labels[inside], query[inside]))]
        self._indptr = np.searchsorted(query[self._rows], np.arange(len(indptr)))
        self._weight = np.ones(len(indptr) - 1) if weight is None else weight.astype(np.float64)

    def __call__(self, scores: Vector) -> tuple[Vector, Vector]:
        """Value, and subgradient with respect to the scores."""
        of_top = np.zeros(len(self._rows))
        value = np.zeros(len(self._indptr) - 1)
        chosen = scores[self._rows]

        def work(first: int, end: int) -> None:
            _all_cuts(first, end, self._indptr, self._weight, chosen, of_top, value)

        for_query_blocks(work, self._indptr, self._threads)
        gradient = np.zeros(len(scores))
        gradient[self._rows] = of_top
        return np.array([value.sum()]), gradient[None]


class MixedOracle:
    """Several risks of the same scores as the parts of one."""

    def __init__(self, *oracles: Oracle) -> None:
        self._oracles = oracles
        self.parts = len(oracles)

    def __call__(self, scores: Vector) -> tuple[Vector, Vector]:
        """Values and subgradients of the parts."""
        found = [oracle(scores) for oracle in self._oracles]
        return np.concatenate([value for value, _ in found]), np.concatenate([gradient for _, gradient in found])


@njit(cache=True, nogil=True)
def _gain(place, j, other, relevant, per_relevant, per_pair):  # type: ignore[no-untyped-def]
    """What the (j+1)-th other document gains by going above the (place+1)-th relevant one."""
    k = place + 1.0
    lost = (j + 1.0) / (j + 1.0 + k) - j / (j + k)
    return per_relevant * lost - 2.0 * per_pair * (relevant[place] - other[j])


@njit(cache=True, nogil=True)
def _most_violated(relevant, other, place, stack):  # type: ignore[no-untyped-def]
    """For each other document (scores descending) the number of relevant ones above it in the most violated ranking."""
    n_relevant = len(relevant)
    per_relevant = 1.0 / n_relevant
    per_pair = per_relevant / len(other)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, len(other), 0, n_relevant
    depth = 1
    while depth > 0:
        depth -= 1
        first, end, low, high = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        middle = (first + end) // 2
        best, best_gain, gain = high, 0.0, 0.0
        for at in range(high - 1, low - 1, -1):
            gain += _gain(at, middle, other, relevant, per_relevant, per_pair)
            if gain > best_gain:
                best, best_gain = at, gain
        place[middle] = best
        if middle + 1 < end:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = middle + 1, end, best, high
            depth += 1
        if first < middle:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = first, middle, low, best
            depth += 1


@njit(cache=True, nogil=True)
def _violation(n_relevant, n_other, rows, relevant, other, place, stack, factor, gradient):  # type: ignore[no-untyped-def]
    """Loss of the most violated ranking; its subgradient is added to the rows (relevant ones first)."""
    _most_violated(relevant, other, place, stack)
    per_pair = 2.0 / (n_relevant * n_other)
    precision = 0.0
    total = 0.0
    above = 0
    for k in range(n_relevant):
        while above < n_other and place[above] <= k:
            above += 1
        precision += (k + 1.0) / (k + 1.0 + above)
        change = -per_pair * above
        gradient[rows[k]] += factor * change
        total += change * (relevant[k] - relevant[0])
    for j in range(n_other):
        change = per_pair * (n_relevant - place[j])
        gradient[rows[n_relevant + j]] += factor * change
        total += change * (other[j] - relevant[0])
    return 1.0 - precision / n_relevant + total


@njit(cache=True, nogil=True)
def _scratch(first, end, indptr):  # type: ignore[no-untyped-def]
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    # Halving goes as deep as the logarithm of the list, and leaves one waiting half a level.
    return np.empty((2, longest), np.float64), np.empty((3, longest), np.int64), np.empty((130, 4), np.int64)


@njit(cache=True, nogil=True)
def _one_cut(first, end, indptr, side, weight, scores, gradient, value):  # type: ignore[no-untyped-def]
    real, whole, stack = _scratch(first, end, indptr)
    relevant, other = real[0], real[1]
    order, rows, place = whole[0], whole[1], whole[2]
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        order_list(scores[start : start + n], order)
        n_relevant = 0
        for r in range(n):
            n_relevant += side[start + r] == 1
        a, b = 0, 0
        for r in range(n):
            row = start + order[r]
            if side[row] == 1:
                relevant[a] = scores[row]
                rows[a] = row
                a += 1
            elif side[row] == 0:
                other[b] = scores[row]
                rows[n_relevant + b] = row
                b += 1
        if a > 0 and b > 0 and weight[q] > 0.0:
            loss = _violation(a, b, rows, relevant[:a], other[:b], place, stack, weight[q], gradient)
            value[q] = weight[q] * loss


@njit(cache=True, nogil=True)
def _all_cuts(first, end, indptr, weight, scores, gradient, value):  # type: ignore[no-untyped-def]
    """Documents of a query stand in the order of the truth."""
    real, whole, stack = _scratch(first, end, indptr)
    relevant, other = real[0], real[1]
    order, rows, place = whole[0], whole[1], whole[2]
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        if n < 2 or weight[q] == 0.0:
            continue
        order_list(scores[start : start + n], order)
        factor = weight[q] / (n - 1)
        for cut in range(1, n):
            a, b = 0, 0
            for r in range(n):
                row = start + order[r]
                if order[r] < cut:
                    relevant[a] = scores[row]
                    rows[a] = row
                    a += 1
                else:
                    other[b] = scores[row]
                    rows[cut + b] = row
                    b += 1
            value[q] += factor * _violation(a, b, rows, relevant[:a], other[:b], place, stack, factor, gradient)
