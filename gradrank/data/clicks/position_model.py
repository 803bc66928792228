"""The position-based click model: P(click) = γ_position · α_group, fitted by expectation maximization.

A group is whatever attracts alike wherever it is shown: a document of a query, or a set of documents that were shown at
two positions equally often. Only products matter to the likelihood, so the scale of γ against α is free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.runtime.kernels import njit

_MAX_ITERATIONS = 2000
_TOLERANCE = 1e-10  # rise of the log likelihood per impression over three steps


@dataclass(frozen=True, eq=False)
class Cells:
    """How often each group was shown and clicked at each position; a group and position come once."""

    group: NDArray[np.int64]
    place: NDArray[np.int64]
    hits: NDArray[np.float64]
    """Clicks; counts may be weighted, and need not be whole."""
    misses: NDArray[np.float64]
    """Impressions without a click."""
    n_groups: int
    n_places: int

    @property
    def shown(self) -> NDArray[np.float64]:
        """Impressions."""
        return self.hits + self.misses


def count_cells(
    group: NDArray[np.int64],
    place: NDArray[np.int64],
    clicked: NDArray[np.bool_],
    n_groups: int,
    n_places: int,
) -> Cells:
    """Impressions of a group at a position are exchangeable: their counts.

    >>> cells = count_cells(np.array([0, 0, 0]), np.array([0, 1, 1]), np.array([True, False, True]), 1, 2)
    >>> cells.hits.tolist(), cells.misses.tolist()
    ([1.0, 1.0], [0.0, 1.0])
    """
    keys, cell = np.unique(group * n_places + place, return_inverse=True)
    cell = cell.reshape(-1)
    shown = np.bincount(cell, minlength=len(keys)).astype(np.float64)
    hits = np.bincount(cell[clicked], minlength=len(keys)).astype(np.float64)
    return Cells(keys // n_places, keys % n_places, hits, shown - hits, n_groups, n_places)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The position-based model of some cells."""

    attraction: NDArray[np.float64]
    """α of each group."""
    examined: NDArray[np.float64]
    """γ of each position."""
    trace: NDArray[np.float64]
    """Log likelihood per impression (with the prior, if any) at the start of each iteration."""
    converged: bool


def fit_position_model(
    cells: Cells, prior: tuple[float, float] = (0.0, 0.0), *, start: FittedModel | None = None
) -> FittedModel:
    """Fit the model by expectation maximization.

    Starting from click-through rates keeps what was never clicked at 0, its maximum likelihood. Plain
    EM crawls here, so every two steps are extrapolated (SQUAREM, Varadhan & Roland 2008); an
    extrapolation that lowers the likelihood is taken back.

    Parameters
    ----------
    cells
        Counts.
    prior
        Clicked and unclicked impressions, all examined, that each group has besides: the estimate is the posterior
        mode under Beta(a + 1, b + 1), and the iterations raise that posterior.
    start
        A model of similar cells, to start from.

    >>> cells = Cells(np.array([0, 0]), np.array([0, 1]), np.array([40.0, 20.0]), np.array([60.0, 80.0]), 1, 2)
    >>> model = fit_position_model(cells)
    >>> float((model.examined[1] / model.examined[0]).round(3))
    0.5
    """
    n_groups = cells.n_groups
    group_shown = np.bincount(cells.group, weights=cells.shown, minlength=n_groups)
    place_shown = np.bincount(cells.place, weights=cells.shown, minlength=cells.n_places)
    total = float(cells.shown.sum()) or 1.0

    def step(theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        better = np.zeros_like(theta)
        likelihood = _em_step(
            cells.group, cells.place, cells.hits, cells.misses, theta, group_shown, place_shown, *prior, better
        )
        return better, float(likelihood) / total

    if start is None:
        known = np.maximum(group_shown + sum(prior), 1e-300)
        attraction = (np.bincount(cells.group, weights=cells.hits, minlength=n_groups) + prior[0]) / known
        hits = np.bincount(cells.place, weights=cells.hits, minlength=cells.n_places)
        examined = hits / np.maximum(place_shown, 1e-300)
        theta = np.concatenate((attraction, examined / (examined.max(initial=0) or 1.0)))
    else:
        theta = np.concatenate((start.attraction, start.examined))
    one, likelihood = step(theta)
    trace = [likelihood]
    converged = False
    while not converged and len(trace) < _MAX_ITERATIONS:
        two, likelihood = step(one)
        trace.append(likelihood)
        far = _extrapolated(theta, one, two)
        after, likelihood = step(far)
        if likelihood < trace[-1]:
            far = two
            after, likelihood = step(two)
        theta, one = far, after
        converged = likelihood - trace[-2] <= _TOLERANCE
        trace.append(likelihood)
    return FittedModel(one[:n_groups], one[n_groups:], np.array(trace), converged)


def _extrapolated(
    theta: NDArray[np.float64], one: NDArray[np.float64], two: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Where two steps seem to lead, or the second step for the probabilities that would leave (0, 1)."""
    change = one - theta
    curve = two - one - change
    bend = float(np.sqrt(curve @ curve))
    if bend == 0:
        return two
    length = max(1.0, float(np.sqrt(change @ change)) / bend)
    far = theta + 2 * length * change + length**2 * curve
    return np.where((far > 0) & (far < 1), far, two)


@njit(cache=True, nogil=True)
def _em_step(
    pair: NDArray[np.int64],
    place: NDArray[np.int64],
    hits: NDArray[np.float64],
    misses: NDArray[np.float64],
    theta: NDArray[np.float64],
    pair_shown: NDArray[np.float64],
    place_shown: NDArray[np.float64],
    a: float,
    b: float,
    better: NDArray[np.float64],
) -> float:
    """One expectation-maximization step from ``theta`` to ``better``; the log posterior at ``theta``."""
    n_pairs = len(pair_shown)
    likelihood = 0.0
    for cell in range(len(pair)):
        alpha = theta[pair[cell]]
        gamma = theta[n_pairs + place[cell]]
        click = alpha * gamma
        attracted = hits[cell]
        looked = hits[cell]
        if hits[cell] > 0:
            likelihood += hits[cell] * np.log(max(click, 1e-300))
        if misses[cell] > 0:
            silent = max(1 - click, 1e-300)
            likelihood += misses[cell] * np.log(silent)
            attracted += misses[cell] * alpha * (1 - gamma) / silent
            looked += misses[cell] * gamma * (1 - alpha) / silent
        better[pair[cell]] += attracted
        better[n_pairs + place[cell]] += looked
    for i in range(n_pairs):
        if a > 0:
            likelihood += a * np.log(max(theta[i], 1e-300))
        if b > 0:
            likelihood += b * np.log(max(1 - theta[i], 1e-300))
        if pair_shown[i] + a + b > 0:
            better[i] = (better[i] + a) / (pair_shown[i] + a + b)
    for i in range(len(place_shown)):
        if place_shown[i] > 0:
            better[n_pairs + i] /= place_shown[i]
    return likelihood
