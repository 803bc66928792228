"""What the report shows of an evaluation and a comparison: tables, differences, queries won and lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.evaluation import Comparison, ComparisonRow, Evaluation, PairedTest, Summary, holm, t_test
from gradrank.evaluation.compare import SIGNS
from gradrank.evaluation.segments import compare_segments
from gradrank.evaluation.significance import differences
from gradrank.measures import Measure
from gradrank.models.display.axis import Axis

MOST_PAIRS_SYSTEMS = 12
"""Up to so many systems every pair is tested."""
HISTOGRAM_BARS = 41
CHANGED_QUERIES = 8
_TICKS = 5


@dataclass(frozen=True)
class Mark:
    """An outcome as a sign, a word and a style, so that none of them is needed to understand it."""

    sign: str
    word: str
    style: str


MARKS = {
    "better": Mark(SIGNS["better"], "significantly better", "better"),
    "worse": Mark(SIGNS["worse"], "significantly worse", "worse"),
    "no significant difference": Mark(SIGNS["no significant difference"], "no significant difference", "equal"),
}


@dataclass(frozen=True)
class MeanCell:
    """One system's mean by one measure."""

    summary: Summary
    highest: bool
    mark: Mark | None


@dataclass(frozen=True)
class MeanRow:
    """One system's means."""

    system: str
    baseline: bool
    cells: tuple[MeanCell, ...]


def mean_rows(evaluation: Evaluation, comparison: Comparison | None) -> list[MeanRow]:
    """One row per system, one cell per measure."""
    marks = {} if comparison is None else {(row.system, row.measure): MARKS[row.verdict] for row in comparison.rows}
    summaries = {
        (system, measure): evaluation.summary(system, measure)
        for system in evaluation.systems
        for measure in evaluation.measures
    }
    highest = {
        measure: np.fmax.reduce([summaries[system, measure].mean for system in evaluation.systems])
        for measure in evaluation.measures
    }
    several = len(evaluation.systems) > 1
    return [
        MeanRow(
            system,
            comparison is not None and system == comparison.baseline,
            tuple(
                MeanCell(
                    summaries[system, measure],
                    several and bool(summaries[system, measure].mean == highest[measure]),
                    marks.get((system, measure)),
                )
                for measure in evaluation.measures
            ),
        )
        for system in evaluation.systems
    ]


@dataclass(frozen=True)
class Interval:
    """Places of a difference and its interval on an axis, in percent."""

    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """One line of a forest plot."""

    name: str
    row: ComparisonRow
    mark: Mark
    place: Interval | None
    """None if there is no difference to show."""


@dataclass(frozen=True)
class Forest:
    """Differences from the baseline by one measure, on one axis: of all systems, or of one within segments."""

    heading: str
    of: str
    """What the lines are of: systems, or what queries are divided by."""
    zero: float
    ticks: list[tuple[float, str]]
    lines: tuple[Difference, ...]


def forests(comparison: Comparison) -> list[Forest]:
    """One forest plot per measure."""
    plots = []
    for measure in dict.fromkeys(row.measure for row in comparison.rows):
        rows = [row for row in comparison.rows if row.measure == measure]
        ends = (end for row in rows for end in (row.test.low, row.test.high, row.test.difference))
        axis = Axis.around(ends, zero=True)
        lines = tuple(Difference(row.system, row, MARKS[row.verdict], _place(axis, row.test)) for row in rows)
        plots.append(Forest(str(measure), "System", axis.at(0.0), axis.labels(_TICKS), lines))
    return plots


def segment_forests(
    comparison: Comparison, segments: Mapping[str, Mapping[str, Any] | Sequence[Any]]
) -> list[tuple[str, list[Forest]]]:
    """For each way to divide the queries one forest plot per system, all on one axis."""
    found = []
    for name, values in segments.items():
        parts = compare_segments(comparison, values, name=name)
        ends = (end for _, _, row in parts.rows for end in (row.test.low, row.test.high, row.test.difference))
        axis = Axis.around(ends, zero=True)
        plots = []
        for system in dict.fromkeys(row.system for _, _, row in parts.rows):
            lines = tuple(
                Difference(f"{segment} ({queries:,})", row, MARKS[row.verdict], _place(axis, row.test))
                for segment, queries, row in parts.rows
                if row.system == system
            )
            plots.append(Forest(system, f"{name} (queries)", axis.at(0.0), axis.labels(_TICKS), lines))
        found.append((name, plots))
    return found


