"""Paired tests of two systems over the same queries, and Holm's correction for many of them.

All tests are two-sided and look at the differences ``d = a − b`` per query. A query on which either
system has no value (NaN) is left out of the pair. Query weights, if given, weigh the mean difference;
the tests then judge that weighted mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.arrays import number_array
from gradrank.data.row_index import check_same_order
from gradrank.errors import DataError

EXACT_LIMIT = 12
"""Up to this many non-zero differences the randomization test enumerates every sign assignment."""

_BLOCK_ELEMENTS = 1 << 20
# Values that should be equal can differ in their last bits; a difference this small relative to
# the values is none, and sums this close to the observed one count as equal to it.
_RELATIVE_NOISE = 1e-12


@dataclass(frozen=True)
class PairedTest:
    """Outcome of one paired test of ``a`` against ``b``."""

    test: str
    """Name of the test: ``t``, ``randomization`` or ``bootstrap``."""
    n: int
    """Queries on which both systems have a value."""
    difference: float
    """(Weighted) mean of ``a − b``."""
    low: float
    """Lower end of the interval of the difference."""
    high: float
    """Upper end of the interval of the difference."""
    p: float
    """Two-sided p-value; NaN if there are too few queries to tell."""
    statistic: float
    """The t ratio, or the mean difference for the resampling tests."""
    note: str = ""
    """What a reader of the p-value should know, e.g. that it is exact, or why it is NaN."""


def differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Per-query differences ``a − b``; NaN where either is NaN, 0 where only rounding differs.

    >>> differences([0.5, 0.1 + 0.2, float("nan")], [0.25, 0.3, 1.0]).tolist()
    [0.25, 0.0, nan]
    """
    check_same_order({"a": a, "b": b})
    left, right = number_array(a, "a", np.float64), number_array(b, "b", np.float64)
    if left.ndim != 1 or left.shape != right.shape:
        raise DataError(f"paired values have shapes {left.shape} and {right.shape}, expected one list each, as long")
    if np.isinf(left).any() or np.isinf(right).any():
        raise DataError("paired values hold an infinite number, expected finite numbers or NaN")
    result: NDArray[np.float64] = left - right
    result[np.abs(result) <= _RELATIVE_NOISE * np.maximum(np.abs(left), np.abs(right))] = 0.0
    return result


def t_test(a: ArrayLike, b: ArrayLike, *, weights: ArrayLike | None = None, level: float = 0.05) -> PairedTest:
    """Paired t-test: the ratio of the mean difference to its standard error, against Student's t.

    ``t = mean(d) / sqrt(var(d) / n)`` with ``n − 1`` degrees of freedom. For the thousands of queries
    of the ranking papers this is their criterion "ratio above 1.96". With weights the mean is the
    weighted one and its variance ``n/(n−1) · Σ w²(d − mean)² / (Σ w)²``, which is the usual one for
    equal weights.

    Parameters
    ----------
    a, b
        Values of the two systems, query by query; NaN leaves the query out. The difference is a − b.
    weights
        One weight per query; all the same unless given.
    level
        The interval covers ``1 − level``.

    >>> result = t_test([0.5, 0.7, 0.9, 0.8], [0.4, 0.5, 0.9, 0.7])
    >>> round(result.statistic, 3), round(result.p, 3)
    (2.449, 0.092)
    """
    d, w = _pairs(a, b, weights, level)
    mean = _mean(d, w)
    if len(d) < 2:
        return PairedTest("t", len(d), mean, nan, nan, nan, nan, _too_few(len(d)))
    error = standard_error(d, w)
    half = error * _t_quantile(level, len(d) - 1)
    if not d.any():
        return PairedTest("t", len(d), mean, mean, mean, 1.0, 0.0, "no query differs")
    if error == 0.0:
        return PairedTest("t", len(d), mean, mean, mean, 0.0, float(np.copysign(np.inf, mean)), "all differ alike")
    from scipy.special import stdtr

    ratio = mean / error
    p = float(2.0 * stdtr(len(d) - 1, -abs(ratio)))
    return PairedTest("t", len(d), mean, mean - half, mean + half, p, ratio)


