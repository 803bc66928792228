"""Propensities as files: JSON, for other commands and for people."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.propensity import Propensities
from gradrank.errors import DataError
from gradrank.runtime.files import replacing
from gradrank.runtime.json_text import parse_json

_FORMAT = "gradrank-propensities"


def write_propensities(propensities: Propensities, path: str | Path) -> None:
    """Write propensities as a JSON file.

    >>> import tempfile
    >>> from gradrank.data.clicks.propensity import given_propensities
    >>> path = Path(tempfile.mkdtemp()) / "propensities.json"
    >>> write_propensities(given_propensities([1.0, 0.25]), path)
    >>> read_propensities(path).probability.tolist()
    [1.0, 0.25]
    """

    def numbers(values: NDArray[np.float64]) -> list[float | None]:
        return [float(value) if np.isfinite(value) else None for value in values]

    content = {
        "format": _FORMAT,
        "method": propensities.method,
        "confidence": propensities.confidence,
        "compared": propensities.compared,
        "position": propensities.position.tolist(),
        "probability": numbers(propensities.probability),
        "low": numbers(propensities.low),
        "high": numbers(propensities.high),
    }
    if propensities.false_clicks is not None:
        content["false_clicks"] = numbers(propensities.false_clicks)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_propensities(path: str | Path) -> Propensities:
    """Read what :func:`write_propensities` wrote.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "propensities.json"
    >>> _ = path.write_text("[]")
    >>> read_propensities(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gradrank.errors.DataError: ...: is no file of propensities, as gradrank propensity writes them
    """
    refused = DataError("is no file of propensities, as gradrank propensity writes them", path=path)
    try:
        content = parse_json(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path=path) from None
    except ValueError:
        raise refused from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise refused
    try:
        position = np.array(content["position"], dtype=np.int64)
        columns = [np.array(content[name], dtype=np.float64) for name in ("probability", "low", "high")]
        given = content.get("false_clicks")
        false_clicks = None if given is None else np.array(given, dtype=np.float64)
        method, confidence, compared = str(content["method"]), float(content["confidence"]), int(content["compared"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise refused from None
    probability = columns[0]
    good = np.isnan(probability) | ((probability > 0) & np.isfinite(probability))
    if position.ndim != 1 or any(column.shape != position.shape for column in columns):
        raise refused
    if not len(position) or not good.all():
        raise refused
    if position[0] < 1 or (position[1:] <= position[:-1]).any() or np.isnan(probability).all():
        raise refused
    if false_clicks is not None and (
        false_clicks.shape != position.shape or not ((false_clicks >= 0) | np.isnan(probability)).all()
    ):
        raise refused
    low, high = columns[1:]
    return Propensities(position, probability, low, high, method, confidence, compared, false_clicks)
