"""What the report shows of single features: what a measure loses without them, and how the mean score follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

import numpy as np

from gradrank.errors import GradrankError
from gradrank.evaluation.ablation import Ablation, ablate
from gradrank.evaluation.partial_dependence import Dependence, partial_dependence
from gradrank.measures import Measure
from gradrank.models.display.axis import Axis
from gradrank.models.ranker import Ranker
from gradrank.models.systems import Documents
from gradrank.report.results import MARKS, Interval, Mark

# Enough queries for intervals of a few thousandths, few enough for a report to take seconds.
_QUERIES = 500
_REPEATS = 3
# For models that do not tell which features matter: a first look with few documents and values.
_LOOK_VALUES = 5
_LOOK_DOCUMENTS = 100
_TICKS = 4


@dataclass(frozen=True)
class Loss:
    """What is lost without one feature."""

    feature: str
    loss: float
    low: float
    high: float
    p: float
    mark: Mark
    place: Interval | None


@dataclass(frozen=True)
class DependenceChart:
    """The mean score against the values of one feature."""

    feature: str
    points: str
    """Coordinates for an SVG polyline on a square of 100 × 100, y downwards."""
    low: float
    high: float
    span: float
    missing: float | None
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class Effects:
    """What single features do for one model."""

    measure: Measure
    baseline: float
    queries: int
    documents: int
    zero: float
    ticks: list[tuple[float, str]]
    losses: tuple[Loss, ...]
    charts: tuple[DependenceChart, ...]


def all_effects(
    models: Mapping[str, Ranker], documents: Documents, measure: Measure, features: int, n_jobs: int | None = None
) -> tuple[dict[str, Effects], list[str]]:
    """Effects of each model's most important features, and a note for each model that has none on this data."""
    found: dict[str, Effects] = {}
    notes: list[str] = []
    for name, model in models.items():
        try:
            found[name] = effects(model, documents, measure, features, n_jobs)
        except GradrankError as error:
            notes.append(f"{name}: no effects of single features: {error}")
    return found, notes


def effects(model: Ranker, documents: Documents, measure: Measure, features: int, n_jobs: int | None = None) -> Effects:
    """Effects of a model's most important features."""
    chosen = _most_important(model, documents, features, n_jobs)
    lost = ablate(model, documents, measure, features=chosen, repeats=_REPEATS, max_queries=_QUERIES, n_jobs=n_jobs)
    curves = partial_dependence(model, documents, chosen, n_jobs=n_jobs)
    heights = Axis.around(
        value for item in curves.dependences for value in (*item.means.tolist(), *_known(item.missing))
    )
    axis = Axis.around((end for test in lost.tests for end in (test.low, test.high, test.difference)), zero=True)
    return Effects(
        measure,
        lost.baseline,
        lost.n_queries,
        curves.n_docs,
        axis.at(0.0),
        axis.labels(_TICKS + 1),
        _losses(lost, axis),
        tuple(_chart(item, heights) for item in curves.dependences if len(item.values) > 1),
    )


def _most_important(model: Ranker, documents: Documents, count: int, n_jobs: int | None) -> list[str]:
    amounts = model.importances()
    if amounts is None:
        look = partial_dependence(model, documents, n_values=_LOOK_VALUES, max_docs=_LOOK_DOCUMENTS, n_jobs=n_jobs)
        spans = {item.feature: float(np.ptp(item.means)) if len(item.means) else 0.0 for item in look.dependences}
        amounts = np.array([spans.get(name, 0.0) for name in model.feature_names])
    order = np.argsort(-amounts, kind="stable")[:count]
    return [model.feature_names[int(place)] for place in order if amounts[place] > 0]


def _losses(lost: Ablation, axis: Axis) -> tuple[Loss, ...]:
    rows = []
    for name, test, p in zip(lost.features, lost.tests, lost.p_corrected, strict=True):
        significant = p < 0.05
        # A loss without the feature speaks for it.
        verdict = "better" if test.difference > 0 else "worse"
        mark = MARKS[verdict if significant else "no significant difference"]
        place = None
        if not isnan(test.difference):
            ends = (test.difference, test.difference) if isnan(test.low) else (test.low, test.high)
            place = Interval(axis.at(test.difference), axis.at(ends[0]), axis.at(ends[1]))
        rows.append(Loss(name, test.difference, test.low, test.high, p, mark, place))
    return tuple(sorted(rows, key=lambda row: -row.loss))


def _chart(item: Dependence, heights: Axis) -> DependenceChart:
    low, high = float(item.values[0]), float(item.values[-1])
    across = Axis(low, high)
    points = " ".join(
        f"{across.at(value):.2f},{100.0 - heights.at(mean):.2f}"
        for value, mean in zip(item.values.tolist(), item.means.tolist(), strict=True)
    )
    return DependenceChart(
        item.feature,
        points,
        low,
        high,
        float(np.ptp(item.means)),
        None if item.missing is None else heights.at(item.missing),
        across.labels(_TICKS),
        heights.labels(_TICKS),
    )


def _known(value: float | None) -> tuple[float, ...]:
    return () if value is None else (value,)
