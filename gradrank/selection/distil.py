"""A portfolio at about the cost of one model: pruned, or distilled into a single model of trees.

A student learns what the portfolio (the teacher) says of documents: it comes as close as it can to the differences of
the teacher's scores within queries, of the real documents and of made-up ones (:mod:`gradrank.selection.made_up`), by
large trees whose leaves are all fitted once more in the end. Students are judged as members are, by others of their
kind that were taught without a fold's queries, by models that have not seen them either: a teacher that has seen them
gives them away even where it speaks of other queries.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, GradrankWarning
from gradrank.evaluation.significance import t_test
from gradrank.learners.algorithms import algorithm
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.learners.trees.refit_leaves import refit_leaves
from gradrank.learners.trees.size_rule import LOSSGUIDE, mean_weight, shape_by_size
from gradrank.measures import AnyMeasure, BoundMeasure, as_measure
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.trees.merge import merged
from gradrank.models.weighted_sum import WeightedSum
from gradrank.objectives import Differences
from gradrank.selection.auto import AutoResult
from gradrank.selection.blend import blend
from gradrank.selection.crossfit import FloatArray, parts_of
from gradrank.selection.made_up import with_made_up
from gradrank.selection.members import Member

TEACHER = "taught_by_portfolio"
"""The label source of what a student learns."""
LEAVES = (63, 127, 31)
"""Of the trees of students, in the order in which they are tried; the first always are."""
# So that the sum of all steps is the same for few trees and many.
_ALL_STEPS = 20.0
_LOWEST_RATE, _HIGHEST_RATE = 0.03, 0.3
# Documents of a lesson, real and made-up: as many as can be scored and learned from, in shares of the budget.
_FEWEST_SCORED, _MOST_SCORED = 10_000, 150_000
_SCORING_SHARE, _LEARNING_SHARE = 0.25, 0.5
_MOST_COPIES = 30
_PRUNED = (1, 2, 4, 8)
# A member takes a student's place if chance would put it as far ahead less often than this, for all members together.
_CHANCE = 0.05
# Documents whose scoring is timed, and how often.
_TIMED_DOCS, _TIMED = 20_000, 3
_TIMED_TO_SCORE, _TIMED_TO_LEARN, _TRIAL_TREES = 1_000, 40_000, 5


@dataclass(frozen=True, eq=False)
class Served:
    """A ranker that could be served: what it is worth and what it costs."""

    name: str
    value: float
    """Mean of the (first) measure on queries that it has not seen."""
    trees: int
    """Its trees; nets and linear parts come on top."""
    microseconds: float
    """Time to score a document, on one thread."""
    make: Callable[[], Ranker] = field(repr=False)
    """Gives the ranker; a member is trained for it, on all queries."""
    per_query: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    """The values that it is judged by, one for each query; empty for sums, which are not chosen."""
    distance: float = np.nan
    """Of a student: how far it is from its teacher on queries that neither has seen."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"name": self.name, "value": self.value, "trees": self.trees, "microseconds": self.microseconds}


@dataclass(frozen=True, eq=False)
class Distilled:
    """Rankers of several costs, and the best one that may be served."""

    ranker: Ranker
    chosen: str
    most_trees: int
    """What may be served: so many trees, and nothing else."""
    curve: tuple[Served, ...]
    """Quality against cost, the fewest trees first."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without the ranker."""
        return {
            "chosen": self.chosen,
            "most_trees": self.most_trees,
            "curve": [point.to_dict() for point in self.curve],
            "seconds": round(self.seconds, 3),
        }


