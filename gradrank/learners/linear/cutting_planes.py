"""Planes below a convex risk, and the minimum of the model that they make."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gradrank.learners.linear.scaled_features import Vector

# A plane that has had no weight for so many steps is dropped.
_IDLE_STEPS = 30
_MIN_WEIGHT = 1e-9


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


def model_minimum(planes: Planes, c: float, mix: Vector) -> tuple[Vector, float]:
    """Weights of the planes at the minimum of ½‖w‖² + c·max_i(a_i·w + b_i), and a lower bound of that minimum.

    In the dual: maximize c·b·α − ½c²‖Σ α_i a_i‖² over α ≥ 0 with sum 1. Any such α gives a lower bound, so the
    solver's inexactness costs tightness only, never correctness.
    """
    slopes = np.tensordot(mix, planes.slope, (0, 1))
    offsets = planes.offset @ mix
    gram = slopes @ slopes.T
    share = np.ones(1) if len(offsets) == 1 else _simplex_minimum(c * gram, -offsets)
    return share, float(c * (offsets @ share) - 0.5 * c * c * (share @ gram @ share))


def _simplex_minimum(quadratic: Vector, linear: Vector) -> Vector:
    """The α ≥ 0 with sum 1 that minimizes ½αᵀQα + qᵀα, by Clarabel's interior-point method."""
    import clarabel
    import scipy.sparse

    n = len(linear)
    # Both terms divided by one number: the minimizer stays, the solver sees numbers around 1.
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
