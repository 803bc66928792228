"""Rankers added up: combinations, ensembles of models, and a base ranker with trees on top (LambdaSMART)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ModelError
from gradrank.models.attribution.attribution import Reference, Weighted
from gradrank.models.exchange.plan import SumPart
from gradrank.models.feature import FeatureRanker
from gradrank.models.features import Matrix, is_frame, with_columns
from gradrank.models.ranker import Ranker, finite
from gradrank.models.registry import ranker_from_dict
from gradrank.models.weight_vectors import LinearInWeights

if TYPE_CHECKING:
    from gradrank.models.trees.ensemble import TreeEnsemble


# Sums of sums of sums are scored by calls inside calls; nobody needs as many as this.
_DEEPEST = 50


class WeightedSum(LinearInWeights, Ranker):
    """Rankers added up: score(x) = Σ_i weight_i · score_i(x); each part takes its own features, by name.

    Parameters
    ----------
    parts
        Pairs of a weight and a ranker.
    feature_names
        Names of the features of the arrays to score; those of the parts, in order of first appearance, unless given.
    training
        Facts about how the weights were found.

    >>> from gradrank.models.feature import FeatureRanker
    >>> both = WeightedSum([(1.0, FeatureRanker("a")), (0.5, FeatureRanker("b"))])
    >>> both.feature_names, both.predict([[1.0, 4.0]]).tolist()
    (('a', 'b'), [3.0])
    """

    kind = "weighted_sum"

    def __init__(
        self,
        parts: Sequence[tuple[float, Ranker]],
        *,
        feature_names: Sequence[str] | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        if not parts:
            raise ModelError("a weighted sum needs at least one ranker")
        used = list(dict.fromkeys(name for _, ranker in parts for name in ranker.feature_names))
        super().__init__(used if feature_names is None else feature_names, training)
        place = {name: index for index, name in enumerate(self.feature_names)}
        unknown = [name for name in used if name not in place]
        if unknown:
            raise ModelError(f"a part of the sum uses feature {unknown[0]!r}, which is not among the features given")
        self.parts = tuple((float(weight), ranker) for weight, ranker in parts)
        self._depth: int = 1 + max(getattr(ranker, "_depth", 0) for _, ranker in self.parts)
        if self._depth > _DEEPEST:
            raise ModelError(f"sums stand inside sums more than {_DEEPEST} deep")
        if not all(np.isfinite(weight) for weight, _ in self.parts):
            raise ModelError("a weight of the sum is not a finite number")
        # None = the part takes all columns as they are, without a copy.
        self._columns = [
            None if ranker.feature_names == self.feature_names else [place[name] for name in ranker.feature_names]
            for _, ranker in self.parts
        ]

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """See Ranker.predict."""
        X = with_columns(X)
        if not is_frame(X):
            return super().predict(X, n_jobs=n_jobs)
        # Each part finds its own columns in a frame: parts may number the values of a categorical column differently.
        with np.errstate(over="ignore", invalid="ignore"):
            return finite(self._added_up(ranker.predict(X, n_jobs=n_jobs) for _, ranker in self.parts))

    def matrix(self, X: Any) -> Matrix:
        """See Ranker.matrix."""
        if isinstance(X, RankingData):
            for ensemble in self.tree_ensembles():
                if ensemble.categories is not None:
                    ensemble.categories.check_numbers(ensemble.feature_names)
        return super().matrix(X)

    def used_features(self) -> tuple[str, ...]:
        """Names of the features that parts of a weight other than 0 use."""
        used = {name for weight, ranker in self.parts if weight for name in ranker.used_features()}
        return tuple(name for name in self.feature_names if name in used)

    def tree_ensembles(self) -> tuple[TreeEnsemble, ...]:
        """The tree ensembles of all parts."""
        return tuple(ensemble for _, ranker in self.parts for ensemble in ranker.tree_ensembles())

    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        return self._added_up(
            ranker.predict(X if columns is None else X[:, columns], n_jobs=n_jobs)
            for (_, ranker), columns in zip(self.parts, self._columns, strict=True)
        )

    def _added_up(self, scores: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
        total: NDArray[np.float64] | None = None
        for (weight, _), column in zip(self.parts, scores, strict=True):
            # From 0, so that a score of −0 is 0 as in every other sum.
            total = np.zeros(len(column)) if total is None else total
            total += weight * column
        assert total is not None
        return total

    def _importance_amounts(self) -> NDArray[np.float64] | None:
        # Gains of trees add up; weights of linear parts are in other units.
        place = {name: index for index, name in enumerate(self.feature_names)}
        total = np.zeros(self.n_features)
        for weight, ranker in self.parts:
            amounts = ranker._importance_amounts() if ranker.tree_ensembles() else None
            if amounts is not None:
                total[[place[name] for name in ranker.feature_names]] += abs(weight) * amounts
        return total if total.any() else None

    def renamed(self, feature_names: Sequence[str]) -> WeightedSum:
        """See Ranker.renamed."""
        names = dict(zip(self.feature_names, feature_names, strict=True))
        parts = [(weight, part.renamed([names[name] for name in part.feature_names])) for weight, part in self.parts]
        return WeightedSum(parts, feature_names=feature_names, training=self.training)

    def weight_vector(self) -> NDArray[np.float64]:
        """See WeightVector.weight_vector."""
        return np.array([weight for weight, _ in self.parts])

    def weight_names(self) -> tuple[str, ...]:
        """See WeightVector.weight_names."""
        kinds = [ranker.feature if isinstance(ranker, FeatureRanker) else ranker.kind for _, ranker in self.parts]
        return tuple(f"part {number}: {kind}" for number, kind in enumerate(kinds, 1))

    def with_weight_vector(self, weights: ArrayLike) -> WeightedSum:
        """See WeightVector.with_weight_vector."""
        rankers = [ranker for _, ranker in self.parts]
        pairs = list(zip(np.asarray(weights, dtype=np.float64).tolist(), rankers, strict=True))
        return WeightedSum(pairs, feature_names=self.feature_names, training=self.training)

    def basis(self, X: Matrix) -> NDArray[np.float64]:
        """See LinearInWeights.basis."""
        columns = [
            ranker.predict(X if columns is None else X[:, columns], n_jobs=1)
            for (_, ranker), columns in zip(self.parts, self._columns, strict=True)
        ]
        return np.stack(columns, axis=1)

    def _described(self) -> str:
        return " + ".join(f"{weight:.4g}·{type(part).__name__}" for weight, part in self.parts)

    def shape(self) -> dict[str, int | str]:
        """The parts with their weights, and the trees in them."""
        return {"parts": self._described(), **super().shape()}

    def attribution(self, X: Any, *, reference: Reference | None = None, n_jobs: int | None = None) -> Weighted:
        """See Ranker.attribution."""
        X = with_columns(X)
        if not is_frame(X):
            return self._attribution(self.matrix(X), reference, n_jobs)
        # As in predict, each part finds its own columns.
        return self._weighted([X] * len(self.parts), reference, n_jobs)

    def _attribution(self, X: Matrix, reference: Reference | None, n_jobs: int | None) -> Weighted:
        return self._weighted([X if places is None else X[:, places] for places in self._columns], reference, n_jobs)

    def _weighted(self, given: Sequence[Any], reference: Reference | None, n_jobs: int | None) -> Weighted:
        parts = [
            (weight, ranker.attribution(X, reference=reference, n_jobs=n_jobs), places or range(self.n_features))
            for (weight, ranker), X, places in zip(self.parts, given, self._columns, strict=True)
            if weight
        ]
        return Weighted(parts, len(given[0]), self.n_features)

    def _part(self, columns: NDArray[np.int64]) -> SumPart:
        own = [columns if places is None else columns[places] for places in self._columns]
        return SumPart(
            tuple((weight, part._part(place)) for (weight, part), place in zip(self.parts, own, strict=True))
        )

    def _payload(self) -> dict[str, Any]:
        return {"parts": [{"weight": weight, "ranker": ranker.to_dict()} for weight, ranker in self.parts]}

    @classmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        parts = [(part["weight"], ranker_from_dict(part["ranker"])) for part in payload["parts"]]
        return cls(parts, feature_names=feature_names, training=training)
