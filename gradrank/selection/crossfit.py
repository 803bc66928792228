"""Cross-fitting: each member is trained once per fold, and scores the queries that it has not seen.

A member's out-of-fold scores are honest for every query: no model that takes part in them has learned from the query,
and none has chosen its number of steps on it. Trees are watched on the part that is left out, and the number of trees
for a part is the one that is best on the mean of the *other* parts' curves. Nets, which cannot be cut back to an
earlier step, choose their step on some of the queries that they train on. The model for new data is the average of all
models of the member.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.combine.ensemble import spread_within_queries
from gradrank.data.ranking_data import RankingData
from gradrank.errors import GradrankWarning
from gradrank.learners.algorithms import algorithm
from gradrank.learners.base.loop import Callback, Step
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.selection.members import Member

FloatArray = NDArray[np.float64]
# Of the queries that a net trains on, one part in so many chooses its epoch.
_INNER_PARTS = 6
# Here a step is one tree: a model is cut back to any number of steps by leaving trees out.
_SINGLE_TREES = ("lambdamart", "mart")


@dataclass(frozen=True)
class Task:
    """One model to train: of a member, for a fold."""

    member: Member
    fold: int
    copy: int
    """Number among the models of the member for this fold."""
    n_folds: int
    seed: int
    """Of the cut into folds."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "member": self.member.to_dict(),
            "fold": self.fold,
            "copy": self.copy,
            "n_folds": self.n_folds,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Task:
        """The inverse of :meth:`to_dict`."""
        return cls(**{**value, "member": Member(**value["member"])})


@dataclass(frozen=True, eq=False)
class Fitted:
    """One trained model of a member."""

    ranker: Ranker
    """Of trees: all that were grown, whatever their number is to be."""
    curve: FloatArray
    """Of trees: values on the part that is left out after each tree, a column for each part of the measure."""
    seconds: float
    cut_short: bool = False
    """Whether training was ended before it was done."""


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """A member with its scores for queries it has not seen, and the ranker for new ones."""

    member: Member
    scores: FloatArray
    """Scores of documents that weights are found on: out-of-fold, or of queries that stay apart; of spread 1."""
    out_of_fold: FloatArray
    """Scores of all documents that were learned from, by models that have not seen their query."""
    parts: tuple[tuple[float, Ranker], ...]
    """The models and their weights; their sum has about the spread of the scores."""
    seconds: float


Ends = Callable[[], bool]
"""Asked after each step whether the training is to end now."""


def parts_of(n_queries: int, n_parts: int, seed: int) -> NDArray[np.int64]:
    """The part of each query, drawn at random; sizes differ by at most one.

    >>> np.bincount(parts_of(7, 3, seed=1)).tolist()
    [3, 2, 2]
    """
    part = np.empty(n_queries, dtype=np.int64)
    for number, queries in enumerate(np.array_split(np.random.default_rng(seed).permutation(n_queries), n_parts)):
        part[queries] = number
    return part


