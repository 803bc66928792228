"""One training of a linear SVM: problems over the same features and risk, on a path over C or β if need be."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.training_facts import training_facts
from gradrank.learners.linear.bundle import Cut, Solution, minimize
from gradrank.learners.linear.convex_risk import Oracle
from gradrank.learners.linear.scaled_features import Features
from gradrank.learners.trees.boosting import Boosted, Step
from gradrank.measures import bind_measures, bound_values, mean_value
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
        solution = self._minimize(c, mixture, start, (self._tell_cut,))
        self._interrupted = not solution.converged and solution.cuts < self._learner.max_cuts
        return solution

    def path(self, name: str, settings: Sequence[Setting], start: Solution | None = None) -> tuple[Solution, float]:
        """Solve one problem after the other, each from the planes of the last; the best on the validation data."""
        learner = self._learner
        if not self._valid:
            raise TrainingError(f"{name} is auto: it is chosen on validation data, and there is none")
        measure = learner._measure()
        chooser = measure.parts[0]
        data = next(iter(self._valid.values()))
        bound = bind_measures([chooser], data, n_jobs=learner.n_jobs)
        found: list[Solution] = []
        values: list[float] = []
        try:
            for setting in settings:
                found.append(self._minimize(setting.c, setting.mixture, found[-1] if found else start, ()))
                ranker = linear_ranker(found[-1].weights, self._features, self._train, {})
                scores = ranker.grouped_scores(data, n_jobs=learner.n_jobs)
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

    def _minimize(
        self, c: float, mixture: Sequence[float], start: Solution | None, callbacks: Sequence[Callable[[Cut], None]]
    ) -> Solution:
        learner = self._learner
        return minimize(
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
