"""The bundle (cutting-plane) solver of ½‖w‖² + C·R(w) for any convex risk R of the documents' scores.

A risk is an *oracle*: it takes scores s = X·w and gives a value and a subgradient g with respect to the scores, so
that a = Xᵀg and b = R(w) − a·w make a plane a·w' + b that nowhere exceeds R. The largest of all planes so far is a
model of R; minimising ½‖w‖² + C·model(w) is a small quadratic programme over the planes' weights, whose value is a
lower bound of the minimum (Teo, Vishwanathan, Smola, Le 2010). The difference to the best objective value found is the
duality gap, which is reported and stopped on.

Each step ends with a line search from the best point towards the model's minimiser, in the space of scores, and the
next plane is cut close to the best point: far fewer planes are needed (Franc & Sonnenburg 2009).

A risk may be a mixture Σ_k m_k·R_k of parts. Planes are kept part by part, so they stay valid for another mixture and
for another C: a path of solutions starts warm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from gradrank.learners.grower import TrainingError
from gradrank.learners.products import Features, Vector

# How far from the best point, towards the model's minimiser, the next plane is cut. Planes at the best point itself
# say nothing new, and the search stands still; 0.03 to 0.1 need about equally many, 0.3 twice as many (MQ2007).
_CUT_AT = 0.05
# A line search ends after so many points, or where the slope is so small a part of what it was at the start.
_LINE_STEPS = 8
_LINE_SLOPE = 0.5
# A plane that has had no weight for so many steps is dropped.
_IDLE_STEPS = 30
_MIN_WEIGHT = 1e-9


class Oracle(Protocol):
    """A convex risk of the scores, in one or more parts."""

    @property
    def parts(self) -> int:
        """Number of parts."""

    def __call__(self, scores: Vector) -> tuple[Vector, Vector]:
        """Value of each part, and subgradient of each part with respect to the scores (parts × documents)."""


@dataclass
class Planes:
    """Lower bounds of the parts of a risk: part k of plane i is slope[i, k]·w + offset[i, k].

    >>> planes = Planes(parts=1, features=2)
    >>> planes.add(np.array([[1.0, 0.0]]), np.array([0.5]))
    >>> len(planes)
    1
    """

    parts: int
    features: int
    slope: Vector = field(init=False)
    offset: Vector = field(init=False)
    idle: np.ndarray = field(init=False)
    """Steps since each plane last had weight."""

    def __post_init__(self) -> None:
        self.slope = np.empty((0, self.parts, self.features))
        self.offset = np.empty((0, self.parts))
        self.idle = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.offset)

    def add(self, slope: Vector, offset: Vector) -> None:
        """Add one plane."""
        self.slope = np.concatenate((self.slope, slope[None]))
        self.offset = np.concatenate((self.offset, offset[None]))
        self.idle = np.append(self.idle, 0)

    def used(self, weights: Vector) -> None:
        """Count who is idle, and drop who has been for long."""
        self.idle = np.where(weights > _MIN_WEIGHT, 0, self.idle + 1)
        kept = self.idle < _IDLE_STEPS
        self.slope, self.offset, self.idle = self.slope[kept], self.offset[kept], self.idle[kept]


@dataclass(frozen=True)
class Cut:
    """What a callback is told after each step of the solver."""

    number: int
    objective: float
    """Least value of ½‖w‖² + C·R(w) found so far."""
    bound: float
    """No w has less."""

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return (self.objective - self.bound) / max(abs(self.objective), 1e-12)


@dataclass(frozen=True, eq=False)
class Solution:
    """The minimiser that the solver found, and how good it is known to be."""

    weights: Vector
    objective: float
    bound: float
    risk: Vector
    """Value of each part of the risk."""
    cuts: int
    """Planes cut, and oracle calls for them; calls of the line search are not counted."""
    converged: bool
    planes: Planes = field(repr=False)

    @property
    def gap(self) -> float:
        """Relative duality gap: (objective − bound) / objective."""
        return Cut(self.cuts, self.objective, self.bound).gap


def minimise(
    features: Features,
    oracle: Oracle,
    c: float,
    *,
    mixture: Sequence[float] | None = None,
    tolerance: float = 1e-3,
    max_cuts: int = 1000,
    start: Solution | None = None,
    callbacks: Sequence[Callable[[Cut], None]] = (),
) -> Solution:
    """Minimise ½‖w‖² + c·Σ_k mixture_k·R_k(X·w) until the relative duality gap is at most ``tolerance``.

    ``start`` is the solution of the same features and risk under another c or mixture: its planes are used again.
    A callback that raises KeyboardInterrupt ends the search with the best point so far.

    >>> from gradrank.learners.products import DenseFeatures
    >>> class Distance:  # R(s) = |s − 2| of a single document
    ...     parts = 1
    ...     def __call__(self, scores):
    ...         return np.abs(scores - 2.0), np.sign(scores - 2.0)[None]
    >>> features = DenseFeatures(np.array([[1.0]]), mean=np.zeros(1), scale=np.ones(1))
    >>> solution = minimise(features, Distance(), 0.5)
    >>> solution.weights.round(3).tolist(), round(solution.objective, 3)
    ([0.5], 0.875)
    """
    if not 0.0 < c < np.inf:
        raise TrainingError(f"c is {c!r}, expected a positive number")
    mix = np.ones(oracle.parts) if mixture is None else np.asarray(mixture, dtype=np.float64)
    planes = Planes(oracle.parts, features.shape[1]) if start is None else copy(start.planes)
    point = _Point.at(features, oracle, np.zeros(features.shape[1]) if start is None else start.weights, c, mix)
    best, bound, cuts, converged, step = point, -np.inf, 0, False, 1.0
    _add_plane(planes, features, best)
    try:
        while cuts < max_cuts:
            share, lower = _model_minimum(planes, c, mix)
            bound = max(bound, lower)
            told = Cut(cuts, best.objective, bound)
            for callback in callbacks if cuts else ():
                callback(told)
            # The last digits of the objective are rounding; nothing below them is worth a cut.
            converged = told.gap <= max(tolerance, 1e-9)
            if converged:
                break
            target = -c * np.tensordot(share, np.tensordot(mix, planes.slope, (0, 1)), 1)
            planes.used(share)
            target_scores = features.times(target)
            best, step = _line_search(oracle, best, target, target_scores, c, mix, step)
            cut_at = best.towards(target, target_scores, _CUT_AT, oracle, c, mix)
            _add_plane(planes, features, cut_at)
            if cut_at.objective < best.objective:
                best = cut_at
            cuts += 1
    except KeyboardInterrupt:
        if cuts == 0:
            raise
    return Solution(best.weights, best.objective, min(bound, best.objective), best.value, cuts, converged, planes)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point w with all that is known there."""

    weights: Vector
    scores: Vector
    value: Vector
    gradient: Vector
    """Subgradient of each part with respect to the scores."""
    objective: float

    @classmethod
    def at(cls, features: Features, oracle: Oracle, weights: Vector, c: float, mix: Vector) -> _Point:
        return cls.of(weights, features.times(weights), oracle, c, mix)

    @classmethod
    def of(cls, weights: Vector, scores: Vector, oracle: Oracle, c: float, mix: Vector) -> _Point:
        value, gradient = oracle(scores)
        return cls(weights, scores, value, gradient, float(0.5 * weights @ weights + c * (mix @ value)))

    def towards(self, target: Vector, scores: Vector, step: float, oracle: Oracle, c: float, mix: Vector) -> _Point:
        """The point after a step of that length towards another one."""
        return _Point.of(
            self.weights + step * (target - self.weights), self.scores + step * (scores - self.scores), oracle, c, mix
        )

    def slope(self, direction: Vector, score_direction: Vector, c: float, mix: Vector) -> float:
        """Derivative of the objective in a direction."""
        return float(self.weights @ direction + c * (mix @ (self.gradient @ score_direction)))


