"""The mean slope of a function on the straight line between two points, as exactly as numbers go.

With g the mean of the gradient of F over the line from b to a, Σ_i g_i · (a_i − b_i) = F(a) − F(b): integrated
gradients (Sundararajan, Taly & Yan 2017), the Aumann–Shapley shares of the difference. This equation is also what tells
whether the mean is good enough: a piece of the line that fails it is cut in two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Function: TypeAlias = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Points × dimensions to the values there, and the gradients."""

_TOLERANCE = 1e-12
# A piece as short as this is not cut further: what it can still be wrong by is rounding.
_MOST_CUTS = 50
_NUMBERS_PER_BLOCK = 1 << 21
# A function so rough that its pieces would take more than 256 MB is rounding too.
_MOST_NUMBERS = 1 << 25


def mean_slopes(
    function: Function,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    *,
    nodes: int,
    cuts: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The mean gradient between each start and its end, lines × dimensions.

    Parameters
    ----------
    function
        Value and gradient at each of many points.
    start, end
        The ends of the lines, lines × dimensions.
    nodes
        Places of Gauss and Legendre's rule on each piece; 1 is exact where the function is linear in pieces.
    cuts
        Places to cut each line at first, lines × places, from 0 to 1, where the slope is known to change.

    >>> def square(points):
    ...     return (points ** 2).sum(axis=1), 2 * points
    >>> mean_slopes(square, np.array([[0.0, 1.0]]), np.array([[2.0, 1.0]]), nodes=2).tolist()
    [[2.0, 2.0]]
    """
    n_lines, width = start.shape
    pieces_per_line = 1 if cuts is None else cuts.shape[1] + 1
    step = max(1, _NUMBERS_PER_BLOCK // max(1, width * nodes * pieces_per_line))
    result = np.empty((n_lines, width))
    for first in range(0, n_lines, step):
        rows = slice(first, first + step)
        result[rows] = _block(function, start[rows], end[rows], nodes, None if cuts is None else cuts[rows])
    return result


def _block(
    function: Function,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    nodes: int,
    cuts: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    n_lines = len(start)
    way = end - start
    places, weights = np.polynomial.legendre.leggauss(nodes)
    places, weights = (places + 1.0) / 2.0, weights / 2.0
    line = np.arange(n_lines)
    low, high = np.zeros(n_lines), np.ones(n_lines)
    if cuts is not None:
        edges = np.sort(np.clip(cuts, 0.0, 1.0), axis=1)
        low = np.column_stack((low, edges)).ravel()
        high = np.column_stack((edges, high)).ravel()
        line = np.repeat(line, cuts.shape[1] + 1)
        real = high > low
        low, high, line = low[real], high[real], line[real]
    total = np.zeros_like(start)
    allowed = np.zeros(n_lines)
    for depth in range(_MOST_CUTS + 1):
        length = high - low
        at = low[:, None] + length[:, None] * places
        points = start[line][:, None, :] + at[:, :, None] * way[line][:, None, :]
        _, gradients = function(points.reshape(-1, start.shape[1]))
        slopes = np.einsum("pnd,n->pd", gradients.reshape(points.shape), weights)
        ends = function(
            np.concatenate((start[line] + low[:, None] * way[line], start[line] + high[:, None] * way[line]))
        )
        rise = ends[0][len(line) :] - ends[0][: len(line)]
        steps = slopes * way[line] * length[:, None]
        # Of the size of what is added and subtracted, below which differences are rounding.
        sizes = np.abs(steps).sum(axis=1) + np.abs(ends[0]).reshape(2, -1).max(axis=0)
        np.maximum.at(allowed, line, _TOLERANCE * sizes)
        wrong = np.abs(steps.sum(axis=1) - rise) > allowed[line]
        if depth == _MOST_CUTS or 2 * wrong.sum() * points[0].size > _MOST_NUMBERS:
            wrong[:] = False
        good = ~wrong
        np.add.at(total, line[good], slopes[good] * length[good, None])
        if good.all():
            break
        low, high, line = low[wrong], high[wrong], line[wrong]
        middle = (low + high) / 2.0
        low, high, line = np.concatenate((low, middle)), np.concatenate((middle, high)), np.concatenate((line, line))
    return total
