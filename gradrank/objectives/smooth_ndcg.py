"""Smooth forms of NDCG, which are losses: ApproxNDCG and NeuralNDCG."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.measures import NDCG, AnyMeasure
from gradrank.measures.position import discounts, graded_gains
from gradrank.objectives.deviation import check_normalization, divided_by_deviation
from gradrank.objectives.judged_lists import check_whole
from gradrank.objectives.kernels.smooth_kernel import approx_block, neural_block
from gradrank.objectives.label_objective import LabelObjective
from gradrank.objectives.listwise import Block, BoundLists
from gradrank.objectives.objective import Gradients


@dataclass(frozen=True, repr=False)
class SmoothNDCG(LabelObjective):
    """What smooth forms of NDCG share: a loss 1 − NDCG that is not convex, so steps are gradient steps."""

    temperature: float = 1.0
    k: int | None = None
    normalize: Literal["none", "deviation"] = "none"
    label: str | None = None

    usable_curvature = False

    def __post_init__(self) -> None:
        name = type(self).__name__
        number = isinstance(self.temperature, int | float) and not isinstance(self.temperature, bool)
        if not number or not 0.0 < self.temperature < math.inf:
            raise ObjectiveError(f"{name}: temperature is {self.temperature!r}, expected a number above 0")
        if self.k is not None:
            check_whole(name, "k", self.k, 1)
        check_normalization(name, self.normalize)
        super().__post_init__()

    @property
    def measure(self) -> AnyMeasure | None:
        """NDCG."""
        return NDCG(self.k, label=self.label)

    @property
    def shift_invariant(self) -> bool:
        """Ranks depend on differences of scores."""
        return True

    def normalized_by_deviation(self) -> Self:
        """See Objective.normalized_by_deviation."""
        return replace(self, normalize="deviation")

    @property
    def normalized(self) -> bool:
        """See Objective.normalized."""
        return self.normalize != "none"

    @abstractmethod
    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundSmooth:
        """See Objective.bind."""

    def __str__(self) -> str:
        own = type(self)()
        given = [
            f"{key}={getattr(self, key)}"
            for key in ("k", "temperature", "normalize", "label")
            if getattr(self, key) != getattr(own, key)
        ]
        return f"{type(self).__name__}({', '.join(given)})" if given else type(self).__name__


@dataclass(frozen=True, repr=False)
class ApproxNDCG(SmoothNDCG):
    """1 − NDCG with smooth ranks (Qin, Liu, Li 2010; Bruch et al. 2019).

    The rank of i is r_i = 1 + Σ_{j≠i} 1/(1 + e^{(s_i − s_j)/T}), the loss 1 − (1/Z) Σ_i (2^{l_i} − 1)/log2(1 + r_i).
    With c_i the derivative of document i's term by its rank and σ' that of the sigmoid,
    λ_i = (1/T) Σ_j σ'((s_i − s_j)/T)·(c_j − c_i). A smaller T is nearer to NDCG and flatter. Time goes with the square
    of the list's length. Documents without a label take no part; nor do queries with one label only.

    Parameters
    ----------
    temperature
        T.
    k
        Ranks of the ideal sum Z, and of the measure that chooses the model; all documents have a say anyway.
    normalize
        ``deviation``: λ's divided by their standard deviation in the query, as trees need it; ``none``: the loss's own.
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> bound = ApproxNDCG(temperature=1.0).bind(data)
    >>> round(bound.loss(np.zeros(2)), 4), bound.gradients(np.zeros(2)).lambdas.astype(float).round(4).tolist()
    (0.2435, [-0.0826, 0.0826])
    """

    temperature: float = 0.1

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundSmooth:
        """See Objective.bind."""
        return BoundApproxNDCG(self, data, random_state, n_jobs)


@dataclass(frozen=True, repr=False)
class NeuralNDCG(SmoothNDCG):
    """1 − NDCG with a soft permutation (Pobrotyn, Białobrzeski 2021; NeuralSort: Grover et al. 2019).

    P_r· = softmax(((n + 1 − 2r)·s_j − Σ_k |s_j − s_k|)/τ) is the r-th place, softly; its columns and rows are divided
    by their sums in turn (Sinkhorn) until they add up to 1, at most 50 times. The loss is
    1 − (1/Z) Σ_{r≤k} Σ_j P_rj·(2^{l_j} − 1)/log2(1 + r), and λ its exact derivative, back through every division.
    Deterministic: no noise is added to the scores. Time and memory go with the square of the list's length: for lists
    of a few hundred documents at most. Documents without a label take no part; nor do queries with one label only.

    Parameters
    ----------
    temperature
        τ.
    k
        Number of ranks that count; None = all.
    normalize
        ``deviation``: λ's divided by their standard deviation in the query, as trees need it; ``none``: the loss's own.
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> bound = NeuralNDCG().bind(data)
    >>> round(bound.loss(np.zeros(2)), 4), bound.loss(np.array([0.0, 9.0])) < 0.001
    (0.1845, True)
    """

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundSmooth:
        """See Objective.bind."""
        return BoundNeuralNDCG(self, data, random_state, n_jobs)


class BoundSmooth(BoundLists):
    """A smooth form of NDCG bound to data."""

    def __init__(self, objective: SmoothNDCG, data: RankingData, random_state: int, n_jobs: int | None) -> None:
        super().__init__(data, objective.label, random_state, n_jobs)
        lists = self._lists
        self.objective = objective
        self._data = data
        self._gain = graded_gains(type(objective).__name__, lists.labels.astype(np.float32), "exp2").astype(np.float64)
        self._depth = lists.sizes if objective.k is None else np.minimum(lists.sizes, objective.k)
        place = np.arange(len(lists.rows)) - np.repeat(lists.indptr[:-1], lists.sizes)
        weight = discounts("log2", int(lists.sizes.max(initial=1)))[place]
        # Labels descend in each list: its order is the ideal one.
        worth = np.where(place < np.repeat(self._depth, lists.sizes), self._gain * weight, 0.0)
        ideal = np.add.reduceat(worth, lists.indptr[:-1]) if len(worth) else np.empty(0)
        self._scale = np.where(ideal > 0.0, lists.weight, 0.0)
        self._ideal = np.where(ideal > 0.0, ideal, 1.0)
        # Weighted gains over the ideal of unweighted ones, so that dividing does not cancel the weights: with inverse
        # propensities an unbiased estimate of NDCG.
        self._gain = self._gain * lists.document_weights

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients; there is no usable second derivative, and no pairs to count."""
        found = super().gradients(scores, step)
        return divided_by_deviation(found, self._data) if self.objective.normalized else found

    def loss(self, scores: NDArray[np.float64]) -> float | None:
        """See BoundObjective.loss."""
        return None if self.objective.normalized else super().loss(scores)


class BoundApproxNDCG(BoundSmooth):
    """ApproxNDCG bound to data."""

    def _block(self, scores: NDArray[np.float64], want_loss: bool) -> Block:
        lists, temperature = self._lists, float(self.objective.temperature)
        return lambda first, end, lambdas, rhos, losses: approx_block(
            first, end, lists.indptr, lists.rows, self._gain, self._ideal, temperature, self._scale, scores, lambdas,
            losses,
        )  # fmt: skip


class BoundNeuralNDCG(BoundSmooth):
    """NeuralNDCG bound to data."""

    def _block(self, scores: NDArray[np.float64], want_loss: bool) -> Block:
        lists, temperature = self._lists, float(self.objective.temperature)
        return lambda first, end, lambdas, rhos, losses: neural_block(
            first, end, lists.indptr, lists.rows, self._gain, self._ideal, self._depth, temperature, self._scale,
            scores, lambdas, losses,
        )  # fmt: skip
