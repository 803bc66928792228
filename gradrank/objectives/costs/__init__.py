"""Pair costs, one per file, and the one list of them."""

from gradrank.objectives.costs.pair_cost import CostKernels, PairCost
from gradrank.objectives.costs.printed import Printed
from gradrank.objectives.costs.ranknet import RankNet
from gradrank.objectives.costs.sigmoid import Sigmoid

COSTS: dict[str, type[PairCost]] = {
    kind.name: kind
    for kind in (
        RankNet,
        Sigmoid,
        Printed,
    )
}
"""The pair costs by name; names of objectives and the contract tests read it."""

__all__ = ["COSTS", "CostKernels", "PairCost", "Printed", "RankNet", "Sigmoid"]
