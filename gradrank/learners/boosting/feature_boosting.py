"""Boosting of weak rankers: one loop, of which RankBoost, AdaRank and FocusedBoost are settings.

Two distributions lead the choice of the next weak ranker: D over queries, made from the measure E of the ensemble so
far, and D' over pairs, D' ∝ exp(−(F(u) − F(v))) — both weigh most what is still wrong. With β = 0 only
pairs count (RankBoost), with β = 1 only queries (AdaRank).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.checks import label_of
from gradrank.learners.base.estimator import RankingEstimator, as_measure
from gradrank.learners.base.monitor import TRAINING, Curves, Watch
from gradrank.learners.base.training_facts import training_facts
from gradrank.learners.boosting.pair_weights import FactoredPairs
from gradrank.learners.boosting.weak_rankers import Quality, ScaledFeatures, Thresholds, WeakRanker, WeakRankers
from gradrank.learners.trees.boosting import Boosted, Callback, Step
from gradrank.measures import AnyMeasure, Measure
from gradrank.models.linear import LinearRanker
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble

Vector = NDArray[np.float64]
Weak = Literal["threshold", "feature"]


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


@dataclass
class Ensemble:
    """Weak rankers found so far, and the scores that they add up to."""

    rounds: list[Round] = field(default_factory=list)
    best: int = 0
    curves: Curves = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def chosen(self) -> list[WeakRanker]:
        """The weak rankers of the best model."""
        return [round_.weak for round_ in self.rounds[: self.best]]


def boost_features(
    train: RankingData,
    weak: WeakRankers,
    pairs: FactoredPairs | None,
    lists: Lists | None,
    *,
    beta: float,
    rounds: int,
    early_stopping: int | None = None,
    valid: Mapping[str, RankingData] | None = None,
    measure: AnyMeasure | None = None,
    n_jobs: int | None = None,
    callbacks: Sequence[Callback] = (),
    unit: str = "round",
) -> Ensemble:
    """Add weak rankers until all rounds are made, nothing is left to learn, or the validation data says stop."""
    began = time.perf_counter()
    sets = dict(valid or {})
    scores = {name: np.zeros(data.n_docs) for name, data in {TRAINING: train, **sets}.items()}
    measures = [] if measure is None else [measure]
    watch = Watch(sets, measures, first=next(iter(sets)) if sets else None, n_jobs=n_jobs)
    found = Ensemble(curves=watch.empty_curves())
    pairs = pairs if beta < 1.0 else None
    lists = lists if beta > 0.0 else None
    focus = None if lists is None else lists.start
    try:
        while len(found.rounds) < rounds:
            if early_stopping is not None and watch.decides and len(found.rounds) - found.best >= early_stopping:
                break
            potential = None if pairs is None else pairs.potential(scores[TRAINING])
            chosen = weak.best(beta, None if potential is None else potential.values, focus)
            if chosen.r <= 1e-12:
                break  # no weak ranker orders what is left better than chance
            made = Round(chosen, float("nan") if potential is None else potential.log_loss)
            for name, data in {TRAINING: train, **sets}.items():
                scores[name] = scores[name] + chosen.alpha * chosen.values(data.X)
            if lists is not None and focus is not None:
                focus = lists.next_distribution(focus, lists.values(scores[TRAINING]))
            values = watch.record(found.curves, scores)
            found.rounds.append(made)
            found.best = watch.best(found.curves) if watch.decides else len(found.rounds)
            told = Step(len(found.rounds), rounds, values, found.best, time.perf_counter() - began, unit=unit)
            for callback in callbacks:
                callback(told)
    except KeyboardInterrupt:
        if not found.rounds:
            raise
        found.interrupted = True
        found.curves = {s: {m: c[: len(found.rounds)] for m, c in per.items()} for s, per in found.curves.items()}
        found.best = watch.best(found.curves) if watch.decides else len(found.rounds)
    if not found.rounds:
        raise TrainingError("no feature of the training data orders its documents better than chance")
    found.seconds = time.perf_counter() - began
    return found


def ensemble_ranker(weak: Sequence[WeakRanker], train: RankingData, facts: Mapping[str, Any]) -> Ranker:
    """Σ_t α_t·f_t as a ranker: thresholds are trees of one split, features a weighted sum (up to a constant)."""
    if weak[0].threshold is not None:
        return TreeEnsemble([item.tree() for item in weak], train.feature_names, training=facts)
    weights, low, width = np.zeros(train.n_features), np.zeros(train.n_features), np.ones(train.n_features)
    for item in weak:
        weights[item.feature] += item.direction * item.alpha
        low[item.feature], width[item.feature] = item.low, item.width
    return LinearRanker(weights, mean=low, scale=width, feature_names=train.feature_names, training=facts)


class FeatureBoosting(RankingEstimator):
    """What RankBoost, AdaRank and FocusedBoost share."""

    unit: ClassVar[str] = "round"
    ensemble_: Ensemble
    """All rounds, and the record of the training."""

    def _measure(self) -> AnyMeasure:
        return as_measure(self.measure)

    def _label_source(self) -> str | None:
        return label_of(self.label, self._measure())

    def _chosen(self) -> dict[str, Any]:
        self._check()
        return super()._chosen()

    def _check(self) -> None:
        for name in ("rounds", "early_stopping", "bins"):
            value: Any = getattr(self, name, None)
            if value is None and name != "rounds":
                continue
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            low, high = (2, 65_536) if name == "bins" else (1, 2**31)
            if not whole or not low <= value <= high:
                wanted = f"{low} to {high}" if name == "bins" else "1 or more"
                raise TrainingError(f"{name} is {value!r}, expected a whole number of {wanted}")

    def _boost(
        self,
        train: RankingData,
        valid: Mapping[str, RankingData],
        weak: WeakRankers,
        pairs: FactoredPairs | None,
        lists: Lists | None,
        beta: float,
        callbacks: Sequence[Callback],
    ) -> Ensemble:
        return boost_features(
            train,
            weak,
            pairs,
            lists,
            beta=beta,
            rounds=self.rounds,
            early_stopping=self.early_stopping,
            valid=valid,
            measure=self._measure(),
            n_jobs=self.n_jobs,
            callbacks=callbacks,
        )

    def _ranker(self, train: RankingData) -> Ranker:
        found = self.ensemble_
        record = Boosted(((),) * len(found.rounds), found.best, 0.0, found.curves, found.seconds, found.interrupted)
        facts = training_facts(self, train, type(self).__name__, str(self._measure()), record)
        return ensemble_ranker(found.chosen, train, facts)


def weak_rankers(kind: Weak, train: RankingData, lists: Lists | None, bins: int, n_jobs: int | None) -> WeakRankers:
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


def check_weak(weak: str) -> None:
    """The kind of weak rankers is a known one."""
    if weak not in ("threshold", "feature"):
        raise TrainingError(f"weak is {weak!r}, expected threshold or feature")
