"""Boosting of weak rankers: one loop, of which RankBoost, AdaRank and FocusedBoost are settings.

Two distributions lead the choice of the next weak ranker: D over queries, made from the measure E of the ensemble so
far, and D' over pairs, D' ∝ exp(−(F(u) − F(v))) — both weigh most what is still wrong. With β = 0 only
pairs count (RankBoost), with β = 1 only queries (AdaRank).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.learners.base.loop import Callback, Course, Record, run_course
from gradrank.learners.base.monitor import TRAINING, Monitor
from gradrank.learners.base.parameters import fitted
from gradrank.learners.base.training_facts import training_facts
from gradrank.learners.boosting.pair_weights import PairWeights
from gradrank.learners.boosting.parameters import BoostingParameters
from gradrank.learners.boosting.weak_rankers import Quality, ScaledFeatures, Thresholds, WeakRanker, WeakRankers
from gradrank.measures import AnyMeasure, Measure, as_measure
from gradrank.models.linear import LinearRanker
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lists:
    """The documents whose order the listwise part looks at, and the measure of it."""

    rows: NDArray[np.int64]
    """Their rows in the training data."""
    quality: Quality
    start: Vector
    """The distribution over queries before the first round; queries that any order leaves alike have none."""
    running: bool = True
    """Whether a round's weights build on those of the round before."""

    @classmethod
    def of(
        cls,
        rows: NDArray[np.int64],
        measure: Measure,
        documents: RankingData,
        *,
        running: bool,
        above_chance: bool,
        n_jobs: int | None,
    ) -> Lists:
        """Lists of the documents; a query counts if its labels differ."""
        bound = measure.bind(documents, n_jobs=n_jobs)
        labels = documents.label(measure.source)
        starts = documents.indptr[:-1]
        differ = np.fmax.reduceat(labels, starts) > np.fmin.reduceat(labels, starts)
        weight = np.ones(documents.n_queries) if documents.weight is None else documents.weight
        values = bound.values(np.zeros(documents.n_docs))
        weight = np.where(differ & ~bound.prepared.empty & ~np.isnan(values), weight, 0.0)
        if not weight.any():
            raise TrainingError(f"{measure} is the same for any order of the training data: there is nothing to learn")
        return cls(rows, Quality.of(bound, above_chance=above_chance), weight / weight.sum(), running)

    def values(self, scores: Vector) -> Vector:
        """E of each query; 0 where it has none."""
        return np.nan_to_num(self.quality.bound.values(scores[self.rows]))

    def next_distribution(self, now: Vector, values: Vector) -> Vector:
        """D for the next round."""
        weights: Vector = (now if self.running else self.start) * np.exp(-values)
        weights /= weights.sum()
        return weights


@dataclass(frozen=True)
class Round:
    """What happened in one round."""

    weak: WeakRanker
    log_pair_loss: float
    """Logarithm of the exponential loss over pairs before this round; NaN without pairs."""


class RoundCourse(Course):
    """Each step adds the weak ranker that orders best what is still wrong.

    Parameters
    ----------
    train, valid
        Data to learn from, and the data sets whose measures are recorded.
    weak
        The weak rankers to choose from.
    pairs, lists
        What the two distributions are over; at least one of them.
    beta
        Share of the lists against the pairs.
    parameters
        Number of rounds, and when to stop.
    """

    unit: ClassVar[str] = "round"

    def __init__(
        self,
        train: RankingData,
        valid: Mapping[str, RankingData],
        weak: WeakRankers,
        pairs: PairWeights | None,
        lists: Lists | None,
        *,
        beta: float,
        parameters: BoostingParameters,
    ) -> None:
        self.total = parameters.n_estimators
        self.patience = parameters.early_stopping_rounds
        self._weak = weak
        self._beta = beta
        self._pairs = pairs if beta < 1.0 else None
        self._lists = lists if beta > 0.0 else None
        self._focus = None if self._lists is None else self._lists.start
        self._sets = {TRAINING: train, **valid}
        self._scores = {name: np.zeros(data.n_docs) for name, data in self._sets.items()}
        self.rounds: list[Round] = []

    def scores(self) -> Mapping[str, Vector]:
        """See Course.scores."""
        return self._scores

    def advance(self, step: int) -> bool:
        """See Course.advance."""
        potential = None if self._pairs is None else self._pairs.potential(self._scores[TRAINING])
        chosen = self._weak.best(self._beta, None if potential is None else potential.values, self._focus)
        if chosen.r <= 1e-12:
            return False  # no weak ranker orders what is left better than chance
        self.rounds[step:] = [Round(chosen, float("nan") if potential is None else potential.log_loss)]
        for name, data in self._sets.items():
            self._scores[name] = self._scores[name] + chosen.alpha * chosen.values(data.X)
        if self._lists is not None and self._focus is not None:
            self._focus = self._lists.next_distribution(self._focus, self._lists.values(self._scores[TRAINING]))
        return True


