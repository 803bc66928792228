"""The bundle (cutting-plane) solver of ½‖w‖² + C·R(w) for any convex risk R of the documents' scores.

A risk is an *oracle*: it takes scores s = X·w and gives a value and a subgradient g with respect to the scores, so
that a = Xᵀg and b = R(w) − a·w make a plane a·w' + b that nowhere exceeds R. The largest of all planes so far is a
model of R; minimizing ½‖w‖² + C·model(w) is a small quadratic programme over the planes' weights, whose value is a
lower bound of the minimum (Teo, Vishwanathan, Smola, Le 2010). The difference to the best objective value found is the
duality gap, which is reported and stopped on.

Each step ends with a line search from the best point towards the model's minimizer, in the space of scores, and the
next plane is cut close to the best point: far fewer planes are needed (Franc & Sonnenburg 2009).

A risk may be a mixture Σ_k m_k·R_k of parts. Planes are kept part by part, so they stay valid for another mixture and
for another C: a path of solutions starts warm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from gradrank.errors import TrainingError
from gradrank.learners.linear.convex_risk import Oracle, Point
from gradrank.learners.linear.cutting_planes import Planes, model_minimum
from gradrank.learners.linear.newton import MAX_FEATURES, SmoothOracle, newton_points
from gradrank.learners.linear.scaled_features import Features, Vector

# How far from the best point, towards the model's minimizer, the next plane is cut. Planes at the best point itself
# say nothing new, and the search stands still; 0.03 to 0.1 need about equally many, 0.3 twice as many (MQ2007).
_CUT_AT = 0.05
# A line search ends after so many points, or where the slope is so small a part of what it was at the start.
_LINE_STEPS = 8
_LINE_SLOPE = 0.5


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
    """The minimizer that the solver found, and how good it is known to be."""

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


def minimize(
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
    """Minimize ½‖w‖² + c·Σ_k mixture_k·R_k(X·w) until the relative duality gap is at most ``tolerance``.

    ``start`` is the solution of the same features and risk under another c or mixture: its planes are used again.
    A callback that raises KeyboardInterrupt ends the search with the best point so far.

    >>> from gradrank.learners.linear.scaled_features import DenseFeatures
    >>> class Distance:  # R(s) = |s − 2| of a single document
    ...     parts = 1
    ...     def __call__(self, scores):
    ...         return np.abs(scores - 2.0), np.sign(scores - 2.0)[None]
    >>> features = DenseFeatures(np.array([[1.0]]), mean=np.zeros(1), scale=np.ones(1))
    >>> solution = minimize(features, Distance(), 0.5)
    >>> solution.weights.round(3).tolist(), round(solution.objective, 3)
    ([0.5], 0.875)
    """
    search = BundleSearch.of(features, oracle, c, mixture=mixture, tolerance=tolerance, max_cuts=max_cuts, start=start)
    try:
        for cut in search.run():
            for callback in callbacks:
                callback(cut)
    except KeyboardInterrupt:
        if search.cuts == 0:
            raise
    return search.solution()


@dataclass
class BundleSearch:
    """One search for a minimum, as far as it has come."""

    features: Features
    oracle: Oracle
    c: float
    mix: Vector
    tolerance: float
    max_cuts: int
    planes: Planes
    best: Point
    bound: float = -np.inf
    cuts: int = 0
    told: int = 0
    """The last cut that was told."""
    converged: bool = False

    @classmethod
    def of(
        cls,
        features: Features,
        oracle: Oracle,
        c: float,
        *,
        mixture: Sequence[float] | None = None,
        tolerance: float = 1e-3,
        max_cuts: int = 1000,
        start: Solution | None = None,
    ) -> BundleSearch:
        """The search that :func:`minimize` describes, before its first cut."""
        if not 0.0 < c < np.inf:
            raise TrainingError(f"C is {c!r}, expected a positive number")
        mix = np.ones(oracle.parts) if mixture is None else np.asarray(mixture, dtype=np.float64)
        planes = Planes(oracle.parts, features.shape[1]) if start is None else copy(start.planes)
        point = Point.at(features, oracle, np.zeros(features.shape[1]) if start is None else start.weights, c, mix)
        return cls(features, oracle, c, mix, tolerance, max_cuts, planes, point)

    def run(self) -> Iterator[Cut]:
        """Search until the gap is closed; each cut as it is made."""
        yield from self._by_newton()
        yield from self._by_planes()

    def _after_cut(self, lower: float) -> Iterator[Cut]:
        """The cut just made, if any, given a lower bound of the minimum."""
        self.bound = max(self.bound, lower)
        told = Cut(self.cuts, self.best.objective, self.bound)
        # The last digits of the objective are rounding; nothing below them is worth a cut.
        self.converged = told.gap <= max(self.tolerance, 1e-9)
        if self.cuts > self.told:
            self.told = self.cuts
            yield told

    @property
    def _ended(self) -> bool:
        return self.converged or self.cuts >= self.max_cuts

    def _by_newton(self) -> Iterator[Cut]:
        """Start with Newton's method, where the risk can be smoothed."""
        oracle = self.oracle
        if not isinstance(oracle, SmoothOracle) or self.features.shape[1] > MAX_FEATURES or not oracle.can_be_smoothed:
            return
        c = self.c * float(self.mix[0])
        for number, found in enumerate(newton_points(self.features, oracle, self.best, c, self.tolerance)):
            self.cuts = number
            self.planes.add(found.slope[None], np.array([found.offset]))
            if found.point.objective < self.best.objective:
                self.best = found.point
            yield from self._after_cut(c * found.offset - 0.5 * c * c * float(found.slope @ found.slope))
            if self._ended:
                return

    def _by_planes(self) -> Iterator[Cut]:
        """Cut planes until the gap is closed."""
        c, mix, planes = self.c, self.mix, self.planes
        step = 1.0
        if not self.converged:
            _add_plane(planes, self.features, self.best)
        while not self._ended:
            share, lower = model_minimum(planes, c, mix)
            yield from self._after_cut(lower)
            if self._ended:
                return
            target = -c * np.tensordot(share, np.tensordot(mix, planes.slope, (0, 1)), 1)
            planes.used(share)
            target_scores = self.features.times(target)
            self.best, step = _line_search(self.oracle, self.best, target, target_scores, c, mix, step)
            cut_at = self.best.towards(target, target_scores, _CUT_AT, self.oracle, c, mix)
            _add_plane(planes, self.features, cut_at)
            if cut_at.objective < self.best.objective:
                self.best = cut_at
            self.cuts += 1

    def solution(self) -> Solution:
        """What was found."""
        best, bound = self.best, min(self.bound, self.best.objective)
        return Solution(best.weights, best.objective, bound, best.value, self.cuts, self.converged, self.planes)


def _add_plane(planes: Planes, features: Features, point: Point) -> None:
    slopes = np.array([features.transposed_times(row) for row in point.gradient])
    # g·s and not a·w: the same number, but with the oracle's rounding.
    planes.add(slopes, point.value - point.gradient @ point.scores)


def _line_search(
    oracle: Oracle, best: Point, target: Vector, scores: Vector, c: float, mix: Vector, step: float
) -> tuple[Point, float]:
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
