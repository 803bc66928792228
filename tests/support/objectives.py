"""Made-up lists for objectives, and derivatives by differences."""

from __future__ import annotations

import numpy as np

from gradrank.data import RankingData
from gradrank.objectives import BoundObjective


def made_up_lists(random_state: int, n_queries: int = 7) -> tuple[RankingData, np.ndarray]:
    """Short lists with unjudged documents and weights of queries, and scores without ties."""
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, 9, n_queries)
    n = int(sizes.sum())
    labels = rng.integers(0, 4, n).astype(np.float32)
    labels[rng.random(n) < 0.15] = np.nan
    weight = rng.uniform(0.5, 2.0, n_queries)
    return RankingData.from_arrays(np.zeros((n, 1)), labels, group=sizes, weight=weight), rng.normal(size=n)


def slopes_of(bound: BoundObjective, scores: np.ndarray, h: float = 1e-4) -> np.ndarray:
    """−∂loss/∂s by central differences."""
    slopes = np.empty(len(scores))
    for i in range(len(scores)):
        up, down = scores.copy(), scores.copy()
        up[i] += h
        down[i] -= h
        one, two = bound.loss(up), bound.loss(down)
        assert one is not None
        assert two is not None
        slopes[i] = -(one - two) / (2 * h)
    return slopes
