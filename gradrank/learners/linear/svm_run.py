"""One training of a linear SVM: problems over the same features and risk, on a path over C or β if need be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.loop import Callback, Course, Record, run_course
from gradrank.learners.base.monitor import Monitor
from gradrank.learners.base.training_facts import training_facts
from gradrank.learners.linear.bundle import BundleSearch, Cut, Solution
from gradrank.learners.linear.convex_risk import Oracle
from gradrank.learners.linear.scaled_features import Features
from gradrank.models.linear import LinearRanker

if TYPE_CHECKING:
    from gradrank.learners.linear.svm import LinearSVM


@dataclass(frozen=True)
class Setting:
    """One problem of a path: C and the mixture of the risk's parts."""

    c: float
    mixture: tuple[float, ...]
    value: float
    """What the path is drawn over: C or β."""


class CutCourse(Course):
    """The cuts of a bundle search as steps."""

    unit: ClassVar[str] = "cut"

    def __init__(self, search: BundleSearch) -> None:
        self.total = search.max_cuts
        self._cuts: Iterator[Cut] = search.run()
        self._last: Cut | None = None

    def advance(self, step: int) -> bool:
        """See Course.advance."""
        self._last = next(self._cuts, None)
        return self._last is not None

    def scores(self) -> Mapping[str, np.ndarray]:
        """See Course.scores."""
        return {}

    def own_values(self) -> dict[str, dict[str, float]]:
        """See Course.own_values."""
        return {} if self._last is None else {"train": {"gap": self._last.gap}}


class PathCourse(Course):
    """A path of settings: each step solves one problem, starting from the planes of the one before."""

    unit: ClassVar[str] = "setting"

    def __init__(self, run: SVMRun, settings: Sequence[Setting], start: Solution | None) -> None:
        self.total = len(settings)
        self._run = run
        self._settings = settings
        self._start = start
        self.found: list[Solution] = []

    def advance(self, step: int) -> bool:
        """See Course.advance."""
        setting = self._settings[step]
        search = self._run.search(setting.c, setting.mixture, self.found[-1] if self.found else self._start)
        for _ in search.run():
            pass
        self.found[step:] = [search.solution()]
        return True

    def scores(self) -> Mapping[str, np.ndarray]:
        """See Course.scores."""
        return self._run.scores(self.found[-1])


class SVMRun:
    """One training: solves problems over the same features and risk, and records what happened."""

    def __init__(
        self,
        learner: LinearSVM,
        features: Features,
        oracle: Oracle,
        train: RankingData,
        valid: Mapping[str, RankingData],
        callbacks: Sequence[Callback],
    ) -> None:
        self._learner = learner
        self._features = features
        self.oracle = oracle
        self._train = train
        self._valid = valid
        self._callbacks = callbacks
        self._paths: dict[str, dict[str, list[float]]] = {}
        self.record = Record()

    def search(self, c: float, mixture: Sequence[float], start: Solution | None = None) -> BundleSearch:
        """The search for the minimum of one problem."""
        learner = self._learner
        return BundleSearch.of(
            self._features,
            self.oracle,
            c,
            mixture=mixture,
            tolerance=learner.tol,
            max_cuts=learner.max_cuts,
            start=start,
        )

    def scores(self, solution: Solution) -> dict[str, np.ndarray]:
        """A solution's scores of the validation sets."""
        ranker = linear_ranker(solution.weights, self._features, self._train, {})
        return {name: ranker.grouped_scores(data, n_jobs=self._learner.n_jobs) for name, data in self._valid.items()}

    def one(self, c: float, mixture: Sequence[float], start: Solution | None = None) -> Solution:
        """Solve one problem, each cut of which is a step."""
        search = self.search(c, mixture, start)
        monitor = Monitor({}, [], first=None)
        self.record = run_course(CutCourse(search), monitor, callbacks=self._callbacks)
        # The last of all allowed cuts is made, but nobody is told of it.
        self.record.steps = self.record.best = search.cuts
        return search.solution()

    def path(self, name: str, settings: Sequence[Setting], start: Solution | None = None) -> tuple[Solution, float]:
        """Solve one problem after the other; the best on the validation data."""
        learner = self._learner
        if not self._valid:
            raise TrainingError(f"{name} is auto: it is chosen on validation data, and there is none")
        measure = learner._measure()
        monitor = Monitor.of_sets(self._valid, self._valid, measure, n_jobs=learner.n_jobs)
        course = PathCourse(self, settings, start)
        self.record = run_course(course, monitor, callbacks=self._callbacks)
        tried = [setting.value for setting in settings[: self.record.steps]]
        first = self.record.curves[next(iter(self._valid))]
        self._paths[name] = {name: tried, **{chooser: list(values) for chooser, values in first.items()}}
        best = self.record.best - 1
        return course.found[best], tried[best]

    def facts(self, solution: Solution, found: Mapping[str, Any]) -> dict[str, Any]:
        """What the model remembers; ``found`` are the parameters that the validation data chose."""
        learner = self._learner
        return {
            **training_facts(learner, self._train, type(learner).__name__, str(learner._measure()), self.record),
            "objective_value": solution.objective,
            "gap": solution.gap,
            "converged": solution.converged,
            "cuts": solution.cuts,
            "chosen": dict(found),
            "paths": self._paths,
        }


def linear_ranker(
    weights: np.ndarray, features: Features, train: RankingData, facts: Mapping[str, Any]
) -> LinearRanker:
    """The ranker of weights of scaled features; missing values count as the training data's mean."""
    mean = getattr(features, "mean", None)
    return LinearRanker(weights, mean=mean, scale=features.scale, feature_names=train.feature_names, training=facts)