def randomization_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    level: float = 0.05,
    resamples: int = 10_000,
    random_state: int = 0,
) -> PairedTest:
    """Fisher's randomization test: how often would swapping the systems at random differ as much?

    If the systems were alike, each query's difference could as well have the other sign. The p-value is
    the share of sign assignments whose absolute mean difference is at least the observed one: over all
    2ⁿ of them if at most 12 differences are not zero, else over ``resamples`` random ones and the
    observed one, ``(1 + count) / (1 + resamples)``. The test itself has no interval; the one given is
    that of the t-test.

    Parameters
    ----------
    a, b
        Values of the two systems, query by query; NaN leaves the query out. The difference is a − b.
    weights
        One weight per query; all the same unless given.
    level
        The interval covers ``1 − level``.
    resamples
        Number of random sign assignments.
    random_state
        Seed of the assignments.

    >>> randomization_test([0.5, 0.7, 0.9, 0.8], [0.4, 0.5, 0.9, 0.7]).p
    0.25
    """
    _check_resamples(resamples)
    d, w = _pairs(a, b, weights, level)
    mean = _mean(d, w)
    if len(d) == 0:
        return PairedTest("randomization", 0, nan, nan, nan, nan, nan, _too_few(0))
    interval = t_test(a, b, weights=weights, level=level)
    moving = d if w is None else d * w
    moving = moving[moving != 0.0]
    if len(moving) == 0:
        p, note = 1.0, "no query differs"
    elif len(moving) <= EXACT_LIMIT:
        p, note = _exact_sign_flip_p(moving), "exact"
    else:
        p, note = _sampled_sign_flip_p(moving, resamples, random_state), f"{resamples:,} permutations"
    if len(d) == 1:
        note = _too_few(1)
    return PairedTest("randomization", len(d), mean, interval.low, interval.high, p, mean, note)


def bootstrap_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    level: float = 0.05,
    resamples: int = 10_000,
    random_state: int = 0,
) -> PairedTest:
    """Paired bootstrap: draw queries with replacement, and see where the mean difference falls.

    The interval runs between the ``level/2`` and ``1 − level/2`` percentiles of the resampled mean
    differences (Efron). The p-value is the level at which that interval begins to hold 0: twice the
    smaller share of resampled means on either side of 0, with the observed mean counted once.

    Parameters
    ----------
    a, b
        Values of the two systems, query by query; NaN leaves the query out. The difference is a − b.
    weights
        One weight per query; all the same unless given.
    level
        The interval covers ``1 − level``.
    resamples
        How often queries are drawn.
    random_state
        Seed of the draws.

    >>> result = bootstrap_test([0.5, 0.7, 0.9, 0.8], [0.4, 0.6, 0.8, 0.7])
    >>> round(result.low, 3), round(result.high, 3), result.p < 0.001
    (0.1, 0.1, True)
    """
    _check_resamples(resamples)
    d, w = _pairs(a, b, weights, level)
    mean = _mean(d, w)
    if len(d) < 2:
        return PairedTest("bootstrap", len(d), mean, nan, nan, nan, mean, _too_few(len(d)))
    if not d.any():
        return PairedTest("bootstrap", len(d), mean, mean, mean, 1.0, mean, "no query differs")
    means = _bootstrap_means(d, w, resamples, random_state)
    low, high = np.quantile(means, [level / 2, 1 - level / 2])
    noise = _RELATIVE_NOISE * float(np.abs(d).max())
    below, above = int(np.count_nonzero(means <= noise)), int(np.count_nonzero(means >= -noise))
    p = min(1.0, 2.0 * (1 + min(below, above)) / (1 + resamples))
    return PairedTest("bootstrap", len(d), mean, float(low), float(high), p, mean, f"{resamples:,} resamples")


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down correction: p-values that may be compared with the level of the whole table.

    The smallest of m p-values is multiplied by m, the next by m − 1, and so on; none may fall below the
    one before it nor exceed 1 (Holm 1979). The chance of any false finding in the table then stays
    below the level. NaN (no test was possible) stays NaN and is not counted among the m.

    Parameters
    ----------
    p_values
        The p-values of all rows of the table.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = number_array(p_values, "the list of p-values", np.float64)
    if p.ndim != 1 or ((p < 0) | (p > 1 + _RELATIVE_NOISE)).any():
        raise DataError("the p-values are not a list of numbers from 0 to 1, or NaN where no test was possible")
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    corrected = np.full(p.shape, nan)
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return corrected


