"""A recipe: one table or figure of a paper, with its settings and what the paper found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gradrank.errors import DataError
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale

Say = Callable[[str], None]
"""Called with each thing that is worth saying while an experiment runs."""

SCALES = ("tiny", "small", "paper")
"""Names of the scales: a try that takes seconds, the one that the documentation reports, the paper's own."""


def say_nothing(_text: str) -> None:
    """Listen to what is said, and do nothing."""


@dataclass(frozen=True)
class Run:
    """How a recipe is run: to whom it speaks, where finished trainings are kept, how many run at once, and where."""

    say: Say = say_nothing
    out: Path | None = None
    jobs: int = 1
    client: Any = None
    """A Dask client, if the trainings are to run on its workers."""


@dataclass(frozen=True)
class Recipe:
    """One table or figure of a paper."""

    function: Callable[[Any, Any, Run], Outcome]
    """From the scale, the data and the run to the outcome."""
    paper: str
    """Authors and year."""
    shows: str
    """Which table or figure of the paper: ``table 1``."""
    title: str
    finding: str
    """What the paper found, in one sentence."""
    small: Scale
    """The settings behind the numbers in the documentation."""
    tiny: Scale
    """A run of seconds, which shows what comes out and nothing else."""
    full: Scale | None = None
    """The paper's own settings; None if they are not known."""
    reads: Literal["splits", "folds", "judgments", "nothing"] = "splits"
    """Whether it runs on train, validation and test data, on folds of them, on judgments of people (or on
    graded data, which simulated people judge), or looks at no data."""
    labels: tuple[str, ...] = ()
    """Label sources that its data must have beside the primary one."""
    side_by_side: bool = False
    """Whether its trainings can run in several processes and are kept when done (:mod:`gradrank.experiments.cells`)."""

    @property
    def is_figure(self) -> bool:
        """Whether the paper shows it as a figure: then the tables hold the points of its lines."""
        return self.shows.startswith("figure")

    def scale(self, name: str) -> Scale:
        """The scale of a name, one of :data:`SCALES`."""
        found = {"tiny": self.tiny, "small": self.small, "paper": self.full}
        if name not in found:
            raise DataError(f"the scale is {name!r}, expected {', '.join(SCALES[:-1])} or {SCALES[-1]}")
        chosen = found[name]
        if chosen is None:
            raise DataError(f"the paper's settings of {self.shows} ({self.paper}) are not known: choose small")
        return chosen
