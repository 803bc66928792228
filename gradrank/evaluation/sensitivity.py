"""What a number of queries can tell: the smallest difference that a paired test over them would call significant.

A system that is "not significantly worse" on a handful of queries may be much worse. Whoever decides by such a test
says so with :func:`warn_about_few_queries`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan

import numpy as np
from numpy.typing import ArrayLike

from gradrank.errors import FewQueriesWarning
from gradrank.evaluation.significance import t_test

LARGEST_BLIND_SHARE = 0.1
"""A test that cannot see a difference of this share of the baseline's mean decides nothing."""
FEWEST_QUERIES = 10
"""Fewer queries decide nothing, however alike they are."""


@dataclass(frozen=True)
class Sensitivity:
    """How well paired tests against a baseline can see.

    >>> Sensitivity("NDCG@3", 8, 0.12, 0.48).enough
    False
    """

    measure: str
    queries: int
    """Queries on which the systems have a value."""
    visible: float
    """Smallest mean difference that the test would call significant, given how much the systems' values vary from query
    to query; NaN if it can never be significant."""
    mean: float
    """Mean of the baseline."""

    @property
    def enough(self) -> bool:
        """Whether the queries suffice to decide by."""
        if self.queries < FEWEST_QUERIES or isnan(self.visible):
            return False
        return self.visible <= LARGEST_BLIND_SHARE * abs(self.mean)

    def sentence(self) -> str:
        """How many queries there are, and what can be seen on them.

        >>> Sensitivity("NDCG@3", 8, 0.12, 0.48).sentence()
        'on 8 queries a difference of NDCG@3 below 0.120 (25 % of 0.480) cannot be told from chance'
        """
        some = f"on {self.queries:,} {'query' if self.queries == 1 else 'queries'}"
        if isnan(self.visible):
            return f"{some} no difference of {self.measure} can be told from chance"
        share = f" ({self.visible / abs(self.mean):.0%} of {self.mean:.3f})".replace("%", " %") if self.mean else ""
        return f"{some} a difference of {self.measure} below {self.visible:.3f}{share} cannot be told from chance"


def sensitivity(
    values: Mapping[str, ArrayLike], measure: object, *, baseline: str | None = None, level: float = 0.05
) -> Sensitivity:
    """Find out what paired t-tests of several systems against a baseline can see.

    Parameters
    ----------
    values
        values per query of one measure, by system; NaN where a query has none
    measure
        the measure, for what is said
    baseline
        the system that the others are compared with; the first unless named
    level
        level of significance

    Returns
    -------
    Sensitivity
        with the median, over the systems that do not differ significantly, of the smallest difference that would

    Examples
    --------
    With 4 queries whose differences have a standard deviation of 0.1, half an interval is 3.18 · 0.1 / √4:

    >>> values = {"base": [0.5, 0.5, 0.5, 0.5], "new": [0.6134, 0.5, 0.3866, 0.5]}
    >>> found = sensitivity(values, "NDCG@3")
    >>> found.queries, round(found.visible, 3)
    (4, 0.147)
    """
    names = list(values)
    base = names[0] if baseline is None else baseline
    tests = [t_test(values[name], values[base], level=level) for name in names if name != base]
    tests = [test for test in tests if not test.p < level] or tests
    reference = np.asarray(values[base], dtype=np.float64)
    counted = reference[~np.isnan(reference)]
    mean = float(counted.mean()) if len(counted) else nan
    if not tests:
        return Sensitivity(str(measure), len(counted), nan, mean)
    widths = [(test.high - test.low) / 2 for test in tests]
    return Sensitivity(str(measure), min(test.n for test in tests), float(np.median(widths)), mean)


def warn_about_few_queries(
    values: Mapping[str, ArrayLike],
    measure: object,
    decision: str,
    *,
    baseline: str | None = None,
    level: float = 0.05,
    remedy: str = "take more queries",
) -> None:
    """Warn if a decision between systems rests on too few queries to mean anything.

    Parameters
    ----------
    values, measure, baseline, level
        as :func:`sensitivity` takes them
    decision
        what was decided, in words: ``the choice of the weight``
    remedy
        what to do about it

    Warns
    -----
    FewQueriesWarning
        if there are fewer than 10 queries, or if a difference of a tenth of the baseline's mean would go unseen; not if
        every system differs significantly from the baseline: then the queries were enough
    """
    if len(values) < 2:
        return
    base = next(iter(values)) if baseline is None else baseline
    if all(t_test(values[name], values[base], level=level).p < level for name in values if name != base):
        return
    found = sensitivity(values, measure, baseline=baseline, level=level)
    if not found.enough:
        warnings.warn(f"{decision} means little: {found.sentence()}; {remedy}", FewQueriesWarning, stacklevel=3)
