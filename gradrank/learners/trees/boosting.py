"""The boosting loop: λ's, a tree, leaf values, new scores, the measure; until nothing improves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import Combiner
from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.monitor import TRAINING, Curves, Watch
from gradrank.learners.trees.diagnostics import Diagnostics, Recorder
from gradrank.learners.trees.grower import TreeGrower
from gradrank.learners.trees.leaf_values import first_rule, leaf_values, optimal_values
from gradrank.learners.trees.settings import BoostingSettings
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble, assign_leaves
from gradrank.objectives import BoundObjective, Objective
from gradrank.objectives.pair_facts import PairFacts


@dataclass(frozen=True)
class Step:
    """What a callback is told after each step."""

    number: int
    """Steps so far."""
    total: int
    values: Mapping[str, Mapping[str, float]]
    """Data set → measure → mean value."""
    best: int
    """Number of steps of the best model so far."""
    seconds: float
    trees: tuple[Tree, ...] = ()
    """The trees just added (one, or one for each class), their values shrunk; none if other things are learned."""
    unit: str = "tree"
    """What a step is called."""
    note: str = ""
    """What the learner has to say of this step."""


Callback = Callable[[Step], None]


@dataclass(frozen=True, eq=False)
class Boosted:
    """The outcome: trees up to the best step, and the record of the training."""

    steps: tuple[tuple[Tree, ...], ...]
    """The trees of every step, values shrunk; the model uses the first ``best`` steps."""
    best: int
    base_score: float
    curves: Curves
    seconds: float
    interrupted: bool
    pairs: tuple[PairFacts, ...] = ()
    """What each label source gave to learn from."""
    diagnostics: dict[str, Any] | None = None


def boost(
    train: RankingData,
    objective: Objective,
    settings: BoostingSettings,
    *,
    valid: Mapping[str, RankingData] | None = None,
    measures: Sequence[AnyMeasure] = (),
    base: Ranker | None = None,
    start: Sequence[tuple[Tree, ...]] = (),
    start_curves: Curves | None = None,
    callbacks: Sequence[Callback] = (),
    diagnostics: Diagnostics | None = None,
) -> Boosted:
    """Train boosted trees on the λ's of an objective.

    ``measures`` are recorded on every validation set; the first on the first set chooses the number of trees.
    ``base`` gives the scores that training starts from. ``start`` continues an earlier run: the result is the one
    that an uninterrupted run has. Callbacks are called after each step; one that has a method ``begin`` is told the
    pairs of each label source before the first.
    """
    if not objective.has_curvature and "newton" in (settings.step, settings.split):
        raise TrainingError(f"{objective} has no usable second derivative: use split rule mse and step rule gradient")
    check_labels(train, objective)
    bound = objective.bind(train, random_state=settings.random_state, n_jobs=settings.n_jobs)
    pairs = announced_pairs(bound, train, callbacks)
    grower = TreeGrower(
        train, settings.tree, split=settings.split, random_state=settings.random_state, n_jobs=settings.n_jobs
    )
    base_score = 0.0 if base is not None else bound.start()
    watched = watched_sets(train, valid, settings)
    scores = {
        name: np.full(data.n_docs, base_score) if base is None else base.grouped_scores(data, n_jobs=settings.n_jobs)
        for name, data in {TRAINING: train, **watched}.items()
    }

    combiner = _combiner(train, objective, measures, settings)
    rule = first_rule(settings.step, objective.has_curvature)
    recorder = None
    if diagnostics is not None:
        recorder = Recorder(diagnostics, objective, train, measures)

    def observe(step: int) -> None:
        if recorder is not None:
            recorder.observe(step, scores[TRAINING])

    def add(tree: Tree, leaf: NDArray[np.int32]) -> None:
        scores[TRAINING] += tree.leaf_value[leaf]
        for name, data in watched.items():
            if data is train:
                scores[name] = scores[TRAINING]
            else:
                scores[name] += tree.leaf_value[assign_leaves(tree, data.X, n_jobs=settings.n_jobs)]

    def advance(step: int) -> tuple[Tree, ...]:
        observe(step)
        gradients = bound.gradients(scores[TRAINING], step)
        lambdas, rhos = sampled(gradients.lambdas, gradients.rhos, train, settings, step)
        tree = grower.grow(lambdas, rhos, step)
        leaf = assign_leaves(tree, train.X, n_jobs=settings.n_jobs)
        values = tree.leaf_value
        if settings.tree.monotone is None:
            values = leaf_values(rule, leaf, tree.n_leaves, lambdas, rhos, settings.tree.l2)
        if combiner is not None:
            here = combiner.only(sampled_queries(train, settings, step))
            values = optimal_values(settings.step, values, leaf, scores[TRAINING], here)
        tree = replace(tree, leaf_value=settings.rate * values)
        add(tree, leaf)
        return (tree,)

    for number, (tree,) in enumerate(start):
        observe(number)
        add(tree, assign_leaves(tree, train.X, n_jobs=settings.n_jobs))
    watch = Watch(watched, measures, first=next(iter(valid)) if valid else None, n_jobs=settings.n_jobs)
    done = run_steps(advance, scores, watch, settings, base_score, start, start_curves, callbacks)
    if not done.interrupted:
        # An interrupted step may have left its mark on the scores.
        observe(len(done.steps))
    return replace(done, pairs=pairs, diagnostics=None if recorder is None else recorder.record())


def run_steps(
    advance: Callable[[int], tuple[Tree, ...]],
    scores: Mapping[str, NDArray[np.float64]],
    watch: Watch,
    settings: BoostingSettings,
    base_score: float,
    start: Sequence[tuple[Tree, ...]],
    start_curves: Curves | None,
    callbacks: Sequence[Callback],
) -> Boosted:
    """Advance step by step, recording the measures of ``scores``, until all trees are grown or nothing improves."""
    began = time.perf_counter()
    steps = list(start)
    curves = watch.empty_curves()
    if steps and start_curves is not None:
        curves = {name: {m: list(curve) for m, curve in per.items()} for name, per in start_curves.items()}
    best = watch.best(curves) if steps else 0
    interrupted = False
    try:
        while len(steps) < settings.trees:
            if settings.early_stopping is not None and watch.decides and len(steps) - best >= settings.early_stopping:
                break
            grown = advance(len(steps))
            values = watch.record(curves, scores)
            steps.append(grown)
            best = watch.best(curves) if watch.decides else len(steps)
            told = Step(len(steps), settings.trees, values, best, time.perf_counter() - began, grown)
            for callback in callbacks:
                callback(told)
    except KeyboardInterrupt:
        # What has been learned so far is worth keeping; the caller says that training was cut short.
        if not steps:
            raise
        interrupted = True
        curves = {name: {m: curve[: len(steps)] for m, curve in per.items()} for name, per in curves.items()}
        best = watch.best(curves) if watch.decides else len(steps)
    return Boosted(tuple(steps), best or len(steps), base_score, curves, time.perf_counter() - began, interrupted)


def watched_sets(
    train: RankingData, valid: Mapping[str, RankingData] | None, settings: BoostingSettings
) -> dict[str, RankingData]:
    """The data sets whose measures are recorded."""
    return {"train": train, **(valid or {})} if settings.train_measure else dict(valid or {})


def sampled_queries(data: RankingData, settings: BoostingSettings, step: int) -> NDArray[np.bool_] | None:
    """Which queries are in this step's sample; None = all."""
    if settings.queries >= 1.0:
        return None
    rng = np.random.default_rng([settings.random_state, step])
    count = max(1, round(settings.queries * data.n_queries))
    chosen = np.zeros(data.n_queries, dtype=bool)
    chosen[rng.permutation(data.n_queries)[:count]] = True
    return chosen


