"""Checks of parameters and training data that several learners make."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.measures import AnyMeasure


def label_of(given: str | None, measure: AnyMeasure) -> str | None:
    """The label source to learn from: the one given, or else the one that the measure reads.

    >>> from gradrank.measures import NDCG
    >>> label_of(None, NDCG(10, label="clicks")), label_of("grades", NDCG(10, label="clicks"))
    ('clicks', 'grades')
    """
    if given is not None:
        return given
    return measure.sources[0]


def check_auto(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> None:
    """A parameter is a number in a range, or auto."""
    if value == "auto":
        return
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not low <= value <= high or (open_low and value == low) or np.isinf(value):
        wanted = "a positive number" if open_low else f"a number from {low:g} to {high:g}"
        raise TrainingError(f"{name} is {value!r}, expected {wanted} or auto")


def check_orderable(train: RankingData, source: str | None) -> None:
    """Training data whose queries have one label each has nothing to teach."""
    labels = train.label(source)
    if np.isnan(labels).all():
        raise TrainingError("no document of the training data is judged")
    highest = np.fmax.reduceat(labels, train.indptr[:-1])
    if not (highest > np.fmin.reduceat(labels, train.indptr[:-1])).any():
        raise TrainingError("every query of the training data has one label only: there is nothing to order")
