"""Quality against cost: what a portfolio and cheaper rankers made from it are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from gradrank.models.display.axis import Axis
from gradrank.selection.distil import Served

_TICKS = 5
_LEAST_TIME = 1e-3


@dataclass(frozen=True)
class ServingView:
    """The points of a curve, laid out in percent; time goes by powers of ten."""

    measure: str
    chosen: str
    points: tuple[tuple[Served, float, float], ...]
    """Each with its place across and up."""
    frontier: str
    """Points of a line through those that no cheaper one equals."""
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]


def serving_view(curve: Sequence[Served], chosen: str, measure: str) -> ServingView:
    """Lay out a curve.

    Parameters
    ----------
    curve
        Rankers with value and cost.
    chosen
        Name of the one that was taken.
    measure
        What the value is of.

    >>> points = [Served("a", 0.4, 10, 1.0, None), Served("b", 0.3, 20, 10.0, None)]
    >>> view = serving_view(points, "a", "NDCG@10")
    >>> [name for at, name in view.x_ticks], len(view.points), view.frontier.count(",")
    (['1', '10'], 2, 1)
    """
    times = {point.name: log10(max(point.microseconds, _LEAST_TIME)) for point in curve}
    low, high = floor(min(times.values())), ceil(max(times.values()))
    x_axis, y_axis = Axis(low - 0.05, max(high, low + 1) + 0.05), Axis.around(point.value for point in curve)
    placed = [(point, x_axis.at(times[point.name]), y_axis.at(point.value)) for point in curve]
    best, line = float("-inf"), []
    for point, across, up in sorted(placed, key=lambda item: item[1]):
        if point.value > best:
            best = point.value
            line.append(f"{across},{round(100.0 - up, 3)}")
    ticks = [(x_axis.at(power), f"{10.0**power:g}") for power in range(low, max(high, low + 1) + 1)]
    return ServingView(measure, chosen, tuple(placed), " ".join(line), tuple(ticks), tuple(y_axis.labels(_TICKS)))
