"""RankSVM and SVMmap: linear rankers of large margin, by one bundle solver."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.learners.boosting import Boosted, Callback, Step
from gradrank.learners.bundle import Cut, Oracle, Solution, minimise
from gradrank.learners.estimator import RankingEstimator, as_measure
from gradrank.learners.facts import training_facts
from gradrank.learners.grower import TrainingError
from gradrank.learners.map_oracle import AveragePrecisionOracle
from gradrank.learners.pair_oracle import PairOracle, PairWeights
from gradrank.learners.products import Features, Scaling, scaled_features
from gradrank.measures import AnyMeasure, Graded, bind_measures, bound_values, mean_value
from gradrank.models.linear import LinearRanker
from gradrank.models.ranker import Ranker

C_GRID = tuple(float(c) for c in 10.0 ** np.arange(-3.0, 1.01, 0.5))
"""Values of C that ``c="auto"`` tries on the validation data."""


@dataclass(frozen=True)
class Setting:
    """One problem of a path: C and the mixture of the risk's parts."""

    c: float
    mixture: tuple[float, ...]
    value: float
    """What the path is drawn over: C or β."""


class LinearSVM(RankingEstimator):
    """What the linear SVMs share: ½‖w‖² + C·Σ_q L_q(w), a path over C on validation data, a linear ranker.

    L_q is normalised to be at most 1 for w = 0, whatever the query's length, so that one C means about the same for
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
        features = scaled_features(train.X, self.scaling, threads=self.threads)
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
    >>> data = make_splits(40, n_docs=10, n_features=5, seed=1)
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
        threads: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.c = c
        self.pairs = pairs
        self.scaling = scaling
        self.measure = measure
        self.label = label
        self.tolerance = tolerance
        self.max_cuts = max_cuts
        self.threads = threads
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
            train.label(self._label_source()), train.indptr, pairs=self.pairs, weight=train.weight, threads=self.threads
        )


class SVMmap(LinearSVM):
    """A convex bound of 1 − average precision (Yue, Finley, Radlinski, Joachims 2007).

    L_q = max over rankings z of [1 − AP(z) + wΨ(z) − wΨ(y)]; relevant is a label of ``rel`` or more.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, seed=1)
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
        threads: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.c = c
        self.rel = rel
        self.scaling = scaling
        self.measure = measure
        self.label = label
        self.tolerance = tolerance
        self.max_cuts = max_cuts
        self.threads = threads
        self.callbacks = callbacks

    def _oracle(self, train: RankingData) -> Oracle:
        oracle = AveragePrecisionOracle(
            train.label(self._label_source()), train.indptr, rel=self.rel, weight=train.weight, threads=self.threads
        )
        if not oracle.counted.any():
            raise TrainingError(f"no query has both documents with label {self.rel:g} or more and others")
        return oracle


