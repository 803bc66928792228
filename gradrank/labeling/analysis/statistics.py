"""Agreement and its tests: κ, α, χ², a permutation test that keeps queries together, and side bias.

What cannot be computed (no data, or no variation) is NaN, never a made-up 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.errors import DataError

_SMALL_EXPECTED = 5.0
_BLOCK_ELEMENTS = 1 << 22

Weights = Literal["none", "linear", "quadratic"]
Level = Literal["nominal", "ordinal"]


def cohen_kappa(table: ArrayLike, weights: Weights = "none") -> float:
    """Cohen's κ of a square table of counts, one rater's categories in the rows, the other's in the columns.

    κ = 1 − Σ w·o / Σ w·e with the observed counts o, those expected from the margins e, and the weight of a
    disagreement w: 1, |i − j| or (i − j)² (Cohen 1960, 1968). NaN if both used one and the same category only.

    >>> round(cohen_kappa([[20, 5], [10, 15]]), 6)
    0.4
    """
    observed = np.asarray(table, dtype=np.float64)
    if observed.ndim != 2 or observed.shape[0] != observed.shape[1]:
        raise DataError(f"the table has shape {observed.shape}, expected a square one")
    total = observed.sum()
    if total == 0:
        return nan
    apart = np.abs(np.subtract.outer(np.arange(len(observed)), np.arange(len(observed)))).astype(np.float64)
    cost = {"none": (apart > 0).astype(np.float64), "linear": apart, "quadratic": apart**2}[weights]
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / total
    disagreement = float((cost * expected).sum())
    return nan if disagreement == 0 else 1.0 - float((cost * observed).sum()) / disagreement


def coincidences(counts: ArrayLike) -> NDArray[np.float64]:
    """Krippendorff's coincidence matrix from how often each unit (row) got each category (column).

    Each unit with m ≥ 2 values adds its ordered pairs of values, each with weight 1/(m − 1).

    >>> coincidences([[2, 0], [1, 1], [0, 1]]).tolist()
    [[2.0, 1.0], [1.0, 0.0]]
    """
    values = np.asarray(counts, dtype=np.float64)
    raters = values.sum(axis=1)
    values, raters = values[raters > 1], raters[raters > 1]
    weighted = values / (raters - 1)[:, None]
    result: NDArray[np.float64] = np.einsum("ui,uj->ij", weighted, values)
    result[np.diag_indices_from(result)] -= weighted.sum(axis=0)
    return result


def krippendorff_alpha(coincidence: ArrayLike, level: Level = "nominal") -> float:
    """Krippendorff's α from a coincidence matrix of ordered categories.

    α = 1 − D_observed / D_expected = 1 − (n − 1) Σ o·δ / Σ n_c n_k·δ. For nominal values δ is 1 unless they are
    equal; for ordinal ones δ_ck = (Σ_{g=c..k} n_g − (n_c + n_k)/2)². NaN if only one category occurs.

    >>> round(krippendorff_alpha(coincidences([[2, 0], [2, 0], [0, 2], [1, 1]])), 4)
    0.5333
    """
    observed = np.asarray(coincidence, dtype=np.float64)
    each = observed.sum(axis=1)
    total = each.sum()
    if level == "nominal":
        distance = 1.0 - np.eye(len(each))
    else:
        # The middle of each category on the scale of cumulated values.
        middle = np.cumsum(each) - each / 2
        distance = np.subtract.outer(middle, middle) ** 2
    expected = float((np.outer(each, each) * distance).sum())
    return nan if expected == 0 else 1.0 - float((total - 1) * (observed * distance).sum()) / expected


@dataclass(frozen=True)
class ChiSquare:
    """Outcome of a χ² test of a 2 × 2 table."""

    statistic: float
    p: float
    note: str = ""


def chi_square(agreed: Sequence[int], disagreed: Sequence[int]) -> ChiSquare:
    """Pearson's χ² (df = 1, no continuity correction) that two groups agree at the same rate.

    It takes all pairs for independent, which pairs of one query are not: read it beside
    :func:`clustered_permutation`.

    >>> result = chi_square((745, 547), (255, 453))
    >>> round(result.statistic, 2), result.p < 0.001
    (85.72, True)
    """
    table = np.array([agreed, disagreed], dtype=np.float64)
    if (table.sum(axis=0) == 0).any():
        return ChiSquare(nan, nan, "one of the tools has no pairs")
    if (table.sum(axis=1) == 0).any():
        return ChiSquare(nan, nan, "all pairs agree" if table[0].any() else "no pair agrees")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    from scipy.special import chdtrc

    note = "an expected count is below 5: the p-value is rough" if expected.min() < _SMALL_EXPECTED else ""
    return ChiSquare(statistic, float(chdtrc(1, statistic)), note)


@dataclass(frozen=True)
class Permutation:
    """Outcome of a permutation test of two agreement rates."""

    difference: float
    p: float
    queries: int
    permutations: int
    note: str = ""


def clustered_permutation(
    agreed: ArrayLike, totals: ArrayLike, *, permutations: int = 2000, seed: int = 0
) -> Permutation:
    """Permutation test that two tools agree at the same rate, with all pairs of a query kept together.

    ``agreed`` and ``totals`` have a row for each query and a column for each tool; 0 pairs mean that the query
    was not judged twice with that tool. If the tools were alike, a query judged with both might as well have its
    two results exchanged, and one judged with one tool only might have been judged with the other; these
    exchanges (the latter among themselves) are drawn at random. p = (1 + as extreme) / (1 + permutations).

    >>> result = clustered_permutation([[9, 5], [8, 6], [9, 4], [7, 5]], [[10, 10]] * 4, seed=1)
    >>> round(result.difference, 3), 0.1 < result.p < 0.15
    (0.325, True)
    """
    good, every = np.asarray(agreed, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    held = every.sum(axis=1) > 0
    good, every = good[held], every[held]
    if permutations < 1:
        raise DataError(f"the number of permutations is {permutations}, expected 1 or more")
    if len(every) == 0 or (every.sum(axis=0) == 0).any():
        return Permutation(nan, nan, len(every), 0, "one of the tools has no pairs")
    observed = _rate_difference(good.sum(axis=0)[None], every.sum(axis=0)[None])[0]
    if len(every) < 2:
        return Permutation(float(observed), nan, len(every), 0, "only one query: no test is possible")
    both = (every > 0).all(axis=1)
    first = every[:, 0] > 0
    alone = np.flatnonzero(~both)
    rng = np.random.default_rng(seed)
    extreme, done = 0, 0
    change_good, change_every = good[:, 1] - good[:, 0], every[:, 1] - every[:, 0]
    while done < permutations:
        rows = min(permutations - done, max(1, _BLOCK_ELEMENTS // len(every)))
        swap = rng.random((rows, len(every))) < 0.5
        if len(alone):
            # A query with one tool keeps its result; the labels are dealt anew among such queries.
            labels = rng.permuted(np.broadcast_to(first[alone], (rows, len(alone))), axis=1)
            swap[:, alone] = labels != first[alone]
        moved_good = np.einsum("ij,j->i", swap, change_good)
        moved_every = np.einsum("ij,j->i", swap, change_every)
        sums_good = good.sum(axis=0) + np.stack([moved_good, -moved_good], axis=1)
        sums_every = every.sum(axis=0) + np.stack([moved_every, -moved_every], axis=1)
        drawn = _rate_difference(sums_good, sums_every)
        extreme += int(np.count_nonzero(np.abs(drawn) >= abs(observed) - 1e-12))
        done += rows
    return Permutation(float(observed), (1 + extreme) / (1 + permutations), len(every), permutations)


def _rate_difference(agreed: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    rates: NDArray[np.float64] = agreed / totals
    return rates[:, 0] - rates[:, 1]


@dataclass(frozen=True)
class SideBias:
    """How often the document on the left was preferred."""

    left: int
    total: int
    share: float
    low: float
    high: float
    """Wilson's 95 % interval of the share."""
    p: float


def side_bias(left: int, total: int) -> SideBias:
    """Exact two-sided binomial test that left and right are preferred equally often.

    >>> bias = side_bias(8, 10)
    >>> bias.share, round(bias.p, 4)
    (0.8, 0.1094)
    """
    if not 0 <= left <= total:
        raise DataError(f"{left} of {total} preferences are for the left, expected 0 to {total}")
    if total == 0:
        return SideBias(0, 0, nan, nan, nan, nan)
    from scipy.stats import binomtest

    result = binomtest(left, total, 0.5)
    interval = result.proportion_ci(method="wilson")
    return SideBias(left, total, left / total, float(interval.low), float(interval.high), float(result.pvalue))
