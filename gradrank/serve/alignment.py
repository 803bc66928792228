"""Documents as they were sent become a model's matrix; what is missing or unknown is counted, and refused if asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.serve.request_error import RequestError, shown
from gradrank.serve.requests import Documents, number_matrix
from gradrank.serve.served_models import ServedModel
from gradrank.serve.settings import MissingFeatures, UnknownFeatures

_NAMES_SHOWN = 5


@dataclass
class Oddities:
    """What a request lacked or had too much."""

    missing: Counter[str] = field(default_factory=Counter)
    """Documents without a value, by feature: the feature was not sent."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Documents with a feature that the model does not know, by its name."""
    null_values: int = 0
    """Values that were sent as missing."""
    new_categories: int = 0
    """Values of categorical features that the model does not know; they count as missing."""

    def told(self) -> dict[str, Any]:
        """The same for an answer; empty if there is nothing odd."""
        found: dict[str, Any] = {}
        for name, counts in (("missing_features", self.missing), ("unknown_features", self.unknown)):
            if counts:
                found[name] = {"count": len(counts), "names": list(counts)[:_NAMES_SHOWN]}
        if self.new_categories:
            found["new_categories"] = self.new_categories
        return found


def aligned(
    documents: Documents, model: ServedModel, missing: MissingFeatures, unknown: UnknownFeatures
) -> tuple[NDArray[Any], Oddities]:
    """The model's features of the documents, in its order and precision."""
    odd = Oddities()
    if documents.by_name is not None:
        matrix: NDArray[Any] = _by_name(documents.by_name, model, odd)
    elif documents.rows is not None:
        matrix = _coded_rows(documents.rows, model, odd)
    else:
        assert documents.matrix is not None
        matrix = documents.matrix
        if documents.names is not None:
            matrix = _columns(matrix, documents.names, model, odd)
        if model.codes and not documents.coded and matrix.shape[1] == model.ranker.n_features:
            matrix = _coded_columns(matrix, model, odd)
    if matrix.shape[1] != model.ranker.n_features:
        raise RequestError(
            f"documents have {matrix.shape[1]:,} features, model {model.label} expects {model.ranker.n_features:,}"
        )
    if odd.missing and missing is MissingFeatures.error:
        raise MissingFeature(f"documents lack {_named(odd.missing)}, which model {model.label} needs", odd)
    if odd.unknown and unknown is UnknownFeatures.error:
        raise MissingFeature(f"documents have {_named(odd.unknown)}, unknown to model {model.label}", odd)
    not_sent = sum(odd.missing.values()) + odd.new_categories
    odd.null_values = max(0, int(np.count_nonzero(np.isnan(matrix))) - not_sent)
    return _precision(matrix, model), odd


class MissingFeature(RequestError):
    """Refused for its features; the metrics count them nevertheless."""

    def __init__(self, sentence: str, odd: Oddities) -> None:
        super().__init__(sentence, 422, "features")
        self.odd = odd


def _named(counts: Counter[str]) -> str:
    names = ", ".join(shown(name) for name in list(counts)[:_NAMES_SHOWN])
    more = f" and {len(counts) - _NAMES_SHOWN:,} more" if len(counts) > _NAMES_SHOWN else ""
    return f"{'feature' if len(counts) == 1 else 'features'} {names}{more}"


def _by_name(documents: Sequence[Mapping[str, Any]], model: ServedModel, odd: Oddities) -> NDArray[np.float64]:
    names = model.ranker.feature_names
    wanted = model.place.keys()
    rows = []
    for document in documents:
        if document.keys() != wanted:
            odd.missing.update(name for name in names if name not in document)
            odd.unknown.update(name for name in document if name not in wanted)
        rows.append([document.get(name) for name in names])
    return _coded_rows(rows, model, odd)


def _coded_rows(rows: Sequence[Sequence[Any]], model: ServedModel, odd: Oddities) -> NDArray[np.float64]:
    """Rows of numbers, null and names of categories as numbers."""
    types: set[type] = set()
    for row in rows:
        types.update(map(type, row))
    if model.codes and len(rows[0]) == model.ranker.n_features:
        rows = [_coded(row, model, odd) for row in rows]
    elif not types <= {float, int, type(None)}:
        _refuse_odd_value(rows, model)
    return number_matrix(rows)


def _coded(row: Sequence[Any], model: ServedModel, odd: Oddities) -> list[Any]:
    coded = list(row)
    for column, codes in model.codes.items():
        value = coded[column]
        if value is None:
            continue
        if isinstance(value, list | dict):
            _refuse_odd_value([row], model)
        coded[column] = codes.get(value)
        odd.new_categories += value not in codes
    if not set(map(type, coded)) <= {float, int, type(None)}:
        _refuse_odd_value([coded], model)
    return coded


def _coded_columns(matrix: NDArray[Any], model: ServedModel, odd: Oddities) -> NDArray[Any]:
    """Numbers that are values of categories as their codes."""
    matrix = matrix.copy()
    for column, codes in model.codes.items():
        values = matrix[:, column].tolist()
        matrix[:, column] = [codes.get(value, np.nan) for value in values]
        odd.new_categories += sum(value == value and value not in codes for value in values)
    return matrix


def _refuse_odd_value(rows: Sequence[Sequence[Any]], model: ServedModel) -> None:
    for row in rows:
        for column, value in enumerate(row):
            if type(value) not in (float, int, type(None)):
                names = model.ranker.feature_names
                name = shown(names[column]) if column < len(names) else f"number {column + 1}"
                raise RequestError(f"feature {name} is {shown(value)}, expected a number or null")


def _columns(matrix: NDArray[Any], names: Sequence[str], model: ServedModel, odd: Oddities) -> NDArray[Any]:
    wanted = model.ranker.feature_names
    if tuple(names) == wanted:
        return matrix
    place = {name: column for column, name in enumerate(names)}
    odd.missing.update({name: len(matrix) for name in wanted if name not in place})
    odd.unknown.update({name: len(matrix) for name in names if name not in model.place})
    # What was not sent is taken from the first column, and then missing.
    found = matrix[:, [place.get(name, 0) for name in wanted]]
    if odd.missing:
        found[:, [name not in place for name in wanted]] = np.nan
    return found


def _precision(matrix: NDArray[Any], model: ServedModel) -> NDArray[Any]:
    """In the precision that the model was trained with, where float32 can hold the numbers."""
    if matrix.dtype == model.dtype or model.dtype is np.float64:
        return matrix
    with np.errstate(over="ignore"):
        narrow = matrix.astype(np.float32)
    if np.isinf(narrow).any():
        row, column = np.argwhere(np.isinf(narrow))[0]
        raise RequestError(
            f"feature {shown(model.ranker.feature_names[column])} of document {row + 1} is {matrix[row, column]:g}, "
            "beyond float32, in which the model was trained"
        )
    return narrow
