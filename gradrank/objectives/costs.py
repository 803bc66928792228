"""Pair costs: how badly a pair of documents is ordered, as a function of o = s_i − s_j, i the better document."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from gradrank.errors import ObjectiveError

# Numbers of the costs, for the kernel that switches on them.
RANKNET, SIGMOID, PRINTED = range(3)


@dataclass(frozen=True)
class PairCost(ABC):
    """A cost of o = s_i − s_j; ``force`` is −∂cost/∂o, ``curvature`` is ∂²cost/∂o².

    Prints as the options that name it in an objective.
    """

    code: ClassVar[int]
    usable_curvature: ClassVar[bool]
    """Whether the second derivative is positive, so that Newton steps go downhill."""

    @property
    def slope(self) -> float:
        """Factor of the scores inside the exponential."""
        return 1.0

    @property
    def shift(self) -> float:
        """What is added to o inside the exponential."""
        return 0.0

    @abstractmethod
    def cost(self, o: float) -> float:
        """The cost."""

    @abstractmethod
    def force(self, o: float) -> float:
        """What pushes the pair apart: −∂cost/∂o."""

    @abstractmethod
    def curvature(self, o: float) -> float:
        """The second derivative ∂²cost/∂o²."""


@dataclass(frozen=True)
class RankNet(PairCost):
    """RankNet's cross-entropy log(1 + e^{−σo}) (Burges et al. 2005).

    >>> RankNet().force(0.0), RankNet().curvature(0.0)
    (0.5, 0.25)
    """

    sigma: float = 1.0

    code: ClassVar[int] = RANKNET
    usable_curvature: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 < self.sigma < math.inf:
            raise ObjectiveError(f"RankNet: sigma is {self.sigma!r}, expected a positive number")

    @property
    def slope(self) -> float:
        """See PairCost."""
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

    def __str__(self) -> str:
        return "cost=ranknet" if self.sigma == 1.0 else f"cost=ranknet, sigma={self.sigma:g}"


@dataclass(frozen=True)
class Sigmoid(PairCost):
    """The sigmoid cost 1/(1 + e^{o+μ}) (Svore et al. 2011, eq. 13).

    Its force vanishes for pairs that are hopelessly wrong and for pairs that are well separated; its second derivative
    changes sign, so it goes with gradient steps only.

    >>> Sigmoid().force(0.0)
    0.25
    """

    mu: float = 0.0

    code: ClassVar[int] = SIGMOID
    usable_curvature: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.mu):
            raise ObjectiveError(f"sigmoid: mu is {self.mu!r}, expected a number")

    @property
    def shift(self) -> float:
        """See PairCost."""
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

    def __str__(self) -> str:
        return "cost=sigmoid" if self.mu == 0.0 else f"cost=sigmoid, mu={self.mu:g}"


@dataclass(frozen=True)
class Printed(PairCost):
    """The weight that Svore et al. (2011) print in their eq. 10: the force log(1 + e^{−o}), RankNet's cost itself.

    RankNet's derivative, which the other papers use, never exceeds 1; this force grows with how wrong a pair is. It is
    the derivative of the cost −Li₂(−e^{−o}), whose second derivative is 1/(1 + e^{o}).

    >>> round(Printed().force(0.0), 4), Printed().curvature(0.0)
    (0.6931, 0.5)
    """

    code: ClassVar[int] = PRINTED
    usable_curvature: ClassVar[bool] = True

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

    def __str__(self) -> str:
        return "cost=printed"


COSTS: dict[str, type[PairCost]] = {"ranknet": RankNet, "sigmoid": Sigmoid, "printed": Printed}
"""The one list of pair costs, by name."""
