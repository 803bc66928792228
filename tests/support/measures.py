"""Measures by name."""

from __future__ import annotations

from gradrank.measures import Measure, parse_measure


def measure(name: str) -> Measure:
    """A measure by its name; a graded one is a mistake of the test."""
    result = parse_measure(name)
    assert isinstance(result, Measure)
    return result