def tasks_of(member: Member, n_folds: int, seed: int) -> list[Task]:
    """Everything that must be trained for a member.

    >>> member = Member("net", "net", "lambdarank", {}, models_per_fold=2)
    >>> [(task.fold, task.copy) for task in tasks_of(member, 2, seed=0)]
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return [
        Task(member, fold, copy, n_folds, seed) for fold in range(n_folds) for copy in range(member.models_per_fold)
    ]


def fit_fold(
    task: Task, pool: RankingData, *, ends: Ends, n_jobs: int | None = None, callbacks: Sequence[Callback] = ()
) -> Fitted:
    """Train one model of a member.

    Parameters
    ----------
    task
        What to train, and for which fold.
    pool
        All queries; the fold's are left out.
    ends
        Asked after each step whether to end with what was learned so far.
    n_jobs
        Threads to use; all cores by default.
    callbacks
        Told of each step.
    """
    began = time.perf_counter()
    cut: list[bool] = []

    def watch(_step: Step) -> None:
        if ends():
            cut.append(True)
            raise KeyboardInterrupt

    member = task.member
    kind = algorithm(member.algorithm)
    parameters = dict(member.parameters)
    if "random_state" in kind.declared:
        parameters["random_state"] = int(parameters.get("random_state", 0)) + task.copy
    learner = kind(**parameters, n_jobs=n_jobs, callbacks=(*callbacks, watch))
    left_out = parts_of(pool.n_queries, task.n_folds, task.seed) == task.fold
    train = pool.take_queries(~left_out)
    with warnings.catch_warnings():
        # Doubts about the data are said once, for all of it; a fold that is still rising is nothing to act on.
        warnings.simplefilter("ignore", GradrankWarning)
        if member.algorithm in _SINGLE_TREES:
            learner.fit(train, valid=pool.take_queries(left_out))
        elif kind.validated and train.n_queries > 1:
            n_parts = min(_INNER_PARTS, train.n_queries)
            inner = parts_of(train.n_queries, n_parts, task.seed + 1 + task.fold) == task.copy % n_parts
            learner.fit(train.take_queries(~inner), valid=train.take_queries(inner))
        else:
            learner.fit(train)
    ranker, curve = learner.ranker_, np.empty((0, 0))
    if member.algorithm in _SINGLE_TREES:
        trees = [tree for (tree,) in learner.trees_]
        ranker = TreeEnsemble(trees, pool.feature_names, base_score=learner.base_score_)
        curve = np.array(list(learner.record_.curves["valid"].values())).T[: len(trees)]
    return Fitted(ranker, curve, time.perf_counter() - began, bool(cut) or learner.record_.interrupted)


def crossfitted(
    tasks: Sequence[Task],
    models: Sequence[Fitted],
    pool: RankingData,
    measure: AnyMeasure,
    *,
    held: RankingData | None = None,
    n_jobs: int | None = None,
) -> CrossFitted:
    """A member from all of its models.

    Parameters
    ----------
    tasks, models
        What was trained, and what came out, in the same order.
    pool
        The data that the folds were cut from.
    measure
        Chooses the number of trees.
    held
        Queries that no model has seen, which all models score, instead of out-of-fold scores.
    n_jobs
        Threads to use; all cores by default.
    """
    part = parts_of(pool.n_queries, tasks[0].n_folds, tasks[0].seed)
    rows = np.repeat(part, pool.sizes)
    scores = np.zeros(pool.n_docs)
    weight = 1.0 / len(tasks)
    parts: list[tuple[float, Ranker]] = []
    if models[0].curve.size:
        steps_of_fold, steps = numbers_of_steps([model.curve for model in models], measure)
        for task, model, own in zip(tasks, models, steps_of_fold, strict=True):
            left_out = pool.take_queries(part == task.fold)
            scores[rows == task.fold] = _cut(model.ranker, own).grouped_scores(left_out, n_jobs=n_jobs)
            parts.append((weight, _cut(model.ranker, steps)))
    else:
        for task, model in zip(tasks, models, strict=True):
            left_out = pool.take_queries(part == task.fold)
            found = model.ranker.grouped_scores(left_out, n_jobs=n_jobs)
            # Each net has a scale of its own.
            spread = spread_within_queries(found, left_out)
            scores[rows == task.fold] += found / (spread * task.member.models_per_fold)
            parts.append((weight / spread, model.ranker))
    spread = spread_within_queries(scores, pool)
    out_of_fold = judged = scores / spread
    if held is not None:
        found = np.sum([w * ranker.grouped_scores(held, n_jobs=n_jobs) for w, ranker in parts], axis=0)
        spread = spread_within_queries(found, held)
        judged = found / spread
    return CrossFitted(
        tasks[0].member,
        judged,
        out_of_fold,
        tuple((weight / spread, ranker) for weight, ranker in parts),
        sum(model.seconds for model in models),
    )


def numbers_of_steps(curves: Sequence[FloatArray], measure: AnyMeasure) -> tuple[list[int], int]:
    """The number of steps for each fold, found on the others, and for the model: the best of all folds' mean curve.

    >>> from gradrank.measures import NDCG
    >>> curves = [np.array([[0.1], [0.9], [0.1]]), np.array([[0.1], [0.2], [0.3]])]
    >>> numbers_of_steps(curves, NDCG(10))
    ([3, 2], 2)
    """
    longest = max(len(curve) for curve in curves)
    # A fold that ended early stays where it was.
    whole = np.array([np.concatenate((curve, np.repeat(curve[-1:], longest - len(curve), axis=0))) for curve in curves])
    with warnings.catch_warnings():
        # A part without a judged query has no value.
        warnings.simplefilter("ignore", RuntimeWarning)
        others = [np.nanmean(np.delete(whole, fold, axis=0), axis=0) for fold in range(len(whole))]
        together = np.nanmean(whole, axis=0)
    return [measure.best(curve) + 1 for curve in others], measure.best(together) + 1


def _cut(ranker: Ranker, steps: int) -> TreeEnsemble:
    assert isinstance(ranker, TreeEnsemble)
    return TreeEnsemble(ranker.trees[:steps], ranker.feature_names, base_score=ranker.base_score)
