"""Random directions: how many a claim about all directions needs, and how they are drawn."""

from __future__ import annotations

from math import ceil, log, log1p

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import DataError


def direction_count(epsilon: float = 0.01, delta: float = 0.01) -> int:
    """How many random directions contain an improving one with probability 1 − δ, if a share ε of all improves.

    K = ⌈ln δ / ln(1 − ε)⌉ (Donmez et al. 2009, §5).

    >>> direction_count(0.01, 0.01)
    459
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0.0 < value < 1.0:
            raise DataError(f"{name} is {value}, expected a number between 0 and 1")
    return max(1, ceil(log(delta) / log1p(-epsilon)))


def confidence_of(directions: int, epsilon: float) -> float:
    """The confidence that fewer than a share ε of all directions improves if none of k random ones does: 1 − (1 − ε)^k.

    >>> round(confidence_of(459, 0.01), 4)
    0.9901
    """
    return 1.0 - (1.0 - epsilon) ** directions


def random_direction(key: tuple[int, ...], n_weights: int) -> NDArray[np.float64]:
    """A direction drawn evenly from the unit sphere: independent normal numbers, scaled to length 1.

    Each has a stream of its own, so that a direction can be drawn again from its key.

    >>> float(np.linalg.norm(random_direction((0, 7), 3)).round(12))
    1.0
    """
    drawn = np.random.default_rng(key).standard_normal(n_weights)
    return np.asarray(drawn / np.linalg.norm(drawn))