def _place(axis: Axis, test: PairedTest) -> Interval | None:
    if isnan(test.difference):
        return None
    at = axis.at(test.difference)
    return Interval(at, at, at) if isnan(test.low) else Interval(at, axis.at(test.low), axis.at(test.high))


@dataclass(frozen=True)
class Histogram:
    """How many queries differ by how much."""

    bars: list[tuple[float, float]]
    """Left end and height of each bar in percent; the middle bar holds differences around 0."""
    width: float
    limit: float
    """The axis goes from −limit to +limit."""


@dataclass(frozen=True)
class QueryCounts:
    """Queries won, tied and lost by one system, and how its differences are spread."""

    system: str
    wins: int
    ties: int
    losses: int
    histogram: Histogram | None

    @property
    def total(self) -> int:
        """Queries on which both systems have a value."""
        return self.wins + self.ties + self.losses


def query_counts(evaluation: Evaluation, comparison: Comparison) -> list[QueryCounts]:
    """Queries won and lost by the first measure, one row per system, all histograms on one axis."""
    measure = evaluation.measures[0]
    rows = [row for row in comparison.rows if row.measure == measure]
    differ = {row.system: _used_differences(evaluation, row.system, comparison.baseline, measure) for row in rows}
    limit = max((float(np.abs(d).max()) for d in differ.values() if len(d)), default=0.0)
    return [
        QueryCounts(row.system, row.wins, row.ties, row.losses, _histogram(differ[row.system], limit)) for row in rows
    ]


def _used_differences(evaluation: Evaluation, system: str, base: str, measure: Measure) -> NDArray[np.float64]:
    d = differences(evaluation.values[system][measure], evaluation.values[base][measure])
    kept = ~np.isnan(d)
    return d[kept if evaluation.weights is None else kept & (evaluation.weights > 0)]


def _histogram(d: NDArray[np.float64], limit: float) -> Histogram | None:
    if limit == 0.0 or not len(d):
        return None
    # Ties have their own bar in the counts; here they would dwarf everything else.
    counts, _ = np.histogram(d[d != 0], bins=HISTOGRAM_BARS, range=(-limit, limit))
    heights = 100.0 * counts / max(1, counts.max())
    width = 100.0 / HISTOGRAM_BARS
    bars = [(round(place * width, 3), round(float(height), 2)) for place, height in enumerate(heights) if height]
    return Histogram(bars, round(width, 3), limit)


@dataclass(frozen=True)
class ChangedQuery:
    """One query's value under the baseline and under another system."""

    qid: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """Gain or loss."""
        return self.after - self.before


def changed_queries(
    evaluation: Evaluation, comparison: Comparison, system: str
) -> tuple[list[ChangedQuery], list[ChangedQuery]]:
    """The queries that gain most and lose most by the first measure, the largest change first."""
    measure = evaluation.measures[0]
    before, after = evaluation.values[comparison.baseline][measure], evaluation.values[system][measure]
    d = np.nan_to_num(differences(after, before))
    if evaluation.weights is not None:
        d[evaluation.weights == 0] = 0.0
    order = np.argsort(-d, kind="stable")

    def queries(places: NDArray[np.intp]) -> list[ChangedQuery]:
        return [ChangedQuery(evaluation.qids[int(i)], float(before[i]), float(after[i])) for i in places if d[i]]

    gains = order[:CHANGED_QUERIES]
    losses = order[::-1][:CHANGED_QUERIES]
    return queries(gains[d[gains] > 0]), queries(losses[d[losses] < 0])


@dataclass(frozen=True)
class PairCell:
    """The row's system minus the column's, by the first measure."""

    difference: float
    p: float
    mark: Mark


def pair_table(evaluation: Evaluation, level: float, least: int = 3) -> dict[tuple[str, str], PairCell] | None:
    """Every system against every other by the first measure; None if there are too few or too many."""
    systems, measure = evaluation.systems, evaluation.measures[0]
    if not least <= len(systems) <= MOST_PAIRS_SYSTEMS:
        return None
    pairs = list(combinations(systems, 2))
    tests = [
        t_test(evaluation.values[a][measure], evaluation.values[b][measure], weights=evaluation.weights, level=level)
        for a, b in pairs
    ]
    cells = {}
    for (a, b), test, p in zip(pairs, tests, holm([test.p for test in tests]).tolist(), strict=True):
        ahead, behind = ("better", "worse") if test.difference > 0 else ("worse", "better")
        if not p < level:
            ahead = behind = "no significant difference"
        cells[a, b] = PairCell(test.difference, p, MARKS[ahead])
        cells[b, a] = PairCell(-test.difference, p, MARKS[behind])
    return cells
