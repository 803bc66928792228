"""FocusedSVM: SVMmap for the order of the top k, RankSVM for the top k against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gradrank.data.ranking_data import RankingData
from gradrank.learners.focused.beta_path import BETA_GRID, check_focus, focused_measure, focused_truth, top_and_rest
from gradrank.learners.linear.bundle import Solution
from gradrank.learners.linear.convex_risk import Oracle
from gradrank.learners.linear.map_risk import MixedOracle, OrderOracle
from gradrank.learners.linear.pair_risk import PairOracle
from gradrank.learners.linear.scaled_features import Scaling
from gradrank.learners.linear.svm import LinearSVM
from gradrank.learners.linear.svm_run import Setting, SVMRun
from gradrank.learners.trees.boosting import Callback
from gradrank.measures import AnyMeasure


class FocusedSVM(LinearSVM):
    """½‖w‖² + C·Σ_q [β·L_list(T_q) + (1 − β)·L_pair(T_q × F_q)] (Niu et al. 2012).

    L_list is SVMmap's loss, averaged over the cuts c = 1…|T|−1 at which the first c of T count as relevant; L_pair the
    mean of RankSVM's hinge over the pairs. Both are at most 1 for w = 0: that is their comparable range. Labels that
    are no top-k truth are made one: a random order (``random_state``) that respects the grades, of which the top ``k``
    are kept. ``beta="auto"`` tries 0, 0.05, …, 1 on the validation data, each from the planes of the one before; with
    ``c="auto"`` C is chosen first, at the given β or 0.5.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=12, n_features=5, random_state=1)
    >>> FocusedSVM(k=5).fit(data["train"]).score(data["test"]) > 0.5
    True
    """

    def __init__(
        self,
        *,
        k: int = 10,
        beta: float | Literal["auto"] = 0.5,
        c: float | Literal["auto"] = 1.0,
        scaling: Scaling = "standard",
        measure: str | AnyMeasure | None = None,
        label: str | None = None,
        tolerance: float = 1e-3,
        max_cuts: int = 1000,
        random_state: int = 0,
        n_jobs: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.k = k
        self.beta = beta
        self.c = c
        self.scaling = scaling
        self.measure = measure
        self.label = label
        self.tolerance = tolerance
        self.max_cuts = max_cuts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callbacks = callbacks

    def _measure(self) -> AnyMeasure:
        return focused_measure(self.measure, self.k, self.label)

    def _check(self) -> None:
        check_focus(self.k, self.beta)
        super()._check()

    def _oracle(self, train: RankingData) -> Oracle:
        labels = focused_truth(train, self.k, self.random_state, self._label_source())
        return MixedOracle(
            OrderOracle(labels, train.indptr, weight=train.weight, n_jobs=self.n_jobs),
            PairOracle(top_and_rest(labels), train.indptr, weight=train.weight, n_jobs=self.n_jobs),
        )

    def _solve(self, run: SVMRun) -> Solution:
        middle = 0.5 if self.beta == "auto" else float(self.beta)
        start = None
        if self.c == "auto":
            start = self._best_c(run, (middle, 1.0 - middle))
        if self.beta != "auto":
            return start or run.one(float(self.c), (middle, 1.0 - middle))
        c = self.c_ if self.c == "auto" else float(self.c)
        solution, self.beta_ = run.path("beta", [Setting(c, (beta, 1.0 - beta), beta) for beta in BETA_GRID], start)
        return solution
