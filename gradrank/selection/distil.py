"""A portfolio at about the cost of one model: pruned, or distilled into a single model of trees.

A student learns from what the portfolio (the teacher) thinks of a document and from its label together, in one of two
ways. By least squares: on the teacher's score plus a share of the label, both around their query's mean. By λ's: labels
order documents of different labels, the teacher's order those of equal ones. The teacher speaks of each query by models
that have not seen it: of queries that it has learned by heart it could tell only their labels. It is smoother than the
labels, so that few trees learn more from it. Students are judged as members are, by others of their kind that were
taught without a fold's queries.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gradrank.combine.ensemble import added_up
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, GradrankWarning
from gradrank.learners.algorithms import algorithm
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.learners.trees.size_rule import LOSSGUIDE, SYMMETRIC, mean_weight, shape_by_size
from gradrank.measures import NDCG, AnyMeasure, as_measure
from gradrank.models.ranker import Ranker
from gradrank.models.trees.merge import merged
from gradrank.models.weighted_sum import WeightedSum
from gradrank.objectives import Regression
from gradrank.selection.auto import AutoResult
from gradrank.selection.blend import blend
from gradrank.selection.crossfit import FloatArray, parts_of
from gradrank.selection.members import Member

TEACHER = "taught_by_portfolio"
"""The label source of what a student learns."""
ORDER = "order_of_portfolio"
"""The same as grades, for λ's."""
# Grades of the teacher's first documents: 4 for the first, 3 for the next two, and so on; 0 for the rest.
_GRADES = ((1, 4.0), (3, 3.0), (6, 2.0), (10, 1.0))


@dataclass(frozen=True)
class Student:
    """How a student learns."""

    kind: Literal["squares", "lambdas"]
    share: float
    """Least squares: weight of the label beside the teacher's score, both of deviation 1; λ's: share of the teacher."""
    leaves: int = 0
    """Most leaves of a tree."""
    levels: int = 0
    """Of symmetric trees, in the place of leaves."""

    @property
    def name(self) -> str:
        """What it is called."""
        size = f"{self.levels} levels" if self.levels else f"{self.leaves} leaves"
        return f"student {self.kind} {self.share:g}, {size}"

    @property
    def size(self) -> dict[str, Any]:
        """How its trees grow, as parameters."""
        if self.levels:
            return {"grow_policy": SYMMETRIC, "max_depth": self.levels}
        return {"grow_policy": LOSSGUIDE, "num_leaves": self.leaves}


STUDENTS = (
    Student("lambdas", 0.5, leaves=15),
    Student("squares", 1.0, levels=6),
    Student("squares", 1.0, leaves=31),
    Student("lambdas", 0.5, levels=6),
    Student("lambdas", 0.5, leaves=31),
    Student("squares", 2.0, leaves=31),
    Student("squares", 1.0, leaves=15),
)
"""In the order in which they are tried; the first always is."""
# So that the sum of all steps is the same for few trees and many.
_ALL_STEPS = {"squares": 20.0, "lambdas": 10.0}
_LOWEST_RATE, _HIGHEST_RATE = 0.03, 0.3
_PRUNED = (1, 2, 4, 8)
# Documents whose scoring is timed, and how often.
_TIMED_DOCS, _TIMED = 20_000, 3


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
    points = [_refitted(result, number, n_jobs) for number in range(len(result.members)) if _steps(result, number)]
    classroom = _Classroom(result, measure, n_jobs)
    for student in STUDENTS:
        spent = time.perf_counter() - began
        if classroom.lessons and spent + spent / classroom.lessons > budget:
            break
        points.append(classroom.taught(student, most))
    points += _ensembles(result, measure, n_jobs)
    allowed = [point for point in points if point.trees <= most and not point.name.startswith("sum")]
    if not allowed:
        allowed = points[:1]
    chosen = max(allowed, key=lambda point: point.value)
    curve = tuple(sorted(points, key=lambda point: point.trees))
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


