"""RankSVM and SVMmap: linear rankers of large margin, by one bundle solver."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.checks import check_auto, check_orderable, label_of
from gradrank.learners.base.estimator import RankingEstimator, as_measure
from gradrank.learners.linear.bundle import Solution
from gradrank.learners.linear.convex_risk import Oracle
from gradrank.learners.linear.map_risk import AveragePrecisionOracle
from gradrank.learners.linear.pair_risk import PairOracle, PairWeights
from gradrank.learners.linear.scaled_features import Scaling, scaled_features
from gradrank.learners.linear.svm_run import Setting, SVMRun, linear_ranker
from gradrank.learners.trees.boosting import Callback
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker

C_GRID = tuple(float(c) for c in 10.0 ** np.arange(-3.0, 1.01, 0.5))
"""Values of C that ``c="auto"`` tries on the validation data."""


class LinearSVM(RankingEstimator):
    """What the linear SVMs share: ½‖w‖² + C·Σ_q L_q(w), a path over C on validation data, a linear ranker.

    L_q is normalized to be at most 1 for w = 0, whatever the query's length, so that one C means about the same for
    all of them. ``c="auto"`` tries ``C_GRID``, each problem starting from the planes of the one before, and keeps the
    C of the best ``measure`` on the validation data. ``scaling`` is made part of the ranker: features are divided by
    their standard deviation (``standard``), their range (``minmax``) or taken as they are (``none``). Training ends
    when the relative duality gap is at most ``tolerance``.
    """

    validated: ClassVar[bool] = False
    solution_: Solution
    """Weights of the scaled features, objective value, lower bound."""

    @property
    def unit(self) -> str:  # type: ignore[override]
        """A step is a plane of the solver, or a whole solution if C or β is to be found."""
        return "setting" if "auto" in (self.c, getattr(self, "beta", None)) else "cut"

    # ------------------------------------------------------------------ what a subclass says
    @abstractmethod
    def _oracle(self, train: RankingData) -> Oracle:
        """The risk."""

    def _mixture(self) -> tuple[float, ...]:
        """Weights of the parts of the risk."""
        return (1.0,)

    # ------------------------------------------------------------------ training
    def _measure(self) -> AnyMeasure:
        return as_measure(self.measure)

    def _label_source(self) -> str | None:
        return label_of(self.label, self._measure())

    def _chosen(self) -> dict[str, Any]:
        self._check()
        return super()._chosen()

    def _check(self) -> None:
        check_auto("c", self.c, 0.0, np.inf, open_low=True)
        if self.scaling not in ("none", "minmax", "standard"):
            raise TrainingError(f"scaling is {self.scaling!r}, expected none, minmax or standard")
        if not 0.0 < self.tolerance < 1.0:
            raise TrainingError(f"tolerance is {self.tolerance!r}, expected a number between 0 and 1")
        if isinstance(self.max_cuts, bool) or not isinstance(self.max_cuts, int) or self.max_cuts < 1:
            raise TrainingError(f"max_cuts is {self.max_cuts!r}, expected a whole number of 1 or more")

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData]) -> Ranker:
        self._check()
        began = time.perf_counter()
        check_orderable(train, self._label_source())
        features = scaled_features(train.X, self.scaling, n_jobs=self.n_jobs)
        run = SVMRun(self, features, self._oracle(train), train, valid, began)
        self.solution_ = self._solve(run)
        facts = run.facts(self.solution_)
        return linear_ranker(self.solution_.weights, features, train, facts)

    def _solve(self, run: SVMRun) -> Solution:
        return self._best_c(run, self._mixture()) if self.c == "auto" else run.one(self.c, self._mixture())

    def _best_c(self, run: SVMRun, mixture: tuple[float, ...]) -> Solution:
        solution, self.c_ = run.path("c", [Setting(c, mixture, c) for c in self._c_grid(run.oracle)])
        return solution

    def _c_grid(self, _oracle: Oracle) -> Sequence[float]:
        """Values of C to try."""
        return C_GRID


class RankSVM(LinearSVM):
    """Hinge loss over all pairs of different labels (Herbrich 2000; Joachims 2002), in O(n log n) a query.

    L_q = mean over the query's pairs y_u > y_v of max(0, 1 − w·(x_u − x_v)). With ``pairs="sum"`` it is the sum over
    the pairs, and the problem is scikit-learn's ``LinearSVC(C=c, loss="hinge", fit_intercept=False)`` on the
    differences of all pairs; SVM-rank's C is that c times the number of queries.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> model = RankSVM(c=1.0).fit(data["train"])
    >>> model.score(data["test"]) > 0.5, model.solution_.gap <= 1e-3
    (True, True)
    """

    def __init__(
        self,
        *,
        c: float | Literal["auto"] = 1.0,
        pairs: PairWeights = "mean",
        scaling: Scaling = "standard",
        measure: str | AnyMeasure = "NDCG@10",
        label: str | None = None,
        tolerance: float = 1e-3,
        max_cuts: int = 1000,
        n_jobs: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.c = c
        self.pairs = pairs
        self.scaling = scaling
        self.measure = measure
        self.label = label
        self.tolerance = tolerance
        self.max_cuts = max_cuts
        self.n_jobs = n_jobs
        self.callbacks = callbacks

    def _check(self) -> None:
        super()._check()
        if self.pairs not in ("mean", "sum"):
            raise TrainingError(f"pairs is {self.pairs!r}, expected mean or sum")

    def _c_grid(self, oracle: Oracle) -> Sequence[float]:
        if self.pairs == "mean":
            return C_GRID
        assert isinstance(oracle, PairOracle)
        per_query = oracle.pairs[oracle.pairs > 0].mean()
        return tuple(float(f"{c / per_query:.3g}") for c in C_GRID)

    def _oracle(self, train: RankingData) -> Oracle:
        return PairOracle(
            train.label(self._label_source()), train.indptr, pairs=self.pairs, weight=train.weight, n_jobs=self.n_jobs
        )


class SVMmap(LinearSVM):
    """A convex bound of 1 − average precision (Yue, Finley, Radlinski, Joachims 2007).

    L_q = max over rankings z of [1 − AP(z) + wΨ(z) − wΨ(y)]; relevant is a label of ``rel`` or more.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> SVMmap(c=1.0).fit(data["train"]).score(data["test"]) > 0.5
    True
    """

    def __init__(
        self,
        *,
        c: float | Literal["auto"] = 1.0,
        rel: float = 1.0,
        scaling: Scaling = "standard",
        measure: str | AnyMeasure = "MAP",
        label: str | None = None,
        tolerance: float = 1e-3,
        max_cuts: int = 1000,
        n_jobs: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.c = c
        self.rel = rel
        self.scaling = scaling
        self.measure = measure
        self.label = label
        self.tolerance = tolerance
        self.max_cuts = max_cuts
        self.n_jobs = n_jobs
        self.callbacks = callbacks

    def _oracle(self, train: RankingData) -> Oracle:
        oracle = AveragePrecisionOracle(
            train.label(self._label_source()), train.indptr, rel=self.rel, weight=train.weight, n_jobs=self.n_jobs
        )
        if not oracle.counted.any():
            raise TrainingError(f"no query has both documents with label {self.rel:g} or more and others")
        return oracle
