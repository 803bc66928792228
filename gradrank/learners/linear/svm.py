"""What the linear rankers of large margin share: ½‖w‖² + C·Σ_q L_q(w), and a path over C on validation data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.learners.base.label_source import label_of
from gradrank.learners.base.loop import Callback
from gradrank.learners.base.parameters import fitted
from gradrank.learners.base.something_to_learn import check_orderable
from gradrank.learners.linear.bundle import Solution
from gradrank.learners.linear.convex_risk import Oracle
from gradrank.learners.linear.parameters import LinearParameters
from gradrank.learners.linear.scaled_features import Scaling, scaled_features
from gradrank.learners.linear.svm_run import Setting, SVMRun, linear_ranker
from gradrank.measures import AnyMeasure, as_measure
from gradrank.models.ranker import Ranker

C_GRID = tuple(float(c) for c in 10.0 ** np.arange(-3.0, 1.01, 0.5))
"""Values of C that ``C="auto"`` tries on the validation data."""


class LinearSVM(LinearParameters, RankingEstimator):
    """What the linear SVMs share.

    L_q is normalized to be at most 1 for w = 0, whatever the query's length, so that one C means about the same for
    all of them. ``C="auto"`` tries ``C_GRID``, each problem starting from the planes of the one before, and keeps the
    C of the best ``measure`` on the validation data.
    """

    validated: ClassVar[bool] = False
    solution_: Solution = fitted()
    """Weights of the scaled features, objective value, lower bound."""
    C_: float = fitted()
    """The C that was chosen, with ``C="auto"``."""

    @property
    def unit(self) -> str:  # type: ignore[override]
        """A step is a plane of the solver, or a whole solution if C or β is to be found."""
        return "setting" if "auto" in (self.C, getattr(self, "beta", None)) else "cut"

    # ------------------------------------------------------------------ what a subclass says
    @abstractmethod
    def _oracle(self, train: RankingData) -> Oracle:
        """The risk."""

    def _mixture(self) -> tuple[float, ...]:
        """Weights of the parts of the risk."""
        return (1.0,)

    # ------------------------------------------------------------------ training
    def _measure(self) -> AnyMeasure:
        return as_measure("NDCG@10" if self.measure is None else self.measure)

    def _label_source(self) -> str | None:
        return label_of(self.label, self._measure())

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData], callbacks: Sequence[Callback]) -> Ranker:
        check_orderable(train, self._label_source())
        scaling: Scaling = self.scaling  # type: ignore[assignment]
        features = scaled_features(train.X, scaling, n_jobs=self.n_jobs)
        run = SVMRun(self, features, self._oracle(train), train, valid, callbacks)
        self.solution_ = self._solve(run)
        self.record_ = run.record
        return linear_ranker(self.solution_.weights, features, train, run.facts(self.solution_, self._found()))

    def _found(self) -> dict[str, Any]:
        """Parameters that the validation data chose."""
        return {"C": self.C_} if self.C == "auto" else {}

    def _solve(self, run: SVMRun) -> Solution:
        return self._best_c(run, self._mixture()) if self.C == "auto" else run.one(float(self.C), self._mixture())

    def _best_c(self, run: SVMRun, mixture: tuple[float, ...]) -> Solution:
        solution, self.C_ = run.path("C", [Setting(c, mixture, c) for c in self._c_grid(run.oracle)])
        return solution

    def _c_grid(self, _oracle: Oracle) -> Sequence[float]:
        """Values of C to try."""
        return C_GRID
