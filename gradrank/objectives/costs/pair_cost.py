"""What a pair cost is: how badly a pair of documents is ordered, as a function of o = s_i − s_j, i the better one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from gradrank.errors import ObjectiveError
from gradrank.measures.grammar import spelt


@dataclass(frozen=True)
class CostKernels:
    """A pair cost for kernels: compiled functions that take the places of :func:`force_row` and :func:`pair_force`."""

    row: Callable[..., tuple[float, float]]
    pair: Callable[..., tuple[float, float]]


def force_row(
    low: Any, high: Any, own: Any, slope: Any, e_shift: Any, deltas: Any, powers: Any, lambdas: Any, rhos: Any
) -> tuple[Any, Any]:
    """Stands for the function of a pair cost that adds the forces between one document and a run of worse ones.

    In single precision and without branches, as it is what takes the time of computing λ's; ``inline="always"`` lets
    the kernel choose how it is compiled. Returns the sums of the document's own λ and ρ.

    Parameters
    ----------
    low, high
        The worse documents are low ≤ j < high.
    own, powers
        e^{slope·s} of the document itself and of all, up to a common factor: ``powers[j] / own`` is e^{−slope·o}.
    slope, e_shift
        The cost's ``slope``, and e to the power of its ``shift``.
    deltas
        |deltas[j]| is what the pair with document j weighs.
    lambdas, rhos
        weight × force / slope is subtracted from ``lambdas[j]``, weight × second derivative / slope added to
        ``rhos[j]``; the kernel multiplies by ``slope`` in the end.
    """
    raise NotImplementedError("stands for the function of a pair cost; see Template.using")


def pair_force(o: Any, slope: Any, shift: Any) -> tuple[Any, Any]:
    """Stands for the function of a pair cost that gives force and second derivative of one pair, in double precision.

    ``PairCost.force`` and ``PairCost.curvature`` for any o, however large.
    """
    raise NotImplementedError("stands for the function of a pair cost; see Template.using")


@dataclass(frozen=True)
class PairCost(ABC):
    """A cost of o = s_i − s_j, of which kernels know that it is a function of slope·o + shift.

    Its fields are its options in an objective's name: it prints as ``cost=NAME, option=value``.
    """

    name: ClassVar[str]
    """The name in objectives: ``Lambda(NDCG, cost=NAME)``."""
    usable_curvature: ClassVar[bool]
    """Whether the second derivative is positive, so that Newton steps go downhill."""
    kernels: ClassVar[CostKernels]
    """The same for kernels."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ObjectiveError(f"cost {self.name}: {item.name} is {value!r}, expected a number")

    @property
    def slope(self) -> float:
        """Factor of the scores inside the exponential."""
        return 1.0

    @property
    def shift(self) -> float:
        """What is added to slope·o inside the exponential."""
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

    def __str__(self) -> str:
        given = [f"{item.name}={spelt(getattr(self, item.name))}" for item in fields(self)
                 if getattr(self, item.name) != item.default]  # fmt: skip
        return ", ".join([f"cost={self.name}", *given])
