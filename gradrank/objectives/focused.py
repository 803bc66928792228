"""FocusedNet's objective: order the top k among themselves, and put them above the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.measures import AnyMeasure, KappaNDCG
from gradrank.measures.grammar import spelt
from gradrank.measures.kappa_ndcg import check_position_labels
from gradrank.objectives.judged_lists import (
    LONGEST_EXACT,
    check_whole,
    subset_tables,
)
from gradrank.objectives.kernels.listwise_kernel import focused_block
from gradrank.objectives.label_objective import LabelObjective
from gradrank.objectives.listwise import Block, BoundLists
from gradrank.objectives.objective import Gradients


@dataclass(frozen=True, repr=False)
class Focused(LabelObjective):
    """β·ListNet over the top k + (1 − β)·RankNet between the top k and the rest (Niu et al. 2012, eq. 1).

    Labels are positions: k for the first of the ordered top k, …, 1 for the last, 0 for the rest. T are the (at most)
    k documents with the highest labels above 0, F are the other judged ones; nothing is asked of the order inside F.
    ListNet is the exact one, over all orders of T; RankNet is over T × F. The paper brings the two "to a
    comparable range" and does not say how: here each is divided by its value for equal scores, log |T|! and
    |T|·|F|·log 2, so that every query's loss starts at 1.

    Parameters
    ----------
    k
        Number of documents that are ordered.
    beta
        β, the weight of the listwise part: 0 = RankNet over T × F, 1 = ListNet over T.
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 3, [2, 1, 0], qid=[1, 1, 1])
    >>> bound = Focused(k=2).bind(data)
    >>> round(bound.loss(np.zeros(3)), 6), bound.loss(np.array([3.0, 2.0, 0.0])) < 1
    (1.0, True)
    """

    k: int = 10
    beta: float = 0.5
    label: str | None = None

    def __post_init__(self) -> None:
        check_whole("Focused", "k", self.k, 1, LONGEST_EXACT)
        number = isinstance(self.beta, int | float) and not isinstance(self.beta, bool)
        if not number or not 0.0 <= self.beta <= 1.0:
            raise ObjectiveError(f"Focused: beta is {self.beta!r}, expected a number in 0…1")
        super().__post_init__()

    @property
    def measure(self) -> AnyMeasure | None:
        """κ-NDCG, which compares with the same truth."""
        return KappaNDCG(self.k, label=self.label)

    @property
    def convex(self) -> bool:
        """A sum of two convex losses."""
        return True

    @property
    def shift_invariant(self) -> bool:
        """Both losses look at differences of scores."""
        return True

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundFocused:
        """See Objective.bind."""
        return BoundFocused(self, data, random_state, n_jobs)

    def __str__(self) -> str:
        label = "" if self.label is None else f", label={self.label}"
        return f"Focused(k={self.k}, beta={spelt(self.beta)}{label})"


class BoundFocused(BoundLists):
    """Focused bound to data."""

    def __init__(self, objective: Focused, data: RankingData, random_state: int, n_jobs: int | None) -> None:
        check_position_labels("Focused", data.label(objective.label))
        super().__init__(data, objective.label, random_state, n_jobs)
        lists = self._lists
        starts = lists.indptr[:-1]
        labeled = np.add.reduceat((lists.labels > 0).astype(np.int64), starts) if len(starts) else lists.sizes
        self._tops = np.minimum(labeled, objective.k)
        # T is totally ordered: labels fall strictly, down to and including the first document behind T, if it has one.
        place = np.arange(len(lists.rows)) - np.repeat(starts, lists.sizes)
        tied = np.zeros(len(lists.rows), dtype=bool)
        tied[1:] = (lists.labels[1:] == lists.labels[:-1]) & (lists.labels[1:] > 0)
        tied &= (place > 0) & (place <= np.repeat(self._tops, lists.sizes))
        if tied.any():
            at = int(np.argmax(tied))
            query = int(lists.query[np.searchsorted(lists.indptr, at, side="right") - 1])
            raise ObjectiveError(
                f"Focused: query {data.qid[query]} has two documents with label {lists.labels[at]:g}, expected "
                "position labels (k…1 for the ordered top k, 0 for the rest)"
            )
        self._tables, self._table = subset_tables(lists.labels, starts, self._tops, lists.document_weight)
        self._weights = lists.document_weights
        orders = np.array([math.lgamma(size + 1.0) for size in self._tops.tolist()])
        pairs = self._tops * (lists.sizes - self._tops)
        self._list_scale = lists.weight * objective.beta * (orders > 0.0) / np.where(orders > 0.0, orders, 1.0)
        self._pair_scale = lists.weight * (1.0 - objective.beta) / (np.maximum(pairs, 1) * math.log(2.0))
        self._pairs = int(pairs.sum()) if objective.beta < 1.0 else 0

    def _block(self, scores: NDArray[np.float64], want_loss: bool) -> Block:
        lists = self._lists
        longest = int(self._tops.max(initial=1))
        return lambda first, end, lambdas, rhos, losses: focused_block(
            first, end, lists.indptr, lists.rows, self._weights, self._tops, self._tables, self._table,
            self._list_scale, self._pair_scale, longest, want_loss, scores, lambdas, rhos, losses,
        )  # fmt: skip

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients; the pairs are those of T × F."""
        lambdas, rhos, _ = self._run(scores)
        return Gradients(lambdas, rhos, self._pairs if count_pairs else -1)
