"""Constraints: measures that must not fall below a share of a baseline's, or below a number."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import MeasureError
from gradrank.measures import Measure, as_measure

_KEEP = re.compile(r"(?P<measure>.+?)\s*>=\s*(?P<number>[0-9.]+)\s*(?P<percent>%?)\s*")


@dataclass(frozen=True)
class Keep:
    """A measure that must not fall below a share of the baseline's, or below a number.

    >>> Keep.parse("NDCG@10 >= 99%"), str(Keep.parse("MRR >= 0.3"))
    (Keep(measure=NDCG@10, least=0.99, relative=True), 'MRR >= 0.3')
    """

    measure: Measure
    least: float
    relative: bool = True
    """Whether ``least`` is a share of the baseline's mean; else it is a mean."""

    @classmethod
    def parse(cls, text: str) -> Keep:
        """Read ``MEASURE >= 99%`` or ``MEASURE >= 0.45``.

        Parameters
        ----------
        text
            A measure, ``>=``, and a share of the baseline's mean in percent or a mean.
        """
        found = _KEEP.fullmatch(text.strip())
        if found is None:
            raise MeasureError(f"{text!r} is no constraint, expected one like 'NDCG@10 >= 99%' or 'NDCG@10 >= 0.45'")
        measure = as_measure(found["measure"])
        if not isinstance(measure, Measure):
            raise MeasureError(f"{text!r}: {measure} has several parts, expected one measure")
        number, relative = float(found["number"]), bool(found["percent"])
        if not 0.0 < number <= (100.0 if relative else np.inf):
            raise MeasureError(f"{text!r}: expected a share above 0 and up to 100%, or a mean above 0")
        return cls(measure, number / 100.0 if relative else number, relative)

    def excess(self, values: NDArray[np.float64], baseline: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much each query is above what is asked for on average."""
        return values - (self.least * baseline if self.relative else self.least)

    def __str__(self) -> str:
        return f"{self.measure} >= {100 * self.least:.6g}%" if self.relative else f"{self.measure} >= {self.least:g}"
