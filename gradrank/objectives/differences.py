"""Least squares on the differences of labels within queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.objectives.label_objective import LabelObjective
from gradrank.objectives.objective import BoundObjective, Gradients


@dataclass(frozen=True, repr=False)
class Differences(LabelObjective):
    """Least squares on differences between documents of a query: scores may differ from labels by a constant per query.

    The loss of a query is ½ Σ w·(d − d̄)² with d = label − score and d̄ the mean of d with the documents' weights w,
    which is the sum over all pairs of ½ w_i·w_j·((label_i − label_j) − (score_i − score_j))² / Σw (CatBoost's
    QueryRMSE). λ = w·(d − d̄), ρ = w·(1 − w/Σw). What all documents of a query have in common is not learned, so that
    trees are spent on order alone. Documents without a label take no part.

    Parameters
    ----------
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 2, [4, 5], qid=[1, 1])
    >>> Differences().bind(data).gradients(np.zeros(2)).lambdas.tolist()
    [-0.5, 0.5]
    """

    label: str | None = None

    @property
    def convex(self) -> bool:
        """A sum of squares."""
        return True

    @property
    def shift_invariant(self) -> bool:
        """Only differences count."""
        return True

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundDifferences:
        """See Objective.bind."""
        return BoundDifferences(self, data)


class BoundDifferences(BoundObjective):
    """Differences for one data set; unjudged documents have neither λ nor ρ."""

    def __init__(self, objective: Differences, data: RankingData) -> None:
        labels = data.label(objective.label).astype(np.float64)
        judged = ~np.isnan(labels)
        self._label = np.where(judged, labels, 0.0)
        self._weight = data.row_weights() * judged
        self._starts, self._sizes = data.indptr[:-1], data.sizes
        # Queries in which nothing weighs anything divide 0 by 1.
        sums = np.add.reduceat(self._weight, self._starts)
        self._sums = np.where(sums > 0.0, sums, 1.0)
        self._rhos = (self._weight * (1.0 - self._weight / np.repeat(self._sums, self._sizes))).astype(np.float32)

    def _left(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        difference = self._label - scores
        means = np.add.reduceat(difference * self._weight, self._starts) / self._sums
        return np.asarray(difference - np.repeat(means, self._sizes))

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients."""
        return Gradients((self._weight * self._left(scores)).astype(np.float32), self._rhos)

    def loss(self, scores: NDArray[np.float64]) -> float:
        """See BoundObjective.loss."""
        return float((0.5 * self._weight * self._left(scores) ** 2).sum())
