"""Products with scaled features, X_s·w and X_sᵀ·g, that never make a scaled copy of the matrix.

X_s = (X − mean) / scale. Missing values count as the mean, so they add nothing. Differences of documents, which is all
that ranking looks at, do not depend on the mean; it only keeps numbers small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

Vector = NDArray[np.float64]
Scaling = Literal["none", "minmax", "standard"]

_ROWS_PER_BLOCK = 4096
_GRAM_ROWS = 2048
# Below this share of non-zero values, sparse products are faster than dense ones.
_SPARSE_SHARE = 0.15


class Features(Protocol):
    """A matrix, documents × features, as a solver sees it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Documents, features."""

    @property
    def scale(self) -> Vector:
        """What each feature is divided by."""

    def times(self, weights: Vector) -> Vector:
        """X·w, one number per document."""

    def transposed_times(self, values: Vector) -> Vector:
        """Xᵀ·g, one number per feature."""

    def difference_gram(self, better: NDArray[np.int64], worse: NDArray[np.int64], weight: Vector) -> Vector:
        """Σ_i weight_i·d_i·d_iᵀ over the differences d_i of two rows, features × features."""


@dataclass(frozen=True, eq=False)
class DenseFeatures:
    """Features held as a float32 or float64 matrix in any order, or as a memory map.

    >>> features = DenseFeatures(np.array([[1.0, 4.0], [3.0, np.nan]]), mean=np.array([2.0, 4.0]), scale=np.ones(2))
    >>> features.times(np.array([1.0, 1.0])).tolist()
    [-1.0, 1.0]
    """

    X: NDArray[Any]
    mean: Vector
    scale: Vector
    n_jobs: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Documents, features."""
        return self.X.shape[0], self.X.shape[1]

    def _edges(self) -> NDArray[np.int64]:
        return np.append(np.arange(0, len(self.X), _ROWS_PER_BLOCK), len(self.X))

    def times(self, weights: Vector) -> Vector:
        """X·w."""
        out = np.empty(len(self.X))
        edges, scaled = self._edges(), weights / self.scale

        def work(first: int, end: int) -> None:
            rows = slice(edges[first], edges[end])
            _times(_rows(self.X, rows), scaled, self.mean, out[rows])

        for_query_blocks(work, edges, self.n_jobs)
        return out

    def transposed_times(self, values: Vector) -> Vector:
        """Xᵀ·g; blocks are added in the same order for any number of threads."""
        edges = self._edges()
        parts = np.zeros((len(edges) - 1, self.X.shape[1]))

        def work(first: int, end: int) -> None:
            for block in range(first, end):
                rows = slice(edges[block], edges[block + 1])
                _transposed_times(_rows(self.X, rows), values[rows], self.mean, parts[block])

        for_query_blocks(work, edges, self.n_jobs)
        total: Vector = parts.sum(axis=0) / self.scale
        return total

    def difference_gram(self, better: NDArray[np.int64], worse: NDArray[np.int64], weight: Vector) -> Vector:
        """Σ_i weight_i·d_i·d_iᵀ over the differences d_i of two rows."""
        differences = np.empty((len(weight), self.X.shape[1]))
        _subtract(self.X[better], self.X[worse], self.mean, self.scale, differences)
        return weighted_gram(differences, weight, self.n_jobs)


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Features held as a scipy sparse matrix without missing values, scaled but not centered."""

    X: Any
    scale: Vector

    @property
    def shape(self) -> tuple[int, int]:
        """Documents, features."""
        return self.X.shape[0], self.X.shape[1]

    def times(self, weights: Vector) -> Vector:
        """X·w."""
        return np.asarray(self.X @ (weights / self.scale), dtype=np.float64)

    def transposed_times(self, values: Vector) -> Vector:
        """Xᵀ·g."""
        return np.asarray(self.X.T @ values, dtype=np.float64) / self.scale

    def difference_gram(self, better: NDArray[np.int64], worse: NDArray[np.int64], weight: Vector) -> Vector:
        """Σ_i weight_i·d_i·d_iᵀ over the differences d_i of two rows."""
        differences = self.X[better] - self.X[worse]
        return weighted_gram(np.asarray(differences.todense(), dtype=np.float64) / self.scale, weight)


def scaled_features(X: Any, scaling: Scaling = "standard", *, n_jobs: int | None = None) -> Features:
    """Features under a scaling that is global (not per query), so that it can be part of a linear ranker.

    ``none`` takes them as they are, ``minmax`` divides by the range, ``standard`` by the standard deviation; constant
    features are left alone. Mostly zero matrices, and scipy's sparse ones, are multiplied sparsely.

    >>> scaled_features(np.array([[0.0], [4.0]]), "minmax").times(np.array([1.0])).tolist()
    [-0.5, 0.5]
    """
    import scipy.sparse

    if scipy.sparse.issparse(X):
        matrix: Any = X
        return _sparse(matrix.tocsr().astype(np.float64), scaling)
    mean, low, high, deviation, zeros, known = _statistics(np.asarray(X))
    scale = _scale(scaling, low, high, deviation)
    if known and zeros > (1.0 - _SPARSE_SHARE) * X.size:
        return SparseFeatures(scipy.sparse.csr_array(np.asarray(X, dtype=np.float64)), scale)
    return DenseFeatures(np.asarray(X), mean, scale, n_jobs)


def weighted_gram(rows: Vector, weight: Vector, n_jobs: int | None = None) -> Vector:
    """Σ_i weight_i·x_i·x_iᵀ over the rows, the same for any number of threads.

    >>> weighted_gram(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([1.0, 3.0])).tolist()
    [[1.0, 2.0], [2.0, 7.0]]
    """
    n, p = rows.shape
    edges = np.append(np.arange(0, n, _GRAM_ROWS), n)
    parts = np.zeros((len(edges) - 1, p, p))

    def work(first: int, end: int) -> None:
        for block in range(first, end):
            _add_gram(rows, weight, edges[block], edges[block + 1], parts[block])

    # A row costs as much as p documents cost other kernels.
    for_query_blocks(work, edges * p, n_jobs)
    upper: Vector = parts.sum(axis=0)
    return upper + np.triu(upper, 1).T


def _scale(scaling: str, low: Vector, high: Vector, deviation: Vector) -> Vector:
    scale = {"none": np.ones_like(low), "minmax": high - low, "standard": deviation}[scaling]
    # A spread that rounding alone explains would blow a constant feature up.
    return np.where((high > low) & (scale > 1e-12 * np.maximum(np.abs(low), np.abs(high))), scale, 1.0)


def _sparse(X: Any, scaling: Scaling) -> SparseFeatures:
    n = X.shape[0]
    mean = np.asarray(X.sum(axis=0)).ravel() / n
    square = np.asarray(X.multiply(X).sum(axis=0)).ravel() / n
    low, high = (np.asarray(edge.todense()).ravel() for edge in (X.min(axis=0), X.max(axis=0)))
    return SparseFeatures(X, _scale(scaling, low, high, np.sqrt(np.maximum(square - mean**2, 0.0))))


def _statistics(X: NDArray[Any]) -> tuple[Vector, Vector, Vector, Vector, int, bool]:
    """Mean, minimum, maximum, deviation of each feature over known values; number of zeros; whether all are known."""
    p = X.shape[1]
    total, count, square = np.zeros(p), np.zeros(p), np.zeros(p)
    low, high, zeros = np.full(p, np.inf), np.full(p, -np.inf), np.zeros(p)
    blocks = [slice(start, start + _ROWS_PER_BLOCK) for start in range(0, len(X), _ROWS_PER_BLOCK)]
    for rows in blocks:
        _ranges(_rows(X, rows), count, total, low, high, zeros)
    mean = total / np.maximum(count, 1)
    for rows in blocks:
        _squares(_rows(X, rows), mean, square)
    unknown = count == 0
    low[unknown] = high[unknown] = 0.0
    return mean, low, high, np.sqrt(square / np.maximum(count, 1)), int(zeros.sum()), bool((count == len(X)).all())


def _rows(X: NDArray[Any], rows: slice) -> NDArray[Any]:
    return np.ascontiguousarray(X[rows])


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _times(X, weights, mean, out):  # type: ignore[no-untyped-def]
    for row in range(np.uint64(len(X))):
        total = 0.0
        for j in range(np.uint64(len(weights))):
            value = X[row, j] - mean[j]
            total += weights[j] * value if value == value else 0.0
        out[row] = total


@njit(cache=True, nogil=True)
def _transposed_times(X, values, mean, out):  # type: ignore[no-untyped-def]
    for row in range(np.uint64(len(X))):
        factor = values[row]
        if factor != 0.0:
            for j in range(np.uint64(len(mean))):
                value = X[row, j] - mean[j]
                out[j] += factor * value if value == value else 0.0


@njit(cache=True, nogil=True)
def _ranges(X, count, total, low, high, zeros):  # type: ignore[no-untyped-def]
    for row in range(np.uint64(len(X))):
        for j in range(np.uint64(len(total))):
            value = np.float64(X[row, j])
            known = value == value
            count[j] += known
            total[j] += value if known else 0.0
            zeros[j] += value == 0.0
            low[j] = value if value < low[j] else low[j]
            high[j] = value if value > high[j] else high[j]


@njit(cache=True, nogil=True)
def _squares(X, mean, square):  # type: ignore[no-untyped-def]
    for row in range(np.uint64(len(X))):
        for j in range(np.uint64(len(mean))):
            value = X[row, j] - mean[j]
            square[j] += value * value if value == value else 0.0


@njit(cache=True, nogil=True)
def _subtract(better, worse, mean, scale, out):  # type: ignore[no-untyped-def]
    for row in range(np.uint64(len(out))):
        for j in range(np.uint64(len(mean))):
            a = better[row, j] - mean[j]
            b = worse[row, j] - mean[j]
            out[row, j] = ((a if a == a else 0.0) - (b if b == b else 0.0)) / scale[j]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_gram(rows, weight, start, end, out):  # type: ignore[no-untyped-def]
    """Upper triangle of Σ weight·x·xᵀ; four rows at a time, so that sums are loaded and stored a quarter as often."""
    p = rows.shape[1]
    for at in range(start, end, 4):
        b, c, d = min(at + 1, end - 1), min(at + 2, end - 1), min(at + 3, end - 1)
        weight_b = weight[b] if at + 1 < end else 0.0
        weight_c = weight[c] if at + 2 < end else 0.0
        weight_d = weight[d] if at + 3 < end else 0.0
        for i in range(p):
            fa = weight[at] * rows[at, i]
            fb = weight_b * rows[b, i]
            fc = weight_c * rows[c, i]
            fd = weight_d * rows[d, i]
            for j in range(np.uint64(i), np.uint64(p)):
                out[i, j] += fa * rows[at, j] + fb * rows[b, j] + fc * rows[c, j] + fd * rows[d, j]
