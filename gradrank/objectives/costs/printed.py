"""The pair cost whose force is RankNet's cost, as one paper prints it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gradrank.objectives.costs.pair_cost import CostKernels, PairCost
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True, plain=True, inline="always")
def printed_row(low, high, own, slope, e_shift, deltas, powers, lambdas, rhos):  # type: ignore[no-untyped-def]
    """See force_row."""
    own_lambda = np.float32(0.0)
    own_rho = np.float32(0.0)
    for j in range(np.uint64(low), np.uint64(high)):
        ratio = powers[j] / own
        size = abs(deltas[j])
        force = size * np.log1p(ratio)
        bend = size * (ratio / (np.float32(1.0) + ratio))
        lambdas[j] -= force
        rhos[j] += bend
        own_lambda += force
        own_rho += bend
    return own_lambda, own_rho


@njit(cache=True, nogil=True, plain=True)
def printed_pair(o, slope, shift):  # type: ignore[no-untyped-def]
    """See pair_force."""
    return max(-o, 0.0) + np.log1p(np.exp(-abs(o))), 1.0 / (1.0 + np.exp(o))


@dataclass(frozen=True)
class Printed(PairCost):
    """The weight that Svore et al. (2011) print in their eq. 10: the force log(1 + e^{−o}), RankNet's cost itself.

    RankNet's derivative, which the other papers use, never exceeds 1; this force grows with how wrong a pair is. It is
    the derivative of the cost −Li₂(−e^{−o}), whose second derivative is 1/(1 + e^{o}).

    >>> round(Printed().force(0.0), 4), Printed().curvature(0.0)
    (0.6931, 0.5)
    """

    name: ClassVar[str] = "printed"
    usable_curvature: ClassVar[bool] = True
    kernels: ClassVar[CostKernels] = CostKernels(printed_row, printed_pair)

    def cost(self, o: float) -> float:
        """−Li₂(−e^{−o}) = ∫_o^∞ log(1 + e^{−t}) dt."""
        from scipy.special import spence

        return -float(spence(1.0 + math.exp(-o)))

    def force(self, o: float) -> float:
        """log(1 + e^{−o})."""
        return math.log1p(math.exp(-o))

    def curvature(self, o: float) -> float:
        """1/(1 + e^{o})."""
        return 1.0 / (1.0 + math.exp(o))
