"""Runs the trials of a search: one after the other here, or several at a time in other processes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.loop import Callback
from gradrank.measures import AnyMeasure
from gradrank.selection.processes import Processes
from gradrank.selection.space import Space
from gradrank.selection.study import Study
from gradrank.selection.team import Asked
from gradrank.selection.trials import (
    Cut,
    FoldCurve,
    FoldOrder,
    Trial,
    bar_of,
    falls_behind,
    judged_curves,
    rises,
    train_fold,
)

# Nothing is pruned before so many trials were completed.
_FIRST_TRIALS = 5
# So many settings in a row that were tried before: there is nothing new left.
_MOST_REPEATS = 30
# How often the user's wish to stop is looked for while other processes train.
_LOOK = 0.2

Listener = Callable[[Trial], None]
"""Told of each trial that came to an end."""


@dataclass
class Tuner:
    """Runs trials until the time or their number is used up."""

    study: Study
    space: Space
    measure: AnyMeasure
    pool: RankingData
    cut: Cut
    deadline: float
    most: int | None
    prune: bool
    processes: int
    n_jobs: int | None
    callbacks: Sequence[Callback]
    listener: Listener | None
    asked: Asked | None
    stopped: bool = False
    """Whether the user has stopped it."""
    _done: list[Trial] = field(default_factory=list)
    """Trials that were completed."""
    _tried: dict[str, Trial] = field(default_factory=dict)
    _repeats: int = 0
    _lock: Lock = field(default_factory=Lock)
    _elsewhere: Processes | None = None

    def run(self) -> None:
        """Run trials."""
        for trial in self.study.trials():
            self._remember(trial)
        if not self._goes_on():
            return
        try:
            if self.processes == 1:
                while self._goes_on():
                    self._trial(self.study.ask())
                return
            module = "gradrank.selection.trial_worker"
            with Processes(self.pool, self.processes, module, n_jobs=self.n_jobs) as self._elsewhere:
                self._side_by_side(self._elsewhere)
        except KeyboardInterrupt:
            # Python's own Ctrl-C, where no command line has taken it over.
            self.stopped = True

    def _side_by_side(self, processes: Processes) -> None:
        running: set[Future[None]] = set()
        try:
            # The defaults alone at first: all others are measured by them.
            while running or self._goes_on():
                width = self.processes if self._done else 1
                while len(running) < width and self._goes_on():
                    running.add(processes.waiting.submit(self._trial, self.study.ask()))
                ended, running = wait(running, timeout=_LOOK, return_when=FIRST_COMPLETED)
                for future in ended:
                    future.result()
                if self._ends(math.inf):
                    processes.stop()
        except KeyboardInterrupt:
            self.stopped = True
            processes.stop()
            wait(running)

    # ------------------------------------------------------------------ when to end
    def _goes_on(self) -> bool:
        if self._ends(self._until()):
            return False
        begun = self.study.begun()
        # Without anything to search there are two settings: the defaults, and as many steps as are best.
        most = min(self.most or math.inf, math.inf if self.space.searched else 2)
        return begun < most and self._repeats < min(_MOST_REPEATS, 3 * self.space.points())

    def _until(self) -> float:
        """When trials end, so that there is time left for the final training; the first one is not cut short."""
        if not self._done:
            return math.inf
        best = self._done[self.measure.best([trial.values for trial in self._done])]
        return self.deadline - best.seconds / max(1, self.cut.folds - 1)

    def _ends(self, until: float) -> bool:
        if not self.stopped and self.asked is not None and self.asked():
            self.stopped = True
        return self.stopped or time.time() > until

    # ------------------------------------------------------------------ one trial
    def _trial(self, asked: tuple[int, dict[str, Any], bool]) -> None:
        number, parameters, defaults = asked
        with self._lock:
            same = self._tried.get(repr(sorted(parameters.items())))
            done = [] if defaults or not self.prune or len(self._done) < _FIRST_TRIALS else list(self._done)
        try:
            if same is not None:
                found: Trial | None = replace(same, defaults=False, seconds=0.0, note="the same setting as before")
            else:
                found = self._folds(parameters, defaults, done)
        except BaseException:
            self.study.abandon(number)
            raise
        if found is None:
            self.study.abandon(number)
            return
        self.study.tell(number, found)
        with self._lock:
            self._repeats = self._repeats + 1 if same is not None else 0
            self._remember(found)
            if self.listener is not None:
                self.listener(found)

    def _remember(self, trial: Trial) -> None:
        self._tried.setdefault(repr(sorted(trial.parameters.items())), trial)
        if trial.state == "complete":
            self._done.append(trial)

    def _folds(self, parameters: dict[str, Any], defaults: bool, done: Sequence[Trial]) -> Trial | None:
        """Train all folds of a setting, as long as it keeps up; None if there was no time for it."""
        curves: list[FoldCurve] = []
        trial = Trial(0, parameters, "pruned", defaults)
        for fold in range(self.cut.folds):
            bar = bar_of(done, curves) if done else None
            until = math.inf if defaults else self._until()
            order = FoldOrder(self.space.algorithm, parameters, fold, self.cut, bar, until)
            try:
                curve = self._train(order)
            except TrainingError as error:
                if defaults:
                    raise
                return replace(trial, state="failed", note=str(error), seconds=_seconds(curves))
            if curve.ended == "cut":
                return None
            curves.append(curve)
            behind = curve.ended == "pruned" or (
                done and fold + 1 < self.cut.folds and falls_behind(done, curves)
            )  # fmt: skip
            if behind:
                place = f"in fold {fold + 1} after {len(curve.values):,} steps"
                best = tuple(float(np.nanmax([row[0] for row in own.values])) for own in curves)
                return replace(
                    trial, values=(float(np.mean(best)),), folds=best, note=f"ended {place}", seconds=_seconds(curves)
                )
        values, of_folds, steps = judged_curves(curves, self.measure)
        return replace(
            trial, state="complete", values=values, folds=of_folds,
            steps=steps if self.space.kind.steps_parameter is not None else 0,
            seconds=_seconds(curves), rises=tuple(map(rises, curves)),
        )  # fmt: skip

    def _train(self, order: FoldOrder) -> FoldCurve:
        if self._elsewhere is not None:
            answer = self._elsewhere.ordered({"order": order.to_dict()}, f"fold {order.fold + 1} of a trial")
            if answer["error"] is not None:
                raise TrainingError(answer["error"])
            return FoldCurve(**answer["curve"])
        curve = train_fold(
            order, self.pool, ends=lambda: self._ends(order.until), n_jobs=self.n_jobs, callbacks=self.callbacks
        )
        if curve.ended == "cut" and time.time() < order.until:
            self.stopped = True
        return curve


def _seconds(curves: Sequence[FoldCurve]) -> float:
    return sum(curve.seconds for curve in curves)
