"""What the report shows of a ranker: facts, learning curves, feature importances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np

from gradrank.models.display.axis import Axis
from gradrank.models.display.curves import chosen_step, items, learning_curves, shown_places, validation_first
from gradrank.models.ranker import Ranker

TOP_FEATURES = 20
_X_TICKS, _Y_TICKS = 7, 7


@dataclass(frozen=True)
class Line:
    """One learning curve."""

    name: str
    points: str
    """Coordinates for an SVG polyline on a square of 100 × 100, y downwards."""
    last: float
    style: int


@dataclass(frozen=True)
class Chosen:
    """The iteration that the model stops at."""

    iteration: int
    at: float
    value: float | None
    height: float | None
    """Place of the value, in percent from the bottom."""


@dataclass(frozen=True)
class CurveChart:
    """All learning curves of one model by one measure."""

    measure: str
    iterations: int
    lines: tuple[Line, ...]
    chosen: Chosen | None
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class FeatureShare:
    """One feature's share of all gain."""

    name: str
    share: float
    width: float
    """Length of its bar, in percent of the longest."""


@dataclass(frozen=True)
class Importance:
    """The most important features of the trees of a model."""

    kind: str
    top: tuple[FeatureShare, ...]
    used: int
    """Features that any split uses."""
    features: int
    rest: float
    """Share of the used features that are not shown."""


@dataclass(frozen=True)
class ModelView:
    """Everything shown of one model."""

    name: str
    facts: list[tuple[str, str]]
    groups: list[tuple[str, list[tuple[str, str]]]]
    charts: tuple[CurveChart, ...]
    importance: Importance | None


def model_views(models: Mapping[str, Ranker]) -> list[ModelView]:
    """All models; curves by the same measure share the same vertical axis, so that charts compare."""
    curves = {name: learning_curves(model.training) for name, model in models.items()}
    axes = {
        measure: Axis.around(
            value for by_measure in curves.values() for line in by_measure.get(measure, {}).values() for value in line
        )
        for by_measure in curves.values()
        for measure in by_measure
    }
    return [
        ModelView(
            name,
            model_facts(model),
            fact_groups(model),
            tuple(_chart(measure, lines, axes[measure], model.training) for measure, lines in curves[name].items()),
            importance(model),
        )
        for name, model in models.items()
    ]


def _chart(measure: str, lines: Mapping[str, list[float]], y_axis: Axis, training: Mapping[str, Any]) -> CurveChart:
    iterations = max(map(len, lines.values()))
    x_axis = Axis(1.0, float(max(2, iterations)))
    shown = tuple(
        Line(name, _points(line, x_axis, y_axis), [value for value in line if isfinite(value)][-1], style % 4)
        for style, (name, line) in enumerate(validation_first(lines))
    )
    return CurveChart(
        measure,
        iterations,
        shown,
        _chosen(chosen_step(training, iterations), lines, x_axis, y_axis),
        [(at, text) for at, text in x_axis.labels(_X_TICKS) if text != "0" and "." not in text],
        y_axis.labels(_Y_TICKS),
    )


def _points(line: list[float], x_axis: Axis, y_axis: Axis) -> str:
    known = [(x_axis.at(p + 1.0), 100.0 - y_axis.at(line[p])) for p in shown_places(len(line)) if isfinite(line[p])]
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in known)


def _chosen(best: int | None, lines: Mapping[str, list[float]], x_axis: Axis, y_axis: Axis) -> Chosen | None:
    if best is None:
        return None
    line = validation_first(lines)[0][1]
    value = line[best - 1] if best <= len(line) and isfinite(line[best - 1]) else None
    return Chosen(best, x_axis.at(float(best)), value, None if value is None else y_axis.at(value))


def importance(model: Ranker) -> Importance | None:
    """Gain of each feature, the largest first; number of splits if the model does not know its gains."""
    if not model.tree_ensembles():
        return None
    kind: Literal["gain", "split"]
    for kind in ("gain", "split"):
        amounts = model.feature_importance(kind)
        total = float(amounts.sum())
        if isfinite(total) and total > 0:
            break
    else:
        return None
    order = [int(i) for i in np.argsort(-amounts, kind="stable")[:TOP_FEATURES] if amounts[i] > 0]
    highest = float(amounts[order[0]])
    top = tuple(
        FeatureShare(model.feature_names[i], float(amounts[i]) / total, round(100.0 * float(amounts[i]) / highest, 2))
        for i in order
    )
    used = int(np.count_nonzero(amounts > 0))
    return Importance(kind, top, used, model.n_features, 1.0 - sum(feature.share for feature in top))


def model_facts(model: Ranker) -> list[tuple[str, str]]:
    """Kind, size and the plain facts of the training, one line each."""
    facts = [("kind", type(model).__name__), ("features", f"{model.n_features:,}")]
    facts += _plain_items(model.shape())
    return facts + _plain_items({name: value for name, value in model.training.items() if name != "command"})


def fact_groups(model: Ranker) -> list[tuple[str, list[tuple[str, str]]]]:
    """Facts of the training that come in groups, such as parameters and versions."""
    groups = (
        (name, _plain_items(value))
        for name, value in items(model.training)
        if name not in ("curves", "profile", "sets")
    )
    return [(name, facts) for name, facts in groups if facts]


def _plain_items(value: Any) -> list[tuple[str, str]]:
    return [(name, _shown(item)) for name, item in items(value) if _is_plain(item)]


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | np.generic)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
