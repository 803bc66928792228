"""Objectives that look at a whole list: ListNet and ListMLE."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.objectives.judged_lists import (
    LONGEST_EXACT,
    Lists,
    check_whole,
    label_lists,
    subset_tables,
)
from gradrank.objectives.kernels.listwise_kernel import exact_block, listmle_block, listnet_block
from gradrank.objectives.label_objective import LabelObjective
from gradrank.objectives.objective import BoundObjective, Gradients
from gradrank.runtime.threads import for_query_blocks

Block = Callable[[int, int, NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]], None]
Results = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]


class BoundLists(BoundObjective):
    """A listwise objective bound to data; λ = −∂loss/∂score, ρ the diagonal of the second derivative."""

    def __init__(self, data: RankingData, label: str | None, random_state: int, n_jobs: int | None) -> None:
        self._n_docs = data.n_docs
        self._threads = n_jobs
        self._lists: Lists = label_lists(data, label, random_state)

    @abstractmethod
    def _block(self, scores: NDArray[np.float64], want_loss: bool) -> Block:
        """The kernel over lists first…end, writing λ, ρ and, if wanted, the loss."""

    def _run(
        self, scores: NDArray[np.float64], want_loss: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]:
        lambdas, rhos = np.zeros(self._n_docs, dtype=np.float32), np.zeros(self._n_docs, dtype=np.float32)
        losses = np.zeros(len(self._lists.query))
        block = self._block(scores, want_loss)
        for_query_blocks(lambda first, end: block(first, end, lambdas, rhos, losses), self._lists.indptr, self._threads)
        return lambdas, rhos, losses

    def gradients(self, scores: NDArray[np.float64], step: int = 0, *, count_pairs: bool = False) -> Gradients:
        """See BoundObjective.gradients; a listwise objective has no pairs to count."""
        lambdas, rhos, _ = self._run(scores)
        return Gradients(lambdas, rhos)

    def loss(self, scores: NDArray[np.float64]) -> float | None:
        """See BoundObjective.loss."""
        return float(self._run(scores, want_loss=True)[2].sum())


@dataclass(frozen=True, repr=False)
class ListNet(LabelObjective):
    """Cross-entropy between the orders that the labels and the scores make likely (Cao et al. 2007).

    Both define a Plackett–Luce model with weights e^label and e^score. Top one, the default: the distributions of the
    first place, −Σ_i P_y(i)·log P_s(i), with P the softmax; λ = P_y − P_s and ρ = P_s(1 − P_s). ``exact``: the
    sum over all orders of the list, which equals Σ_S p(S)·log Σ_{i∈S} e^{s_i} − Σ_i s_i over its subsets S, p(S) the
    chance under the labels' model that just S is left at some time: 2^n terms instead of n!, for lists of at most
    12 judged documents.

    Documents without a label take no part; nor do queries with one label only. Weights of documents multiply their
    terms of the top-one sum.

    Parameters
    ----------
    exact
        Compare the distributions of all orders instead of the first place.
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> ListNet().bind(data).gradients(np.zeros(2)).lambdas.astype(float).round(4).tolist()
    [-0.2311, 0.2311]
    """

    exact: bool = False
    label: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.exact, bool):
            raise ObjectiveError(f"ListNet: exact is {self.exact!r}, expected true or false")
        super().__post_init__()

    @property
    def convex(self) -> bool:
        """A cross-entropy of softmaxes."""
        return True

    @property
    def shift_invariant(self) -> bool:
        """Softmaxes do not change when all scores do."""
        return True

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundObjective:
        """See Objective.bind."""
        if self.exact:
            return BoundExactListNet(data, self.label, random_state, n_jobs)
        return BoundListNet(data, self.label, random_state, n_jobs)


class BoundListNet(BoundLists):
    """Top-one ListNet bound to data."""

    def __init__(self, data: RankingData, label: str | None, random_state: int, n_jobs: int | None) -> None:
        super().__init__(data, label, random_state, n_jobs)
        lists = self._lists
        # Labels descend in each list: the first is the largest.
        powers = np.exp(lists.labels - np.repeat(lists.labels[lists.indptr[:-1]], lists.sizes))
        truth = powers / np.repeat(np.add.reduceat(powers, lists.indptr[:-1]), lists.sizes)
        self._truth, self._weight = lists.weighted(truth)

    def _block(self, scores: NDArray[np.float64], want_loss: bool) -> Block:
        lists = self._lists
        return lambda first, end, lambdas, rhos, losses: listnet_block(
            first, end, lists.indptr, lists.rows, self._truth, self._weight, scores, lambdas, rhos, losses
        )


class BoundExactListNet(BoundLists):
    """ListNet over all orders bound to data."""

    def __init__(self, data: RankingData, label: str | None, random_state: int, n_jobs: int | None) -> None:
        super().__init__(data, label, random_state, n_jobs)
        lists = self._lists
        if len(lists.sizes) and lists.sizes.max() > LONGEST_EXACT:
            long = int(np.argmax(lists.sizes > LONGEST_EXACT))
            raise ObjectiveError(
                f"ListNet(exact=true): query {data.qid[int(lists.query[long])]} has {lists.sizes[long]} judged "
                f"documents, the sum over all orders goes up to {LONGEST_EXACT}; use ListNet (top one), or "
                "Focused(beta=1) for the orders of the top k alone"
            )
        self._tables, self._table = subset_tables(lists.labels, lists.indptr[:-1], lists.sizes, lists.document_weight)
        self._weights = lists.document_weights
        self._longest = int(lists.sizes.max(initial=1))

    def _block(self, scores: NDArray[np.float64], want_loss: bool) -> Block:
        lists = self._lists
        return lambda first, end, lambdas, rhos, losses: exact_block(
            first, end, lists.indptr, lists.rows, self._weights, self._tables, self._table, lists.weight, self._longest,
            want_loss, scores, lambdas, rhos, losses,
        )  # fmt: skip


@dataclass(frozen=True, repr=False)
class ListMLE(LabelObjective):
    """Likelihood of the true order's first k places (Xia et al. 2008; top-k form: Niu et al. 2012).

    −Σ_{j≤k} [s_(j) − log Σ_{l≥j} e^{s_(l)}], (j) the document at place j of the order by labels and the inner sum over
    everything that is not placed yet. Documents with equal labels stand in a seeded random order, drawn once.

    Documents without a label take no part; nor do queries with one label only.

    Parameters
    ----------
    k
        Number of places that count; None = all.
    label
        Label source; None = the primary one.

    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 2, 1], qid=[1, 1, 1])
    >>> bound = ListMLE(k=1).bind(data)
    >>> bound.gradients(np.zeros(3)).lambdas.astype(float).round(4).tolist()
    [-0.3333, 0.6667, -0.3333]
    """

    k: int | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            check_whole("ListMLE", "k", self.k, 1)
        super().__post_init__()

    @property
    def convex(self) -> bool:
        """The logarithm of a product of softmaxes, negated."""
        return True

    @property
    def shift_invariant(self) -> bool:
        """Softmaxes do not change when all scores do."""
        return True

    def bind(self, data: RankingData, *, random_state: int = 0, n_jobs: int | None = None) -> BoundListMLE:
        """See Objective.bind."""
        return BoundListMLE(self, data, random_state, n_jobs)


class BoundListMLE(BoundLists):
    """ListMLE bound to data."""

    def __init__(self, objective: ListMLE, data: RankingData, random_state: int, n_jobs: int | None) -> None:
        super().__init__(data, objective.label, random_state, n_jobs)
        sizes = self._lists.sizes
        self._depth = sizes if objective.k is None else np.minimum(sizes, objective.k)
        self._weights = self._lists.document_weights
        with np.errstate(divide="ignore"):
            self._log_weights = np.log(self._weights)

    def _block(self, scores: NDArray[np.float64], want_loss: bool) -> Block:
        lists = self._lists
        return lambda first, end, lambdas, rhos, losses: listmle_block(
            first, end, lists.indptr, lists.rows, self._depth, lists.weight, self._weights, self._log_weights, scores,
            lambdas, rhos, losses,
        )  # fmt: skip