def _add_plane(planes: Planes, features: Features, point: _Point) -> None:
    slopes = np.array([features.transposed_times(row) for row in point.gradient])
    # g·s and not a·w: the same number, but with the oracle's rounding.
    planes.add(slopes, point.value - point.gradient @ point.scores)


def _line_search(
    oracle: Oracle, best: _Point, target: Vector, scores: Vector, c: float, mix: Vector, step: float
) -> tuple[_Point, float]:
    """The best of a few points between ``best`` and the target, or beyond, and its step; ``step`` is a first guess.

    The objective is convex along the line: the sign of its derivative tells on which side of a point the minimum is.
    """
    direction, score_direction = target - best.weights, scores - best.scores
    start_slope = best.slope(direction, score_direction, c, mix)
    low, high, low_slope, high_slope = 0.0, np.inf, start_slope, np.nan
    found, found_step = best, step
    for _ in range(_LINE_STEPS):
        point = best.towards(target, scores, step, oracle, c, mix)
        if point.objective < found.objective:
            found, found_step = point, step
        slope = point.slope(direction, score_direction, c, mix)
        if slope < 0.0:
            low, low_slope = step, slope
        else:
            high, high_slope = step, slope
        if found is not best and (abs(slope) <= -_LINE_SLOPE * start_slope or high - low < 0.02 * high):
            break
        if not np.isfinite(high):
            step *= 3.0
            continue
        # Where a straight line between the slopes of the two ends meets zero, kept off the ends.
        share = low_slope / (low_slope - high_slope) if low_slope < 0.0 < high_slope else 0.5
        step = low + min(max(share, 0.1), 0.9) * (high - low)
    return found, min(max(found_step, 1e-3), 1.0)


