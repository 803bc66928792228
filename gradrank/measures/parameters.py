"""Parameters of measures: what values each takes, and what it means."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from gradrank.errors import MeasureError


@dataclass(frozen=True)
class Parameter:
    """What a parameter means and which values it takes."""

    doc: str
    words: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    table: bool = False
    default: Any = None

    def check(self, measure: str, name: str, value: Any) -> Any:
        """The value in canonical form, or a MeasureError that says what was expected."""
        if isinstance(value, str) and value in self.words:
            return value
        if self.low is not None and isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number) and number >= self.low and (self.high is None or number <= self.high):
                return number
        if self.table and isinstance(value, list | tuple) and value:
            entries = tuple(value)
            if all(isinstance(v, int | float) and math.isfinite(v) and v >= 0 for v in entries):
                return tuple(float(v) for v in entries)
        raise MeasureError(f"{measure}: {name} is {value!r}, expected {self.expected}")

    @property
    def expected(self) -> str:
        """The allowed values in words."""
        kinds = [*self.words]
        if self.low is not None:
            kinds.append(
                f"a number of {self.low:g} or more" if self.high is None else f"a number in {self.low:g}…{self.high:g}"
            )
        if self.table:
            kinds.append("a list with the gain of each label 0, 1, 2, …")
        return " or ".join(kinds)


def parameter(
    doc: str,
    *words: str,
    low: float | None = None,
    high: float | None = None,
    table: bool = False,
    default: str | float | None = None,
) -> Any:
    """A keyword field of a measure whose value, unless given, comes from the convention.

    Parameters
    ----------
    doc
        What it means, for the documentation and the command line.
    words
        Words that it may be.
    low, high
        It may be a number from ``low`` to ``high`` (None: any larger one).
    table
        Whether it may be a list of numbers, one for each label.
    default
        The value if no convention names the parameter.
    """
    declared = Parameter(doc, words, low, high, table, default)
    return field(default=None, kw_only=True, metadata={"parameter": declared})


# Parameters that several measures share.
GAIN = "what a label is worth: 2^label − 1, the label itself, or a list of gains"
DISCOUNT = "weight of rank r: 1/log2(1+r), LETOR's 1, 1, 1/log2 r, 1/ln(1+r), or 1/r"
REL = "smallest label that counts as relevant"


def gain_parameter() -> Any:
    """The parameter ``gain`` of NDCG and its kin."""
    return parameter(GAIN, "exp2", "linear", table=True)


def discount_parameter() -> Any:
    """The parameter ``discount`` of NDCG and its kin."""
    return parameter(DISCOUNT, "log2", "letor", "ln", "reciprocal")


def rel_parameter() -> Any:
    """The parameter ``rel`` of measures of binary relevance."""
    return parameter(REL, low=0.0)
