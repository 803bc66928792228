"""Learning curves: what a ranker remembers of its training, read from its facts and drawn small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from math import isfinite
from typing import Any

import numpy as np

from gradrank.models.display.axis import Axis
from gradrank.models.display.markup import Html

MOST_POINTS = 400
_WIDTH, _HEIGHT = 420, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 26, 30
_TICKS = 4
# Seen on white and on black alike; dashes tell the lines apart as well.
_LINES = (("#2b7fc4", ""), ("#c76a1c", "6 3"), ("#2f9e6e", "2 3"), ("#b0579a", "8 3 2 3"))


def learning_curves(training: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    """Measure → data set → one value per iteration; whatever is not such a curve is left out.

    >>> learning_curves({"curves": {"valid": {"MAP": [0.1, "nan"]}, "train": "lost"}})
    {'MAP': {'valid': [0.1, nan]}}
    """
    result: dict[str, dict[str, list[float]]] = {}
    for data_set, by_measure in items(training.get("curves")):
        for measure, values in items(by_measure):
            try:
                line = [float(value) for value in values]
            except (TypeError, ValueError):
                continue
            if any(map(isfinite, line)):
                result.setdefault(measure, {})[data_set] = line
    return result


def items(value: Any) -> Iterable[tuple[str, Any]]:
    """The entries of a mapping under their names as text; none if it is no mapping."""
    return [(str(key), item) for key, item in value.items()] if isinstance(value, Mapping) else []


def validation_first(lines: Mapping[str, list[float]]) -> list[tuple[str, list[float]]]:
    """The curves of a measure, that of the training data last."""
    return sorted(lines.items(), key=lambda item: item[0] == "train")


def chosen_step(training: Mapping[str, Any], steps: int) -> int | None:
    """The step that training chose, if it tells one."""
    best = training.get("best")
    if isinstance(best, bool) or not isinstance(best, int | np.integer) or not 1 <= best <= steps:
        return None
    return int(best)


def shown_places(length: int) -> list[int]:
    """Places of a curve to draw: all of a short one, evenly thinned of a long one, the ends always.

    >>> shown_places(3)
    [0, 1, 2]
    """
    return [int(p) for p in np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round().astype(int))]


def curve_svg(training: Mapping[str, Any], measure: str | None = None) -> Html:
    """The learning curve of a ranker by one measure as a small inline SVG; empty if it remembers none.

    Parameters
    ----------
    training
        Facts of the training: ``ranker.training``.
    measure
        Name of the measure; the first one unless given.

    >>> svg = curve_svg({"curves": {"valid": {"MAP": [0.1, 0.3, 0.2]}}, "best": 2})
    >>> svg.startswith("<svg"), "best: step 2" in svg
    (True, True)
    """
    curves = learning_curves(training)
    name = next(iter(curves), None) if measure is None else measure
    if name is None or name not in curves:
        return Html("")
    lines = validation_first(curves[name])
    steps = max(len(line) for _, line in lines)
    x_axis, y_axis = Axis(1.0, float(max(2, steps))), Axis.around(value for _, line in lines for value in line)
    best = chosen_step(training, steps)

    def x(step: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * x_axis.at(step) / 100.0, 1)

    def y(value: float) -> float:
        return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (1.0 - y_axis.at(value) / 100.0), 1)

    parts = [_opening(name, lines, best)]
    for value, text in zip(y_axis.steps(_TICKS), y_axis.ticks(_TICKS), strict=True):
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value)}" y2="{y(value)}" stroke="currentColor" '
            f'stroke-opacity=".2"/><text x="{_LEFT - 6}" y="{y(value) + 4}" text-anchor="end">{text}</text>'
        )
    for value, text in zip(x_axis.steps(_TICKS + 2), x_axis.ticks(_TICKS + 2), strict=True):
        if text != "0" and "." not in text:
            parts.append(f'<text x="{x(value)}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle">{text}</text>')
    if best is not None:
        parts.append(
            f'<line x1="{x(best)}" x2="{x(best)}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" stroke="currentColor" '
            f'stroke-opacity=".6" stroke-dasharray="3 3"><title>best: step {best:,}</title></line>'
        )
    at = _LEFT
    for number, (data_set, line) in enumerate(lines):
        color, dashes = _LINES[number % len(_LINES)]
        points = " ".join(f"{x(p + 1)},{y(line[p])}" for p in shown_places(len(line)) if isfinite(line[p]))
        stroke = f'fill="none" stroke="{color}" stroke-width="1.8" stroke-dasharray="{dashes}"'
        parts.append(f'<polyline points="{points}" {stroke}/>')
        parts.append(f'<line x1="{at}" x2="{at + 22}" y1="12" y2="12" {stroke}/>')
        parts.append(f'<text x="{at + 27}" y="16">{escape(data_set)}</text>')
        at += 42 + 7 * len(data_set)
    parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 3}" text-anchor="end">step</text></svg>')
    return Html("".join(parts))


def _opening(measure: str, lines: list[tuple[str, list[float]]], best: int | None) -> str:
    ends = [(name, next(value for value in reversed(line) if isfinite(value))) for name, line in lines]
    told = ", ".join(f"{name} ends at {value:.4f}" for name, value in ends)
    chosen = "" if best is None else f"; best: step {best:,}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img" aria-label="{escape(f"Learning curve by {measure}: {told}{chosen}")}" fill="currentColor" '
        f'style="max-width:100%;height:auto;font:11px sans-serif">'
    )
