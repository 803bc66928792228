"""Objectives that look at one document at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.objectives.label_objective import LabelObjective
from gradrank.objectives.objective import BoundObjective, Gradients


@dataclass(frozen=True, repr=False)
class Regression(LabelObjective):
    """Least squares on the label: λ = label − score, ρ = 1 (Friedman's MART as a ranker).

    Parameters
    ----------
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> Regression().bind(data).gradients(np.zeros(2)).lambdas.tolist()
    [0.0, 1.0]
    """

    label: str | None = None

    @property
    def convex(self) -> bool:
        """A sum of squares."""
        return True

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundRegression:
        """See Objective.bind."""
        return BoundRegression(self, data)


class BoundRegression(BoundObjective):
    """Least squares for one data set; unjudged documents have neither λ nor ρ."""

    def __init__(self, objective: Regression, data: RankingData) -> None:
        labels = data.label(objective.label)
        judged = ~np.isnan(labels)
        self._label = np.where(judged, labels, 0.0)
        self._weight = (data.row_weights() * judged).astype(np.float32)

    def start(self, add: Callable[[NDArray[Any]], float] = np.sum) -> float:
        """The weighted mean label; see BoundObjective.start."""
        total = float(add(self._weight))
        return float(add(self._label * self._weight) / total) if total > 0 else 0.0

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients."""
        return Gradients(((self._label - scores) * self._weight).astype(np.float32), self._weight)

    def loss(self, scores: NDArray[np.float64]) -> float | None:
        """See BoundObjective.loss."""
        return float((0.5 * self._weight * (self._label - scores) ** 2).sum())


@dataclass(frozen=True, repr=False)
class Logistic(LabelObjective):
    """Logistic regression on a rate: λ = label − σ(score), ρ = σ(score)·(1 − σ(score)).

    The mean of the labels of like documents is what σ(score) comes to, so that rates from few sessions serve as well as
    exact ones if documents weigh as many sessions as they have. Labels are rates of 0 or more; those of single
    documents may exceed 1, as clicks per examined impression can by chance.

    Parameters
    ----------
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> Logistic().bind(data).gradients(np.zeros(2)).lambdas.tolist()
    [-0.5, 0.5]
    """

    label: str | None = None

    @property
    def convex(self) -> bool:
        """A sum of cross-entropies."""
        return True

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundLogistic:
        """See Objective.bind."""
        return BoundLogistic(self, data)


class BoundLogistic(BoundObjective):
    """Logistic regression for one data set; unjudged documents have neither λ nor ρ."""

    def __init__(self, objective: Logistic, data: RankingData) -> None:
        labels = data.label(objective.label).astype(np.float64)
        judged = ~np.isnan(labels)
        if (labels[judged] < 0).any():
            raise ObjectiveError(f"{objective}: label is {np.nanmin(labels):g}, expected a rate of 0 or more")
        self._label = np.where(judged, labels, 0.0)
        self._weight = data.row_weights() * judged

    def start(self, add: Callable[[NDArray[Any]], float] = np.sum) -> float:
        """The score of the weighted mean label; see BoundObjective.start."""
        total = float(add(self._weight))
        mean = float(add(self._label * self._weight) / total) if total > 0 else 0.5
        mean = min(max(mean, 1e-6), 1 - 1e-6)
        return float(np.log(mean / (1 - mean)))

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients."""
        rate = _sigmoid(scores)
        lambdas, rhos = self._weight * (self._label - rate), self._weight * rate * (1 - rate)
        return Gradients(lambdas.astype(np.float32), rhos.astype(np.float32))

    def loss(self, scores: NDArray[np.float64]) -> float | None:
        """See BoundObjective.loss; log(1 + e^score) − label·score."""
        return float((self._weight * (np.logaddexp(0.0, scores) - self._label * scores)).sum())


def _sigmoid(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    power = np.exp(-np.abs(scores))
    return np.where(scores >= 0, 1.0, power) / (1.0 + power)