# ---------------------------------------------------------------------- parts that other learners use, too
class SVMRun:
    """One training: solves problems over the same features and risk, and records what happened."""

    def __init__(
        self,
        learner: LinearSVM,
        features: Features,
        oracle: Oracle,
        train: RankingData,
        valid: Mapping[str, RankingData],
        began: float,
    ) -> None:
        self._learner = learner
        self._features = features
        self.oracle = oracle
        self._train = train
        self._valid = valid
        self._began = began
        self._paths: dict[str, dict[str, list[float]]] = {}
        self._place = (0, 0)
        self._interrupted = False

    def one(self, c: float, mixture: Sequence[float], start: Solution | None = None) -> Solution:
        """Solve one problem, telling the callbacks of every cut."""
        solution = self._minimise(c, mixture, start, (self._tell_cut,))
        self._interrupted = not solution.converged and solution.cuts < self._learner.max_cuts
        return solution

    def path(self, name: str, settings: Sequence[Setting], start: Solution | None = None) -> tuple[Solution, float]:
        """Solve one problem after the other, each from the planes of the last; the best on the validation data."""
        learner = self._learner
        if not self._valid:
            raise TrainingError(f"{name} is auto: it is chosen on validation data, and there is none")
        measure = learner._measure()
        chooser = measure.parts[0] if isinstance(measure, Graded) else measure
        data = next(iter(self._valid.values()))
        bound = bind_measures([chooser], data, threads=learner.threads)
        found: list[Solution] = []
        values: list[float] = []
        try:
            for setting in settings:
                found.append(self._minimise(setting.c, setting.mixture, found[-1] if found else start, ()))
                ranker = linear_ranker(found[-1].weights, self._features, self._train, {})
                scores = ranker.score(data, threads=learner.threads)
                values.append(mean_value(bound_values(bound, scores)[chooser]))
                best = int(np.argmax(values))
                for callback in learner.callbacks:
                    told = {next(iter(self._valid)): {str(chooser): values[-1]}}
                    callback(Step(len(found), len(settings), told, best + 1, self._seconds(), unit="setting"))
        except KeyboardInterrupt:
            if not values:
                raise
            self._interrupted = True
        if np.isnan(values).all():
            raise TrainingError(f"{chooser} has no value on the validation data: no query is judged")
        best = int(np.nanargmax(values))
        tried = [setting.value for setting in settings[: len(values)]]
        self._paths[name] = {name: tried, str(chooser): values}
        self._place = (best + 1, len(tried))
        return found[best], tried[best]

    def _minimise(
        self, c: float, mixture: Sequence[float], start: Solution | None, callbacks: Sequence[Callable[[Cut], None]]
    ) -> Solution:
        learner = self._learner
        return minimise(
            self._features,
            self.oracle,
            c,
            mixture=mixture,
            tolerance=learner.tolerance,
            max_cuts=learner.max_cuts,
            start=start,
            callbacks=callbacks,
        )

    def _tell_cut(self, cut: Cut) -> None:
        told = {"train": {"gap": cut.gap}}
        for callback in self._learner.callbacks:
            callback(Step(cut.number, self._learner.max_cuts, told, cut.number, self._seconds(), unit="cut"))

    def _seconds(self) -> float:
        return time.perf_counter() - self._began

    def facts(self, solution: Solution) -> dict[str, Any]:
        """What the model remembers."""
        learner = self._learner
        best, made = self._place if self._paths else (solution.cuts, solution.cuts)
        record = Boosted(((),) * made, best, 0.0, {}, self._seconds(), self._interrupted)
        chosen = {name: getattr(learner, f"{name}_") for name in ("c", "beta") if name in self._paths}
        return {
            **training_facts(learner, self._train, type(learner).__name__, str(learner._measure()), record),
            "objective_value": solution.objective,
            "gap": solution.gap,
            "converged": solution.converged,
            "cuts": solution.cuts,
            "chosen": chosen,
            "paths": self._paths,
        }


def linear_ranker(
    weights: np.ndarray, features: Features, train: RankingData, facts: Mapping[str, Any]
) -> LinearRanker:
    """The ranker of weights of scaled features; missing values count as the training data's mean."""
    mean = getattr(features, "mean", None)
    return LinearRanker(weights, mean=mean, scale=features.scale, feature_names=train.feature_names, training=facts)


def label_of(given: str | None, measure: AnyMeasure) -> str | None:
    """The label source to learn from: the one given, or else the one that the measure reads.

    >>> from gradrank.measures import NDCG
    >>> label_of(None, NDCG(10, label="clicks")), label_of("grades", NDCG(10, label="clicks"))
    ('clicks', 'grades')
    """
    if given is not None:
        return given
    part = measure.parts[0] if isinstance(measure, Graded) else measure
    return part.label or part.default_source


def check_auto(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> None:
    """A parameter is a number in a range, or auto."""
    if value == "auto":
        return
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not low <= value <= high or (open_low and value == low) or np.isinf(value):
        wanted = "a positive number" if open_low else f"a number from {low:g} to {high:g}"
        raise TrainingError(f"{name} is {value!r}, expected {wanted} or auto")


def check_orderable(train: RankingData, source: str | None) -> None:
    """Training data whose queries have one label each has nothing to teach."""
    labels = train.label(source)
    if np.isnan(labels).all():
        raise TrainingError("no document of the training data is judged")
    highest = np.fmax.reduceat(labels, train.indptr[:-1])
    if not (highest > np.fmin.reduceat(labels, train.indptr[:-1])).any():
        raise TrainingError("every query of the training data has one label only: there is nothing to order")