def sampled(
    lambdas: NDArray[np.float32], rhos: NDArray[np.float32], data: RankingData, settings: BoostingSettings, step: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Documents of queries that are not in this step's sample have no say."""
    chosen = sampled_queries(data, settings, step)
    if chosen is None:
        return lambdas, rhos
    inside = np.repeat(chosen.astype(np.float32), data.sizes)
    return lambdas * inside, rhos * inside


def _combiner(
    train: RankingData, objective: Objective, measures: Sequence[AnyMeasure], settings: BoostingSettings
) -> Combiner | None:
    """What finds the trees' weights, if the step rule asks for it: by the objective's measure, or the one that
    chooses the model."""
    if not settings.step.startswith("optimal"):
        return None
    measure = objective.measure or next(iter(measures), None)
    if measure is None:
        raise TrainingError(f"step rule {settings.step} needs a measure to find weights for, {objective} has none")
    return Combiner(train, measure, n_jobs=settings.n_jobs)


def check_labels(train: RankingData, objective: Objective) -> None:
    """There is something to learn from."""
    measure = objective.measure
    if measure is None or len(measure.sources) > 1:
        return  # the pairs of several sources are looked at together
    labels = train.label(measure.sources[0])
    if np.isnan(labels).all():
        raise TrainingError("no document of the training data is judged")
    spread = np.fmax.reduceat(labels, train.indptr[:-1]) > np.fmin.reduceat(labels, train.indptr[:-1])
    if not spread.any():
        raise TrainingError("every query of the training data has one label only: there is nothing to order")


def announced_pairs(bound: BoundObjective, train: RankingData, callbacks: Sequence[Callback]) -> tuple[PairFacts, ...]:
    """The pairs of each label source, told to the callbacks that ask for them; none at all is an error."""
    pairs = tuple(bound.pair_facts(train))
    if pairs and not any(fact.pairs for fact in pairs if fact.weight > 0):
        raise TrainingError(
            f"there is nothing to order in the training data: {pairs[0].sentence()}"
            + "".join(f"; {fact.sentence()}" for fact in pairs[1:])
        )
    for callback in callbacks:
        if hasattr(callback, "begin"):
            callback.begin(pairs)
    return pairs


def ensemble_of(boosted: Boosted, feature_names: Sequence[str], training: Mapping[str, Any]) -> TreeEnsemble:
    """The best model of a run."""
    trees = [tree for (tree,) in boosted.steps[: boosted.best]]
    return TreeEnsemble(trees, feature_names, base_score=boosted.base_score, training=training)


def checkpoint_path(path: str | Path) -> Path:
    """Where the state of a run that writes to ``path`` is kept.

    >>> checkpoint_path("model.json").name
    'model.json.checkpoint'
    """
    return Path(path).with_name(Path(path).name + ".checkpoint")
