"""RankNet's pair cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gradrank.errors import ObjectiveError
from gradrank.objectives.costs.pair_cost import CostKernels, PairCost
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True, plain=True, inline="always")
def ranknet_row(low, high, own, slope, e_shift, deltas, powers, lambdas, rhos):  # type: ignore[no-untyped-def]
    """See force_row."""
    own_lambda = np.float32(0.0)
    own_rho = np.float32(0.0)
    for j in range(np.uint64(low), np.uint64(high)):
        p = powers[j] / (own + powers[j])
        force = abs(deltas[j]) * p
        bend = force * (np.float32(1.0) - p) * slope
        lambdas[j] -= force
        rhos[j] += bend
        own_lambda += force
        own_rho += bend
    return own_lambda, own_rho


@njit(cache=True, nogil=True, plain=True)
def ranknet_pair(o, slope, shift):  # type: ignore[no-untyped-def]
    """See pair_force."""
    p = 1.0 / (1.0 + np.exp(slope * o))
    return slope * p, slope * slope * p * (1.0 - p)


@dataclass(frozen=True)
class RankNet(PairCost):
    """RankNet's cross-entropy log(1 + e^{−σo}) (Burges et al. 2005).

    Parameters
    ----------
    sigma
        σ: how steeply the chance that the better document is preferred grows with the difference of scores.

    >>> RankNet().force(0.0), RankNet().curvature(0.0)
    (0.5, 0.25)
    """

    sigma: float = 1.0

    name: ClassVar[str] = "ranknet"
    usable_curvature: ClassVar[bool] = True
    kernels: ClassVar[CostKernels] = CostKernels(ranknet_row, ranknet_pair)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma <= 0.0:
            raise ObjectiveError(f"cost ranknet: sigma is {self.sigma!r}, expected a number above 0")

    @property
    def slope(self) -> float:
        """σ."""
        return self.sigma

    def cost(self, o: float) -> float:
        """log(1 + e^{−σo})."""
        return math.log1p(math.exp(-self.sigma * o))

    def force(self, o: float) -> float:
        """σ/(1 + e^{σo})."""
        return self.sigma / (1.0 + math.exp(self.sigma * o))

    def curvature(self, o: float) -> float:
        """σ²·p(1 − p), p = 1/(1 + e^{σo})."""
        p = 1.0 / (1.0 + math.exp(self.sigma * o))
        return self.sigma**2 * p * (1.0 - p)
