"""What labeling costs: time per judgment, judgments and minutes per query (Niu et al. 2012, table 1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import nan
from statistics import fmean, median

from gradrank.labeling.judgments import Verdict
from gradrank.labeling.records import Outcome, Record, Tool
from gradrank.labeling.strategies import strategy


def standing_records(records: Iterable[Record]) -> list[Record]:
    """Answers that count: without void ones, skips, undo, and what undo took back.

    >>> said = Record("ann", "q", Tool.PREFERENCES, Verdict.TIE, "a", "b")
    >>> undo = Record("ann", "q", Tool.PREFERENCES, Verdict.UNDO)
    >>> standing_records([said, undo, said]) == [said]
    True
    """
    kept: defaultdict[tuple[str, str, Tool], list[Record]] = defaultdict(list)
    for record in records:
        if record.voided:
            continue
        session = kept[record.assessor, record.query, record.tool]
        if record.verdict is not Verdict.UNDO:
            session.append(record)
        elif session:
            session.pop()
    return [record for session in kept.values() for record in session if record.verdict is not Verdict.SKIP]


@dataclass(frozen=True)
class Efficiency:
    """The cost of one strategy."""

    tool: Tool
    strategy: str
    complexity: str
    finished: int
    """Queries finished, counted once for each assessor."""
    unfinished: int
    judgments: int
    """Answers that stand, in finished and unfinished work."""
    undone: int
    skipped: int
    seconds_per_judgment: float
    median_seconds: float
    judgments_per_query: float
    minutes_per_query: float
    """Of finished work, with all time spent: also on answers taken back and on skips."""


def efficiency(records: Iterable[Record], outcomes: Iterable[Outcome]) -> list[Efficiency]:
    """One row for each strategy in use.

    >>> outcome = Outcome("ann", "q", Tool.PREFERENCES, "heap", 1, ("a", "b"), (("a",),))
    >>> said = Record("ann", "q", Tool.PREFERENCES, Verdict.FIRST, "a", "b", seconds=6.0)
    >>> (row,) = efficiency([said], [outcome])
    >>> row.judgments_per_query, row.minutes_per_query
    (1.0, 0.1)
    """
    valid = [record for record in records if not record.voided]
    by_session: defaultdict[tuple[str, str, Tool], list[Record]] = defaultdict(list)
    for record in valid:
        by_session[record.assessor, record.query, record.tool].append(record)
    by_strategy: defaultdict[tuple[Tool, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_strategy[outcome.tool, outcome.strategy].append(outcome)
    rows = []
    for (tool, name), group in sorted(by_strategy.items()):
        sessions = [(outcome, by_session[outcome.assessor, outcome.query, tool]) for outcome in group]
        standing = [(outcome, standing_records(session)) for outcome, session in sessions]
        answers = [record for _, session in standing for record in session]
        times = [record.seconds for record in answers if record.seconds is not None]
        finished = [session for outcome, session in sessions if outcome.complete]
        minutes = [
            sum(record.seconds or 0.0 for record in session) / 60
            for session in finished
            if any(record.seconds is not None for record in session)
        ]
        lengths = [len(session) for outcome, session in standing if outcome.complete]
        everything = [record for _, session in sessions for record in session]
        rows.append(
            Efficiency(
                tool=tool,
                strategy=name,
                complexity=strategy(name).complexity,
                finished=len(finished),
                unfinished=len(group) - len(finished),
                judgments=len(answers),
                undone=sum(record.verdict is Verdict.UNDO for record in everything),
                skipped=sum(record.verdict is Verdict.SKIP for record in everything),
                seconds_per_judgment=fmean(times) if times else nan,
                median_seconds=median(times) if times else nan,
                judgments_per_query=fmean(lengths) if lengths else nan,
                minutes_per_query=fmean(minutes) if minutes else nan,
            )
        )
    return rows
