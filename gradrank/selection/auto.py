"""A budgeted portfolio of rankers, combined into one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import Combiner
from gradrank.combine.ensemble import added_up, spread_within_queries
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation.significance import t_test
from gradrank.learners.algorithms import algorithm, parameters_of
from gradrank.learners.trees.boosting import Callback, Step
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
    """What became of one member."""

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
"""Told which member is trained next, and its number from 1."""


class _Deadline:
    """Ends a training that would go on too long; what it has learnt by then is kept."""

    def __init__(self, end: float) -> None:
        self.end = end
        self.passed = False

    def __call__(self, _step: Step) -> None:
        if time.perf_counter() > self.end:
            self.passed = True
            raise KeyboardInterrupt


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
    """Train a portfolio within ``budget`` seconds and combine what helps.

    λ-trees of several shapes, each on half of the features, are summed with equal weight: averaging models that err
    differently needs no proof. Anything else (MART, a linear ranker, a net) joins with its exact best weight only if
    that is significantly better at ``level`` on validation queries that did not choose the weight. At most ``most``
    members are trained, and none is begun that would not be done in time; a member that runs out of time is left
    out unless it is the only one. Each member can be trained again from its algorithm and parameters.

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
    rows: list[Row] = []
    rankers: list[Ranker] = []
    interrupted = False
    bound = bind_measures(measure.parts, valid, n_jobs=n_jobs)
    scores: list[FloatArray] = []
    for member in _affordable(
        portfolio(measure, random_state, nets=find_spec("torch") is not None), rows, most, deadline
    ):
        if listener is not None:
            listener(member, len(rows) + 1)
        kind = algorithm(member.algorithm)
        known = parameters_of(kind)
        running = {"n_jobs": n_jobs, "callbacks": (*callbacks, deadline)}
        learner = kind(**member.parameters, **{key: value for key, value in running.items() if key in known})
        start = time.perf_counter()
        try:
            learner.fit(train, valid=valid)
        except KeyboardInterrupt:
            if not rows:
                raise
            interrupted = not deadline.passed
            break
        cut_short = bool(learner.ranker_.training.get("interrupted", False))
        if cut_short and rows:
            interrupted = not deadline.passed
            break
        if cut_short:
            # Trained again with so many steps it is the same.
            grown = learner.ranker_.training["grown"]
            member = replace(member, parameters={**member.parameters, f"{learner.unit}s": grown})
        scores.append(learner.ranker_.grouped_scores(valid, n_jobs=n_jobs))
        value = mean_value(_first_values(bound, scores[-1]))
        rows.append(Row(member, value, time.perf_counter() - start))
        rankers.append(learner.ranker_)
        if cut_short:
            interrupted = not deadline.passed
            break
    combiner = Combiner(valid, measure, n_jobs=n_jobs)
    rows, weights = _combined(rows, scores, valid, combiner, bound, level, random_state)
    total = added_up(weights, scores)
    values = combiner.named(combiner.values(total))
    seconds = time.perf_counter() - began
    facts = {
        "learner": "auto",
        "measure": str(measure),
        "members": [row.to_dict() for row in rows],
        "values": values,
        "budget": budget,
        "seconds": round(seconds, 3),
        "interrupted": interrupted,
    }
    kept = [(weight, ranker) for weight, ranker in zip(weights.tolist(), rankers, strict=True) if weight != 0.0]
    ranker = merged(WeightedSum(kept, feature_names=train.feature_names, training=facts))
    return AutoResult(ranker, tuple(rows), tuple(rankers), values, seconds, interrupted)


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
    for k in newcomers:
        so_far, column = added_up(weights, scores), scores[k] / spreads[k]
        p, gain = _tested(combiner, bound, so_far, column, valid, random_state)
        if gain > 0.0 and p < level:
            found = combiner.search(so_far, column, form="additive")
            weights = weights * found.weights[0]
            weights[k] = found.weights[1] / spreads[k]
            done[k] = replace(done[k], p=p, verdict="helps")
        else:
            done[k] = replace(done[k], p=p, verdict="does not help significantly")
    return [replace(row, weight=float(weight)) for row, weight in zip(done, weights, strict=True)], weights


def _tested(
    combiner: Combiner,
    bound: Sequence[BoundMeasure],
    so_far: FloatArray,
    column: FloatArray,
    valid: RankingData,
    random_state: int,
) -> tuple[float, float]:
    """p and mean difference of adding a column, each query judged with a weight that it had no part in choosing."""
    if valid.n_queries < 2:
        return float("nan"), 0.0
    n_parts = min(_PARTS, valid.n_queries)
    part = np.random.default_rng(random_state).permutation(valid.n_queries) % n_parts
    added = np.empty_like(so_far)
    for number in range(n_parts):
        inside = np.repeat(part == number, valid.sizes)
        first, second = combiner.only(part != number).search(so_far, column, form="additive").weights
        added[inside] = first * so_far[inside] + second * column[inside]
    test = t_test(_first_values(bound, added), _first_values(bound, so_far))
    return test.p, test.difference


def _first_values(bound: Sequence[BoundMeasure], scores: FloatArray) -> FloatArray:
    """The (first) measure of every query."""
    return next(iter(bound_values(bound, scores).values()))
