"""The prior that a click log suggests for the attractiveness of its documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def suggested_prior(
    clicks: NDArray[np.float64], examined: NDArray[np.float64], squares: NDArray[np.float64]
) -> tuple[float, float]:
    """The Beta prior with mean and variance of the documents' attractiveness, by moments.

    A document with attractiveness α has Σ p·α clicks in expectation, with variance Σ p·α − Σ p²·α²; what the squared
    deviations from the mean have beyond that is the variance of α.
    """
    total = float(examined.sum())
    mean = float(clicks.sum()) / total if total > 0 else 0.0
    if not 0 < mean < 1:
        return (0.0, 0.0)
    within = examined * mean - squares * mean**2
    variance = float(((clicks - examined * mean) ** 2 - within).sum() / (examined**2).sum())
    # At least as wide as if each document were worth ten thousand sessions, at most uniform.
    strength = min(max(mean * (1 - mean) / variance - 1, 0.1), 1e4) if variance > 0 else 1e4
    return (strength * mean, strength * (1 - mean))
