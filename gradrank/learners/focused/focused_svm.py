"""FocusedSVM: SVMmap for the order of the top k, RankSVM for the top k against the rest."""

from __future__ import annotations

from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.parameters import fitted
from gradrank.learners.focused.beta_path import (
    BETA_GRID,
    focused_measure,
    focused_score_measure,
    focused_truth,
    top_and_rest,
)
from gradrank.learners.focused.label_differences import DifferenceOracle
from gradrank.learners.focused.parameters import DifferenceParameters, FocusedParameters
from gradrank.learners.linear.bundle import Solution
from gradrank.learners.linear.convex_risk import Oracle
from gradrank.learners.linear.map_risk import MixedOracle, OrderOracle
from gradrank.learners.linear.pair_risk import PairOracle
from gradrank.learners.linear.svm import LinearSVM
from gradrank.learners.linear.svm_run import Setting, SVMRun
from gradrank.measures import AnyMeasure


class FocusedSVM(FocusedParameters, DifferenceParameters, LinearSVM):
    """½‖w‖² + C·Σ_q [β·L_list(T_q) + (1 − β)·L_pair(T_q × F_q)] (Niu et al. 2012).

    L_list is SVMmap's loss, averaged over the cuts c = 1…|T|−1 at which the first c of T count as relevant; L_pair the
    mean of RankSVM's hinge over the pairs, without the factor (y_u − y_v) that the paper prints unless
    ``by_difference``. Both are at most 1 for w = 0: that is their comparable range. Labels that are no top-k truth are
    made one: a random order (``random_state``) that respects the grades, of which the top ``k`` are kept. With
    ``beta="auto"`` each problem starts from the planes of the one before; with ``C="auto"`` C is chosen first, at the
    given β or 0.5.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> FocusedSVM(k=5, measure="NDCG@10").fit(data["train"]).score(data["test"]) > 0.7  # a random ranker has 0.35
    True
    """

    beta_: float = fitted()
    """The β that was chosen, with ``beta="auto"``."""

    def _measure(self) -> AnyMeasure:
        return focused_measure(self.measure, self.k, self.label)

    def _score_measure(self) -> AnyMeasure:
        return focused_score_measure(self.measure, self.label)

    def _oracle(self, train: RankingData) -> Oracle:
        labels = focused_truth(train, self.k, self.random_state, self._label_source())
        pairs: Oracle
        if self.by_difference:
            pairs = DifferenceOracle(labels, train.indptr, weight=train.weight, n_jobs=self.n_jobs)
        else:
            pairs = PairOracle(top_and_rest(labels), train.indptr, weight=train.weight, n_jobs=self.n_jobs)
        return MixedOracle(OrderOracle(labels, train.indptr, weight=train.weight, n_jobs=self.n_jobs), pairs)

    def _found(self) -> dict[str, Any]:
        return {**super()._found(), **({"beta": self.beta_} if self.beta == "auto" else {})}

    def _solve(self, run: SVMRun) -> Solution:
        middle = 0.5 if self.beta == "auto" else float(self.beta)
        start = None
        if self.C == "auto":
            start = self._best_c(run, (middle, 1.0 - middle))
        if self.beta != "auto":
            return start or run.one(float(self.C), (middle, 1.0 - middle))
        c = self.C_ if self.C == "auto" else float(self.C)
        solution, self.beta_ = run.path("beta", [Setting(c, (beta, 1.0 - beta), beta) for beta in BETA_GRID], start)
        return solution
