"""The boosting loop: λ's, a tree, leaf values, new scores, the measure; until nothing improves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.learners.grower import TrainingError, TreeGrower, TreeSettings
from gradrank.learners.steps import StepRule, leaf_values
from gradrank.measures import AnyMeasure, Graded, Measure, bind_measures, bound_values, mean_value
from gradrank.models.ranker import Ranker
from gradrank.models.trees import Tree, TreeEnsemble, assign_leaves
from gradrank.objectives import Objective


@dataclass(frozen=True)
class BoostingSettings:
    """How boosting proceeds."""

    trees: int = 300
    rate: float = 0.05
    """Shrinkage: factor of every leaf value."""
    split: Literal["mse", "newton"] = "newton"
    """Splits by least squares on λ (the papers) or by Newton gain (LightGBM, XGBoost)."""
    step: StepRule = "newton"
    tree: TreeSettings = field(default_factory=TreeSettings)
    queries: float = 1.0
    """Share of the queries that each tree sees."""
    early_stopping: int | None = None
    """Stop after so many trees without a new best on the validation data; None = train them all, then choose."""
    seed: int = 0
    threads: int | None = None
    train_measure: bool = False
    """Record the measure on the training data as well."""

    def __post_init__(self) -> None:
        if isinstance(self.trees, bool) or not isinstance(self.trees, int | np.integer) or self.trees < 1:
            raise TrainingError(f"trees is {self.trees!r}, expected a whole number of 1 or more")
        if not 0.0 < self.rate < np.inf:
            raise TrainingError(f"rate is {self.rate!r}, expected a positive number")
        if self.split not in ("mse", "newton"):
            raise TrainingError(f"split is {self.split!r}, expected mse or newton")
        if self.step not in ("newton", "gradient"):
            raise TrainingError(f"step is {self.step!r}, expected newton or gradient")
        if not 0.0 < self.queries <= 1.0:
            raise TrainingError(f"queries is {self.queries!r}, expected a share above 0, at most 1")
        if self.early_stopping is not None and self.early_stopping < 1:
            raise TrainingError(f"early_stopping is {self.early_stopping!r}, expected a whole number of 1 or more")


@dataclass(frozen=True)
class Step:
    """What a callback is told after each tree."""

    number: int
    """Trees so far."""
    total: int
    values: Mapping[str, Mapping[str, float]]
    """Data set → measure → mean value."""
    best: int
    """Number of trees of the best model so far."""
    seconds: float
    tree: Tree
    """The tree just added, its values shrunk."""


Callback = Callable[[Step], None]


@dataclass(frozen=True, eq=False)
class Boosted:
    """The outcome: trees up to the best iteration, and the record of the training."""

    trees: tuple[Tree, ...]
    """All trees that were grown, values shrunk; the model uses the first ``best``."""
    best: int
    base_score: float
    curves: dict[str, dict[str, list[float]]]
    seconds: float
    interrupted: bool


def boost(
    train: RankingData,
    objective: Objective,
    settings: BoostingSettings,
    *,
    valid: Mapping[str, RankingData] | None = None,
    measures: Sequence[AnyMeasure] = (),
    base: Ranker | None = None,
    start_trees: Sequence[Tree] = (),
    start_curves: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    callbacks: Sequence[Callback] = (),
) -> Boosted:
    """Train boosted trees on the λ's of an objective.

    ``measures`` are recorded on every validation set; the first on the first set chooses the number of trees.
    ``base`` gives the scores that training starts from. ``start_trees`` continue an earlier run: the result is the
    one that an uninterrupted run has.
    """
    if settings.step == "newton" and not objective.has_curvature:
        raise TrainingError(f"{objective} has no usable second derivative: use the step rule gradient")
    if settings.split == "newton" and not objective.has_curvature:
        raise TrainingError(f"{objective} has no usable second derivative: use the split rule mse")
    _check_labels(train, objective)
    began = time.perf_counter()
    bound = objective.bind(train, seed=settings.seed, threads=settings.threads)
    grower = TreeGrower(train, settings.tree, split=settings.split, seed=settings.seed, threads=settings.threads)
    base_score = 0.0 if base is not None else bound.start()
    watched = {"train": train, **(valid or {})} if settings.train_measure else dict(valid or {})
    watch = _Watch(watched, measures, first=next(iter(valid)) if valid else None, threads=settings.threads)
    scores = _Scores({"": train, **watched}, base, base_score, settings.threads)
    curves = {name: {m: list(v) for m, v in per.items()} for name, per in (start_curves or {}).items()}
    trees: list[Tree] = []
    for tree in start_trees:
        scores.add(tree)
        trees.append(tree)
    if not trees:
        curves = {name: {m: [] for m in watch.names} for name in watched}
    best = watch.best(curves) if trees else 0
    interrupted = False
    try:
        while len(trees) < settings.trees:
            step = len(trees)
            gradients = bound.gradients(scores.of(""), step)
            lambdas, rhos = _sampled(gradients.lambdas, gradients.rhos, train, settings, step)
            tree = grower.grow(lambdas, rhos, step)
            leaf = assign_leaves(tree, train.X, threads=settings.threads)
            values = leaf_values(settings.step, leaf, tree.n_leaves, lambdas, rhos, settings.tree.l2)
            tree = replace(tree, leaf_value=settings.rate * values)
            scores.add(tree, leaf)
            trees.append(tree)
            values_now = watch.record(curves, scores)
            best = watch.best(curves) if watch.decides else len(trees)
            told = Step(len(trees), settings.trees, values_now, best, time.perf_counter() - began, tree)
            for callback in callbacks:
                callback(told)
            if settings.early_stopping is not None and watch.decides and len(trees) - best >= settings.early_stopping:
                break
    except KeyboardInterrupt:
        # What has been learned so far is worth keeping; the caller says that training was cut short.
        interrupted = True
        shortest = min([len(trees), *(len(curve) for per in curves.values() for curve in per.values())])
        trees = trees[:shortest]
        curves = {name: {m: curve[:shortest] for m, curve in per.items()} for name, per in curves.items()}
        best = min(best, shortest)
        if not trees:
            raise
    return Boosted(tuple(trees), best or len(trees), base_score, curves, time.perf_counter() - began, interrupted)


class _Scores:
    """Current scores of every data set, kept up to date tree by tree."""

    def __init__(
        self, sets: Mapping[str, RankingData], base: Ranker | None, base_score: float, threads: int | None
    ) -> None:
        self._sets = sets
        self._threads = threads
        self._scores = {
            name: np.full(data.n_docs, base_score) if base is None else base.score(data, threads=threads)
            for name, data in sets.items()
        }

    def of(self, name: str) -> NDArray[np.float64]:
        return self._scores[name]

    def add(self, tree: Tree, train_leaf: NDArray[np.int32] | None = None) -> None:
        for name, data in self._sets.items():
            if name == "" and train_leaf is not None:
                leaf = train_leaf
            elif name == "train" and train_leaf is not None:
                self._scores[name] = self._scores[""]
                continue
            else:
                leaf = assign_leaves(tree, data.X, threads=self._threads)
            self._scores[name] += tree.leaf_value[leaf]


class _Watch:
    """Measures recorded on data sets; the first measure on the first set chooses the model."""

    def __init__(
        self, sets: Mapping[str, RankingData], measures: Sequence[AnyMeasure], first: str | None, threads: int | None
    ) -> None:
        single: list[Measure] = []
        for measure in measures:
            single.extend(measure.parts if isinstance(measure, Graded) else [measure])
        unique = list(dict.fromkeys(single))
        self.names = [str(measure) for measure in unique]
        self._bound = {name: bind_measures(unique, data, threads=threads) for name, data in sets.items()}
        self._first = first
        self._decider = measures[0] if measures else None
        self.decides = first is not None and bool(measures)

    def record(self, curves: dict[str, dict[str, list[float]]], scores: _Scores) -> dict[str, dict[str, float]]:
        now: dict[str, dict[str, float]] = {}
        for name, bound in self._bound.items():
            values = {str(m): mean_value(v) for m, v in bound_values(bound, scores.of(name)).items()}
            for measure, value in values.items():
                curves[name][measure].append(value)
            now[name] = values
        return now

    def best(self, curves: Mapping[str, Mapping[str, Sequence[float]]]) -> int:
        if not self.decides:
            return 0
        assert self._first is not None
        assert self._decider is not None
        parts = self._decider.parts if isinstance(self._decider, Graded) else (self._decider,)
        columns = np.array([curves[self._first][str(part)] for part in parts])
        if isinstance(self._decider, Graded):
            return self._decider.best(columns.T) + 1
        if np.isnan(columns[0]).all():
            raise TrainingError(f"{self._decider} has no value on the validation data: no query is judged")
        return int(np.nanargmax(columns[0])) + 1


def _sampled(
    lambdas: NDArray[np.float32], rhos: NDArray[np.float32], data: RankingData, settings: BoostingSettings, step: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Documents of queries that are not in this step's sample have no say."""
    if settings.queries >= 1.0:
        return lambdas, rhos
    rng = np.random.default_rng([settings.seed, step])
    count = max(1, round(settings.queries * data.n_queries))
    chosen = np.zeros(data.n_queries, dtype=np.float32)
    chosen[rng.permutation(data.n_queries)[:count]] = 1.0
    inside = np.repeat(chosen, data.sizes)
    return lambdas * inside, rhos * inside


def _check_labels(train: RankingData, objective: Objective) -> None:
    measure = objective.measure
    if not isinstance(measure, Measure):
        return
    labels = train.label(measure.label or measure.default_source)
    if np.isnan(labels).all():
        raise TrainingError("no document of the training data is judged")
    spread = np.fmax.reduceat(labels, train.indptr[:-1]) > np.fmin.reduceat(labels, train.indptr[:-1])
    if not spread.any():
        raise TrainingError("every query of the training data has one label only: there is nothing to order")


def ensemble_of(boosted: Boosted, feature_names: Sequence[str], training: Mapping[str, Any]) -> TreeEnsemble:
    """The best model of a run."""
    return TreeEnsemble(boosted.trees[: boosted.best], feature_names, base_score=boosted.base_score, training=training)


def checkpoint_path(path: str | Path) -> Path:
    """Where the state of a run that writes to ``path`` is kept.

    >>> checkpoint_path("model.json").name
    'model.json.checkpoint'
    """
    return Path(path).with_name(Path(path).name + ".checkpoint")
