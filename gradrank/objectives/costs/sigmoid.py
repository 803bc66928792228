"""The sigmoid pair cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gradrank.objectives.costs.pair_cost import CostKernels, PairCost
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True, plain=True, inline="always")
def sigmoid_row(low, high, own, slope, e_shift, deltas, powers, lambdas, rhos):  # type: ignore[no-untyped-def]
    """See force_row."""
    own_lambda = np.float32(0.0)
    own_rho = np.float32(0.0)
    pushed = own * e_shift
    for j in range(np.uint64(low), np.uint64(high)):
        t = pushed / (pushed + powers[j])
        force = abs(deltas[j]) * t * (np.float32(1.0) - t)
        bend = force * (np.float32(2.0) * t - np.float32(1.0))
        lambdas[j] -= force
        rhos[j] += bend
        own_lambda += force
        own_rho += bend
    return own_lambda, own_rho


@njit(cache=True, nogil=True, plain=True)
def sigmoid_pair(o, slope, shift):  # type: ignore[no-untyped-def]
    """See pair_force."""
    t = 1.0 / (1.0 + np.exp(-o - shift))
    return t * (1.0 - t), t * (1.0 - t) * (2.0 * t - 1.0)


@dataclass(frozen=True)
class Sigmoid(PairCost):
    """The sigmoid cost 1/(1 + e^{o+μ}) (Svore et al. 2011, eq. 13).

    Its force vanishes for pairs that are hopelessly wrong and for pairs that are well separated; its second derivative
    changes sign, so it goes with gradient steps only.

    Parameters
    ----------
    mu
        μ: the force is largest for pairs whose scores differ by −μ.

    >>> Sigmoid().force(0.0)
    0.25
    """

    mu: float = 0.0

    name: ClassVar[str] = "sigmoid"
    usable_curvature: ClassVar[bool] = False
    kernels: ClassVar[CostKernels] = CostKernels(sigmoid_row, sigmoid_pair)

    @property
    def shift(self) -> float:
        """μ."""
        return self.mu

    def cost(self, o: float) -> float:
        """1/(1 + e^{o+μ})."""
        return 1.0 / (1.0 + math.exp(o + self.mu))

    def force(self, o: float) -> float:
        """e^{o+μ}/(1 + e^{o+μ})²."""
        t = 1.0 - self.cost(o)
        return t * (1.0 - t)

    def curvature(self, o: float) -> float:
        """−t(1 − t)(1 − 2t), t = 1 − cost."""
        t = 1.0 - self.cost(o)
        return -t * (1.0 - t) * (1.0 - 2.0 * t)
