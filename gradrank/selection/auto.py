"""Several kinds of rankers, cross-fitted within a time budget and combined into one."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data.doubts import training_doubts
from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import check_folds
from gradrank.errors import DataError, DoubtfulDataWarning, GradrankError
from gradrank.learners.base.loop import Callback
from gradrank.measures import AnyMeasure, as_measure
from gradrank.models.ranker import Ranker
from gradrank.models.trees.merge import merged
from gradrank.models.weighted_sum import WeightedSum
from gradrank.selection.blend import Blend, blend
from gradrank.selection.crossfit import CrossFitted, Fitted, FloatArray, Task, crossfitted, tasks_of
from gradrank.selection.members import PLAIN, Member, Portfolio
from gradrank.selection.pool import pooled
from gradrank.selection.processes import processes_for
from gradrank.selection.team import Asked, Team

DEFAULT_BUDGET = 300.0
DEFAULT_FOLDS = 4
# Of the budget, kept for finding the weights at the end, unless that is known to take longer.
_FOR_WEIGHTS = 0.04
_UNKNOWN = 0.5
# How often the user's wish to stop is looked for while other processes train.
_LOOK = 0.2


@dataclass(frozen=True)
class Row:
    """What became of one member of the portfolio."""

    member: Member
    value: float
    """Mean of the (first) measure on queries that the member has not seen; NaN if it could not be trained."""
    seconds: float
    """Of all its trainings together."""
    weight: float = 0.0
    """Share in the combination; 0 = left out."""
    verdict: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            **self.member.to_dict(),
            "value": self.value,
            "seconds": round(self.seconds, 3),
            "weight": self.weight,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, eq=False)
class AutoResult:
    """The combined ranker and how it came about."""

    ranker: Ranker
    rows: tuple[Row, ...]
    rankers: tuple[Ranker, ...]
    """The members' own rankers, in the order of the rows that have a value."""
    values: dict[str, float]
    """Mean of the measure (of each part of a graded one) on queries that no member has seen."""
    blend: Blend
    members: tuple[CrossFitted, ...]
    """The members that were trained, in the order of the rows."""
    pool: RankingData
    """All queries that were learned from, which the folds are cut from."""
    judged_on: RankingData
    """The queries that weights were found on: those learned from, each left out in turn, or those that stay apart."""
    folds: int
    random_state: int
    seconds: float
    interrupted: bool

    @property
    def columns(self) -> tuple[FloatArray, ...]:
        """Scores of the members for these queries, none of which they have seen."""
        return tuple(fitted.scores for fitted in self.members)

    @property
    def best_single(self) -> int:
        """Number of the member with the best value of its own."""
        return int(np.nanargmax([row.value for row in self.rows]))


Listener = Callable[[Member, CrossFitted | None, float], None]
"""Told of each member when its training begins, and again with what came out, and the seconds that are left."""


