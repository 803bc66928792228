"""Running a course of trees: from a checkpoint or the trees at hand, with validation data or with queries held out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.checkpoint import DAMAGED, fingerprint, held_out_of, keeper, resume, unsealed
from gradrank.learners.base.loop import Callback, HeldOut, Record, run_course, say
from gradrank.learners.base.monitor import Monitor
from gradrank.learners.trees.hold_out import HELD_OUT, HeldOutMonitor
from gradrank.learners.trees.tree_course import TreeCourse, Trees
from gradrank.models.ranker import Ranker

if TYPE_CHECKING:
    from gradrank.learners.trees.lambdamart import LambdaMART

# Parameters that may differ when a checkpoint is continued; the base is told apart by its scores.
_NOT_OF_THE_RUN = (
    "n_estimators", "n_jobs", "checkpoint", "checkpoint_every", "callbacks", "warm_start", "base", "diagnostics",
    "verbose", "validation_fraction",
)  # fmt: skip

Outcome = tuple[Record, tuple[Trees, ...]]


class TreeRun:
    """One training of a tree learner.

    Parameters
    ----------
    learner
        Whose parameters hold.
    course
        What makes the steps.
    valid
        Validation data by name; the first set chooses the model.
    base
        The ranker that training starts from.
    callbacks
        Told of each step.
    """

    def __init__(
        self,
        learner: LambdaMART,
        course: TreeCourse,
        valid: Mapping[str, RankingData],
        base: Ranker | None,
        callbacks: Sequence[Callback],
    ) -> None:
        self._learner = learner
        self._course = course
        self._valid = valid
        self._base = base
        self._callbacks = callbacks

    def once(self) -> Outcome:
        """Train on all queries; validation data chooses, if there is any."""
        learner, record = self._learner, None
        if learner.warm_start and hasattr(learner, "trees_"):
            kept = learner.record_
            record = Record(steps=kept.steps, curves=kept.curves, seconds=kept.seconds)
        return self._go(self._monitor(), self._facts(), record)

    def twice(self, held: NDArray[np.bool_]) -> Outcome:
        """Find the number of trees on queries that are held out, then train on all of them with that number.

        If it is interrupted, the model is the best one of the first training; that of the second one would lack trees.

        Parameters
        ----------
        held
            Which queries are held out.
        """
        learner, course = self._learner, self._course
        if learner.warm_start and hasattr(learner, "trees_"):
            raise TrainingError(
                "warm_start goes on from a model whose number of trees was found on held-out queries, and there is no "
                "validation data: give n_estimators, or validation data"
            )
        count = learner._crew.count(int(held.sum()))
        facts = {**self._facts(), "held_out": learner.validation_fraction}
        found, first = self._found_before(), None
        if found is None:
            say(self._callbacks, f"there is no validation data: {count:,} queries are held out to find the number of "
                "trees; the model then learns from all of them")  # fmt: skip
            course.left_out = held
            watcher = HeldOutMonitor(
                course.train, held, course.watched, learner._measure(), n_jobs=learner.n_jobs, crew=learner._crew
            )
            first = self._go(watcher, {**facts, "stage": "search"}, None)
            record = first[0]
            found = record.held_out = HeldOut(count, record.best, record.curves.pop(HELD_OUT))
            if record.interrupted:
                return first
        say(self._callbacks, f"{found.best:,} trees are best on the {found.queries:,} held-out queries; now as many "
            "are grown on all queries")  # fmt: skip
        second = None
        try:
            second = self._again(found, {**facts, "stage": "refit"}, first)
        except KeyboardInterrupt:
            if first is None:
                raise
        if first is not None and (second is None or (second[0].interrupted and second[0].steps < found.best)):
            first[0].interrupted = True
            return first
        assert second is not None
        return second

    def _again(self, found: HeldOut, facts: Mapping[str, Any], first: Outcome | None) -> Outcome:
        """Train on all queries with the number of trees that was found."""
        self._course.start_over(found.best)
        monitor = self._monitor()
        seconds = 0.0 if first is None else first[0].seconds
        before = Record(curves=monitor.empty_curves(), held_out=found, seconds=seconds)
        # What the first training has left on disk is not for the second one.
        return self._go(monitor, facts, before, resuming=first is None)

    def _monitor(self) -> Monitor:
        learner = self._learner
        return Monitor.of_sets(
            self._course.watched, self._valid, learner._measure(), n_jobs=learner.n_jobs, crew=learner._crew
        )

    def _go(
        self, monitor: Monitor, facts: Mapping[str, Any], record: Record | None, *, resuming: bool = True
    ) -> Outcome:
        """Run the course from where a checkpoint, or the record at hand, ended."""
        learner, course, keep = self._learner, self._course, None
        if learner.checkpoint is not None:
            kept = resume(course, learner.checkpoint, facts) if resuming else None
            if learner._crew.rank == 0:
                keep = keeper(course, learner.checkpoint, facts, learner.checkpoint_every)
            if kept is not None:
                record = kept
        if record is not None and record.steps and not course.steps:
            course.go_on_from(learner.trees_)
        if record is not None:
            record.cut(course.total)
        record = run_course(course, monitor, callbacks=self._callbacks, record=record, keeper=keep)
        return record, tuple(course.steps[: record.steps])

    def _found_before(self) -> HeldOut | None:
        """What a run that was cut off found out, if it had come as far as training on all queries."""
        path = self._learner.checkpoint
        if path is None or not Path(path).exists():
            return None
        try:
            manifest = json.loads(unsealed(Path(path).read_bytes()))
            return held_out_of(manifest) if manifest["run"]["stage"] == "refit" else None
        except (OSError, *DAMAGED):
            # What is wrong with the file is said when it is resumed from.
            return None

    def _facts(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued; more trees may be asked for."""
        learner, train, crew = self._learner, self._course.train, self._learner._crew
        parameters = {**learner.get_params(deep=False), **learner._chosen(), **learner._settled()}
        facts = {name: value for name, value in parameters.items() if name not in _NOT_OF_THE_RUN}
        facts["base"] = None
        if self._base is not None and crew.shared:
            facts["base"] = fingerprint(np.frombuffer(json.dumps(self._base.to_dict()).encode(), dtype=np.uint8))
        elif self._base is not None:
            facts["base"] = fingerprint(np.asarray(self._base.grouped_scores(train)))
        facts["data"] = [crew.fingerprint(data) for data in (train, *self._valid.values())]
        if crew.shared:
            # Its random draws are others than those of a training in one process.
            facts["workers"] = True
        return facts
