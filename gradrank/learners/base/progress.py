"""How far a training is: a bar in terminals and notebooks, else a line for every tenth of the steps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from gradrank.learners.base.loop import Step
    from gradrank.objectives.pair_facts import PairFacts

_LINES = 10
_EVERY = 50


class Progress:
    """Called after each step: a bar in a terminal or notebook, else a line for every tenth of the steps.

    Parameters
    ----------
    quiet
        Show nothing.
    unit
        What a step is called.
    """

    def __init__(self, quiet: bool, unit: str = "tree") -> None:
        self._quiet = quiet
        self._unit = unit
        self._bar: Any = None
        self._task: Any = None
        self._best: dict[int, str] = {}
        self._first: Step | None = None
        self._last = 0

    def __enter__(self) -> Self:
        if self._quiet:
            return self
        from rich.console import Console

        console = Console(stderr=True)
        if sys.stderr.isatty() or console.is_jupyter:
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.fields[place]}"),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )
            # No total before the first step: it shows a bar at work while kernels are compiled and data is binned.
            self._task = self._bar.add_task("preparing", total=None, place="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, pairs: Sequence[PairFacts]) -> None:
        """Say what there is to learn from."""
        for facts in () if self._quiet else pairs:
            self._say(f"note: {facts.sentence()}")

    def say(self, text: str) -> None:
        """Say what the training does."""
        if not self._quiet:
            self._say(f"note: {text}")

    def __call__(self, step: Step) -> None:
        """Show the step just made."""
        if self._quiet:
            return
        if step.number <= self._last:
            # A second training, after one that found the number of steps.
            self._first, self._best = None, {}
        self._last = step.number
        if step.note:
            self._say(f"note: {self._unit} {step.number}: {step.note}")
        values = shown_values(step)
        place = f"{self._unit} {step.number}" + ("" if step.open_ended else f" of {step.total}")
        if step.best == step.number:
            self._best = {step.best: values}
        if self._first is None:
            self._first = step
            if self._bar is not None:
                # From here on the speed is that of steps, without preparation and steps of a checkpoint.
                total = None if step.open_ended else step.total
                self._bar.reset(self._task, total=total, completed=step.number)
        if self._bar is not None:
            described = self._described(step, values)
            self._bar.update(self._task, completed=step.number, description=described, place=place)
        elif _due(step):
            parts = [place, self._described(step, values), self._time(step)]
            self._say(", ".join(filter(None, parts)))

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(f"gradrank: {text}", markup=False, highlight=False)
        else:
            sys.stderr.write(f"gradrank: {text}\n")

    def _described(self, step: Step, values: str) -> str:
        if not values or step.best == step.number:
            return values
        best = self._best.get(step.best)
        return f"{values} (best{f' {best}' if best else ''} at {self._unit} {step.best})"

    def _time(self, step: Step) -> str:
        assert self._first is not None
        done = step.number - self._first.number
        if not done or step.number == step.total or step.open_ended:
            return f"{step.seconds:.1f} s"
        left = (step.seconds - self._first.seconds) / done * (step.total - step.number)
        return f"{step.seconds:.1f} s, about {left:.1f} s left"


def _due(step: Step) -> bool:
    """Whether a line is written: at every tenth of the steps, or after so many where their number is open."""
    if step.open_ended:
        return step.number % _EVERY == 0
    tenth = step.number * _LINES // step.total
    return step.number == step.total or tenth > (step.number - 1) * _LINES // step.total


def shown_values(step: Step) -> str:
    """The measures of the set that chooses the model; of the training data if there is no other.

    >>> from gradrank.learners import Step
    >>> shown_values(Step(1, 10, {"train": {"MAP": 0.5}, "valid": {"MAP": 0.25}}, 1, 0.1, ()))
    'MAP 0.2500'
    """
    sets = [name for name in step.values if name != "train"] or list(step.values)
    if not sets:
        return ""
    return ", ".join(f"{measure} {value:.4f}" for measure, value in step.values[sets[0]].items())
