"""Plain records of judgments and outcomes: what the reports read, whoever kept them.

The store turns its events into these; so does the simulation. Nothing here knows of a database.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gradrank.labeling.judgments import Verdict


class Tool(StrEnum):
    """The two tools of the paper.

    >>> Tool("T1").value
    'T1'
    """

    PREFERENCES = "T1"
    """Two documents side by side."""
    GRADES = "T2"
    """Five grades for one document."""


@dataclass(frozen=True, slots=True)
class Record:
    """One event of an assessor, as it was given; undo is an event of its own.

    Records of one (assessor, query) stand in the order of time.

    >>> Record("ann", "q1", Tool.PREFERENCES, Verdict.FIRST, "d1", "d2", seconds=5.5, first_left=True).voided
    False
    """

    assessor: str
    query: str
    tool: Tool
    verdict: Verdict
    first: str = ""
    second: str | None = None
    grade: int | None = None
    seconds: float | None = None
    """Active time from showing to answering; None if it was not measured."""
    first_left: bool | None = None
    """Whether ``first`` was shown on the left; None for a single document."""
    voided: bool = False
    """Declared invalid by the owner: counts nowhere."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one assessor's work on one query has come to: mostly the fields of the last ``State``.

    >>> outcome = Outcome("ann", "q1", Tool.PREFERENCES, "tournament", 1, ("d1", "d2"), (("d2",),))
    >>> outcome.complete
    True
    """

    assessor: str
    query: str
    tool: Tool
    strategy: str
    k: int
    documents: tuple[str, ...]
    """All candidates of the query."""
    top: tuple[tuple[str, ...], ...]
    """Tie groups, best first."""
    bad: tuple[str, ...] = ()
    grades: tuple[tuple[str, int], ...] = ()
    """(document, grade) of the absolute tool."""
    complete: bool = True
    """Whether the strategy had no question left; unfinished work counts in times but not in agreement."""