def standard_error(values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> float:
    """Standard error of the (weighted) mean of values without NaN; NaN for fewer than two.

    >>> standard_error(np.array([1.0, 2.0, 3.0, 4.0]))
    0.6454972243679028
    """
    n = len(values)
    if n < 2:
        return nan
    if (values == values[0]).all():
        return 0.0  # exactly: rounding of the mean must not pass for variance
    deviation = values - _mean(values, weights)
    if weights is None:
        return sqrt(float(deviation @ deviation) / (n - 1) / n)
    return sqrt(n / (n - 1) * float(np.sum((weights * deviation) ** 2))) / float(weights.sum())


def t_interval(mean: float, error: float, n: int, level: float = 0.05) -> tuple[float, float]:
    """Interval of a mean that covers ``1 − level``, from its standard error, by Student's t.

    >>> low, high = t_interval(2.5, 0.6455, 4)
    >>> round(low, 2), round(high, 2)
    (0.45, 4.55)
    """
    if n < 2:
        return nan, nan
    half = error * _t_quantile(level, n - 1)
    return mean - half, mean + half


def _pairs(
    a: ArrayLike, b: ArrayLike, weights: ArrayLike | None, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    if not 0.0 < level < 1.0:
        raise DataError(f"the significance level is {level}, expected a number between 0 and 1")
    d = differences(a, b)
    kept = ~np.isnan(d)
    if weights is None:
        return d[kept], None
    check_same_order({"a": a, "weights": weights})
    w = number_array(weights, "the weights", np.float64)
    if w.shape != d.shape or not np.isfinite(w).all() or (w < 0).any():
        raise DataError(f"weights are not one finite number of 0 or more for each of the {len(d)} queries")
    kept &= w > 0
    return d[kept], w[kept]


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    if len(values) == 0:
        return nan
    return float(values.mean() if weights is None else values @ weights / weights.sum())


def _t_quantile(level: float, degrees: int) -> float:
    # The bare special functions: scipy.stats takes half a second to import.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1.0 - level / 2.0))


def _too_few(n: int) -> str:
    return "no query has both values" if n == 0 else "only one query: no test is possible"


def _check_resamples(resamples: int) -> None:
    if resamples < 1:
        raise DataError(f"the number of resamples is {resamples}, expected 1 or more")


def _blocks(rows: int, columns: int) -> Iterator[int]:
    """Cut ``rows`` rows of ``columns`` elements into blocks of bounded size; gives rows a block."""
    block = max(1, _BLOCK_ELEMENTS // columns)
    for start in range(0, rows, block):
        yield min(block, rows - start)


def _exact_sign_flip_p(d: NDArray[np.float64]) -> float:
    assignments = np.arange(1 << len(d))[:, None]
    signs = 1.0 - 2.0 * ((assignments >> np.arange(len(d))) & 1)
    return int(np.count_nonzero(np.abs(signs @ d) >= _threshold(d))) / (1 << len(d))


def _sampled_sign_flip_p(d: NDArray[np.float64], resamples: int, random_state: int) -> float:
    rng = np.random.default_rng(random_state)
    total, threshold, count = float(d.sum()), _threshold(d), 0
    n_bytes = (len(d) + 7) // 8
    for rows in _blocks(resamples, len(d)):
        bits = np.frombuffer(rng.bytes(rows * n_bytes), dtype=np.uint8).reshape(rows, n_bytes)
        chosen = np.unpackbits(bits, axis=1, count=len(d)).astype(np.float64)
        # Not a matrix product: on a busy machine BLAS threads waiting for each other cost ten times the work.
        flipped = np.einsum("ij,j->i", chosen, d)
        count += int(np.count_nonzero(np.abs(total - 2.0 * flipped) >= threshold))
    return (1 + count) / (1 + resamples)


def _threshold(d: NDArray[np.float64]) -> float:
    # A sum in another order may differ in its last bits; the scale of that is the sum of magnitudes.
    return abs(float(d.sum())) - _RELATIVE_NOISE * float(np.abs(d).sum())


def _bootstrap_means(
    d: NDArray[np.float64], w: NDArray[np.float64] | None, resamples: int, random_state: int
) -> NDArray[np.float64]:
    rng = np.random.default_rng(random_state)
    means = np.empty(resamples)
    done = 0
    for rows in _blocks(resamples, len(d)):
        drawn = rng.integers(0, len(d), size=(rows, len(d)), dtype=np.int32)
        if w is None:
            means[done : done + rows] = d[drawn].mean(axis=1)
        else:
            means[done : done + rows] = (d * w)[drawn].sum(axis=1) / w[drawn].sum(axis=1)
        done += rows
    return means
