"""A measure as a function of a ranker's weights, seen along straight lines from where the weights are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, ModelError
from gradrank.measures import Measure
from gradrank.measures.base import NO_WEIGHTS, BoundMeasure, mean_value
from gradrank.models.ranker import Ranker
from gradrank.models.weight_vectors import weights_of
from gradrank.optimality.rerank import rank_steps, tie_ends
from gradrank.ranking import order_within_queries, rank
from gradrank.runtime.threads import for_query_blocks

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Documents × steps that a thread works on at once: what belongs to them stays in a core's cache.
_PLACES_PER_BLOCK = 40_000
_NO_TIES: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Changes:
    """How the mean of a measure changes: one row per direction, one column per step."""

    mean: FloatArray
    """Mean over queries of (value there − value at the weights)."""
    standard_error: FloatArray
    """Standard error of each mean over queries; NaN for a single query."""


class Terrain:
    """The mean of a measure on data around the weights of a ranker.

    What does not change with the weights (gains, ideal values, query boundaries) is computed once. Blocks of queries
    small enough for a core's cache are scored along several directions with one matrix product; then each direction's
    steps are ranked one from the other.

    >>> from gradrank.measures import MRR
    >>> from gradrank.models.linear import LinearRanker
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=[1, 1])
    >>> terrain = Terrain(LinearRanker([1.0, 0.0]), data, MRR())
    >>> terrain.value
    0.5
    >>> terrain.changes(np.array([[0.0, 1.0]]), np.array([0.5, 1.5])).mean.tolist()
    [[0.0, 0.5]]
    """

    def __init__(self, ranker: Ranker, data: RankingData, measure: Measure, *, n_jobs: int | None = None) -> None:
        self.ranker = ranker
        self.measure = measure
        self._weighted = weights_of(ranker)
        self._matrix = ranker.matrix(data)
        self._threads = n_jobs
        scores = ranker.grouped_scores(data, n_jobs=n_jobs)
        if not np.isfinite(scores).all():
            raise ModelError("gives scores that are not finite numbers")
        bound = measure.bind(data, n_jobs=n_jobs)
        values = bound.values(scores)
        self.value = mean_value(values)
        """Mean of the measure at the weights."""
        self.n_queries = int((~np.isnan(values)).sum())
        """Queries that have a value."""
        if not self.n_queries:
            raise DataError(f"{measure} has no value on this data: no query is judged")

        indptr, labels, self._rows = bound.documents()
        self._indptr = indptr
        self._gain = bound.prepared.gain
        before = _order_before_scores(bound, labels, data)
        if before is not None:
            self._rows = before if self._rows is None else self._rows[before]
            self._gain = self._gain[before]
        self._needs_docid = measure.ties == "docid" and data.docid is None
        self._prepared = bound.prepared
        self._values = values
        idle = bound.skipped | bound.prepared.empty
        if bound.prepared.short is not None:
            idle |= bound.prepared.short
        self._idle = idle
        scores = self._compared(scores if self._rows is None else scores[self._rows])
        self._order = rank(scores, indptr, ties="file", n_jobs=n_jobs).order

    def weights(self) -> FloatArray:
        """The weights in the middle."""
        return self._weighted.weight_vector()

    def weight_names(self) -> tuple[str, ...]:
        """What each weight belongs to."""
        return self._weighted.weight_names()

    def changes(self, directions: FloatArray, distances: FloatArray) -> Changes:
        """What the mean gains or loses at w + η·u, for every direction u (row) and distance η."""
        edges = _block_edges(self._indptr, max(1, _PLACES_PER_BLOCK // len(distances)))
        # A sum for each block and then one over blocks: the result does not depend on the number of threads.
        sums = np.zeros((len(edges) - 1, len(directions), len(distances), 2))

        def work(first: int, end: int) -> None:
            for block in range(first, end):
                rows = self._differences(int(edges[block]), int(edges[block + 1]), directions, distances)
                for direction, difference in enumerate(rows):
                    sums[block, direction, :, 0] = difference.sum(axis=1)
                    sums[block, direction, :, 1] = np.einsum("ij,ij->i", difference, difference)

        for_query_blocks(work, self._indptr[edges], self._threads)
        total, squares = np.moveaxis(sums.sum(axis=0), -1, 0)
        n = self.n_queries
        mean = total / n
        if n < 2:
            return Changes(mean, np.full_like(mean, np.nan))
        variance = np.maximum(squares - n * mean**2, 0.0) / (n - 1)
        return Changes(mean, np.sqrt(variance / n))

    def _differences(self, first: int, end: int, directions: FloatArray, distances: FloatArray) -> Iterator[FloatArray]:
        """For each direction the changes of the queries ``first`` to ``end``: steps × queries."""
        indptr = self._indptr[first : end + 1] - self._indptr[first]
        documents = slice(self._indptr[first], self._indptr[end])
        n_docs, n_queries, n_steps = int(indptr[-1]), end - first, len(distances)
        X: Any = np.ascontiguousarray(self._matrix[documents if self._rows is None else self._rows[documents]])
        # Every step is one more copy of the queries, so that the measure's kernel is called once per direction.
        prepared = self._prepared
        lists = np.append((np.arange(n_steps)[:, None] * n_docs + indptr[:-1]).ravel(), n_steps * n_docs)
        sizes = np.tile(np.diff(indptr), n_steps)
        gain = np.tile(self._gain[documents], n_steps)
        norm = np.tile(prepared.norm[first:end], n_steps)
        depth = np.tile(prepared.depth[first:end], n_steps)
        weight = np.tile(prepared.weight[documents], n_steps) if len(prepared.weight) else NO_WEIGHTS
        start_order = self._order[documents] - self._indptr[first]
        order = np.empty(n_steps * n_docs, dtype=np.int64)
        tie_end = np.empty(n_steps * n_docs, dtype=np.int64)
        values = np.empty(n_steps * n_queries)
        idle = self._idle[first:end]
        base = np.where(idle, 0.0, self._values[first:end])
        kernel = self.measure.kernel()
        for scores in self._weighted.shifted_scores(X, directions, distances):
            if not np.isfinite(scores).all():
                raise ModelError("gives scores that are not finite numbers when its weights are moved")
            compared = self._compared(scores)
            ends = _NO_TIES
            if rank_steps(indptr, compared, start_order, order):
                if self._needs_docid:
                    raise DataError(
                        "documents are tied and this convention breaks ties by document id, "
                        "but the data has no document ids"
                    )
                if self.measure.ties == "average":
                    tie_ends(lists, compared.reshape(-1), order, tie_end)
                    ends = tie_end
            kernel(0, n_steps * n_queries, lists, order, ends, sizes, gain, norm, depth, weight, prepared.option,
                   values)  # fmt: skip
            difference = values.reshape(n_steps, n_queries) - base
            difference[:, idle] = 0.0
            yield difference

    def _compared(self, scores: FloatArray) -> FloatArray:
        """Scores in the precision in which the measure compares them."""
        if self.measure.precision == "double":
            return scores
        with np.errstate(over="ignore"):
            return scores.astype(np.float32).astype(np.float64)


def _order_before_scores(bound: BoundMeasure, labels: NDArray[np.float32], data: RankingData) -> IntArray | None:
    """The order in which tied documents stand, query by query, if the measure wants another one than the file's."""
    indptr, _, rows = bound.documents()
    ties = bound.measure.ties
    if ties in ("pessimistic", "optimistic"):
        relevance = np.where(np.isnan(labels), -np.inf, labels.astype(np.float64))
        return order_within_queries(relevance if ties == "pessimistic" else -relevance, indptr)
    if ties == "docid" and data.docid is not None:
        docid = data.docid if rows is None else data.docid[rows]
        names = [name.encode() for name in docid]
        spans = zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
        return np.concatenate(
            [sorted(range(start, end), key=names.__getitem__, reverse=True) for start, end in spans], dtype=np.int64
        )
    return None


def _block_edges(indptr: IntArray, documents: int) -> IntArray:
    """First queries of blocks of at least so many documents (the last one may have fewer), and the end."""
    edges = [0]
    while edges[-1] < len(indptr) - 1:
        reach = int(np.searchsorted(indptr, indptr[edges[-1]] + documents))
        edges.append(min(max(reach, edges[-1] + 1), len(indptr) - 1))
    return np.array(edges)