def _refitted(result: AutoResult, number: int, n_jobs: int | None) -> Served:
    """A member of trees, trained once on all queries with the number of trees that cross-fitting found."""
    row, steps = result.rows[number], _steps(result, number)

    def make() -> Ranker:
        changes: dict[str, Any] = {"n_estimators": steps, **_shape_of_folds(row.member, result)}
        if "early_stopping_rounds" in row.member.parameters:
            changes["early_stopping_rounds"] = None
        return _fit(row.member, result.pool, changes, n_jobs)

    # A model of a fold has as many trees, and takes as long.
    cost = _microseconds(result.members[number].parts[0][1], result.pool)
    return Served(row.member.name, row.value, steps, cost, make)


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

    def __init__(self, result: AutoResult, measure: AnyMeasure, n_jobs: int | None) -> None:
        self.result, self.measure, self.n_jobs = result, measure, n_jobs
        self.lessons = 0
        self._part = parts_of(result.pool.n_queries, result.folds, result.random_state)
        self._teacher = added_up(result.blend.weights, [member.out_of_fold for member in result.members])

    def taught(self, student: Student, trees: int) -> Served:
        """Teach a student on all queries, after others were taught to judge it."""
        result, pool = self.result, self.result.pool
        rate = float(np.clip(_ALL_STEPS[student.kind] / trees, _LOWEST_RATE, _HIGHEST_RATE))
        parameters: dict[str, Any] = {
            "objective": self._objective(student),
            **student.size,
            "learning_rate": rate,
            "n_estimators": trees,
            "random_state": result.random_state,
        }
        algorithm_of = {"squares": "mart", "lambdas": "lambdamart"}
        member = Member(student.name, "student", algorithm_of[student.kind], parameters)
        lesson = self._lesson(student)
        whole = _fit(member, lesson, {}, self.n_jobs)
        if result.judged_on is not pool:
            scores = whole.grouped_scores(result.judged_on, n_jobs=self.n_jobs)
        else:
            scores = np.zeros(pool.n_docs)
            for fold in range(result.folds):
                left_out = self._part == fold
                ranker = _fit(member, lesson.take_queries(~left_out), {}, self.n_jobs)
                rows = np.repeat(left_out, pool.sizes)
                scores[rows] = ranker.grouped_scores(pool.take_queries(left_out), n_jobs=self.n_jobs)
        self.lessons += 1
        value = self.measure.parts[0].bind(result.judged_on, n_jobs=self.n_jobs).mean(scores)
        return _of(student.name, value, whole, pool)

    def _objective(self, student: Student) -> str:
        if student.kind == "squares":
            return str(Regression(TEACHER))
        source = self.measure.parts[0].source
        upper = NDCG() if source is None else NDCG(label=source)
        return f"Tiered({upper}, {NDCG(label=ORDER)}, weight={student.share:g}, zeros=true)"

    def _lesson(self, student: Student) -> RankingData:
        pool = self.result.pool
        if student.kind == "lambdas":
            return pool.with_label(ORDER, _graded(self._teacher, pool))
        labels = pool.label(self.measure.parts[0].source).astype(np.float64)
        known = ~np.isnan(labels)
        own = _standardized(np.where(known, labels, 0.0), pool, known)
        return pool.with_label(TEACHER, _standardized(self._teacher, pool) + student.share * own)


def _graded(scores: FloatArray, data: RankingData) -> FloatArray:
    """Grades by rank in the query.

    >>> data = RankingData.from_arrays([[0.0]] * 4, qid=[1, 1, 1, 2])
    >>> _graded(np.array([0.1, 0.3, 0.2, 0.0]), data).tolist()
    [3.0, 4.0, 3.0, 4.0]
    """
    query = data.query_of_row()
    order = np.lexsort((-scores, query))
    rank = np.empty(data.n_docs, dtype=np.int64)
    rank[order] = np.arange(data.n_docs) - data.indptr[query[order]]
    grades = np.zeros(data.n_docs)
    for below, grade in reversed(_GRADES):
        grades[rank < below] = grade
    return grades


def _standardized(values: FloatArray, data: RankingData, known: Any = None) -> FloatArray:
    """Differences from the query's mean, divided by their deviation; 0 for what is not known.

    >>> data = RankingData.from_arrays([[0.0]] * 4, qid=[1, 1, 2, 2])
    >>> _standardized(np.array([0.0, 2.0, 10.0, 12.0]), data).tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    there = np.ones(data.n_docs) if known is None else known.astype(np.float64)
    counts = np.maximum(np.add.reduceat(there, data.indptr[:-1]), 1.0)
    means = np.add.reduceat(values * there, data.indptr[:-1]) / counts
    centered = (values - np.repeat(means, data.sizes)) * there
    deviation = float(np.sqrt((centered**2).sum() / max(there.sum(), 1.0)))
    return np.asarray(centered / deviation if deviation > 0.0 else centered)


def _microseconds(ranker: Ranker, data: RankingData) -> float:
    """Time that a document takes on one thread, the shortest of some."""
    shown = data.X[:_TIMED_DOCS]
    ranker.predict(shown, n_jobs=1)
    took = []
    for _ in range(_TIMED):
        start = time.perf_counter()
        ranker.predict(shown, n_jobs=1)
        took.append(time.perf_counter() - start)
    return 1e6 * min(took) / len(shown)
