"""λ constructions: other ways to make forces from a measure (Donmez, Svore, Burges 2009, §7).

The paper compares 13 constructions on validation data, names five and describes these in one sentence each. Here each
is a small value object; what the paper leaves open is a parameter, and its docstring says how the default was chosen.
With the pair (i, j), i the document of higher gain, o = s_i − s_j, and ΔM(i, j) the change of the measure when the two
swap ranks, a pairwise construction is λ_ij = weight × force on the pairs that it lets act; λ_i gains it, λ_j loses it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from gradrank.errors import ObjectiveError
from gradrank.measures.grammar import parse_expression, spelt
from gradrank.objectives.kernels import construction_kernel as kernel


@dataclass(frozen=True)
class Construction:
    """How λ's are made from a measure; its fields are what the paper leaves open.

    Prints as the options that name it in an objective.
    """

    name: ClassVar[str]
    pairwise: ClassVar[bool] = True
    """Whether λ's are forces between two documents, so that those of a query add up to 0."""
    usable_curvature: ClassVar[bool] = True
    """Whether ρ is a second derivative that Newton steps can use."""
    lambda_pairs: ClassVar[Literal["all", "misranked"] | None] = None
    """The pairs for which the fast :class:`Lambda` is the same; None = it is another."""
    select: ClassVar[int] = kernel.ALL
    weigh: ClassVar[int] = kernel.DELTA
    force: ClassVar[int] = kernel.COST_FORCE

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ObjectiveError(f"{self.name}: {item.name} is {value!r}, expected a number of 0 or more")

    @property
    def takes_cost(self) -> bool:
        """Whether the force is that of a pair cost."""
        return self.pairwise and self.force == kernel.COST_FORCE

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the definition."""
        return (cls.__doc__ or "").strip().split("\n")[0].replace("``", "")

    def options(self) -> list[str]:
        """What differs from the defaults, as ``name=value``."""
        return [
            f"{item.name}={spelt(getattr(self, item.name))}"
            for item in fields(self)
            if getattr(self, item.name) != item.default
        ]

    def __str__(self) -> str:
        return ", ".join([f"construction={self.name}", *self.options()])


@dataclass(frozen=True)
class RankNetWeightPairs(Construction):
    """Weight |ΔM|, force of the pair cost, all pairs: the one that wins in the paper.

    This is :class:`Lambda`, which :func:`constructed` makes of it.

    >>> str(RankNetWeightPairs())
    'construction=ranknet-weight-pairs'
    """

    name: ClassVar[str] = "ranknet-weight-pairs"
    lambda_pairs: ClassVar[Literal["all", "misranked"] | None] = "all"


@dataclass(frozen=True)
class MisrankedPairs(Construction):
    """Weight |ΔM|, force of the pair cost, only pairs in the wrong order.

    The paper's own form for MRR (eq. 11); this is :class:`Lambda` with ``pairs=misranked``.

    >>> str(MisrankedPairs())
    'construction=misranked-pairs'
    """

    name: ClassVar[str] = "misranked-pairs"
    lambda_pairs: ClassVar[Literal["all", "misranked"] | None] = "misranked"
    select: ClassVar[int] = kernel.MISRANKED


@dataclass(frozen=True)
class SpringSmooth(Construction):
    """Weight max(floor, |ΔM|·Z)/Z, force of the pair cost: a swap gains at least 1.

    "A smoothed version of RankNetWeightPairs where the gain obtained by swapping a pair is lower-bounded by 1". A
    measure between 0 and 1 never changes by more than 1, so with the measure itself every pair would weigh 1. Z is
    therefore the query's divisor (ideal DCG, number of relevant documents, number of pairs), and the bound is on the
    gain before division; for measures without a divisor (MRR, ERR, WTA) the construction is RankNet's on the pairs
    of different gain. ``floor=0`` is RankNetWeightPairs.

    >>> str(SpringSmooth(floor=0.5))
    'construction=spring-smooth, floor=0.5'
    """

    floor: float = 1.0

    name: ClassVar[str] = "spring-smooth"
    weigh: ClassVar[int] = kernel.FLOORED


@dataclass(frozen=True)
class LocalGradient(Construction):
    """Weight |ΔM|, force 1/(|o| + margin), only pairs of rank neighbors.

    The change of accuracy between two adjacent documents over the difference of their scores: what a small move of one
    document past the other would gain. Documents without a label are passed over. The margin "to handle very small
    score differences" is not given in the paper; see the guide on constructions for how the default compares.

    >>> LocalGradient().usable_curvature
    False
    """

    margin: float = 1.0

    name: ClassVar[str] = "local-gradient"
    usable_curvature: ClassVar[bool] = False
    select: ClassVar[int] = kernel.NEIGHBOURS
    force: ClassVar[int] = kernel.GAP_FORCE

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "margin", self.margin)


@dataclass(frozen=True)
class LocalCost(Construction):
    """Weight |ΔM|, force of the pair cost, only pairs at most ``reach`` ranks apart.

    "A cost based on a document's neighbors"; how many neighbors is not given, so the nearest on each side.
    Documents without a label are passed over. With a reach of the list's length it is RankNetWeightPairs.

    >>> str(LocalCost(reach=3))
    'construction=local-cost, reach=3'
    """

    reach: int = 1

    name: ClassVar[str] = "local-cost"
    select: ClassVar[int] = kernel.NEIGHBOURS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reach != int(self.reach) or self.reach < 1:
            raise ObjectiveError(f"{self.name}: reach is {self.reach!r}, expected a whole number of 1 or more")


@dataclass(frozen=True)
class DiscreteBounded(Construction):
    """λ_i = ±min(bound, gain of moving i to its ideal position), no pairs.

    The document is taken out and put in at the place that it has in the ideal order, the others close up; + if that is
    further up. Of documents with equal gain the ideal order keeps the order in which they stand. Where such a single
    move lowers the measure, λ is 0. The bound of 1 is the paper's; it acts on measures that may change by more (DCG,
    Kendall's τ). λ's of a query do not add up to 0.

    >>> DiscreteBounded().pairwise
    False
    """

    bound: float = 1.0

    name: ClassVar[str] = "discrete-bounded"
    pairwise: ClassVar[bool] = False
    usable_curvature: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "bound", self.bound)


@dataclass(frozen=True)
class UnitPairs(Construction):
    """Weight 1, force of the pair cost, all pairs: RankNet on the pairs that the measure tells apart.

    >>> str(UnitPairs())
    'construction=unit-pairs'
    """

    name: ClassVar[str] = "unit-pairs"
    weigh: ClassVar[int] = kernel.UNIT


@dataclass(frozen=True)
class DiscretePairs(Construction):
    """Weight |ΔM|, force 1 on misranked pairs and 0 on others: what the swaps gain, whatever the scores.

    >>> str(DiscretePairs())
    'construction=discrete-pairs'
    """

    name: ClassVar[str] = "discrete-pairs"
    usable_curvature: ClassVar[bool] = False
    force: ClassVar[int] = kernel.STEP_FORCE


@dataclass(frozen=True)
class SpringPairs(Construction):
    """Weight |ΔM|, force max(0, margin − o): a spring that pulls until the pair is ``margin`` apart.

    The force grows with the distance, where RankNet's ends at 1; it is that of the cost max(0, margin − o)²/2.

    >>> str(SpringPairs(margin=2))
    'construction=spring-pairs, margin=2'
    """

    margin: float = 1.0

    name: ClassVar[str] = "spring-pairs"
    force: ClassVar[int] = kernel.SPRING_FORCE


@dataclass(frozen=True)
class HingePairs(Construction):
    """Weight |ΔM|, force 1 on pairs that are less than ``margin`` apart and 0 on others: that of RankSVM's hinge.

    DiscretePairs with a margin: a pair in the right order is pushed on until it is sure.

    >>> str(HingePairs(margin=2))
    'construction=hinge-pairs, margin=2'
    """

    margin: float = 1.0

    name: ClassVar[str] = "hinge-pairs"
    usable_curvature: ClassVar[bool] = False
    force: ClassVar[int] = kernel.HINGE_FORCE


@dataclass(frozen=True)
class PairGradient(Construction):
    """Weight |ΔM|, force 1/(|o| + margin), all pairs: LocalGradient's estimate beyond neighbors.

    >>> str(PairGradient())
    'construction=pair-gradient'
    """

    margin: float = 1.0

    name: ClassVar[str] = "pair-gradient"
    usable_curvature: ClassVar[bool] = False
    force: ClassVar[int] = kernel.GAP_FORCE

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "margin", self.margin)


@dataclass(frozen=True)
class IdealPairs(Construction):
    """Weight |ΔM|, force of the pair cost, only pairs of a document and the one that stands at its ideal place.

    The pairwise relative of DiscreteBounded, with the same ideal order.

    >>> str(IdealPairs())
    'construction=ideal-pairs'
    """

    name: ClassVar[str] = "ideal-pairs"
    select: ClassVar[int] = kernel.IDEAL


@dataclass(frozen=True)
class BestSwap(Construction):
    """Weight |ΔM|, force of the pair cost, only pairs of a document and the one whose swap changes most.

    Of partners that change equally much it is the higher ranked.

    >>> str(BestSwap())
    'construction=best-swap'
    """

    name: ClassVar[str] = "best-swap"
    select: ClassVar[int] = kernel.BEST


CONSTRUCTIONS: dict[str, type[Construction]] = {
    kind.name: kind
    for kind in (
        RankNetWeightPairs,
        SpringSmooth,
        LocalGradient,
        LocalCost,
        DiscreteBounded,
        MisrankedPairs,
        UnitPairs,
        DiscretePairs,
        SpringPairs,
        HingePairs,
        PairGradient,
        IdealPairs,
        BestSwap,
    )
}
"""The one list of constructions, by name; the first five are those that the paper names."""


def construction_of(name: str, **parameters: Any) -> Construction:
    """A construction by its name.

    Parameters
    ----------
    name
        The name, which may be spelt with ``-`` or ``_`` or as in the paper, and may hold options:
        ``local-cost(reach=3)``.
    **parameters
        Options of the construction.

    >>> construction_of("SpringSmooth", floor=2), construction_of("local-cost(reach=3)")
    (SpringSmooth(floor=2), LocalCost(reach=3))
    """
    if "(" in name:
        expression = parse_expression(name.replace("-", "_"))
        if expression.arguments or expression.cutoff is not None:
            raise ObjectiveError(f"{name!r} is not a construction like local-cost(reach=3)")
        name, parameters = expression.name, {**expression.keywords, **parameters}
    wanted = name.lower().replace("-", "").replace("_", "")
    kind = next((kind for key, kind in CONSTRUCTIONS.items() if key.replace("-", "") == wanted), None)
    if kind is None:
        raise ObjectiveError(f"there is no construction {name!r}; there are {', '.join(CONSTRUCTIONS)}")
    known = [item.name for item in fields(kind)]
    for key in parameters:
        if key not in known:
            raise ObjectiveError(f"{kind.name} has no option {key!r}; it has {', '.join(known) or 'none'}")
    return kind(**parameters)


def _positive(construction: Construction, name: str, value: float) -> None:
    if not value > 0.0:
        raise ObjectiveError(f"{construction.name}: {name} is {value!r}, expected a number above 0")
