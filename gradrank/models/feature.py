"""One feature as a ranker: the baseline that any trained ranker has to beat, or the score of another system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError
from gradrank.models.attribution.attribution import ByDocument, Reference
from gradrank.models.exchange.plan import FeaturePart
from gradrank.models.features import Matrix
from gradrank.models.ranker import Ranker


class FeatureRanker(Ranker):
    """One feature as the score: score(x) = sign · x_feature.

    Parameters
    ----------
    feature
        Name of the feature.
    sign
        1 if high values are good, −1 if low ones are.
    missing
        What a missing value counts as; 0, as in LETOR files, unless given.
    feature_names
        Names of all features of the arrays to score; the one feature alone unless given.
    training
        Facts about the training.

    >>> FeatureRanker("price", sign=-1, feature_names=["bm25", "price"]).predict([[7.0, 2.0]]).tolist()
    [-2.0]
    """

    kind = "feature"

    def __init__(
        self,
        feature: str,
        sign: int = 1,
        *,
        missing: float = 0.0,
        feature_names: Sequence[str] | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__([feature] if feature_names is None else feature_names, training)
        if feature not in self.feature_names:
            raise ModelError(f"there is no feature {feature!r}")
        if sign not in (1, -1):
            raise ModelError(f"sign is {sign}, expected 1 or -1")
        self.feature = feature
        self.sign = int(sign)
        self.missing = float(missing)
        if not np.isfinite(self.missing):
            raise ModelError(f"missing is {missing}, expected a finite number")

    def _importance_amounts(self) -> NDArray[np.float64]:
        return np.array([float(name == self.feature) for name in self.feature_names])

    def used_features(self) -> tuple[str, ...]:
        """The one feature."""
        return (self.feature,)

    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        column = X[:, self.feature_names.index(self.feature)].astype(np.float64)
        return self.sign * np.where(np.isnan(column), self.missing, column)

    def renamed(self, feature_names: Sequence[str]) -> FeatureRanker:
        """See Ranker.renamed."""
        feature = feature_names[self.feature_names.index(self.feature)]
        return FeatureRanker(
            feature, self.sign, missing=self.missing, feature_names=feature_names, training=self.training
        )

    def _described(self) -> str:
        return f"{'−' if self.sign < 0 else ''}{self.feature}"

    def _attribution(self, X: Matrix, reference: Reference | None, n_jobs: int | None) -> ByDocument:
        shares = np.zeros(X.shape)
        shares[:, self.feature_names.index(self.feature)] = self._score(X, n_jobs)
        return ByDocument(shares, ["feature: the difference of its values"])

    def _part(self, columns: NDArray[np.int64]) -> FeaturePart:
        return FeaturePart(int(columns[self.feature_names.index(self.feature)]), self.sign, self.missing)

    def _payload(self) -> dict[str, Any]:
        return {"feature": self.feature, "sign": self.sign, "missing": self.missing}

    @classmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        return cls(**payload, feature_names=feature_names, training=training)
