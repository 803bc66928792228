"""Several kinds of rankers, trained within a time budget and combined into one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import Combiner
from gradrank.combine.ensemble import added_up, spread_within_queries
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation.sensitivity import warn_about_few_queries
from gradrank.evaluation.significance import t_test
from gradrank.learners.algorithms import algorithm
from gradrank.learners.base.loop import Callback, Step
from gradrank.measures import AnyMeasure, BoundMeasure, bind_measures, bound_values, mean_value
from gradrank.models.ranker import Ranker
from gradrank.models.trees.merge import merged
from gradrank.models.weighted_sum import WeightedSum
from gradrank.selection.members import Member, portfolio

FloatArray = NDArray[np.float64]
DEFAULT_BUDGET = 300.0
DEFAULT_MOST = 12
# The weight of a newcomer is found on all parts of the validation queries but one, and judged on that one.
_PARTS = 5
# A member is started only if it has this share of its expected time left.
_ENOUGH_TIME = 0.8


@dataclass(frozen=True)
class Row:
    """What became of one member of the portfolio."""

    member: Member
    value: float
    """Mean of the (first) measure on the validation data."""
    seconds: float
    weight: float = 0.0
    """Weight of its scores in the combination; 0 = left out."""
    p: float = float("nan")
    """Of the test whether adding it helps; NaN where none was made."""
    verdict: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.member.name,
            "algorithm": self.member.algorithm,
            "parameters": dict(self.member.parameters),
            "value": self.value,
            "seconds": round(self.seconds, 3),
            "weight": self.weight,
            "p": self.p,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, eq=False)
class AutoResult:
    """The combined ranker and how it came about."""

    ranker: Ranker
    rows: tuple[Row, ...]
    rankers: tuple[Ranker, ...]
    """The members' own rankers, in the order of the rows."""
    values: dict[str, float]
    """Mean of the measure (of each part of a graded one) on the validation data."""
    seconds: float
    interrupted: bool

    @property
    def best_single(self) -> int:
        """Number of the member with the best value of its own."""
        return int(np.argmax([row.value for row in self.rows]))


Listener = Callable[[Member, int], None]
"""Called before each training with the member that is trained next and its number, from 1."""


class _Deadline:
    """A callback that ends a training when the time is up, as Ctrl-C does: what it has learned by then is kept."""

    def __init__(self, end: float) -> None:
        self.end = end
        self.passed = False

    def __call__(self, _step: Step) -> None:
        if time.perf_counter() > self.end:
            self.passed = True
            raise KeyboardInterrupt


@dataclass
class _Trained:
    """The members that have been trained so far, with their scores on the validation data."""

    rows: list[Row] = field(default_factory=list)
    rankers: list[Ranker] = field(default_factory=list)
    scores: list[FloatArray] = field(default_factory=list)
    interrupted: bool = False
    """Whether the user stopped a training; the deadline is no interruption."""


def auto(
    train: RankingData,
    valid: RankingData,
    measure: AnyMeasure,
    *,
    budget: float = DEFAULT_BUDGET,
    most: int = DEFAULT_MOST,
    random_state: int = 0,
    n_jobs: int | None = None,
    level: float = 0.05,
    callbacks: Sequence[Callback] = (),
    listener: Listener | None = None,
) -> AutoResult:
    """Train several kinds of rankers within a time budget and combine what helps.

    λ-trees of several shapes, each on half of the features, are summed with equal weight: averaging models that err
    differently needs no proof. Any other ranker (MART, a linear ranker, a net) joins with its exact best weight, but
    only if the combination is then significantly better on validation queries that did not choose the weight. No
    member is begun that would not be done in time; one that runs out of time is left out unless it is the only one.
    Each member can be trained again from its algorithm and parameters.

    Parameters
    ----------
    train
        data to learn from
    valid
        data that chooses each member's number of steps and what joins the combination
    measure
        what the combination is to be good at
    budget
        time for all trainings, in seconds
    most
        largest number of members
    random_state
        seed of all randomness
    n_jobs
        threads; all cores by default
    level
        level of significance at which a member joins
    callbacks
        called after each step of each training
    listener
        called before each training with the member and its number, from 1

    Returns
    -------
    AutoResult
        the combined ranker, and what became of each member

    Warns
    -----
    FewQueriesWarning
        if the validation queries are too few to tell whether a member helps

    Examples
    --------
    >>> from gradrank.data.artificial import make_splits
    >>> from gradrank.measures import NDCG
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> result = auto(data["train"], data["vali"], NDCG(10), most=2)
    >>> [row.member.name for row in result.rows], type(result.ranker).__name__
    (['lambdamart 1', 'lambdamart 2'], 'TreeEnsemble')
    """
    if not 0.0 < budget < np.inf:
        raise DataError(f"budget is {budget!r}, expected a positive number of seconds")
    if most < 1:
        raise DataError(f"most is {most!r}, expected a whole number of 1 or more")
    began = time.perf_counter()
    deadline = _Deadline(began + budget)
    bound = bind_measures(measure.parts, valid, n_jobs=n_jobs)
    members = portfolio(measure, random_state, nets=find_spec("torch") is not None)
    trained = _Trained()
    for member in _affordable(members, trained.rows, most, deadline):
        if listener is not None:
            listener(member, len(trained.rows) + 1)
        if not _train(member, train, valid, bound, trained, deadline, callbacks, n_jobs):
            break
    combiner = Combiner(valid, measure, n_jobs=n_jobs)
    rows, weights = _combined(trained.rows, trained.scores, valid, combiner, bound, level, random_state)
    values = combiner.named(combiner.values(added_up(weights, trained.scores)))
    seconds = time.perf_counter() - began
    facts = {
        "learner": "auto",
        "measure": str(measure),
        "members": [row.to_dict() for row in rows],
        "values": values,
        "budget": budget,
        "seconds": round(seconds, 3),
        "interrupted": trained.interrupted,
    }
    kept = [(weight, ranker) for weight, ranker in zip(weights.tolist(), trained.rankers, strict=True) if weight != 0.0]
    ranker = merged(WeightedSum(kept, feature_names=train.feature_names, training=facts))
    return AutoResult(ranker, tuple(rows), tuple(trained.rankers), values, seconds, trained.interrupted)


