"""RankBoost's distribution over pairs, in factors: a weight of a pair is a number of each of its two documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gradrank.learners.base.label_levels import label_levels, pair_counts
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Potential:
    """What the weak rankers need of the distribution over pairs."""

    values: Vector
    """π(d) = Σ_v D(d, v) − Σ_u D(u, d): for any f, Σ D(u, v)·(f(u) − f(v)) = Σ_d π(d)·f(d)."""
    log_loss: float
    """log Σ D_1(u, v)·exp(−(F(u) − F(v))): the logarithm of the exponential loss."""


class PairWeights(Protocol):
    """A distribution over pairs that follows the scores."""

    def potential(self, scores: Vector) -> Potential:
        """The potential of the distribution that the scores leave."""


class FactoredPairs:
    """D(u, v) ∝ D_1(u, v)·exp(−(F(u) − F(v))) over the pairs with y_u > y_v, for any scores F.

    exp(−F(u))·exp(F(v)) are factors, and the condition on the labels is a running sum over the levels of the labels,
    so a potential costs O(n) and no pair is ever stored. D_1 gives all queries the same weight, times their own
    (``"query"``), or all pairs (``"pair"``); with weights of documents a pair counts with that of its better one.

    >>> pairs = FactoredPairs(np.array([1, 0, 0], dtype=np.float32), np.array([0, 3]))
    >>> potential = pairs.potential(np.zeros(3))
    >>> potential.values.tolist(), potential.log_loss
    ([1.0, -0.5, -0.5], 0.0)
    """

    def __init__(
        self,
        labels: NDArray[np.float32],
        indptr: NDArray[np.int64],
        *,
        uniform: str = "pair",
        weight: Vector | None = None,
        document_weight: Vector | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._indptr = indptr
        self._threads = n_jobs
        self._level = label_levels(labels, indptr)
        query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        self._rows = np.lexsort((self._level, query))
        counts = pair_counts(self._level, indptr)
        factor = np.ones(len(counts)) if weight is None else weight.astype(np.float64)
        if uniform == "query":
            factor = factor / np.maximum(counts, 1)
        self._document_weight = np.ones(len(labels)) if document_weight is None else document_weight.astype(np.float64)
        total = float((factor * (counts if document_weight is None else self._sums(np.zeros(len(labels)))[1])).sum())
        self.empty = total == 0.0
        """Whether there is no pair at all."""
        with np.errstate(divide="ignore"):
            self._log_factor = np.where(counts > 0, np.log(factor / (total or 1.0)), -np.inf)

    def potential(self, scores: Vector) -> Potential:
        """The potential of the distribution that the scores leave, normalized; all zero if nothing is left."""
        values, sums, spread = self._sums(scores)
        # Weights of a query are relative to its largest thinkable one, exp(spread): no overflow for any scores.
        with np.errstate(divide="ignore"):
            logs = np.where(sums > 0.0, self._log_factor + spread + np.log(sums), -np.inf)
        highest = float(logs.max())
        if highest == -np.inf:
            return Potential(np.zeros(len(scores)), -np.inf)
        shares = np.exp(logs - highest)
        total = float(shares.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(sums > 0.0, shares / (total * sums), 0.0)
        return Potential(values * np.repeat(factor, np.diff(self._indptr)), highest + float(np.log(total)))

    def _sums(self, scores: Vector) -> tuple[Vector, Vector, Vector]:
        """Potential and Σ of the pairs of each query, both relative to exp(spread), and the spread of its scores."""
        values = np.zeros(len(scores))
        sums, spread = np.zeros((2, len(self._indptr) - 1))

        def work(first: int, end: int) -> None:
            _potential(
                first, end, self._indptr, self._rows, self._level, self._document_weight, scores, values, sums, spread
            )

        for_query_blocks(work, self._indptr, self._threads)
        return values, sums, spread


@njit(cache=True, nogil=True)
def _potential(first, end, indptr, rows, level, weight, scores, values, sums, spread):  # type: ignore[no-untyped-def]
    """``rows`` names each query's documents by ascending level."""
    for q in range(first, end):
        start, stop = indptr[q], indptr[q + 1]
        while start < stop and level[rows[start]] < 0:
            start += 1
        if start == stop or level[rows[stop - 1]] == 0:
            continue
        low = np.inf
        high = -np.inf
        for at in range(start, stop):
            low = min(low, scores[rows[at]])
            high = max(high, scores[rows[at]])
        spread[q] = high - low
        total = 0.0
        below = 0.0
        waiting = 0.0
        now = 0
        for at in range(start, stop):
            row = rows[at]
            if level[row] != now:
                now = level[row]
                below += waiting
                waiting = 0.0
            share = weight[row] * np.exp(low - scores[row]) * below
            values[row] += share
            total += share
            waiting += np.exp(scores[row] - high)
        above = 0.0
        waiting = 0.0
        for at in range(stop - 1, start - 1, -1):
            row = rows[at]
            if level[row] != now:
                now = level[row]
                above += waiting
                waiting = 0.0
            values[row] -= np.exp(scores[row] - high) * above
            waiting += weight[row] * np.exp(low - scores[row])
        sums[q] = total
