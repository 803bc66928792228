"""A report in numbers, inside its own page, so that pages can be compared without the data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from math import isfinite
from typing import Any

from gradrank.evaluation import Comparison, Evaluation

FORMAT = "gradrank-report"
VERSION = 1
MARK = '<script type="application/json" id="gradrank-report">'
_DIGITS = 6
# Values of so many queries are kept, so that systems of two reports can be tested against each other.
_MOST_QUERIES = 20_000


def embedded(
    title: str,
    date: datetime,
    verdict: str,
    evaluation: Evaluation,
    comparison: Comparison | None,
    sets: Sequence[str],
) -> str:
    """The report as JSON that can stand inside an HTML page, whatever names hold."""
    text = json.dumps(
        summary(title, date, verdict, evaluation, comparison, sets), allow_nan=False, separators=(",", ":")
    )
    # All that could end the element, or begin another, becomes an escape of JSON's.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def summary(
    title: str,
    date: datetime,
    verdict: str,
    evaluation: Evaluation,
    comparison: Comparison | None,
    sets: Sequence[str],
) -> dict[str, Any]:
    """Plain values: means with intervals, and the values per query of the first measure."""
    first = evaluation.measures[0]
    qids = evaluation.qids.to_list()
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": title,
        "date": date.isoformat(),
        "verdict": verdict,
        "data": list(sets),
        "queries": len(qids),
        "query_ids": sha256("\0".join(qids).encode("utf-8", "replace")).hexdigest(),
        "weighted": evaluation.weights is not None,
        "baseline": None if comparison is None else comparison.baseline,
        "measures": [str(measure) for measure in evaluation.measures],
        "systems": [
            {
                "name": system,
                "means": [_mean(evaluation, system, number) for number in range(len(evaluation.measures))],
                "values": [_plain(value) for value in evaluation.values[system][first].tolist()]
                if len(qids) <= _MOST_QUERIES and evaluation.weights is None
                else None,
            }
            for system in evaluation.systems
        ],
    }


def _mean(evaluation: Evaluation, system: str, number: int) -> list[float | None]:
    found = evaluation.summary(system, evaluation.measures[number])
    return [_plain(found.mean), _plain(found.low), _plain(found.high)]


def _plain(value: float) -> float | None:
    return round(float(value), _DIGITS) if isfinite(value) else None
