"""Weak rankers: a feature scaled to 0…1, or a feature compared with a threshold; and the search for the best one.

A weak ranker f has values in 0…1; with direction −1 it is 1 − f. A missing value counts as the lowest. The search takes
the documents' potentials π (see ``pair_weights``) and weights of the queries, and maximizes

    r = β·Σ_q D(q)·E(f, q) + (1 − β)·Σ_d π(d)·f(d),

where E(f, q) is the quality of the ranking that f alone makes of the query's documents: a measure, averaged over ties.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.measures.base import BoundMeasure
from gradrank.models.trees.tree import Tree
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class WeakRanker:
    """One weak ranker and how well it did.

    >>> WeakRanker(0, 1, 0.25, threshold=0.5).values(np.array([[0.4], [0.6], [np.nan]])).tolist()
    [0.0, 1.0, 0.0]
    """

    feature: int
    direction: int
    """1, or −1 for the reverse order."""
    r: float
    threshold: float | None = None
    """1 above it, 0 elsewhere; None = the scaled feature itself."""
    low: float = 0.0
    width: float = 1.0
    """The scaled feature is (x − low) / width."""

    @property
    def alpha(self) -> float:
        """α = ½ log((1 + r) / (1 − r)), for r that is not quite 1."""
        r = min(self.r, 1.0 - 1e-6)
        return 0.5 * float(np.log((1.0 + r) / (1.0 - r)))

    def values(self, X: NDArray[Any]) -> Vector:
        """f of each row."""
        column = np.asarray(X[:, self.feature], dtype=np.float64)
        if self.threshold is not None:
            found = (column > self.threshold).astype(np.float64)
        else:
            # Beyond the training data's range it goes on, as the linear ranker that it becomes.
            found = np.nan_to_num((column - self.low) / self.width, nan=0.0)
        return found if self.direction > 0 else 1.0 - found

    def tree(self) -> Tree:
        """α·f as a tree of one split."""
        assert self.threshold is not None
        below, above = (0.0, self.alpha) if self.direction > 0 else (self.alpha, 0.0)
        return Tree.numerical(
            split_feature=[self.feature], threshold=[self.threshold], left=[-1], right=[-2], leaf_value=[below, above]
        )


@dataclass(frozen=True, eq=False)
class Quality:
    """A measure of lists, from 0 to 1.

    As it is, or *above chance*: 0 for the expectation over all orders, 1 for the best order. Pairs have that range
    already: a ranker that knows nothing has Σ D(u, v)·(f(u) − f(v)) = 0.

    >>> from gradrank.measures import MRR
    >>> bound = MRR().bind(RankingData.from_arrays([[0.0]] * 2, [1, 0], qid=[1, 1]))
    >>> Quality.of(bound, above_chance=True).values(np.array([0.0, 1.0])).tolist()
    [-1.0]
    """

    bound: BoundMeasure
    zero: Vector
    span: Vector

    @classmethod
    def of(cls, bound: BoundMeasure, *, above_chance: bool) -> Quality:
        """The quality that a measure gives."""
        n_queries = bound.data.n_queries
        if not above_chance:
            return cls(bound, np.zeros(n_queries), np.ones(n_queries))
        measure, data = bound.measure, bound.data
        labels = np.nan_to_num(data.label(measure.source), nan=-np.inf)
        zero = np.nan_to_num(bound.values(np.zeros(data.n_docs)))
        span = np.nan_to_num(bound.values(labels.astype(np.float64))) - zero
        return cls(bound, zero, np.where(span > 0.0, span, 1.0))

    def values(self, scores: Vector) -> Vector:
        """Quality of each query; 0 where the measure has no value."""
        quality: Vector = np.nan_to_num((self.bound.values(scores) - self.zero) / self.span)
        return quality


class WeakRankers(ABC):
    """All weak rankers of a kind on training data."""

    @abstractmethod
    def best(self, beta: float, potential: Vector | None, query_weights: Vector | None) -> WeakRanker:
        """The one with the largest r; the first of several."""


# ---------------------------------------------------------------------- features
class ScaledFeatures(WeakRankers):
    """The features themselves, scaled to 0…1 over the training data, in both directions.

    ``lists`` are the rows of ``data`` whose order counts, and its quality.
    """

    def __init__(self, data: RankingData, lists: tuple[NDArray[np.int64], Quality] | None) -> None:
        self._data = data
        columns = [data.X[:, j] for j in range(data.n_features)]
        known = [column[~np.isnan(column)] for column in columns]
        self.low = np.array([float(column.min()) if len(column) else 0.0 for column in known])
        high = np.array([float(column.max()) if len(column) else 0.0 for column in known])
        self.width = np.where(high > self.low, high - self.low, 1.0)
        self._quality: Vector | None = None
        if lists is not None:
            rows, quality = lists
            values = [
                quality.values(sign * self._scaled(j)[rows]) for sign in (1.0, -1.0) for j in range(data.n_features)
            ]
            self._quality = np.array(values).reshape(2, data.n_features, -1)

    def _scaled(self, j: int) -> Vector:
        column = np.asarray(self._data.X[:, j], dtype=np.float64)
        scaled: Vector = np.nan_to_num((column - self.low[j]) / self.width[j], nan=0.0)
        return scaled

    def best(self, beta: float, potential: Vector | None, query_weights: Vector | None) -> WeakRanker:
        """See WeakRankers.best."""
        r = np.zeros((2, len(self.low)))
        if potential is not None:
            gains = np.array([potential @ self._scaled(j) for j in range(len(self.low))])
            r += (1.0 - beta) * np.array([gains, -gains])
        if query_weights is not None:
            assert self._quality is not None
            r += beta * (self._quality @ query_weights)
        # Forward before backward for equal r.
        side, feature = np.unravel_index(int(np.argmax(r)), r.shape)
        low, width = float(self.low[feature]), float(self.width[feature])
        return WeakRanker(int(feature), 1 if side == 0 else -1, float(r[side, feature]), low=low, width=width)


# ---------------------------------------------------------------------- thresholds
class Thresholds(WeakRankers):
    """Features compared with up to ``bins`` − 1 thresholds each, in both directions.

    A feature with few different values has a threshold between any two of them, one with many has as many documents
    between any two thresholds. Documents are held as their bin's number, so a search is a histogram for each feature.
    """

    def __init__(
        self,
        data: RankingData,
        lists: tuple[NDArray[np.int64], Quality] | None,
        *,
        bins: int = 255,
        n_jobs: int | None = None,
    ) -> None:
        self._threads = n_jobs
        self._n_docs = data.n_docs
        self.cuts = [thresholds(data.X[:, j], bins) for j in range(data.n_features)]
        codes = [_codes(data.X[:, j], self.cuts[j]) for j in range(data.n_features)]
        self._codes = np.array(codes, dtype=np.uint8 if bins <= 256 else np.uint16)
        self._lists: _ListTable | None = None
        if lists is not None:
            rows, quality = lists
            self._lists = _ListTable(quality, self._codes[:, rows])

    def best(self, beta: float, potential: Vector | None, query_weights: Vector | None) -> WeakRanker:
        """See WeakRankers.best."""
        n_bins = max((len(cut) for cut in self.cuts), default=0) + 1
        # Row of a feature: r of its thresholds, forward and backward.
        forward, backward = (np.zeros((len(self.cuts), n_bins)) for _ in range(2))
        if potential is not None:
            sums = self._histogram(self._codes, potential, n_bins)
            forward += (1.0 - beta) * _above(sums)
            backward -= (1.0 - beta) * _above(sums)
        if query_weights is not None:
            assert self._lists is not None
            ahead, behind = self._lists.values(query_weights, n_bins, self._threads)
            forward += beta * ahead
            backward += beta * behind
        there = np.arange(n_bins) < np.array([len(cut) for cut in self.cuts])[:, None]
        r = np.where(there, np.array([forward, backward]), -np.inf)
        if not there.any():
            return WeakRanker(0, 1, 0.0, threshold=0.0)
        side, feature, place = np.unravel_index(int(np.argmax(r)), r.shape)
        return WeakRanker(
            int(feature),
            1 if side == 0 else -1,
            float(r[side, feature, place]),
            threshold=float(self.cuts[feature][place]),
        )

    def _histogram(self, codes: NDArray[Any], amounts: Vector, n_bins: int) -> Vector:
        sums = np.zeros((len(codes), n_bins))

        def work(first: int, end: int) -> None:
            for j in range(first, end):
                _sum_by_code(codes[j], amounts, sums[j])

        for_query_blocks(work, np.arange(len(codes) + 1) * self._n_docs, self._threads)
        return sums


class _ListTable:
    """Σ_q D(q)·E(threshold, q) for all thresholds at once.

    As a threshold falls, documents of a list pass it one after the other; each passing changes E by a number that is
    known beforehand. So the changes, times D, summed by the bins of the documents, are all that is needed.
    """

    def __init__(self, quality: Quality, codes: NDArray[Any]) -> None:
        documents = quality.bound.data
        self._query = documents.query_of_row()
        self._codes = codes
        sizes = documents.sizes
        place = np.arange(documents.n_docs) - np.repeat(documents.indptr[:-1], sizes)
        self._start = quality.values(np.zeros(documents.n_docs))
        longest = int(sizes.max())
        # Change of E as each document passes, from the top down (forward) and from the bottom up (backward).
        self._changes = np.zeros((2, len(codes), documents.n_docs))
        for side, sign in enumerate((-1, 1)):
            for j in range(len(codes)):
                order = np.lexsort((sign * codes[j].astype(np.int64), self._query))
                passed = np.empty(documents.n_docs, dtype=np.int64)
                passed[order] = place
                before = self._start
                for count in range(longest):
                    after = quality.values((passed <= count).astype(np.float64))
                    now = passed == count
                    self._changes[side, j, now] = (after - before)[self._query[now]]
                    before = after

    def values(self, weights: Vector, n_bins: int, n_jobs: int | None) -> tuple[Vector, Vector]:
        """For each feature and threshold, forward and backward."""
        sums = np.zeros((2, len(self._codes), n_bins))
        each = weights[self._query]

        def work(first: int, end: int) -> None:
            for j in range(first, end):
                for side in range(2):
                    _sum_by_code(self._codes[j], self._changes[side, j] * each, sums[side, j])

        for_query_blocks(work, np.arange(len(self._codes) + 1) * len(each), n_jobs)
        start = float(self._start @ weights)
        return start + _above(sums[0]), start + np.cumsum(sums[1], axis=1)


def thresholds(column: NDArray[Any], bins: int) -> Vector:
    """Up to ``bins`` − 1 thresholds of a feature, rising; each lies between two values that occur.

    >>> thresholds(np.array([1.0, 2.0, 2.0, 4.0]), bins=255).tolist()
    [1.5, 3.0]
    """
    known = np.sort(column[~np.isnan(column)].astype(np.float64))
    values, counts = np.unique(known, return_counts=True)
    if len(values) > bins:
        wanted = np.linspace(0, len(known), bins + 1)[1:-1]
        places = np.unique(np.searchsorted(np.cumsum(counts), wanted))
        places = places[places < len(values) - 1]
    else:
        places = np.arange(len(values) - 1)
    # The lower value plus half the way: never rounds up to the upper one.
    middle: Vector = values[places] + (values[places + 1] - values[places]) / 2.0
    return middle


def _codes(column: NDArray[Any], cuts: Vector) -> NDArray[np.int64]:
    """Number of thresholds that a value exceeds; 0 for missing values."""
    return np.where(np.isnan(column), 0, np.searchsorted(cuts, column.astype(np.float64), side="left"))


def _above(sums: Vector) -> Vector:
    """For each threshold (place b lies between codes b and b + 1) the sum over the codes above it."""
    total: Vector = sums.sum(axis=1, keepdims=True) - np.cumsum(sums, axis=1)
    return total


@njit(cache=True, nogil=True)
def _sum_by_code(codes, amounts, sums):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        sums[codes[i]] += amounts[i]