def _train(
    member: Member,
    train: RankingData,
    valid: RankingData,
    bound: Sequence[BoundMeasure],
    trained: _Trained,
    deadline: _Deadline,
    callbacks: Sequence[Callback],
    n_jobs: int | None,
) -> bool:
    """Train a member and add it to the others; False if it was the last one that there is time for."""
    learner = algorithm(member.algorithm)(**member.parameters, n_jobs=n_jobs, callbacks=(*callbacks, deadline))
    start = time.perf_counter()
    try:
        learner.fit(train, valid=valid)
        cut_short = bool(learner.ranker_.training.get("interrupted", False))
    except KeyboardInterrupt:
        if not trained.rows:
            raise
        cut_short = True
    if cut_short:
        trained.interrupted = not deadline.passed
        if trained.rows:
            return False  # half a member would only harm the others
        # Trained again with so many steps it is the same.
        grown = learner.ranker_.training["grown"]
        if learner.steps_parameter is not None:
            member = replace(member, parameters={**member.parameters, learner.steps_parameter: grown})
    scores = learner.ranker_.grouped_scores(valid, n_jobs=n_jobs)
    value = mean_value(_first_values(bound, scores))
    trained.scores.append(scores)
    trained.rows.append(Row(member, value, time.perf_counter() - start))
    trained.rankers.append(learner.ranker_)
    return not cut_short


def _affordable(members: Iterator[Member], rows: Sequence[Row], most: int, deadline: _Deadline) -> Iterator[Member]:
    """Members that can be expected to be done in time, by what their like (or else any other) took so far."""
    for member in members:
        if len(rows) >= most:
            return
        if rows:
            like = [row.seconds for row in rows if row.member.algorithm == member.algorithm]
            expected = max(like or [row.seconds for row in rows])
            if deadline.end - time.perf_counter() < _ENOUGH_TIME * expected:
                return
        yield member


def _combined(
    rows: Sequence[Row],
    scores: Sequence[FloatArray],
    valid: RankingData,
    combiner: Combiner,
    bound: Sequence[BoundMeasure],
    level: float,
    random_state: int,
) -> tuple[list[Row], FloatArray]:
    """The rows with weights and verdicts, and the weights."""
    spreads = np.array([spread_within_queries(column, valid) for column in scores])
    weights = np.array([row.member.in_bag / spread for row, spread in zip(rows, spreads, strict=True)])
    done = [
        replace(row, weight=float(weight), verdict="summed" if weight else "not tried")
        for row, weight in zip(rows, weights, strict=True)
    ]
    newcomers = sorted((k for k, row in enumerate(rows) if not row.member.in_bag), key=lambda k: -rows[k].value)
    tried: dict[str, FloatArray] = {}
    for k in newcomers:
        so_far, column = added_up(weights, scores), scores[k] / spreads[k]
        before = _first_values(bound, so_far)
        after = _first_values(bound, _with_newcomer(combiner, so_far, column, valid, random_state))
        tried.setdefault("trees alone", before)
        tried[rows[k].member.name] = after
        test = t_test(after, before)
        if test.difference > 0.0 and test.p < level:
            found = combiner.search(so_far, column, form="additive")
            weights = weights * found.weights[0]
            weights[k] = found.weights[1] / spreads[k]
            done[k] = replace(done[k], p=test.p, verdict="helps")
        else:
            done[k] = replace(done[k], p=test.p, verdict="does not help significantly")
    warn_about_few_queries(
        tried, bound[0].measure, "what joins the combination", level=level, remedy="take more validation queries"
    )
    return [replace(row, weight=float(weight)) for row, weight in zip(done, weights, strict=True)], weights


def _with_newcomer(
    combiner: Combiner, so_far: FloatArray, column: FloatArray, valid: RankingData, random_state: int
) -> FloatArray:
    """Scores with a newcomer added, each query with a weight that it had no part in choosing."""
    n_parts = min(_PARTS, valid.n_queries)
    if n_parts < 2:
        return so_far
    part = np.random.default_rng(random_state).permutation(valid.n_queries) % n_parts
    added = np.empty_like(so_far)
    for number in range(n_parts):
        inside = np.repeat(part == number, valid.sizes)
        first, second = combiner.only(part != number).search(so_far, column, form="additive").weights
        added[inside] = first * so_far[inside] + second * column[inside]
    return added


def _first_values(bound: Sequence[BoundMeasure], scores: FloatArray) -> FloatArray:
    """The (first) measure of every query."""
    return next(iter(bound_values(bound, scores).values()))