@dataclass(frozen=True, eq=False)
class Boosted:
    """The weak rankers that were found, and what happened."""

    rounds: tuple[Round, ...]
    record: Record

    @property
    def chosen(self) -> list[WeakRanker]:
        """The weak rankers of the best model."""
        return [round_.weak for round_ in self.rounds[: self.record.best]]


def ensemble_ranker(weak: Sequence[WeakRanker], train: RankingData, facts: Mapping[str, Any]) -> Ranker:
    """Σ_t α_t·f_t as a ranker: thresholds are trees of one split, features a weighted sum (up to a constant)."""
    if weak[0].threshold is not None:
        return TreeEnsemble([item.tree() for item in weak], train.feature_names, training=facts)
    weights, low, width = np.zeros(train.n_features), np.zeros(train.n_features), np.ones(train.n_features)
    for item in weak:
        weights[item.feature] += item.direction * item.alpha
        low[item.feature], width[item.feature] = item.low, item.width
    return LinearRanker(weights, mean=low, scale=width, feature_names=train.feature_names, training=facts)


class FeatureBoosting(BoostingParameters, RankingEstimator):
    """What RankBoost, AdaRank and FocusedBoost share."""

    unit: ClassVar[str] = "round"
    steps_parameter: ClassVar[str | None] = "n_estimators"
    rounds_: tuple[Round, ...] = fitted()
    """The weak ranker of every round that was made; the model has the first ``record_.best`` of them."""

    def _measure(self) -> AnyMeasure:
        return as_measure("NDCG@10" if self.measure is None else self.measure)

    def _boost(
        self,
        train: RankingData,
        valid: Mapping[str, RankingData],
        weak: WeakRankers,
        pairs: PairWeights | None,
        lists: Lists | None,
        beta: float,
        callbacks: Sequence[Callback],
    ) -> Boosted:
        course = RoundCourse(train, valid, weak, pairs, lists, beta=beta, parameters=self)
        monitor = Monitor.of_sets(valid, valid, self._measure(), n_jobs=self.n_jobs)
        record = run_course(course, monitor, callbacks=callbacks)
        if not record.steps:
            raise TrainingError("no feature of the training data orders its documents better than chance")
        return Boosted(tuple(course.rounds[: record.steps]), record)

    def _ranker(self, train: RankingData, boosted: Boosted) -> Ranker:
        self.rounds_, self.record_ = boosted.rounds, boosted.record
        facts = training_facts(self, train, type(self).__name__, str(self._measure()), self.record_)
        return ensemble_ranker(boosted.chosen, train, facts)


def weak_rankers(kind: str, train: RankingData, lists: Lists | None, bins: int, n_jobs: int | None) -> WeakRankers:
    """The weak rankers of a kind, with what the measure thinks of each of them."""
    judged = None if lists is None else (lists.rows, lists.quality)
    if kind == "feature":
        return ScaledFeatures(train, judged)
    return Thresholds(train, judged, bins=bins, n_jobs=n_jobs)


def single_measure(name: str, given: str | AnyMeasure) -> Measure:
    """One measure, not a graded one."""
    measure = as_measure(given)
    if len(measure.parts) > 1:
        raise TrainingError(f"{name} is {measure}, expected a single measure")
    return measure.parts[0]
