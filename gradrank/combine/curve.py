"""Measures over the whole range of the mixing weight, and the choice of its best interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradrank.combine.path import FloatArray, IntArray, Path

# Crossings are rounded (by less than two units in the last place each), so lines that meet in one point may cross at
# numbers a few units apart. No interval so narrow is real.
_NARROW = 16 * np.finfo(np.float64).eps
# Sums of millions of changes carry this much rounding; values this close are equal.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """A range of α in which measures have these values."""

    low: float
    high: float
    values: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean measures as functions of α: row m of ``values`` is constant between neighbors of ``edges``.

    At the edges themselves documents are tied; single points in between where lines meet and nothing else changes
    have other values too, and are not told.

    >>> curve = Curve(("MAP",), np.array([0.0, 0.5, 1.0]), np.array([[0.3, 0.4]]))
    >>> curve.at(0.75)
    (0.4,)
    """

    measures: tuple[str, ...]
    edges: FloatArray
    """Lower end, every α at which a measure changes, upper end."""
    values: FloatArray
    """Measures × intervals."""
    exact: bool = True
    """False if there were too many changes to keep: then some intervals were dropped from this record."""

    @property
    def n_intervals(self) -> int:
        """Number of intervals."""
        return len(self.edges) - 1

    def at(self, alpha: float) -> tuple[float, ...]:
        """The measures at an α that is not an edge."""
        if not self.edges[0] <= alpha <= self.edges[-1]:
            raise ValueError(f"alpha is {alpha}, expected a number in {self.edges[0]}…{self.edges[-1]}")
        place = int(np.clip(np.searchsorted(self.edges, alpha) - 1, 0, self.n_intervals - 1))
        return tuple(self.values[:, place].tolist())

    def best_intervals(self, tolerance: float, most: int) -> list[Interval]:
        """The best intervals, the best first, and the next best ones; intervals that are only rounding do not count."""
        widths = np.diff(self.edges)
        real = np.flatnonzero(widths > _NARROW * np.maximum(np.abs(self.edges[:-1]), np.abs(self.edges[1:])))
        return [
            Interval(float(self.edges[k]), float(self.edges[k + 1]), tuple(self.values[:, k].tolist()))
            for k in real[_preferred(self.values[:, real], widths[real], tolerance, most)].tolist()
        ]

    def thinned(self, most: int) -> Curve:
        """A record of at most so many intervals, evenly spread over the changes; their values are exact."""
        if self.n_intervals <= most:
            return self
        kept = np.unique(np.linspace(0, self.n_intervals - 1, most).astype(np.int64))
        return Curve(self.measures, np.append(self.edges[kept], self.edges[-1]), self.values[:, kept], exact=False)


def curve_of(measures: Sequence[str], paths: Sequence[Path], low: float, high: float) -> Curve:
    """Several measures' paths over one range as one curve.

    >>> paths = [Path(np.array([0.5]), np.array([1.0, 2.0])), Path(np.array([0.25]), np.array([3.0, 4.0]))]
    >>> curve_of(["a", "b"], paths, 0.0, 1.0).values.tolist()
    [[1.0, 1.0, 2.0], [3.0, 4.0, 4.0]]
    """
    at = paths[0].at if len(paths) == 1 else np.unique(np.concatenate([path.at for path in paths]))
    edges = np.concatenate(([low], at, [high]))
    rows = [path.values if len(paths) == 1 else path.values[_places(path, edges)] for path in paths]
    return Curve(tuple(measures), edges, np.array(rows))


def _places(path: Path, edges: FloatArray) -> IntArray:
    return np.searchsorted(path.at, edges[:-1], side="right")


def joined(curves: Sequence[Curve]) -> Curve:
    """Curves over neighboring ranges as one."""
    if len(curves) == 1:
        return curves[0]
    edges = np.concatenate([*(curve.edges[:-1] for curve in curves), curves[-1].edges[-1:]])
    values = np.concatenate([curve.values for curve in curves], axis=1)
    return Curve(curves[0].measures, edges, values, all(curve.exact for curve in curves))


def best_of(intervals: Sequence[Interval], tolerance: float, most: int) -> list[Interval]:
    """The best of some intervals, the best first.

    >>> best_of([Interval(0.0, 0.1, (0.5,)), Interval(0.1, 0.4, (0.5,)), Interval(0.4, 1.0, (0.4,))], 0.0, 1)[0].low
    0.1
    """
    if not intervals:
        return []
    values = np.array([interval.values for interval in intervals]).T
    widths = np.array([interval.high - interval.low for interval in intervals])
    return [intervals[k] for k in _preferred(values, widths, tolerance, most).tolist()]


def _preferred(values: FloatArray, widths: FloatArray, tolerance: float, most: int) -> IntArray:
    """The best columns by the first measure, among those within the tolerance of its best by the second, and so on; of
    equals the widest. Then the next best by the first measure, up to ``most``."""
    everything = left = np.arange(len(widths))
    for tier, row in enumerate(values):
        column = row[left]
        if len(left) and not np.isnan(column).all():
            slack = tolerance if tier + 1 < len(values) else 0.0
            left = left[column >= np.nanmax(column) - slack - _ROUNDING]
    best = left[np.argsort(-widths[left], kind="stable")][:most]
    missing = min(most - len(best), len(everything) - len(left))
    if missing <= 0:
        return best
    others = np.setdiff1d(everything, left, assume_unique=True)
    others = others[np.argpartition(-values[0, others], missing - 1)[:missing]]
    return np.concatenate((best, others[np.argsort(-values[0, others], kind="stable")]))
