"""Pairs of the top k and the rest with the factor (y_u − y_v) that Niu et al. (2012) print: the first places pull more.

Documents of the rest have the label 0, so that the factor of a pair is the position label of its upper document.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.learners.boosting.pair_weights import Potential
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

Vector = NDArray[np.float64]


class DifferenceOracle:
    """Σ_q w_q·mean_{u ∈ T, v ∈ F} max(0, 1 − y_u·(s_u − s_v)) and its subgradient.

    >>> oracle = DifferenceOracle(np.array([2, 0], dtype=np.float32), np.array([0, 2]))
    >>> value, gradient = oracle(np.array([0.25, 0.0]))
    >>> value.tolist(), gradient.tolist()
    ([0.5], [[-2.0, 2.0]])
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
        self._labels, self._indptr, self._threads = labels, indptr, n_jobs
        self._factor = _per_pair(labels, indptr, "query", weight)

    def __call__(self, scores: Vector) -> tuple[Vector, Vector]:
        """Value, and subgradient with respect to the scores."""
        gradient, value = np.zeros(len(scores)), np.zeros(len(self._indptr) - 1)

        def work(first: int, end: int) -> None:
            _hinge(first, end, self._indptr, self._labels, self._factor, scores, gradient, value)

        for_query_blocks(work, self._indptr, self._threads)
        return np.array([value.sum()]), gradient[None]


class DifferencePairs:
    """D(u, v) ∝ D_1(u, v)·y_u·exp(−y_u·(F(u) − F(v))) over T × F: the slopes of the exponential loss with the factor.

    >>> pairs = DifferencePairs(np.array([2, 1, 0], dtype=np.float32), np.array([0, 3]))
    >>> potential = pairs.potential(np.zeros(3))
    >>> potential.values.round(4).tolist(), potential.log_loss
    ([0.6667, 0.3333, -1.0], 0.0)
    """

    def __init__(
        self,
        labels: NDArray[np.float32],
        indptr: NDArray[np.int64],
        *,
        uniform: str = "pair",
        weight: Vector | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._labels, self._indptr, self._threads = labels, indptr, n_jobs
        factor = _per_pair(labels, indptr, uniform, weight)
        total = float((factor * _pairs(labels, indptr)).sum())
        self.empty = total == 0.0
        """Whether there is no pair at all."""
        with np.errstate(divide="ignore"):
            self._log_factor = np.log(factor / (total or 1.0))

    def potential(self, scores: Vector) -> Potential:
        """The potential of the distribution that the scores leave, normalized; all zero if there is no pair."""
        n_queries = len(self._indptr) - 1
        # A first pass finds the largest exponent, so that nothing overflows for any scores.
        largest = np.full(n_queries, -np.inf)

        def look(first: int, end: int) -> None:
            _largest(first, end, self._indptr, self._labels, self._log_factor, scores, largest)

        for_query_blocks(look, self._indptr, self._threads)
        top = float(largest.max(initial=-np.inf))
        values, weights, losses = np.zeros(len(scores)), np.zeros(n_queries), np.zeros(n_queries)
        if top == -np.inf:
            return Potential(values, -np.inf)

        def work(first: int, end: int) -> None:
            _weigh(first, end, self._indptr, self._labels, self._log_factor, scores, top, values, weights, losses)

        for_query_blocks(work, self._indptr, self._threads)
        return Potential(values / weights.sum(), top + float(np.log(losses.sum())))


def _pairs(labels: NDArray[np.float32], indptr: NDArray[np.int64]) -> Vector:
    """Number of pairs of each query."""
    upper = np.add.reduceat(np.append((labels > 0).astype(np.float64), 0.0), indptr[:-1])
    lower = np.add.reduceat(np.append((labels == 0).astype(np.float64), 0.0), indptr[:-1])
    return np.where(np.diff(indptr) > 0, upper * lower, 0.0)


def _per_pair(labels: NDArray[np.float32], indptr: NDArray[np.int64], uniform: str, weight: Vector | None) -> Vector:
    """What a pair of each query counts; 0 where there is none."""
    counts = _pairs(labels, indptr)
    factor = np.ones(len(counts)) if weight is None else weight.astype(np.float64)
    if uniform == "query":
        factor = factor / np.maximum(counts, 1.0)
    return np.where(counts > 0, factor, 0.0)


@njit(cache=True, nogil=True)
def _hinge(first, end, indptr, labels, factor, scores, gradient, value):  # type: ignore[no-untyped-def]
    for q in range(first, end):
        if factor[q] == 0.0:
            continue
        for u in range(indptr[q], indptr[q + 1]):
            if not labels[u] > 0.0:
                continue
            for v in range(indptr[q], indptr[q + 1]):
                if labels[v] != 0.0:
                    continue
                loss = 1.0 - labels[u] * (scores[u] - scores[v])
                if loss > 0.0:
                    value[q] += factor[q] * loss
                    gradient[u] -= factor[q] * labels[u]
                    gradient[v] += factor[q] * labels[u]


@njit(cache=True, nogil=True)
def _largest(first, end, indptr, labels, log_factor, scores, largest):  # type: ignore[no-untyped-def]
    for q in range(first, end):
        if log_factor[q] == -np.inf:
            continue
        for u in range(indptr[q], indptr[q + 1]):
            if not labels[u] > 0.0:
                continue
            for v in range(indptr[q], indptr[q + 1]):
                if labels[v] == 0.0:
                    largest[q] = max(largest[q], log_factor[q] - labels[u] * (scores[u] - scores[v]))


@njit(cache=True, nogil=True)
def _weigh(first, end, indptr, labels, log_factor, scores, top, values, weights, losses):  # type: ignore[no-untyped-def]
    for q in range(first, end):
        if log_factor[q] == -np.inf:
            continue
        for u in range(indptr[q], indptr[q + 1]):
            if not labels[u] > 0.0:
                continue
            for v in range(indptr[q], indptr[q + 1]):
                if labels[v] != 0.0:
                    continue
                loss = np.exp(log_factor[q] - labels[u] * (scores[u] - scores[v]) - top)
                losses[q] += loss
                weights[q] += labels[u] * loss
                values[u] += labels[u] * loss
                values[v] -= labels[u] * loss
