"""A fast start for the bundle solver where the risk can be smoothed: Newton's method on ½‖w‖² + c·R_width(w).

R_width is the risk with its corners rounded off over a width that shrinks as the search goes on. Every point gives a
plane below the risk itself, and with it a lower bound of the minimum, so nothing is lost by smoothing: at the smooth
minimum the duality gap is what the rounded corners cost, about the square of the width. RankSVM on MQ2007 needs 3 to
11 points where planes alone need 16 to 89 (0.1 % gap, C from 0.001 to 1 a pair).

The second derivative is a sum over the pairs at a corner; a sample of them is enough for a good direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gradrank.learners.linear.convex_risk import Point
from gradrank.learners.linear.scaled_features import Features, Vector

# The first width: at w = 0 every margin is 0 and stands at the corner. Later searches start near their goal.
_FIRST_WIDTH = 4.0
_WARM_WIDTH = 0.5
# The width shrinks at most this much at once: from too far away, Newton's steps overshoot.
_SHRINK = 0.2
# What the corners may cost at the end, as a part of the tolerance.
_CORNER_SHARE = 0.7
_MAX_POINTS = 40
_LINE_STEPS = 12
# Pairs a feature that a second derivative is made of at first, and how many times more when that was too few. Memory
# limits them. If there were more at the corner, pairs from further around are taken from then on, too: a step brings
# those to it. That halves the points on MQ2007; on artificial data with heavy tails it may cost some.
_PAIRS_PER_FEATURE = 128
_MORE_PAIRS = 4
_WIDER = 4.0
_MAX_NUMBERS = 8_000_000
MAX_FEATURES = 1000
"""With more features, setting up and solving the equations of a step would take longer than the planes save."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A smoothed risk at some scores."""

    value: float
    gradient: Vector
    """With respect to the scores; Xᵀ·gradient is the slope of a plane below the risk."""
    offset: float
    """The plane's value at w = 0."""
    at_corner: int
    """Number of pairs at a rounded corner."""


@dataclass(frozen=True, eq=False)
class Corner:
    """Pairs at a corner: rows of the two documents, and second derivative of the risk by the pair's margin."""

    better: NDArray[np.int64]
    worse: NDArray[np.int64]
    curvature: Vector


@runtime_checkable
class SmoothOracle(Protocol):
    """A risk of one part that is a sum over pairs of documents and can be smoothed."""

    @property
    def can_be_smoothed(self) -> bool:
        """Whether it can for this data."""

    @property
    def parts(self) -> int:
        """Number of parts: one."""

    def __call__(self, scores: Vector) -> tuple[Vector, Vector]:
        """Value and subgradient of the risk itself."""

    def smoothed(self, scores: Vector, width: float) -> Smoothed:
        """The smoothed risk."""

    def corner(self, scores: Vector, width: float, expected: int, at_most: int) -> Corner:
        """A sample of about ``at_most`` pairs at its corners, if there are as many there as expected."""


@dataclass(frozen=True, eq=False)
class NewtonPoint:
    """A point on the way, and a plane below the risk."""

    point: Point
    slope: Vector
    offset: float


def newton_points(
    features: Features, oracle: SmoothOracle, start: Point, c: float, tolerance: float
) -> Iterator[NewtonPoint]:
    """Points that approach the minimum of ½‖w‖² + c·R(w); no more come when they no longer help."""
    p = features.shape[1]
    most = max(4 * p, _MAX_NUMBERS // p)
    sample = min(_PAIRS_PER_FEATURE * p, most)
    reach = 1.0
    width = _WARM_WIDTH if start.weights.any() else _FIRST_WIDTH
    point, smooth = start, oracle.smoothed(start.scores, width)
    for _ in range(_MAX_POINTS):
        slope = features.transposed_times(smooth.gradient)
        yield NewtonPoint(point, slope, smooth.offset)
        # The gap is that of the corners and that of w, which is −c·slope at the smooth minimum.
        residual = point.weights + c * slope
        unsettled = 0.5 * float(residual @ residual)
        dual = c * smooth.offset - 0.5 * c * c * float(slope @ slope)
        corners = max(point.objective - dual - unsettled, 1e-300)
        wanted = _CORNER_SHARE * tolerance * abs(point.objective)
        if unsettled < 4.0 * corners and wanted < corners:
            width *= max(_SHRINK, float(np.sqrt(wanted / corners)))
            smooth = oracle.smoothed(point.scores, width)
            residual = point.weights + c * features.transposed_times(smooth.gradient)
        corner = oracle.corner(point.scores, reach * width, int(reach * smooth.at_corner), sample)
        hessian = np.eye(p) + c * features.difference_gram(corner.better, corner.worse, corner.curvature)
        direction = np.asarray(-np.linalg.solve(hessian, residual), dtype=np.float64)
        step, weights, scores, smooth = _downhill(features, oracle, point, smooth, residual, direction, c, width)
        if step < 1.0:  # too long a step: pairs that bend the risk in that direction were not in the sample
            if step == 0.0 and sample >= min(most, reach * smooth.at_corner):
                return
            if sample < smooth.at_corner:
                reach = _WIDER
            sample = min(_MORE_PAIRS * sample, most)
        if step > 0.0:
            point = Point.of(weights, scores, oracle, c, np.ones(1))


def _downhill(
    features: Features,
    oracle: SmoothOracle,
    point: Point,
    smooth: Smoothed,
    residual: Vector,
    direction: Vector,
    c: float,
    width: float,
) -> tuple[float, Vector, Vector, Smoothed]:
    """A step that lowers the smooth objective enough: its length (0 if there is none) and where it leads."""
    score_direction = features.times(direction)
    falls = float(residual @ direction)
    before = 0.5 * float(point.weights @ point.weights) + c * smooth.value
    step = 1.0
    for _ in range(_LINE_STEPS):
        weights, scores = point.weights + step * direction, point.scores + step * score_direction
        moved = oracle.smoothed(scores, width)
        after = 0.5 * float(weights @ weights) + c * moved.value
        if after <= before + 1e-4 * step * falls:
            return step, weights, scores, moved
        # The lowest point of the parabola through both ends, kept off them.
        step *= min(max(-0.5 * step * falls / (after - before - step * falls), 0.1), 0.5)
    return 0.0, point.weights, point.scores, smooth
