"""RankNet: every pair of differently labeled documents counts the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.measures import KendallTau
from gradrank.objectives.costs import RankNet
from gradrank.objectives.kernels.ranknet_kernel import ranknet_block, ranknet_loss_block
from gradrank.objectives.label_objective import LabelObjective
from gradrank.objectives.lambda_gradient import BoundLambda, Lambda
from gradrank.objectives.objective import Gradients
from gradrank.runtime.threads import for_query_blocks


@dataclass(frozen=True, repr=False)
class RankNetPairs(LabelObjective):
    """Σ log(1 + e^{−σ(s_i − s_j)}) over all pairs with label i above label j (Burges et al. 2005).

    The pair cost of the λ-gradients without a measure; named ``RankNet`` in the grammar. Documents without a label join
    no pair.

    Parameters
    ----------
    sigma
        σ: how steeply the chance that the better document is preferred grows with the difference of scores.
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 2, 1], qid=[1, 1, 1])
    >>> bound = RankNetPairs().bind(data)
    >>> bound.gradients(np.zeros(3)).lambdas.tolist(), round(bound.loss(np.zeros(3)), 4)
    ([-1.0, 1.0, 0.0], 2.0794)
    """

    name: ClassVar[str | None] = "RankNet"
    sigma: float = 1.0
    label: str | None = None

    def __post_init__(self) -> None:
        good = isinstance(self.sigma, int | float) and not isinstance(self.sigma, bool)
        if not good or not 0.0 < self.sigma < math.inf:
            raise ObjectiveError(f"RankNet: sigma is {self.sigma!r}, expected a positive number")
        super().__post_init__()

    @property
    def convex(self) -> bool:
        """A sum of log(1 + e^{−σo})."""
        return True

    @property
    def shift_invariant(self) -> bool:
        """Pairs look at differences of scores."""
        return True

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundRankNet:
        """See Objective.bind."""
        return BoundRankNet(self, data, random_state, n_jobs)


class BoundRankNet(BoundLambda):
    """RankNet bound to data, with the pairs of Kendall's τ: all of different labels."""

    def __init__(self, objective: RankNetPairs, data: RankingData, random_state: int, n_jobs: int | None) -> None:
        pairs = Lambda(KendallTau(label=objective.label), cost=RankNet(objective.sigma))
        super().__init__(pairs, data, random_state, n_jobs)
        self._sigma = float(objective.sigma)

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients; every pair has an effect."""
        lambdas, rhos = np.zeros(self._n_docs, dtype=np.float32), np.zeros(self._n_docs, dtype=np.float32)

        def work(first: int, end: int) -> None:
            ranknet_block(first, end, scores, self._layout, self._sigma, lambdas, rhos)

        for_query_blocks(work, self._layout.indptr, self._threads)
        return Gradients(lambdas, rhos, int(self.pairs_per_query()[self.active].sum()) if count_pairs else -1)

    def loss(self, scores: NDArray[np.float64]) -> float | None:
        """See BoundObjective.loss."""
        losses = np.zeros(len(self._layout.indptr) - 1)

        def work(first: int, end: int) -> None:
            ranknet_loss_block(first, end, scores, self._layout, self._sigma, losses)

        for_query_blocks(work, self._layout.indptr, self._threads)
        return float(losses.sum())