def distil(
    result: AutoResult,
    measure: AnyMeasure | str = "NDCG@10",
    factor: float = 1.5,
    *,
    budget: float = 60.0,
    n_jobs: int | None = None,
) -> Distilled:
    """The best ranker with at most ``factor`` times the trees of plain training, and quality against cost.

    Parameters
    ----------
    result
        A portfolio that was trained.
    measure
        What it is good at, or its name.
    factor
        How many times the trees of plain training there may be.
    budget
        Seconds; the first student is taught in any case, others while there is time.
    n_jobs
        Threads to use; all cores by default.

    Examples
    --------
    >>> from gradrank.data.artificial import make_splits
    >>> from gradrank.selection.auto import auto
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> found = distil(auto(data["train"], data["vali"], "NDCG@10", most=2), "NDCG@10", 1.5, budget=1.0)
    >>> found.ranker.shape()["trees"] <= found.most_trees
    True
    """
    if not 0.0 < factor < np.inf:
        raise DataError(f"factor is {factor!r}, expected a positive number")
    measure = as_measure(measure)
    began = time.perf_counter()
    single = _steps(result, 0)
    most = max(1, int(factor * single))
    bound = measure.parts[0].bind(result.judged_on, n_jobs=n_jobs)
    members = [
        _refitted(result, number, bound, n_jobs) for number in range(len(result.members)) if _steps(result, number)
    ]
    students: list[Served] = []
    classroom = _Classroom(result, bound, most, budget, n_jobs)
    for leaves in LEAVES:
        spent = time.perf_counter() - began
        if students and spent + spent / len(students) > budget:
            break
        students.append(classroom.taught(leaves))
    chosen = _chosen(students, [member for member in members if member.trees <= most], result.judged_on)
    curve = tuple(sorted((*members, *students, *_ensembles(result, measure, n_jobs)), key=lambda point: point.trees))
    ranker = chosen.make()
    ranker.remember(
        **{
            **result.ranker.training,
            "distilled": {
                "chosen": chosen.name,
                "factor": factor,
                "most_trees": most,
                "curve": [point.to_dict() for point in curve],
            },
        }
    )
    return Distilled(ranker, chosen.name, most, curve, time.perf_counter() - began)


def _chosen(students: Sequence[Served], members: Sequence[Served], judged_on: RankingData) -> Served:
    """The student closest to its teacher, unless a member is ahead of it by more than chance explains among so many.

    How close students are is known far better than which of them ranks better. Of dozens of members the best one is
    partly the luckiest one; and students are judged by others that were taught by fewer models.
    """
    student = min(students, key=lambda point: point.distance)
    ahead = [
        member
        for member in members
        if member.value > student.value
        and t_test(member.per_query, student.per_query, weights=judged_on.weight).p < _CHANCE / len(members)
    ]
    return max(ahead, key=lambda point: point.value, default=student)


def _steps(result: AutoResult, number: int) -> int:
    """Trees of one model of a member; 0 if it is none of trees."""
    ranker = result.members[number].parts[0][1]
    return int(ranker.shape().get("trees", 0)) if ranker.kind == "trees" else 0


def _fit(member: Member, data: RankingData, changes: dict[str, Any], n_jobs: int | None) -> Ranker:
    """Train a member's learner on all of the data."""
    learner = algorithm(member.algorithm)(**{**member.parameters, **changes}, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GradrankWarning)
        learner.fit(data)
    if learner.record_.interrupted:
        # Half a student would be judged, and served, as if it were whole.
        raise KeyboardInterrupt
    return learner.ranker_


def _refitted(result: AutoResult, number: int, bound: BoundMeasure, n_jobs: int | None) -> Served:
    """A member of trees, trained once on all queries with the number of trees that cross-fitting found."""
    row, steps = result.rows[number], _steps(result, number)

    def make() -> Ranker:
        changes: dict[str, Any] = {"n_estimators": steps, **_shape_of_folds(row.member, result)}
        if "early_stopping_rounds" in row.member.parameters:
            changes["early_stopping_rounds"] = None
        return _fit(row.member, result.pool, changes, n_jobs)

    # A model of a fold has as many trees, and takes as long.
    cost = _microseconds(result.members[number].parts[0][1], result.pool)
    return Served(row.member.name, row.value, steps, cost, make, bound.values(result.members[number].scores))


def _shape_of_folds(member: Member, result: AutoResult) -> dict[str, Any]:
    """Leaves and rate that the size of a fold's data decided, where the member leaves them open."""
    share = (result.folds - 1) / result.folds
    pool, learner = result.pool, algorithm(member.algorithm)(**member.parameters)
    assert isinstance(learner, LambdaMART)
    shape = shape_by_size(
        learner, int(share * pool.n_queries), int(share * pool.n_docs), validated=True,
        unit_queries=learner._objective().unit_queries, weight=mean_weight(pool),
    )  # fmt: skip
    return {**shape.of_trees(), "learning_rate": shape.learning_rate}