def _model_minimum(planes: Planes, c: float, mix: Vector) -> tuple[Vector, float]:
    """Weights of the planes at the minimum of ½‖w‖² + c·max_i(a_i·w + b_i), and a lower bound of that minimum.

    In the dual: maximise c·b·α − ½c²‖Σ α_i a_i‖² over α ≥ 0 with sum 1. Any such α gives a lower bound, so the
    solver's inexactness costs tightness only, never correctness.
    """
    slopes = np.tensordot(mix, planes.slope, (0, 1))
    offsets = planes.offset @ mix
    gram = slopes @ slopes.T
    share = np.ones(1) if len(offsets) == 1 else _simplex_minimum(c * gram, -offsets)
    return share, float(c * (offsets @ share) - 0.5 * c * c * (share @ gram @ share))


def _simplex_minimum(quadratic: Vector, linear: Vector) -> Vector:
    """The α ≥ 0 with sum 1 that minimises ½αᵀQα + qᵀα, by Clarabel's interior-point method."""
    import clarabel
    import scipy.sparse

    n = len(linear)
    # Both terms divided by one number: the minimiser stays, the solver sees numbers around 1.
    size = max(float(np.abs(quadratic).max()), float(np.abs(linear).max()), 1e-300)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    # Sparse matrices put together by hand: scipy takes longer to find the zeros than the solver to solve.
    columns, rows = np.tril_indices(n)
    upper = scipy.sparse.csc_matrix((quadratic[rows, columns] / size, rows, np.cumsum(np.arange(n + 1))), shape=(n, n))
    places = np.stack((np.zeros(n, dtype=np.int64), np.arange(1, n + 1)), axis=1).ravel()
    limits = scipy.sparse.csc_matrix((np.tile([1.0, -1.0], n), places, np.arange(0, 2 * n + 1, 2)), shape=(n + 1, n))
    solver = clarabel.DefaultSolver(
        upper,
        linear / size,
        limits,
        np.append(1.0, np.zeros(n)),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)],
        settings,
    )
    share = np.maximum(np.asarray(solver.solve().x), 0.0)
    share = np.nan_to_num(share)
    total = share.sum()
    return share / total if total > 0.0 else np.full(n, 1.0 / n)
