"""λ's averaged over scores with noise: a document just below a threshold of the measure is pushed as well."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.measures import AnyMeasure
from gradrank.objectives.constructed import Constructed
from gradrank.objectives.judged_lists import check_whole
from gradrank.objectives.lambda_gradient import Lambda
from gradrank.objectives.objective import BoundObjective, Gradients, Objective
from gradrank.objectives.pair_facts import PairFacts
from gradrank.objectives.tiers import Tiered


@dataclass(frozen=True, repr=False)
class Noisy(Objective):
    """λ(s) = (1/N) Σ_n λ(s + scale·ε_n), ε Gumbel noise: smoothed as YetiRank's (Gulin, Kuralenok, Pavlov 2011).

    Scores with Gumbel noise are ordered as the Plackett–Luce model does it: each sample is an order drawn from it.
    Measures that look at few ranks give λ's to few documents, here to all that could stand there. The noise depends on
    the seed, the step and the sample alone, so that the same seed gives the same model for any number of threads.

    Parameters
    ----------
    inner
        λ-gradients: of a measure, by a construction, or tiers of them.
    samples
        N; the time of computing λ's goes with it.
    scale
        How wide the noise is.

    >>> from gradrank.measures import MRR
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], qid=[1, 1, 1])
    >>> scores = np.array([2.0, 1.0, 0.0])
    >>> exact, noisy = (form.bind(data).gradients(scores).lambdas for form in (Lambda(MRR()), Noisy(Lambda(MRR()))))
    >>> float(exact[2]), bool(noisy[2] > 0)
    (0.0, True)
    """

    inner: Objective
    samples: int = 4
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Lambda | Constructed | Tiered):
            raise ObjectiveError(f"Noisy takes a measure, λ-gradients or tiers, found {self.inner}")
        check_whole("Noisy", "samples", self.samples, 1)
        number = isinstance(self.scale, int | float) and not isinstance(self.scale, bool)
        if not number or not 0.0 < self.scale < math.inf:
            raise ObjectiveError(f"Noisy: scale is {self.scale!r}, expected a number above 0")

    @property
    def measure(self) -> AnyMeasure | None:
        """That of the λ's."""
        return self.inner.measure

    @property
    def sources(self) -> tuple[str | None, ...]:
        """Those of the λ's."""
        return self.inner.sources

    @property
    def shift_invariant(self) -> bool:
        """Whether the λ's are."""
        return self.inner.shift_invariant

    @property
    def changes(self) -> bool:
        """The noise is drawn at every step."""
        return True

    @property
    def has_curvature(self) -> bool:
        """Whether the λ's have a usable second derivative."""
        return self.inner.has_curvature

    def normalized_by_deviation(self) -> Noisy:
        """See Objective.normalized_by_deviation."""
        return replace(self, inner=self.inner.normalized_by_deviation())

    @property
    def normalized(self) -> bool:
        """Whether the λ's are."""
        return self.inner.normalized

    @property
    def unit_queries(self) -> bool:
        """See Objective.unit_queries."""
        return self.inner.unit_queries

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundNoisy:
        """See Objective.bind."""
        return BoundNoisy(self, data, random_state, n_jobs)

    def __str__(self) -> str:
        scale = "" if self.scale == 1.0 else f", scale={self.scale}"
        return f"Noisy({self.inner}, samples={self.samples}{scale})"

    def __repr__(self) -> str:
        return str(self)


class BoundNoisy(BoundObjective):
    """Noisy λ's bound to data."""

    def __init__(self, objective: Noisy, data: RankingData, random_state: int, n_jobs: int | None) -> None:
        self.objective = objective
        self._inner = objective.inner.bind(data, random_state=random_state, n_jobs=n_jobs)
        self._random_state = random_state

    def pair_facts(self, data: RankingData) -> list[PairFacts]:
        """See BoundObjective.pair_facts."""
        return self._inner.pair_facts(data)

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients; the number of pairs is that of the sample that has most."""
        samples = self.objective.samples
        lambdas, rhos = np.zeros(len(scores), dtype=np.float32), np.zeros(len(scores), dtype=np.float32)
        pairs = -1
        for sample in range(samples):
            rng = np.random.default_rng([self._random_state, step, sample])
            # −log of an exponential is Gumbel.
            noise = np.log(np.maximum(rng.standard_exponential(len(scores)), 1e-300))
            found = self._inner.gradients(scores - self.objective.scale * noise, step, count_pairs=count_pairs)
            lambdas += found.lambdas
            rhos += found.rhos
            pairs = max(pairs, found.effective_pairs)
        share = np.float32(1.0 / samples)
        return Gradients(lambdas * share, rhos * share, pairs)
