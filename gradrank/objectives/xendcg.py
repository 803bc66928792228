"""XE-NDCG: a cross-entropy whose truth is drawn anew at every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.objectives.kernels.listwise_kernel import listnet_block, listnet_terms_block
from gradrank.objectives.label_objective import LabelObjective
from gradrank.objectives.listwise import Block, BoundLists
from gradrank.objectives.objective import Gradients

MOST_TERMS = 3


@dataclass(frozen=True, repr=False)
class XENDCG(LabelObjective):
    """Cross-entropy of the scores' softmax with 2^label − γ, which bounds mean NDCG (Bruch 2021).

    −Σ_i φ_i·log p_i, p the softmax of the scores and φ_i = (2^{l_i} − γ_i)/Σ_j (2^{l_j} − γ_j), where γ_i in [0, 1) is
    drawn for each document and step (by the seed and the step, so that the same seed gives the same model). λ = φ − p
    and ρ = p(1 − p). Time goes with the length of a list, not with its square. ``terms=3`` is the form of LightGBM's
    rank_xendcg, which adds two terms of the inverse second derivative: with t¹ = φ − p and
    t^{m+1}_i = p_i·Σ_{j≠i} t^m_j/(1 − p_j), λ = t¹ + t² + t³; its λ's are the derivative of no loss.

    Documents without a label take no part; nor do queries with one label only.

    Parameters
    ----------
    terms
        Terms of λ: 1 is the loss's own derivative, 3 LightGBM's form.
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> up = XENDCG().bind(data).gradients(np.zeros(2)).lambdas
    >>> bool(up[1] > 0), float(up.sum())
    (True, 0.0)
    """

    terms: int = 1
    label: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.terms, bool) or self.terms not in range(1, MOST_TERMS + 1):
            raise ObjectiveError(f"XENDCG: terms is {self.terms!r}, expected 1, 2 or 3")
        super().__post_init__()

    @property
    def convex(self) -> bool:
        """A cross-entropy with a softmax; with more terms λ's are the derivative of no loss."""
        return self.terms == 1

    @property
    def changes(self) -> bool:
        """The truth is drawn at every step."""
        return True

    @property
    def shift_invariant(self) -> bool:
        """Softmaxes do not change when all scores do."""
        return True

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundXENDCG:
        """See Objective.bind."""
        return BoundXENDCG(self, data, random_state, n_jobs)


class BoundXENDCG(BoundLists):
    """XE-NDCG bound to data."""

    def __init__(self, objective: XENDCG, data: RankingData, random_state: int, n_jobs: int | None) -> None:
        super().__init__(data, objective.label, random_state, n_jobs)
        self.objective = objective
        self._random_state = random_state
        self._powers = np.exp2(self._lists.labels)
        self._step = 0

    def truth(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """φ of the lists' documents, from their γ."""
        lists = self._lists
        if not len(chances):
            return chances
        # 1 − γ for a label of 0; labels below 0 count as 0, so that φ is a distribution.
        worth = np.maximum(self._powers, 1.0) - chances
        return np.asarray(worth / np.repeat(np.add.reduceat(worth, lists.indptr[:-1]), lists.sizes))

    def _block(self, scores: NDArray[np.float64], want_loss: bool) -> Block:
        lists, terms = self._lists, self.objective.terms
        rng = np.random.default_rng([self._random_state, self._step])
        truth, weight = lists.weighted(self.truth(rng.random(len(lists.rows))))
        if terms == 1:
            return lambda first, end, lambdas, rhos, losses: listnet_block(
                first, end, lists.indptr, lists.rows, truth, weight, scores, lambdas, rhos, losses
            )
        return lambda first, end, lambdas, rhos, losses: listnet_terms_block(
            first, end, lists.indptr, lists.rows, truth, weight, terms, scores, lambdas, rhos
        )

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients; γ is that of the step."""
        self._step = step
        return super().gradients(scores, step)

    def loss(self, scores: NDArray[np.float64]) -> float | None:
        """The loss with γ of the last step; None if λ's have more terms than its derivative."""
        return super().loss(scores) if self.objective.convex else None
