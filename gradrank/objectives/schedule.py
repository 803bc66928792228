"""Objectives that change while the model learns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.measures import AnyMeasure
from gradrank.measures.grammar import spelt
from gradrank.objectives.deviation import check_normalization, divided_by_deviation
from gradrank.objectives.objective import BoundObjective, Gradients, Objective
from gradrank.objectives.pair_facts import PairFacts

SCHEDULES = ("linear", "exponential")


@dataclass(frozen=True, repr=False)
class Scheduled(Objective):
    """λ_m = (1 − w_m)·λ(first) + w_m·λ(second), w_m growing with the iteration (Svore et al. 2011, eq. 12).

    Early steps learn from all pairs, late ones from what the second objective cares about. The paper takes gradient
    steps; Newton steps are possible if both objectives have a usable second derivative.

    Parameters
    ----------
    first, second
        The objectives to begin and to end with.
    schedule
        ``linear``: w_m = w_{m−1} + η; ``exponential``: w_m = w_{m−1} + e^{−η/m}; both end at 1.
    w0
        The first weight.
    eta
        η of the schedule.
    normalize
        ``deviation``: divide the mixed λ's by their standard deviation in the query (Svore et al. 2011, §5.3);
        ``none``: each objective is normalized as it says itself.

    >>> from gradrank.measures import NDCG
    >>> from gradrank.objectives import Lambda, Sigmoid
    >>> objective = Scheduled(Lambda(NDCG()), Lambda(NDCG(), cost=Sigmoid()), "linear", w0=0.1, eta=0.01)
    >>> [round(objective.weight(step), 2) for step in (0, 1, 10, 200)]
    [0.1, 0.11, 0.2, 1.0]
    """

    first: Objective
    second: Objective
    schedule: Literal["linear", "exponential"] = "linear"
    w0: float = 0.1
    eta: float = 0.01
    normalize: Literal["none", "deviation"] = "none"

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ObjectiveError(f"Scheduled: schedule is {self.schedule!r}, expected {' or '.join(SCHEDULES)}")
        check_normalization("Scheduled", self.normalize)
        if not 0.0 <= self.w0 <= 1.0:
            raise ObjectiveError(f"Scheduled: w0 is {self.w0!r}, expected a number in 0…1")
        if not 0.0 <= self.eta < np.inf:
            raise ObjectiveError(f"Scheduled: eta is {self.eta!r}, expected a number of 0 or more")

    @property
    def measure(self) -> AnyMeasure | None:
        """The first objective's measure."""
        return self.first.measure

    @property
    def sources(self) -> tuple[str | None, ...]:
        """The label sources of both."""
        return tuple(dict.fromkeys(self.first.sources + self.second.sources))

    @property
    def convex(self) -> bool:
        """Whether both are."""
        return self.first.convex and self.second.convex

    @property
    def shift_invariant(self) -> bool:
        """Whether both are."""
        return self.first.shift_invariant and self.second.shift_invariant

    @property
    def parts(self) -> tuple[Objective, ...]:
        """The parts of both."""
        return self.first.parts + self.second.parts

    @property
    def changes(self) -> bool:
        """The weights of the two change."""
        return True

    @property
    def leading(self) -> tuple[Objective, ...]:
        """The leading parts of both, each once."""
        return tuple(dict.fromkeys(self.first.leading + self.second.leading))

    def normalized_by_deviation(self) -> Scheduled:
        """See Objective.normalized_by_deviation: the mixed λ's are divided, if both objectives can be."""
        first, second = self.first.normalized_by_deviation(), self.second.normalized_by_deviation()
        if self.normalized or not (first.normalized and second.normalized):
            return replace(self, first=first, second=second) if self.normalize == "none" else self
        return replace(self, normalize="deviation")

    @property
    def normalized(self) -> bool:
        """Whether the mixed λ's or those of an objective are normalized."""
        return self.normalize != "none" or self.first.normalized or self.second.normalized

    @property
    def has_curvature(self) -> bool:
        """Whether both have a usable second derivative."""
        return self.first.has_curvature and self.second.has_curvature

    def weight(self, step: int) -> float:
        """w_m of the second objective; the first step is 0."""
        if self.schedule == "linear":
            return min(1.0, self.w0 + self.eta * step)
        weight = self.w0
        for m in range(1, step + 1):
            weight += float(np.exp(-self.eta / m))
            if weight >= 1.0:
                return 1.0
        return weight

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundScheduled:
        """See Objective.bind."""
        return BoundScheduled(self, data, random_state, n_jobs)

    def __str__(self) -> str:
        options = f"schedule={self.schedule}, w0={spelt(self.w0)}, eta={spelt(self.eta)}"
        normalize = "" if self.normalize == "none" else f", normalize={self.normalize}"
        return f"Scheduled({self.first}, {self.second}, {options}{normalize})"

    def __repr__(self) -> str:
        return str(self)


class BoundScheduled(BoundObjective):
    """Two objectives bound to data, mixed by the step's weight."""

    def __init__(self, objective: Scheduled, data: RankingData, random_state: int, n_jobs: int | None) -> None:
        self.objective = objective
        self._data, self._random_state, self._n_jobs = data, random_state, n_jobs
        self.first = self._bound(objective.first)
        self.second = self._bound(objective.second)

    def _bound(self, objective: Objective) -> BoundObjective:
        return objective.bind(self._data, random_state=self._random_state, n_jobs=self._n_jobs)

    @cached_property
    def _first_alone(self) -> BoundObjective:
        """The first objective while the second has no weight: divided as it is by itself, to the last bit."""
        return self._alone(self.first, self.objective.first)

    @cached_property
    def _second_alone(self) -> BoundObjective:
        return self._alone(self.second, self.objective.second)

    def _alone(self, bound: BoundObjective, objective: Objective) -> BoundObjective:
        return bound if self.objective.normalize == "none" else self._bound(objective.normalized_by_deviation())

    def pair_facts(self, data: RankingData) -> list[PairFacts]:
        """See BoundObjective.pair_facts."""
        return self.first.pair_facts(data) + self.second.pair_facts(data)

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients."""
        weight = np.float32(self.objective.weight(step))
        if weight == 0.0:
            return self._first_alone.gradients(scores, step, count_pairs=count_pairs)
        if weight == 1.0:
            return self._second_alone.gradients(scores, step, count_pairs=count_pairs)
        one = self.first.gradients(scores, step, count_pairs=count_pairs)
        two = self.second.gradients(scores, step, count_pairs=count_pairs)
        pairs = -1 if not count_pairs else max(one.effective_pairs, two.effective_pairs)
        keep = np.float32(1.0) - weight
        mixed = Gradients(keep * one.lambdas + weight * two.lambdas, keep * one.rhos + weight * two.rhos, pairs)
        return divided_by_deviation(mixed, self._data) if self.objective.normalize == "deviation" else mixed
