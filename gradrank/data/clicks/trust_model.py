"""Trust bias: users also click what does not attract them, more so near the top.

With trust bias clicks are affine in attractiveness (Agarwal et al. 2019; Vardasbi et al. 2020): at position k

    P(click) = α_k·γ + β_k,    γ = attractiveness of the document,

with β_k for users who examine the document and click it though it does not attract them. Dividing by a propensity does
not correct this; (click − β_k)/α_k does.

The model: a document of attractiveness γ is perceived as relevant with probability γ, and then clicked with probability
``high_k``, else with ``low_k``. γ takes one of a few levels, and documents that were shown at the same topmost and the
same lowest position have a distribution over the levels in common. So documents with few sessions do no harm, as they
do where each has a parameter of its own, and documents that rankers prefer may well be better than others. All is
fitted by expectation maximization.

Clicks determine γ up to a stretch and a shift that are the same for all documents and change no ranking. They
are chosen so that the position that is trusted least has β = 0, and that at the first position a document of γ = 1 is
clicked for certain, α + β = 1. Without trust bias β is 0 everywhere, and α are the propensities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.position_model import Cells

_LEVELS = 12
_MAX_ITERATIONS = 1000
_TOLERANCE = 1e-9  # rise of the log likelihood per impression
_SCORING_STEPS = 4
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class TrustModel:
    """Clicks of each position as a line over attractiveness."""

    low: NDArray[np.float64]
    """Chance of a click at each position on what does not attract."""
    high: NDArray[np.float64]
    """Chance of a click at each position on what attracts for certain."""
    shares: NDArray[np.float64]
    """Distribution of the documents over the levels, a row for each pair of topmost and lowest position."""
    trace: NDArray[np.float64]
    """Log likelihood per impression at the start of each iteration; it never falls."""
    converged: bool

    def line(self, known: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """α and β of the positions, stretched and shifted as said above; NaN at positions that are not known."""
        slope = np.where(known, self.high - self.low, np.nan)
        first = int(np.flatnonzero(known)[0])
        if not slope[first] > _LEAST:
            # All documents are clicked alike there: nothing says what attracts.
            return np.full(len(slope), np.nan), np.full(len(slope), np.nan)
        shift = -np.nanmin(np.where(slope > 0, self.low / np.maximum(slope, _LEAST), np.nan))
        false_clicks = np.where(known, np.maximum(self.low + slope * shift, 0.0), np.nan)
        return slope * (1 - false_clicks[first]) / slope[first], false_clicks


def fit_trust_model(cells: Cells, *, start: TrustModel | None = None) -> TrustModel:
    """Fit the model to counts of documents at positions.

    Parameters
    ----------
    cells
        Counts; a group is a document of a query.
    start
        A model of similar cells, to start from.

    >>> shown = np.array([[0, 0, 400, 600], [0, 1, 100, 900], [1, 0, 900, 100], [1, 1, 350, 650]]).T
    >>> cells = Cells(shown[0], shown[1], shown[2].astype(float), shown[3].astype(float), 2, 2)
    >>> model = fit_trust_model(cells)
    >>> slope = model.high - model.low
    >>> round(float(slope[1] / slope[0]), 1)  # (0.35 − 0.1)/(0.9 − 0.4)
    0.5
    """
    levels = np.linspace(0.0, 1.0, _LEVELS)
    n_places = cells.n_places
    strip = _strips(cells)
    n_strips = int(strip.max(initial=0)) + 1
    by_group, by_place, by_strip = (
        _Sums(cells.group, cells.n_groups), _Sums(cells.place, n_places), _Sums(strip, n_strips)
    )  # fmt: skip
    total = float(cells.shown.sum()) or 1.0
    if start is None:
        rate = np.bincount(cells.place, weights=cells.hits, minlength=n_places) / np.maximum(
            np.bincount(cells.place, weights=cells.shown, minlength=n_places), _LEAST
        )
        low, high = 0.5 * rate, np.minimum(3.0 * rate + 0.01, 0.99)
        shares = np.full((n_strips, _LEVELS), 1.0 / _LEVELS)
    else:
        low, high, shares = start.low, start.high, start.shares
    trace: list[float] = []
    converged = False
    while not converged and len(trace) < _MAX_ITERATIONS:
        low, high = (np.clip(chance, _LEAST, 1 - _LEAST) for chance in (low, high))
        click = low[:, None] + (high - low)[:, None] * levels
        logged, silent = np.log(click), np.log1p(-click)
        of_cells = cells.hits[:, None] * logged[cells.place] + cells.misses[:, None] * silent[cells.place]
        likelihood = np.log(np.maximum(shares, 1e-300))[strip] + by_group(of_cells)
        most = likelihood.max(axis=1, keepdims=True)
        posterior = np.exp(likelihood - most)
        norm = posterior.sum(axis=1, keepdims=True)
        posterior /= norm
        trace.append(float((np.log(norm) + most).sum()) / total)
        converged = len(trace) > 1 and trace[-1] - trace[-2] <= _TOLERANCE
        shares = by_strip(posterior)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), _LEAST)
        expected = posterior[cells.group]
        hits, misses = (by_place(counts[:, None] * expected) for counts in (cells.hits, cells.misses))
        low, high = _better_lines(hits, misses, low, high, levels)
    return TrustModel(low, high, shares, np.array(trace), converged)


def _better_lines(
    hits: NDArray[np.float64],
    misses: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    levels: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lines over the levels that explain expected clicks better, for each position.

    Scoring steps (least squares weighted by the variances) find the best line in a few rounds, but may overshoot.
    A position for which they did takes the step of expectation maximization, which cannot: how much of its clicks,
    and of the others, is of documents perceived as relevant.
    """
    shown = np.maximum(hits + misses, _LEAST)
    rate = hits / shown

    def clicked(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(low[:, None] + (high - low)[:, None] * levels, _LEAST, 1 - _LEAST)

    def explained(click: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((hits * np.log(click) + misses * np.log1p(-click)).sum(axis=1))

    start = click = clicked(low, high)
    left, right = low, high
    for _ in range(_SCORING_STEPS):
        weight = shown / (click * (1 - click))
        total = weight.sum(axis=1)
        mean, mean_rate = (weight @ levels) / total, (weight * rate).sum(axis=1) / total
        away = levels - mean[:, None]
        spread = (weight * away**2).sum(axis=1)
        slope = (weight * away * (rate - mean_rate[:, None])).sum(axis=1) / np.maximum(spread, _LEAST)
        left = np.clip(mean_rate - slope * mean, _LEAST, 1 - _LEAST)
        right = np.clip(mean_rate + slope * (1 - mean), left, 1 - _LEAST)
        click = clicked(left, right)
    hit, missed = hits * levels * high[:, None] / start, misses * levels * (1 - high)[:, None] / (1 - start)
    safe_high = hit.sum(axis=1) / np.maximum((hit + missed).sum(axis=1), _LEAST)
    hit, missed = hits - hit, misses - missed
    safe_low = hit.sum(axis=1) / np.maximum((hit + missed).sum(axis=1), _LEAST)
    better = explained(click) >= explained(clicked(safe_low, safe_high))
    return np.where(better, left, safe_low), np.where(better, right, safe_high)


class _Sums:
    """Sums of the rows of each number, made often for the same numbers."""

    def __init__(self, number: NDArray[np.int64], count: int) -> None:
        self._order = np.argsort(number, kind="stable")
        self._numbers, self._starts = np.unique(number[self._order], return_index=True)
        self._count = count

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.zeros((self._count, rows.shape[1]))
        out[self._numbers] = np.add.reduceat(rows[self._order], self._starts, axis=0)
        return out


def _strips(cells: Cells) -> NDArray[np.int64]:
    """For each document the number of its pair of topmost and lowest position."""
    top, bottom = np.full(cells.n_groups, cells.n_places), np.zeros(cells.n_groups, dtype=np.int64)
    np.minimum.at(top, cells.group, cells.place)
    np.maximum.at(bottom, cells.group, cells.place)
    _, strip = np.unique(top * cells.n_places + bottom, return_inverse=True)
    return strip.reshape(-1)
