"""What an objective is: it tells a learner, for the current scores, where each document should move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.measures import AnyMeasure
from gradrank.objectives.pair_facts import PairFacts


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
    """What training improves.

    An objective is a value: equal if it prints equal. Binding it to data prepares what the labels alone decide.
    """

    usable_curvature: ClassVar[bool] = True
    """Whether ρ is a second derivative that Newton steps can use, for all objectives of this kind."""

    @property
    @abstractmethod
    def measure(self) -> AnyMeasure | None:
        """The measure that this objective improves, if it is built on one; model choice uses it by default."""

    @property
    def has_curvature(self) -> bool:
        """Whether ρ is a usable second derivative, so that Newton steps are allowed."""
        return self.usable_curvature

    @property
    @abstractmethod
    def sources(self) -> tuple[str | None, ...]:
        """The label sources that it reads, the most important first; None = the primary one."""

    @property
    def convex(self) -> bool:
        """Whether its loss is a convex function of the scores, and so has no minimum but the lowest."""
        return False

    @property
    def shift_invariant(self) -> bool:
        """Whether adding a constant to all scores of a query changes nothing."""
        return False

    @property
    def changes(self) -> bool:
        """Whether the λ's of the same scores differ from step to step."""
        return any(part.changes for part in self.parts if part is not self)

    @property
    def parts(self) -> tuple[Objective, ...]:
        """The objectives that it is composed of, without composed ones; itself if it is not composed."""
        return (self,)

    @property
    def leading(self) -> tuple[Objective, ...]:
        """Those of its parts that come first: not the lower tiers."""
        return self.parts

    def normalized_by_deviation(self) -> Objective:
        """The objective for gradient steps: λ's without other normalization divided by their deviation in the query."""
        return self

    @property
    def normalized(self) -> bool:
        """Whether λ's are normalized per query, in whole or in part."""
        return False

    @property
    def unit_queries(self) -> bool:
        """Whether ρ of a whole query is of the order of 1, whatever its labels: ``normalize=log`` makes it so."""
        first = self.leading[0]
        return first is not self and first.unit_queries

    @abstractmethod
    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundObjective:
        """Prepare the objective for data.

        Parameters
        ----------
        data
            Queries, documents and their labels.
        random_state
            Seed of the order in which documents with equal scores stand.
        n_jobs
            Number of threads; None = one per core.
        """


class BoundObjective(ABC):
    """An objective bound to data."""

    @abstractmethod
    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """λ and ρ of every document for the current scores.

        Parameters
        ----------
        scores
            One score per document, in the data's own order, in which the documents of a query stand together.
        step
            Number of the iteration or epoch, for objectives that change with it.
        count_pairs
            Whether to count the pairs that had an effect.
        """

    def loss(self, scores: NDArray[np.float64]) -> float | None:
        """The cost whose derivative is −λ, summed over queries; None for λ's that are the derivative of none."""
        return None

    def pair_facts(self, data: RankingData) -> list[PairFacts]:
        """What each label source gives to learn from; empty for objectives that know no pairs."""
        return []

    def start(self, add: Callable[[NDArray[Any]], float] = np.sum) -> float:
        """A constant that scores may start from.

        Parameters
        ----------
        add
            How numbers are summed: over the documents of all processes where several train together.
        """
        return 0.0
