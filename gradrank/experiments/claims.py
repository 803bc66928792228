"""A paper's finding as claims about numbers, and what a run, or several with other seeds, say about each.

A claim is about the mean of a quantity: a difference of two systems per query, or a number that each run has one of. It
claims that the mean lies above a bound, below one, or between two. Runs with different seeds differ in their data and
their trainings, so that queries of one run are more alike than queries of two: the test is that of a mixed model with a
random effect of the run (one-way layout, the mean of the runs' means). Where the runs' means differ no more than their
queries explain (F-test, p > 0.25: the rule of Bozivich, Bancroft and Hartley 1956 for pooling), both variances are
pooled; else only the runs count as observations. Runs on given data have their queries in common: see :func:`joined`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gradrank.evaluation.significance import differences, holm
from gradrank.evaluation.tables import Column, Table

LEVEL = 0.05
Verdict = Literal["holds", "does not hold", "undecided"]
# A variance between runs is believed in from here on.
_POOLED_ABOVE = 0.25


class Sample(NamedTuple):
    """What one run says about a quantity."""

    mean: float
    standard_error: float
    """Over the run's queries; 0 if the quantity is one number for the whole run."""
    n: int
    """Queries, or 1."""


class Estimate(NamedTuple):
    """The mean over runs, with its standard error and the degrees of freedom of the latter."""

    mean: float
    standard_error: float
    degrees: float
    """Infinite if the standard error is 0 because there is one run with one number."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper about the mean of a quantity.

    >>> claim = higher("NDCG@10", "new", "old", [0.5, 0.7, 0.6, 0.9], [0.3, 0.4, 0.5, 0.5])
    >>> claim.says, claim.above
    ('new has a higher NDCG@10 than old', 0.0)
    """

    says: str
    """The statement as a sentence without a full stop."""
    quantity: str
    samples: tuple[Sample, ...]
    """One for each run."""
    above: float = -inf
    below: float = inf
    paper: tuple[float, ...] = ()
    """What the paper states of the quantity: a number, or two whose difference it is; empty if it states none."""

    def estimate(self) -> Estimate:
        """The mean over all runs."""
        return estimate(self.samples)

    def p_values(self) -> tuple[float, float]:
        """Two-sided p-values: that the mean is not where it is claimed to be, and that it is not elsewhere.

        Small is the first if the numbers speak for the claim, the second if they speak against it.
        """
        found = self.estimate()
        if not isfinite(found.mean):
            return nan, nan
        within = [_p_above(found, self.above)] if isfinite(self.above) else []
        within += [_p_above(_mirrored(found), -self.below)] if isfinite(self.below) else []
        outside = [_p_above(_mirrored(found), -self.above)] if isfinite(self.above) else []
        outside += [_p_above(found, self.below)] if isfinite(self.below) else []
        return max(within, default=0.0), min(1.0, len(outside) * min(outside, default=1.0))

    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean."""
        from scipy.special import stdtrit

        found = self.estimate()
        if found.standard_error == 0.0 or not found.degrees >= 1:
            return (found.mean, found.mean) if found.standard_error == 0.0 else (nan, nan)
        half = found.standard_error * float(stdtrit(found.degrees, 1.0 - LEVEL / 2.0))
        return found.mean - half, found.mean + half

    @property
    def expected(self) -> str:
        """Where the mean is claimed to lie.

        >>> Claim("a", "b", (), above=-0.01, below=0.01).expected
        '-0.01 to 0.01'
        """
        if isfinite(self.above) and isfinite(self.below):
            return f"{self.above:g} to {self.below:g}"
        return f"above {self.above:g}" if isfinite(self.above) else f"below {self.below:g}"

    @property
    def stated(self) -> str:
        """What the paper states of the mean.

        >>> Claim("a", "b", (), paper=(0.879, 0.837)).stated, Claim("a", "b", (), paper=(0.7,)).stated
        ('0.042 (0.879 − 0.837)', '0.7')
        """
        if len(self.paper) == 2:
            first, second = self.paper
            return f"{round(first - second, 4):g} ({_plain(first)} − {_plain(second)})"
        return _plain(round(self.paper[0], 4)) if self.paper else "–"

    def to_dict(self) -> dict[str, Any]:
        """As plain values; :meth:`from_dict` is the inverse."""
        return {
            "says": self.says,
            "quantity": self.quantity,
            "above": self.above if isfinite(self.above) else None,
            "below": self.below if isfinite(self.below) else None,
            "paper": list(self.paper),
            "samples": [list(sample) for sample in self.samples],
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Claim:
        """From the plain values of :meth:`to_dict`."""
        return cls(
            value["says"],
            value["quantity"],
            tuple(Sample(float(mean), float(error), int(n)) for mean, error, n in value["samples"]),
            -inf if value["above"] is None else float(value["above"]),
            inf if value["below"] is None else float(value["below"]),
            tuple(map(float, value.get("paper", ()))),
        )


def _plain(value: float) -> str:
    return f"{value:g}" if value >= 0 else f"({value:g})"


# ---------------------------------------------------------------------- making claims
def higher(measure: str, a: str, b: str, values_of_a: ArrayLike, values_of_b: ArrayLike) -> Claim:
    """That one system has a higher mean of a measure than another, from their values per query."""
    return Claim(
        f"{a} has a higher {measure} than {b}", f"{measure}, {a} − {b}", (_paired(values_of_a, values_of_b),), 0.0
    )


def not_lower(measure: str, a: str, b: str, values_of_a: ArrayLike, values_of_b: ArrayLike, *, margin: float) -> Claim:
    """That a system loses less than a margin against another."""
    return Claim(
        f"{a} loses less than {margin:g} of {measure} against {b}",
        f"{measure}, {a} − {b}",
        (_paired(values_of_a, values_of_b),),
        -margin,
    )


def gains_less(measure: str, a: str, b: str, values_of_a: ArrayLike, values_of_b: ArrayLike, *, margin: float) -> Claim:
    """That a system gains less than a margin over another."""
    return Claim(
        f"{a} gains less than {margin:g} of {measure} over {b}",
        f"{measure}, {a} − {b}",
        (_paired(values_of_a, values_of_b),),
        below=margin,
    )


def alike(measure: str, a: str, b: str, values_of_a: ArrayLike, values_of_b: ArrayLike, *, margin: float) -> Claim:
    """That two systems differ by less than a margin."""
    return Claim(
        f"{a} and {b} differ by less than {margin:g} of {measure}",
        f"{measure}, {a} − {b}",
        (_paired(values_of_a, values_of_b),),
        -margin,
        margin,
    )


def number(says: str, quantity: str, value: float, *, above: float = -inf, below: float = inf) -> Claim:
    """A claim about a number that each run has one of.

    >>> number("most directions fall", "share of directions", 0.97, above=0.5).estimate().mean
    0.97
    """
    return Claim(says, quantity, (Sample(float(value), 0.0, 1),), above, below)


def _paired(a: ArrayLike, b: ArrayLike) -> Sample:
    found = differences(a, b)
    found = found[~np.isnan(found)]
    if not len(found):
        return Sample(nan, nan, 0)
    error = float(found.std(ddof=1) / sqrt(len(found))) if len(found) > 1 else nan
    return Sample(float(found.mean()), error, len(found))


def joined(claims: Sequence[Claim], *, same_queries: bool = False) -> Claim:
    """The same claim of several runs as one.

    Runs on the same queries know no more of the queries than one of them: they are one sample, whose error has that of
    the queries whole, and that of the seeds divided by the runs.
    """
    samples = tuple(sample for claim in claims for sample in claim.samples)
    if same_queries and len(samples) > 1 and all(sample.n > 1 for sample in samples):
        means = np.array([sample.mean for sample in samples])
        within = float(np.mean([sample.standard_error**2 for sample in samples]))
        error = sqrt(within + float(means.var(ddof=1)) / len(samples))
        samples = (Sample(float(means.mean()), error, min(sample.n for sample in samples)),)
    return replace(claims[0], samples=samples)


# ---------------------------------------------------------------------- judging them
def estimate(samples: Sequence[Sample]) -> Estimate:
    """The mean of the runs' means, with the standard error of a mixed model.

    >>> estimate([Sample(0.1, 0.02, 101), Sample(0.1, 0.02, 101)]).degrees
    201.0
    >>> estimate([Sample(1.0, 0.0, 1), Sample(3.0, 0.0, 1)])
    Estimate(mean=2.0, standard_error=1.0, degrees=1.0)
    """
    from scipy.special import fdtrc

    there = [sample for sample in samples if sample.n > 0 and isfinite(sample.mean)]
    if not there:
        return Estimate(nan, nan, nan)
    means = np.array([sample.mean for sample in there])
    inner = np.array([sample.standard_error**2 for sample in there])
    inner_degrees = float(sum(sample.n - 1 for sample in there))
    runs, mean, within = len(there), float(means.mean()), float(inner.mean())
    if runs == 1:
        return Estimate(mean, sqrt(within), inner_degrees if within > 0.0 else inf)
    between = float(means.var(ddof=1))
    if within == 0.0 or float(fdtrc(runs - 1, inner_degrees, between / within)) <= _POOLED_ABOVE:
        return Estimate(mean, sqrt(between / runs), float(runs - 1))
    pooled = ((runs - 1) * between + inner_degrees * within) / (runs - 1 + inner_degrees)
    return Estimate(mean, sqrt(pooled / runs), runs - 1 + inner_degrees)


def verdicts(claims: Sequence[Claim]) -> list[tuple[Verdict, float]]:
    """What the numbers say of each claim, and the p-value that says so, by Holm's correction over all of them.

    A claim holds if its mean is significantly where it should be, and does not hold if it is significantly elsewhere.
    """
    both = np.array([claim.p_values() for claim in claims]).reshape(len(claims), 2)
    speaks_for, against = holm(both[:, 0]), holm(both[:, 1])
    found: list[tuple[Verdict, float]] = []
    for p_for, p_against in zip(speaks_for.tolist(), against.tolist(), strict=True):
        if p_for < LEVEL:
            found.append(("holds", p_for))
        elif p_against < LEVEL:
            found.append(("does not hold", p_against))
        else:
            found.append(("undecided", min(p_for, p_against)))
    return found


def overall(claims: Sequence[Claim]) -> Verdict:
    """Of all claims together: a finding holds if each of its claims does, and not if one does not."""
    words = {word for word, _ in verdicts(claims)}
    if "does not hold" in words:
        return "does not hold"
    return "holds" if words == {"holds"} else "undecided"


def verdict_table(claims: Sequence[Claim]) -> Table:
    """Claims with their numbers and verdicts."""
    rows = []
    for claim, (word, p) in zip(claims, verdicts(claims), strict=True):
        low, high = claim.interval()
        row = (claim.says, claim.quantity, claim.expected, claim.stated, claim.estimate().mean, (low, high), p, word)
        rows.append(row)
    columns = (
        Column("claim"), Column("quantity"), Column("expected"), Column("the paper's"), Column("mean", "number"),
        Column("95 %", "interval"), Column("p (holm)", "p"), Column("verdict"),
    )  # fmt: skip
    runs = max((len(claim.samples) for claim in claims), default=0)
    return Table(columns, tuple(rows), f"The paper's finding; {runs} run{'s' if runs != 1 else ''}")


def _mirrored(found: Estimate) -> Estimate:
    return found._replace(mean=-found.mean)


def _p_above(found: Estimate, bound: float) -> float:
    """Two-sided p-value of the mean being above a bound; 1 if it is not."""
    from scipy.special import stdtr

    if found.mean <= bound:
        return 1.0
    if found.standard_error == 0.0:
        return 0.0
    if not found.degrees >= 1:
        return nan
    return float(min(1.0, 2.0 * stdtr(found.degrees, -(found.mean - bound) / found.standard_error)))
