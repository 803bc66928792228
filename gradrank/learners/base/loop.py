"""The one training loop: steps, their record, callbacks, early stopping, Ctrl-C and checkpoints.

A family of learners writes a :class:`Course`: how one more step is made, and the scores after it. Trees, rounds of
feature boosting, epochs of nets and cuts of a solver are all steps.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.learners.base.monitor import Curves, Monitor

if TYPE_CHECKING:
    from gradrank.models.trees.tree import Tree
    from gradrank.objectives.pair_facts import PairFacts

Vector = NDArray[np.float64]


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
    open_ended: bool = False
    """Whether ``total`` is a mere ceiling: training ends when nothing improves."""


Callback = Callable[[Step], None]


@dataclass(frozen=True)
class HeldOut:
    """A first training that left out queries in order to find the number of steps."""

    queries: int
    """How many were held out."""
    best: int
    """Number of steps that was best on them."""
    curves: dict[str, list[float]]
    """Measure → its value on the held-out queries after each step."""


@dataclass
class Record:
    """What happened in a training."""

    steps: int = 0
    """Steps made."""
    best: int = 0
    """Steps of the best model; all of them without validation data."""
    curves: Curves = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False
    pairs: tuple[PairFacts, ...] = ()
    """What each label source gave to learn from."""
    diagnostics: dict[str, Any] | None = None
    held_out: HeldOut | None = None
    """How the number of steps was found, if training queries were held out for it."""

    def cut(self, steps: int) -> None:
        """Forget what came after so many steps."""
        self.steps = min(self.steps, steps)
        self.curves = {
            name: {measure: curve[: self.steps] for measure, curve in per.items()} for name, per in self.curves.items()
        }


class Course(ABC):
    """How a family of learners makes one step after the other."""

    unit: ClassVar[str] = "step"
    """What a step is called: tree, epoch, round, cut."""
    total: int
    """Most steps to make."""
    patience: int | None = None
    """End after so many steps without a new best; None = make them all."""
    open_ended: bool = False
    """Whether ``total`` is a mere ceiling."""

    @abstractmethod
    def advance(self, step: int) -> bool:
        """Make the step of that number, from 0; False if nothing is left to learn and none was made."""

    @abstractmethod
    def scores(self) -> Mapping[str, Vector]:
        """Scores of the watched data sets after the last step, in the sets' own order."""

    def goes_on(self, record: Record, monitor: Monitor) -> bool:
        """Whether another step is to be made; asked before each."""
        return not (monitor.decides and self.patience is not None and record.steps - record.best >= self.patience)

    def keep(self, best: bool) -> None:  # noqa: B027 - nothing to do where every step's model stays at hand
        """Told after each step whether it is the best so far: the time to set its model aside."""

    def trees(self) -> tuple[Tree, ...]:
        """The trees that the last step added."""
        return ()

    def note(self) -> str:
        """What is to be said of the last step."""
        return ""

    def own_values(self) -> dict[str, dict[str, float]]:
        """Values of the last step that are no measures of scores, such as a duality gap."""
        return {}


class ResumableCourse(Course):
    """A course whose state can be kept on disk."""

    @abstractmethod
    def pack(self, manifest: dict[str, Any]) -> bytes:
        """The state and the manifest as the content of a file."""

    @abstractmethod
    def unpack(self, content: bytes) -> tuple[dict[str, Any], Any]:
        """The manifest and the state of a file. Content that is none raises ValueError, KeyError, TypeError."""

    @abstractmethod
    def take_over(self, state: Any) -> None:
        """Go on from a state of this run; one that does not fit it raises as unpack does, or RuntimeError."""


def say(callbacks: Sequence[Callback], text: str) -> None:
    """Tell the callbacks that listen, those with a method ``say``, what the training does."""
    for callback in callbacks:
        if hasattr(callback, "say"):
            callback.say(text)


Keeper = Callable[[Record], None]


def run_course(
    course: Course,
    monitor: Monitor,
    *,
    callbacks: Sequence[Callback] = (),
    record: Record | None = None,
    keeper: Keeper | None = None,
) -> Record:
    """Advance step by step until all are made, nothing is left to learn, or nothing improves.

    Parameters
    ----------
    course
        What makes the steps.
    monitor
        Measures the scores after each step; chooses the best step if it has validation data.
    callbacks
        Told of each step. One that raises KeyboardInterrupt ends the training, and what was learned is kept, as
        Ctrl-C does.
    record
        Where an earlier run ended whose state ``course`` has taken over.
    keeper
        Writes the state to disk after each step if it is due.
    """
    began = time.perf_counter()
    record = Record(curves=monitor.empty_curves()) if record is None else record
    before = record.seconds
    record.interrupted = False
    if record.steps:
        record.best = monitor.best(record.curves) if monitor.decides else record.steps
    try:
        while record.steps < course.total and course.goes_on(record, monitor):
            if not course.advance(record.steps):
                break
            values = monitor.record(record.curves, course.scores())
            best = monitor.best(record.curves) if monitor.decides else record.steps + 1
            course.keep(best == record.steps + 1)
            # Together, so that Ctrl-C does not come between them.
            record.best, record.steps = best, record.steps + 1
            record.seconds = before + time.perf_counter() - began
            if keeper is not None:
                keeper(record)
            told = Step(
                record.steps, course.total, {**values, **course.own_values()}, best, record.seconds, course.trees(),
                course.unit, course.note(), course.open_ended,
            )  # fmt: skip
            for callback in callbacks:
                callback(told)
    except KeyboardInterrupt:
        # What has been learned so far is worth keeping; the caller says that training was cut short.
        if not record.steps:
            raise
        record.interrupted = True
        record.cut(record.steps)
    record.best = record.best or record.steps
    record.seconds = before + time.perf_counter() - began
    return record