def _ensembles(result: AutoResult, measure: AnyMeasure, n_jobs: int | None) -> list[Served]:
    """The heaviest members with new weights, and the whole portfolio."""
    order = [int(k) for k in np.argsort(-result.blend.weights, kind="stable") if result.blend.weights[k] > 0.0]
    points = []
    for count in _PRUNED:
        if count >= len(order):
            break
        taken = order[:count]
        found = blend(
            [result.members[k].scores for k in taken], result.judged_on, measure,
            random_state=result.random_state, judge=False, n_jobs=n_jobs,
        )  # fmt: skip
        parts = [
            (float(weight) * own, ranker)
            for weight, k in zip(found.weights, taken, strict=True)
            for own, ranker in result.members[k].parts
            if weight > 0.0
        ]
        ranker = merged(WeightedSum(parts, feature_names=result.pool.feature_names))
        points.append(_of(f"sum of {count}", next(iter(found.values.values())), ranker, result.pool))
    points.append(_of("sum of all", next(iter(result.values.values())), result.ranker, result.pool))
    return points


def _of(name: str, value: float, ranker: Ranker, data: RankingData) -> Served:
    return Served(name, value, int(ranker.shape().get("trees", 0)), _microseconds(ranker, data), lambda: ranker)


class _Classroom:
    """Students of one teacher."""

    def __init__(self, result: AutoResult, bound: BoundMeasure, trees: int, budget: float, n_jobs: int | None) -> None:
        self.result, self.bound, self.trees, self.budget, self.n_jobs = result, bound, trees, budget, n_jobs
        self._part = parts_of(result.pool.n_queries, result.folds, result.random_state)

    def _student(self, leaves: int) -> Member:
        parameters: dict[str, Any] = {
            "objective": str(Differences(TEACHER)),
            # The function is known exactly: neither rounded gradients nor much shrinking would do it justice.
            "quantized": False,
            "reg_lambda": 1.0,
            "grow_policy": LOSSGUIDE,
            "num_leaves": leaves,
            "learning_rate": float(np.clip(_ALL_STEPS / self.trees, _LOWEST_RATE, _HIGHEST_RATE)),
            "n_estimators": self.trees,
            "random_state": self.result.random_state,
        }
        return Member(f"student, {leaves} leaves", "student", "lambdamart", parameters)

    def taught(self, leaves: int) -> Served:
        """Teach a student of so many leaves on all queries, after others were taught to judge it."""
        result, pool, member = self.result, self.result.pool, self._student(leaves)
        whole = self._lesson(member, None)
        if result.judged_on is not pool:
            scores = whole.grouped_scores(result.judged_on, n_jobs=self.n_jobs)
            distance = _distance(self._apart, scores)
        else:
            scores, distance = np.zeros(pool.n_docs), 0.0
            for fold in range(result.folds):
                ranker = self._lesson(member, fold)
                left_out = self._part == fold
                rows = np.repeat(left_out, pool.sizes)
                scores[rows] = ranker.grouped_scores(pool.take_queries(left_out), n_jobs=self.n_jobs)
                asked = self._asked(fold).take_queries(self._part[self._function.origin] == fold)
                distance += _distance(asked, ranker.grouped_scores(asked, n_jobs=self.n_jobs))
        value, per_query = self.bound.mean(scores), self.bound.values(scores)
        return replace(_of(member.name, value, whole, pool), per_query=per_query, distance=distance)

    def _lesson(self, member: Member, without: int | None) -> Ranker:
        """Teach one student, on all queries or without those of a fold."""
        data = self._asked(without)
        if without is not None:
            data = data.take_queries(self._part[self._function.origin] != without)
        ranker = _fit(member, data, {}, self.n_jobs)
        assert isinstance(ranker, TreeEnsemble)
        return refit_leaves(ranker, data, TEACHER, n_jobs=self.n_jobs)

    def _asked(self, without: int | None) -> RankingData:
        return self._function.data.with_label(TEACHER, self._function.scores(without))

    @cached_property
    def _apart(self) -> RankingData:
        held = self.result.judged_on
        return held.with_label(TEACHER, self.result.ranker.grouped_scores(held, n_jobs=self.n_jobs))

    @cached_property
    def _function(self) -> _Function:
        return _Function.of(self.result, self._documents(), self.n_jobs)

    def _documents(self) -> int:
        """How many documents a lesson can have, so that the teacher scores them and all students learn in time."""
        result, member = self.result, self._student(LEAVES[0])
        scoring = 1e-6 * _microseconds(result.ranker, result.pool, _TIMED_TO_SCORE, self.n_jobs)
        data, _ = _some_documents(result, _TIMED_TO_LEARN)
        trial = data.with_label(TEACHER, np.random.default_rng(0).normal(size=data.n_docs))
        began = time.perf_counter()
        _fit(member, trial, {"n_estimators": _TRIAL_TREES}, self.n_jobs)
        pace = (time.perf_counter() - began) / (_TRIAL_TREES * data.n_docs)
        # One learns from all folds, and for each fold one from the others.
        lessons = 1 if result.judged_on is not result.pool else result.folds
        most = min(_SCORING_SHARE / scoring, _LEARNING_SHARE / (pace * lessons * self.trees)) * self.budget
        return int(np.clip(most, _FEWEST_SCORED, _MOST_SCORED))