@dataclass
class _Run:
    """The members so far."""

    done: list[CrossFitted] = field(default_factory=list)
    failed: list[Row] = field(default_factory=list)
    started: int = 0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Of single trainings, by family."""
    seconds_of_weights: float = 0.0

    def expected(self, member: Member, n_folds: int) -> float:
        """Seconds that all trainings of a member will take, by what its like took so far.

        A family that was not tried yet is expected to take half of what others took: to try it costs only time that
        would be left over.
        """
        like = self.seconds.get(member.family)
        every = [seconds for family in self.seconds.values() for seconds in family]
        each = max(like) if like else (_UNKNOWN * sum(every) / len(every) if every else 0.0)
        return each * n_folds * member.models_per_fold


@takes_frames("train", "valid")
def auto(
    train: RankingData,
    valid: RankingData | None = None,
    measure: AnyMeasure | str = "NDCG@10",
    *,
    budget: float = DEFAULT_BUDGET,
    most: int | None = None,
    folds: int = DEFAULT_FOLDS,
    apart: bool = False,
    random_state: int = 0,
    processes: int | None = None,
    n_jobs: int | None = None,
    folder: str | Path | None = None,
    client: Any = None,
    callbacks: Sequence[Callback] = (),
    listener: Listener | None = None,
    asked: Asked | None = None,
) -> AutoResult:
    """Train many kinds of rankers within a time budget, each cross-fitted, and combine what pays.

    The queries of training and validation data are cut into folds. Each member — λ-trees of several shapes and target
    measures, MART, nets, linear rankers, and plain training as it is without options — is trained once for every fold
    without its queries, and scores them. Weights are found on these scores: by greedy selection with replacement on
    samples of the queries, by exact search, or the best member alone, whichever is best on queries that did not
    choose the weights. The model is the weighted sum of all models of all members of any weight. On the out-of-fold
    scores it is never worse than any member. Round after round goes on with other shapes, sizes and seeds of the
    families that have weight, until the time is used.

    Parameters
    ----------
    train
        data to learn from
    valid
        more data to learn from, unless it is to stay apart
    measure
        what the combination is to be good at, or its name
    budget
        time for everything, in seconds
    most
        largest number of members; with an ample budget the result does not depend on the machine then
    folds
        how often each member is trained: each time another part of the queries is left out
    apart
        whether ``valid`` must not be learned from: members are cross-fitted on ``train``, ``valid`` finds the weights
    random_state
        seed of all randomness
    processes
        how many members train at the same time; by default as many as there are cores, but one for data that is small
        or very large
    n_jobs
        threads of all processes together; all cores by default
    folder
        where trained models are kept, so that a run that was ended goes on, and a longer one takes them over
    client
        a Dask client whose workers train members, each one at a time; the data must fit into the memory of each
    callbacks
        called after each step of each training; with one process only
    listener
        told of each member when its training begins and when it ends
    asked
        tells whether the user wants to stop: what is there is then combined

    Returns
    -------
    AutoResult
        the combined ranker, and what became of each member

    Examples
    --------
    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> result = auto(data["train"], data["vali"], "NDCG@10", most=2)
    >>> [row.member.name for row in result.rows]
    ['plain', 'deep-trees 1']
    >>> result.values["NDCG@10"] >= max(row.value for row in result.rows)
    True
    """
    if not isinstance(budget, int | float) or not 0.0 < budget < np.inf:
        raise DataError(f"budget is {budget!r}, expected a positive number of seconds")
    if most is not None and most < 1:
        raise DataError(f"most is {most!r}, expected a whole number of 1 or more")
    measure = as_measure(measure)
    began = time.perf_counter()
    deadline = time.time() + budget
    pool, held = pooled(train, valid, apart)
    check_folds("folds", folds, pool.n_queries)
    for doubt in training_doubts(pool, {} if held is None else {"valid": held}, measure.parts[0].source):
        warnings.warn(doubt, DoubtfulDataWarning, stacklevel=2)
    team = Team(
        pool,
        processes=processes_for(pool, budget, n_jobs) if processes is None else processes,
        folder=None if folder is None else Path(folder),
        n_jobs=n_jobs,
        callbacks=callbacks,
        asked=asked,
        client=client,
    )
    portfolio = Portfolio(measure, random_state, nets=find_spec("torch") is not None, n_features=pool.n_features)
    trainer = _Trainer(team, portfolio, held, folds, most, deadline, budget, listener, n_jobs)
    with team:
        found = trainer.run()
    done, interrupted = trainer.state.done, team.stopped
    judged_on = pool if held is None else held
    values = iter(found.values_of_members)
    rows = [
        Row(fitted.member, next(values), fitted.seconds, float(weight), "joins" if weight > 0.0 else "does not pay")
        for fitted, weight in zip(done, found.weights, strict=True)
    ]
    rankers = [_served([(1.0, fitted)], pool.feature_names) for fitted in done]
    seconds = time.perf_counter() - began
    facts = {
        "learner": "auto",
        "measure": str(measure),
        "members": [row.to_dict() for row in (*rows, *trainer.state.failed)],
        "rule": found.rule,
        "judged": found.judged,
        "values": found.values,
        "folds": folds,
        "budget": budget,
        "seconds": round(seconds, 3),
        "interrupted": interrupted,
    }
    taken = [(weight, fitted) for weight, fitted in zip(found.weights.tolist(), done, strict=True) if weight > 0.0]
    ranker = _served(taken, pool.feature_names, facts)
    return AutoResult(
        ranker,
        (*rows, *trainer.state.failed),
        tuple(rankers),
        found.values,
        found,
        tuple(done),
        pool,
        judged_on,
        folds,
        random_state,
        seconds,
        interrupted,
    )


def _served(
    members: Sequence[tuple[float, CrossFitted]], names: Sequence[str], facts: dict[str, Any] | None = None
) -> Ranker:
    """One ranker: the weighted sum of all models, trees in one model."""
    parts = [(weight * own, ranker) for weight, fitted in members for own, ranker in fitted.parts]
    return merged(WeightedSum(parts, feature_names=names, training=facts))


class _Trainer:
    """Trains members round after round until the time is used."""

    def __init__(
        self,
        team: Team,
        portfolio: Portfolio,
        held: RankingData | None,
        folds: int,
        most: int | None,
        deadline: float,
        budget: float,
        listener: Listener | None,
        n_jobs: int | None,
    ) -> None:
        self.team, self.portfolio, self.held, self.folds = team, portfolio, held, folds
        self.most, self.deadline, self.budget, self.listener, self.n_jobs = most, deadline, budget, listener, n_jobs
        self.state = _Run()
        self._tasks: dict[str, list[Task]] = {}
        self._models: dict[str, dict[int, Fitted]] = {}
        self._members: list[Member] = []

    def run(self) -> Blend:
        """Train, then find the weights of what was trained."""
        shares: dict[str, float] | None = None
        number = 0
        while self._round(self.portfolio.round(number, shares)) and not self._over():
            shares = self._shares()
            number += 1
        return self._blend(judge=True)

    # ------------------------------------------------------------------ time
    def _end(self) -> float:
        """When trainings end, so that there is time left to find the weights."""
        return self.deadline - max(_FOR_WEIGHTS * self.budget, 3.0 * self.state.seconds_of_weights)

    def _over(self) -> bool:
        return self.team.stopped or time.time() >= self._end() or self.state.started == self.most

    def _affordable(self, member: Member) -> bool:
        expected = self.state.expected(member, self.folds) / self.team.processes
        return time.time() + expected <= self._end()

    # ------------------------------------------------------------------ a round
    def _round(self, members: Sequence[Member]) -> bool:
        """Train the members of a round that there is time for; False if there was time for none."""
        waiting, tasks = deque(members), deque[tuple[Task, int]]()
        running: dict[Future[Fitted], tuple[Task, int]] = {}
        any_started = False
        try:
            while True:
                while len(running) < self.team.processes:
                    if not tasks:
                        member = self._next(waiting)
                        if member is None:
                            break
                        any_started = True
                        tasks.extend((task, k) for k, task in enumerate(self._begin(member)))
                    task, place = tasks.popleft()
                    if task.member.name in self._models:
                        running[self.team.train(task, self._until(task, len(tasks) + 1))] = (task, place)
                if not running:
                    return any_started
                self._gather(running)
        except KeyboardInterrupt:
            # Python's own Ctrl-C, where no command line has taken it over.
            self.team.stop()
            while tasks or running:
                while tasks and len(running) < self.team.processes:
                    task, place = tasks.popleft()
                    if task.member.name in self._models and not self.state.done:
                        running[self.team.train(task, 0.0)] = (task, place)
                if running:
                    self._gather(running)
            if not self.state.done:
                raise
            return False

    def _next(self, waiting: deque[Member]) -> Member | None:
        while waiting and not (self._over() and self.state.started):
            member = waiting.popleft()
            if self.state.started == 0 or self._affordable(member):
                return member
        return None

    def _begin(self, member: Member) -> list[Task]:
        self.state.started += 1
        self._members.append(member)
        # The same folds for all: what no model of a fold has seen, no combination of them has seen.
        self._tasks[member.name] = tasks_of(member, self.folds, self.portfolio.random_state)
        self._models[member.name] = {}
        if self.listener is not None:
            self.listener(member, None, self.deadline - time.time())
        return self._tasks[member.name]

    def _until(self, task: Task, left: int) -> float:
        """When a training must end. The first member's share the time, so that there is a model in any case."""
        if task.member.family != PLAIN:
            return self._end()
        now = time.time()
        return now + max(0.0, self._end() - now) * min(1.0, self.team.processes / left)

    def _gather(self, running: dict[Future[Fitted], tuple[Task, int]]) -> None:
        """Wait until at least one training has ended, and take over what came out."""
        ended: set[Future[Fitted]] = set()
        while not ended:
            ended, _ = wait(running, timeout=_LOOK, return_when=FIRST_COMPLETED)
            self.team.look()
        for future in ended:
            task, place = running.pop(future)
            name = task.member.name
            if name not in self._models:
                continue
            try:
                model = future.result()
            except GradrankError as error:
                if task.member.family == PLAIN:
                    raise
                self._give_up(task.member, f"failed: {error}")
                continue
            self._models[name][place] = model
            self.state.seconds.setdefault(task.member.family, []).append(model.seconds)
            if model.cut_short and task.member.family != PLAIN:
                # Half a member would only harm the others.
                self._give_up(task.member, "not done in time")
            elif len(self._models[name]) == len(self._tasks[name]):
                self._complete(task.member)

    def _give_up(self, member: Member, why: str) -> None:
        seconds = sum(model.seconds for model in self._models.pop(member.name).values())
        if why.startswith("failed"):
            self.state.failed.append(Row(member, float("nan"), seconds, 0.0, why))

    def _complete(self, member: Member) -> None:
        models = self._models.pop(member.name)
        tasks = self._tasks.pop(member.name)
        fitted = crossfitted(
            tasks, [models[k] for k in range(len(tasks))], self.team.pool, self.portfolio.measure,
            held=self.held, n_jobs=self.n_jobs,
        )  # fmt: skip
        self.state.done.append(fitted)
        # In the order in which they were begun: which one ends first is chance.
        place = {begun.name: k for k, begun in enumerate(self._members)}
        self.state.done.sort(key=lambda other: place[other.member.name])
        if self.listener is not None:
            self.listener(member, fitted, self.deadline - time.time())

    # ------------------------------------------------------------------ weights
    def _blend(self, *, judge: bool) -> Blend:
        began = time.perf_counter()
        found = blend(
            [fitted.scores for fitted in self.state.done],
            self.team.pool if self.held is None else self.held,
            self.portfolio.measure,
            random_state=self.portfolio.random_state,
            judge=judge,
            n_jobs=self.n_jobs,
        )
        self.state.seconds_of_weights = time.perf_counter() - began
        return found

    def _shares(self) -> dict[str, float]:
        """Weight of each family so far; plain training counts as trees."""
        shares: dict[str, float] = {}
        for fitted, weight in zip(self.state.done, self._blend(judge=False).weights.tolist(), strict=True):
            family = fitted.member.family if fitted.member.family != PLAIN else "trees"
            shares[family] = shares.get(family, 0.0) + weight
        return shares
