"""A convex risk of the documents' scores, and points w with all that is known there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gradrank.learners.linear.scaled_features import Features, Vector


class Oracle(Protocol):
    """A convex risk of the scores, in one or more parts."""

    @property
    def parts(self) -> int:
        """Number of parts."""

    def __call__(self, scores: Vector) -> tuple[Vector, Vector]:
        """Value of each part, and subgradient of each part with respect to the scores (parts × documents)."""


@dataclass(frozen=True, eq=False)
class Point:
    """A point w with the value of ½‖w‖² + c·Σ_k mix_k·R_k(X·w) and what it is made of."""

    weights: Vector
    scores: Vector
    value: Vector
    """Value of each part of the risk."""
    gradient: Vector
    """Subgradient of each part with respect to the scores."""
    objective: float

    @classmethod
    def at(cls, features: Features, oracle: Oracle, weights: Vector, c: float, mix: Vector) -> Point:
        """The point of these weights."""
        return cls.of(weights, features.times(weights), oracle, c, mix)

    @classmethod
    def of(cls, weights: Vector, scores: Vector, oracle: Oracle, c: float, mix: Vector) -> Point:
        """The point of these weights, whose scores are known."""
        value, gradient = oracle(scores)
        return cls(weights, scores, value, gradient, float(0.5 * weights @ weights + c * (mix @ value)))

    def towards(self, target: Vector, scores: Vector, step: float, oracle: Oracle, c: float, mix: Vector) -> Point:
        """The point after a step of that length towards another one."""
        return Point.of(
            self.weights + step * (target - self.weights), self.scores + step * (scores - self.scores), oracle, c, mix
        )

    def slope(self, direction: Vector, score_direction: Vector, c: float, mix: Vector) -> float:
        """Derivative of the objective in a direction."""
        return float(self.weights @ direction + c * (mix @ (self.gradient @ score_direction)))
