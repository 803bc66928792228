"""What came of improving one measure while others are kept: the ranker, and the walk that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradrank.evaluation.tables import Column, Table
from gradrank.measures import Measure
from gradrank.models.ranker import Ranker
from gradrank.selection.keep import Keep


@dataclass(frozen=True)
class Stop:
    """One point of the walk: a mixture of two neighboring rankers."""

    first: str
    second: str
    share: float
    """Of the second ranker, after both were scaled to the same spread of scores."""
    goal: float
    """Mean of the measure to improve."""
    kept: tuple[float, ...]
    """Mean of each measure to keep."""
    bounds: tuple[float, ...]
    """Lower confidence bound of each constraint's excess; the constraint holds if it is not negative."""

    @property
    def holds(self) -> bool:
        """Whether the test allows the point."""
        return all(bound >= 0.0 for bound in self.bounds)


@dataclass(frozen=True, eq=False)
class Improvement:
    """The outcome of :func:`gradrank.selection.constrained.improve`: the ranker, and the walk that led to it."""

    ranker: Ranker
    goal: Measure
    keeps: tuple[Keep, ...]
    level: float
    queries: int
    """Queries of the data that the walk was tested on."""
    stops: tuple[Stop, ...]
    """All points that were tested; the first is the baseline, all but the last hold unless the end was reached."""
    chosen: Stop
    rankers: Mapping[str, Ranker]

    def sentence(self) -> str:
        """The outcome in words."""
        start = self.stops[0]
        kept = " and ".join(map(str, self.keeps))
        promise = f"{kept} holds with {100 * (1 - self.level):.6g} % confidence on {self.queries:,} queries"
        if self.chosen == start:
            return f"the baseline is kept: no mixture that keeps {kept} has a higher {self.goal} than {start.goal:.4f}"
        mixture = f"{self.chosen.share:.3g} of {self.chosen.second} in {self.chosen.first}"
        return f"{mixture} is chosen: {promise}, and {self.goal} goes from {start.goal:.4f} to {self.chosen.goal:.4f}"

    def table(self) -> Table:
        """One row per point of the walk."""
        columns = [Column("rankers"), Column("share", "number"), Column(str(self.goal), "number")]
        for keep in self.keeps:
            columns += [Column(str(keep.measure), "number"), Column(f"bound of {keep}", "signed")]
        rows = []
        for stop in self.stops:
            cells: list[Any] = [f"{stop.first} → {stop.second}", stop.share, stop.goal]
            for mean, bound in zip(stop.kept, stop.bounds, strict=True):
                cells += [mean, bound]
            rows.append((*cells, "chosen" if stop == self.chosen else "" if stop.holds else "not allowed"))
        title = f"{self.queries:,} queries that chose nothing before; the walk ends where a bound is below 0"
        return Table((*columns, Column("outcome")), tuple(rows), title)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the models, as plain Python values."""
        return {
            "improve": str(self.goal),
            "keep": [str(keep) for keep in self.keeps],
            "level": self.level,
            "queries": self.queries,
            "chosen": vars(self.chosen),
            "walk": [vars(stop) for stop in self.stops],
        }
