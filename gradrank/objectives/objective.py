"""What a learner follows: λ's for the current scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.measures import AnyMeasure


@dataclass(frozen=True, eq=False)
class Gradients:
    """λ and ρ of every document, in the data's order, and how many pairs had a non-zero λ (−1 = not counted)."""

    lambdas: NDArray[np.float32]
    """A positive λ pushes the document up."""
    rhos: NDArray[np.float32]
    """Second derivatives: the denominator of a Newton step."""
    effective_pairs: int = -1


@dataclass(frozen=True)
class Objective(ABC):
    """What training improves. Objectives are values; binding one to data prepares what the labels alone decide."""

    usable_curvature: ClassVar[bool] = True

    @property
    @abstractmethod
    def measure(self) -> AnyMeasure | None:
        """The measure that this objective improves, if it is built on one; model choice uses it by default."""

    @property
    def has_curvature(self) -> bool:
        """Whether ρ is a usable second derivative, so that Newton steps are allowed."""
        return self.usable_curvature

    @abstractmethod
    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundObjective:
        """Prepare the objective for data; ``random_state`` decides how tied scores are ordered."""


class BoundObjective(ABC):
    """An objective bound to data."""

    @abstractmethod
    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """λ and ρ for the current scores; ``step`` is the number of the iteration or epoch."""

    def loss(self, scores: NDArray[np.float64]) -> float | None:
        """The cost whose derivative is −λ, summed over queries; None for λ's that are the derivative of none."""
        return None

    def start(self) -> float:
        """A constant that scores may start from."""
        return 0.0