@dataclass(frozen=True, eq=False)
class _Function:
    """What the portfolio says of real documents and of made-up ones."""

    data: RankingData
    origin: NDArray[np.int64]
    """The query of the pool that each query is made of."""
    by_fold: FloatArray
    """Scores of the models of each fold, folds × documents."""

    @classmethod
    def of(cls, result: AutoResult, most: int, n_jobs: int | None) -> _Function:
        """Make up documents, so that there are about as many as told, and score them."""
        data, origin = _some_documents(result, most)
        names = result.pool.feature_names
        by_fold = [
            merged(WeightedSum(_models_of_fold(result, fold), feature_names=names)).grouped_scores(data, n_jobs=n_jobs)
            for fold in range(result.folds)
        ]
        return cls(data, origin, np.array(by_fold))

    def scores(self, without: int | None) -> FloatArray:
        """Those of the whole portfolio, or of its models that have not seen a fold's queries."""
        return np.asarray(self.by_fold.mean(axis=0) if without is None else self.by_fold[without])


def _some_documents(result: AutoResult, most: int) -> tuple[RankingData, NDArray[np.int64]]:
    """About so many documents, those of queries drawn at random or all with made-up ones, and their queries."""
    pool = result.pool
    drawn = np.random.default_rng(result.random_state).permutation(pool.n_queries)
    drawn = np.sort(drawn[: max(1, int(np.searchsorted(np.cumsum(pool.sizes[drawn]), most, side="right")))])
    real = pool if len(drawn) == pool.n_queries else pool.take_queries(drawn)
    data, origin = with_made_up(real, min(_MOST_COPIES, max(0, most // real.n_docs - 1)), result.random_state)
    return data, drawn[origin]


def _distance(data: RankingData, scores: FloatArray) -> float:
    """How far scores are from what the teacher says, by differences within queries."""
    return Differences(TEACHER).bind(data).loss(scores)


def _models_of_fold(result: AutoResult, fold: int) -> list[tuple[float, Ranker]]:
    """The models that were trained without the queries of a fold, with the weights of a portfolio of their own."""
    found = []
    for weight, member in zip(result.blend.weights.tolist(), result.members, strict=True):
        own = member.member.models_per_fold
        models = member.parts[fold * own : (fold + 1) * own]
        found += [(weight * factor * result.folds, ranker) for factor, ranker in models if weight > 0.0]
    return found


def _microseconds(ranker: Ranker, data: RankingData, documents: int = _TIMED_DOCS, n_jobs: int | None = 1) -> float:
    """Time that a document takes, the shortest of some."""
    shown = data.X[:documents]
    ranker.predict(shown, n_jobs=n_jobs)
    took = []
    for _ in range(_TIMED):
        start = time.perf_counter()
        ranker.predict(shown, n_jobs=n_jobs)
        took.append(time.perf_counter() - start)
    return 1e6 * min(took) / len(shown)
