"""Rankers whose score depends on a vector of weights, and their scores when the weights are moved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError
from gradrank.models.features import Matrix
from gradrank.models.ranker import Ranker
from gradrank.runtime.kernels import njit

FloatArray = NDArray[np.float64]


class WeightVector(ABC):
    """What a ranker offers whose weights can be moved: the weights in one row, and itself with others.

    Only weights that can change an order belong to the vector: a constant that is added to all scores does not.

    >>> from gradrank.models.linear import LinearRanker
    >>> ranker = LinearRanker([1.0, 2.0], feature_names=["bm25", "age"])
    >>> ranker.weight_vector().tolist(), ranker.weight_names()
    ([1.0, 2.0], ('bm25', 'age'))
    >>> ranker.with_weight_vector([0.0, 1.0]).predict([[5.0, 3.0]]).tolist()
    [3.0]
    """

    @abstractmethod
    def weight_vector(self) -> FloatArray:
        """All weights, as a copy."""

    @abstractmethod
    def weight_names(self) -> tuple[str, ...]:
        """What each weight belongs to."""

    @abstractmethod
    def with_weight_vector(self, weights: Any) -> Ranker:
        """The same ranker with other weights."""

    def shifted_scores(self, X: Matrix, directions: FloatArray, distances: FloatArray) -> Iterator[FloatArray]:
        """For each direction u the scores with the weights w + η·u for every distance η: distances × documents.

        ``X`` has exactly the ranker's features. An array may be used again for the next direction. This is the
        definition; rankers that can do better than score everything anew override it.
        """
        weights = self.weight_vector()
        for direction in directions:
            yield np.array(
                [self.with_weight_vector(weights + eta * direction)._score(X, 1) for eta in distances]
            ).reshape(len(distances), len(X))


class LinearInWeights(WeightVector):
    """Rankers with score(x) = Σ_k w_k · basis_k(x) + constant: along a direction, scores move on straight lines.

    >>> from gradrank.models.linear import LinearRanker
    >>> (scores,) = LinearRanker([1.0, 0.0]).shifted_scores(np.array([[2.0, 3.0]]), np.array([[0.0, 1.0]]), np.ones(1))
    >>> scores.tolist()
    [[5.0]]
    """

    @abstractmethod
    def basis(self, X: Matrix) -> FloatArray:
        """What the weights are multiplied with: documents × weights."""

    @abstractmethod
    def _score(self, X: Matrix, n_jobs: int | None) -> FloatArray: ...

    def shifted_scores(self, X: Matrix, directions: FloatArray, distances: FloatArray) -> Iterator[FloatArray]:
        """See WeightVector.shifted_scores."""
        return along_lines(self._score(X, 1), projections(self.basis(X), directions), distances)


def weights_of(ranker: Ranker) -> WeightVector:
    """The ranker, if it has a vector of weights; an error that names what has one otherwise.

    >>> from gradrank.models.feature import FeatureRanker
    >>> weights_of(FeatureRanker("bm25"))
    Traceback (most recent call last):
        ...
    gradrank.errors.ModelError: a ranker of kind 'feature' has no vector of weights, expected a linear ranker, \
a net or a weighted sum
    """
    if not isinstance(ranker, WeightVector):
        raise ModelError(
            f"a ranker of kind {ranker.kind!r} has no vector of weights, "
            "expected a linear ranker, a net or a weighted sum"
        )
    return ranker


def along_lines(start: FloatArray, slopes: FloatArray, distances: FloatArray) -> Iterator[FloatArray]:
    """start + η · slope: for each slope (one number per document) an array of distances × documents, used again.

    >>> [scores.tolist() for scores in along_lines(np.ones(1), np.array([[2.0]]), np.array([0.0, 0.5]))]
    [[[1.0], [2.0]]]
    """
    scores = np.empty((len(distances), len(start)))
    for slope in slopes:
        with np.errstate(over="ignore", invalid="ignore"):
            np.multiply(distances[:, None], slope, out=scores)
            scores += start
        yield scores


def projections(basis: FloatArray, vectors: FloatArray) -> FloatArray:
    """vectors · basisᵀ: one row per vector, one column per document.

    Not by a linear algebra library: equal documents must get equal numbers, to the last bit, wherever they stand, or
    their ties would be broken by rounding.

    >>> projections(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0]])).tolist()
    [[3.0, 7.0]]
    """
    out = np.empty((len(vectors), len(basis)))
    _project(basis, np.ascontiguousarray(vectors.T), np.empty(len(vectors)), out)
    return out


@njit(cache=True, nogil=True)
def _project(basis, columns, total, out):  # type: ignore[no-untyped-def]
    # All vectors side by side: the inner loop vectorizes.
    for row in range(len(basis)):
        total[:] = 0.0
        for k in range(len(columns)):
            value = basis[row, k]
            for v in range(len(total)):
                total[v] += value * columns[k, v]
        for v in range(len(total)):
            out[v, row] = total[v]
