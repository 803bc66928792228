"""Plots of what a model remembers of its training: measures, λ's, ranks, forces and weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from gradrank.errors import GradrankError
from gradrank.evaluation.tables import Column, Table
from gradrank.models.display.curves import learning_curves
from gradrank.objectives import Lambda, Objective, PairCost, RankNet, Scheduled, Sigmoid, parse_objective
from gradrank.report.figures import Section, line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REACH = 10.0
"""Forces are drawn for differences of scores up to this."""
_LONGEST = 1000

Line = tuple[str, Sequence[float], Sequence[float]]


def diagnostic_sections(training: Mapping[str, Any]) -> list[Section]:
    """A section for everything that a model's training facts tell; facts of a model without diagnostics tell less.

    >>> [section.name for section in diagnostic_sections({"objective": "Scheduled(NDCG, Lambda(NDCG, cost=sigmoid))"})]
    ['forces', 'weights']
    """
    found = training.get("diagnostics")
    found = found if isinstance(found, Mapping) else {}
    objective = _objective(training)
    sections = [
        _measures(training, found),
        _agreement(found),
        *_gradient_shares(found),
        _top_labels(found),
        _rank_changes(training, found),
    ]
    if objective is not None:
        costs = list(dict.fromkeys(part.cost for part in _parts(objective)))
        sections += [_forces(costs) if costs else None]
        if isinstance(objective, Scheduled):
            sections.append(_weights([objective], int(training.get("grown") or 0)))
    return [section for section in sections if section is not None]


def force_figure(costs: Sequence[PairCost] = (RankNet(), Sigmoid())) -> Figure:
    """Forces of pair costs against the difference of scores (Svore et al. 2011, figure 5).

    >>> len(force_figure().axes[0].lines)
    2
    """
    at = np.linspace(-_REACH, _REACH, 401).tolist()
    lines = [(str(cost).removeprefix("cost="), at, [cost.force(o) for o in at]) for cost in costs]
    return _lines(lines, "s_i − s_j, i the better document", "force on the pair")


def schedule_figure(objectives: Sequence[Scheduled], steps: int = 25) -> Figure:
    """Weights of schedules step by step (Svore et al. 2011, figure 6).

    >>> from gradrank.objectives import parse_objective
    >>> figure = schedule_figure([parse_objective("Scheduled(NDCG, Lambda(NDCG, cost=sigmoid), w0=0.5)")])
    >>> float(figure.axes[0].lines[0].get_ydata()[0])
    0.5
    """
    at = np.unique(np.linspace(0, max(1, steps), min(steps, _LONGEST) + 1).round().astype(int)).tolist()
    lines = [
        (f"{item.schedule}, w0 = {item.w0:g}, η = {item.eta:g}", at, [item.weight(step) for step in at])
        for item in objectives
    ]
    return _lines(lines, "step", "weight of the second objective", low=0.0, high=1.05)


def diagnostic_table(training: Mapping[str, Any]) -> Table:
    """First, middle and last value of everything that was recorded.

    >>> found = {"steps": [0, 10, 20], "rank_changes": {"all": [0.5, 0.25]}}
    >>> diagnostic_table({"diagnostics": found}).rows
    (('rank_changes: all', 0.5, 0.25, None),)
    """
    found = training.get("diagnostics")
    found = found if isinstance(found, Mapping) else {}
    steps = list(found.get("steps", []))
    places = sorted({0, len(steps) // 2, len(steps) - 1}) if steps else []
    columns = [Column("curve"), *(Column(f"step {steps[place]}", "number") for place in places)]
    rows = []
    for kind in ("measures", "agreement", "gradient_shares", "top_labels", "rank_changes"):
        for name, values in _curves(found.get(kind)):
            cells = [values[place] if place < len(values) else None for place in places]
            rows.append((f"{kind}: {name}", *cells))
    return Table(tuple(columns), tuple(rows))


def _objective(training: Mapping[str, Any]) -> Objective | None:
    try:
        return parse_objective(str(training["objective"]))
    except (KeyError, GradrankError):
        return None


def _parts(objective: Objective) -> list[Lambda]:
    return [part for part in objective.parts if isinstance(part, Lambda)]


# ---------------------------------------------------------------------- sections
def _measures(training: Mapping[str, Any], found: Mapping[str, Any]) -> Section | None:
    curves = learning_curves(training)
    sampled = dict(_curves(found.get("measures")))
    names = list(dict.fromkeys((*curves, *sampled)))
    if not names:
        return None
    figure, axes = new_figure(len(names), width=5.5)
    for axis, name in zip(axes, names, strict=True):
        lines: list[Line] = [(data, range(1, len(values) + 1), values) for data, values in curves.get(name, {}).items()]
        if name in sampled:
            lines.append(("sampled training queries", found["steps"], sampled[name]))
        _draw(axis, lines, "step", name)
        best = training.get("best")
        if isinstance(best, int):
            axis.axvline(best, color="#5d6774", linewidth=1.0, linestyle=":")
    return Section("Measures", "Means after each step; dotted: the step of the model.", figure, name="measures")


def _agreement(found: Mapping[str, Any]) -> Section | None:
    curves = _curves(found.get("agreement"))
    if not curves:
        return None
    figure = _lines([(name, found["steps"], values) for name, values in curves], "step", "share of documents", low=0.0)
    caption = (
        "Share of documents that a lower tier pushes where the first tier pushes them or leaves alone (agree), and "
        "share that they push in opposite directions (opposed); over the pairs tied on the tiers above, and over all "
        "pairs that the tier's labels order."
    )
    return Section("Agreement of the tiers", caption, figure, name="agreement")


def _gradient_shares(found: Mapping[str, Any]) -> Iterable[Section]:
    shares = found.get("gradient_shares")
    for number, (part, curves) in enumerate(shares.items() if isinstance(shares, Mapping) else ()):
        lines = [(f"label {name}", found["steps"], values) for name, values in _curves(curves)]
        caption = (
            f"From which labels the λ's of highly relevant documents (label {found['high']:g} and above) come, "
            f"by {part}; mean over these documents."
        )
        name = "gradient_shares" if number == 0 else f"gradient_shares{number + 1}"
        figure = _lines(lines, "step", "share of the gradient", low=0.0)
        yield Section("Shares of the gradient", caption, figure, name=name)


def _top_labels(found: Mapping[str, Any]) -> Section | None:
    curves = _curves(found.get("top_labels"))
    if not curves:
        return None
    lines = [(f"label {name}", found["steps"], values) for name, values in curves]
    top = found.get("top", "")
    figure = _lines(lines, "step", f"share of the top {top}", low=0.0)
    return Section(f"Labels in the top {top}", "Mean over the sampled training queries.", figure, name="top_labels")


def _rank_changes(training: Mapping[str, Any], found: Mapping[str, Any]) -> Section | None:
    curves = dict(_curves(found.get("rank_changes")))
    if not curves:
        return None
    names = {"all": "whole list", "top": f"top {found.get('top', '')}"}
    lines: list[Line] = [
        (names.get(name, name), found["steps"][: len(values)], values) for name, values in curves.items()
    ]
    caption = "Share of ranks that hold another document after a step than before it; mean over the sampled queries."
    sampled = _curves(found.get("measures"))
    if sampled:
        # The figure of the paper has the measure beside the changes.
        measure, values = sampled[0]
        lines.append((f"{measure}, sampled training queries", found["steps"], values))
        for data, curve in learning_curves(training).get(measure, {}).items():
            lines.append((f"{measure}, {data}", range(1, len(curve) + 1), curve))
    figure = _lines(lines, "step", "share, or mean of the measure", low=0.0)
    return Section("Changes of rank", caption, figure, name="rank_changes")


def _forces(costs: Sequence[PairCost]) -> Section:
    shown = list(dict.fromkeys((*costs, RankNet(), Sigmoid())))
    caption = "What pushes a pair apart, before it is weighed by the change of the measure."
    return Section("Forces", caption, force_figure(shown), name="forces")


def _weights(objectives: Sequence[Scheduled], steps: int) -> Section:
    figure = schedule_figure(objectives, steps or 25)
    return Section("Weights", "Weight of the second objective at each step.", figure, name="weights")


# ---------------------------------------------------------------------- lines
def _curves(value: Any, prefix: str = "") -> list[tuple[str, list[float]]]:
    """All lists of numbers in nested mappings, by the names that lead to them."""
    if isinstance(value, Mapping):
        found = []
        for name, item in value.items():
            found += _curves(item, f"{prefix}, {name}" if prefix else str(name))
        return found
    try:
        return [(prefix, [float(number) for number in value])] if isinstance(value, list) else []
    except (TypeError, ValueError):
        return []


def _lines(
    lines: Sequence[Line], across: str, up: str, *, low: float | None = None, high: float | None = None
) -> Figure:
    figure, (axis,) = new_figure()
    _draw(axis, lines, across, up)
    axis.set_ylim(bottom=low, top=high)
    return figure


def _draw(axis: Any, lines: Sequence[Line], across: str, up: str) -> None:
    for number, (name, x, y) in enumerate(lines):
        known = [(a, b) for a, b in zip(x, y, strict=False) if isfinite(b)]
        if known:
            axis.plot(*zip(*known, strict=True), label=name, **line_style(number))
    axis.set_xlabel(across)
    axis.set_ylabel(up)
    if axis.lines:
        axis.legend(frameon=False, fontsize=8)
