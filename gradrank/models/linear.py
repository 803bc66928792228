"""A weighted sum of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.ranking_data import default_feature_names
from gradrank.errors import ModelError
from gradrank.models.attribution.attribution import ByDocument, Reference
from gradrank.models.exchange.plan import LinearPart
from gradrank.models.features import Matrix
from gradrank.models.ranker import Ranker
from gradrank.models.weight_vectors import LinearInWeights
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

_ROWS_PER_BLOCK = 1024


class LinearRanker(LinearInWeights, Ranker):
    """A weighted sum of features.

    score(x) = bias + Σ_j w_j · (x_j − mean_j) / scale_j; a missing value counts as its mean.

    Parameters
    ----------
    weights
        One weight per feature.
    bias
        A constant that is added to every score.
    mean, scale
        What is subtracted from each feature, and what it is divided by; nothing unless given.
    feature_names
        Names of the features; ``f1``, ``f2``, … unless given.
    training
        Facts about the training.

    >>> ranker = LinearRanker([1.0, -2.0], bias=0.5)
    >>> ranker.predict([[1.0, 1.0], [1.0, float("nan")]]).tolist()
    [-0.5, 1.5]
    """

    kind = "linear"

    def __init__(
        self,
        weights: ArrayLike,
        bias: float = 0.0,
        *,
        mean: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        self.weights = _vector("weights", weights)
        n_features = len(self.weights)
        super().__init__(default_feature_names(n_features) if feature_names is None else feature_names, training)
        if self.n_features != n_features:
            raise ModelError(f"there are {n_features} weights for {self.n_features} features")
        self.bias = float(bias)
        self.mean = np.zeros(n_features) if mean is None else _vector("mean", mean, n_features)
        self.scale = np.ones(n_features) if scale is None else _vector("scale", scale, n_features)
        if not np.isfinite(self.bias):
            raise ModelError(f"bias is {bias}, expected a finite number")
        if (self.scale <= 0).any():
            raise ModelError(f"scale of feature {int(np.argmax(self.scale <= 0)) + 1} is not above 0")

    def _importance_amounts(self) -> NDArray[np.float64]:
        return np.abs(self.weights)

    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        out = np.empty(len(X), dtype=np.float64)
        edges = np.append(np.arange(0, len(X), _ROWS_PER_BLOCK), len(X))

        def work(first: int, end: int) -> None:
            rows = slice(edges[first], edges[end])
            _linear(np.ascontiguousarray(X[rows]), self.weights, self.bias, self.mean, self.scale, out[rows])

        for_query_blocks(work, edges, n_jobs)
        return out

    def used_features(self) -> tuple[str, ...]:
        """Names of the features whose weight is not 0."""
        return tuple(name for name, weight in zip(self.feature_names, self.weights, strict=True) if weight)

    def weight_vector(self) -> NDArray[np.float64]:
        """See WeightVector.weight_vector."""
        return self.weights.copy()

    def weight_names(self) -> tuple[str, ...]:
        """See WeightVector.weight_names."""
        return self.feature_names

    def with_weight_vector(self, weights: ArrayLike) -> LinearRanker:
        """See WeightVector.with_weight_vector."""
        return LinearRanker(
            weights,
            self.bias,
            mean=self.mean,
            scale=self.scale,
            feature_names=self.feature_names,
            training=self.training,
        )

    def basis(self, X: Matrix) -> NDArray[np.float64]:
        """See LinearInWeights.basis."""
        standardized = (X - self.mean) / self.scale
        standardized[np.isnan(standardized)] = 0.0
        return standardized

    def _attribution(self, X: Matrix, reference: Reference | None, n_jobs: int | None) -> ByDocument:
        return ByDocument(self.basis(X) * self.weights, ["linear: weight × difference of the feature's values"])

    def _part(self, columns: NDArray[np.int64]) -> LinearPart:
        return LinearPart(columns, self.weights, self.bias, self.mean, self.scale)

    def _payload(self) -> dict[str, Any]:
        return {
            "bias": self.bias,
            "weights": self.weights.tolist(),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        return cls(**payload, feature_names=feature_names, training=training)


def _vector(name: str, values: ArrayLike, length: int | None = None) -> NDArray[np.float64]:
    vector = np.array(values, dtype=np.float64)
    if vector.ndim != 1 or (length is not None and len(vector) != length):
        raise ModelError(f"{name} has shape {vector.shape}, expected one number per feature")
    if not np.isfinite(vector).all():
        raise ModelError(f"{name} of feature {int(np.argmax(~np.isfinite(vector))) + 1} is not a finite number")
    return vector


@njit(cache=True, nogil=True)
def _linear(X: Any, weights: Any, bias: Any, mean: Any, scale: Any, out: Any) -> None:
    for row in range(len(X)):
        total = bias
        for j in range(len(weights)):
            value = X[row, j]
            if value == value:
                total += weights[j] * ((value - mean[j]) / scale[j])
        out[row] = total
