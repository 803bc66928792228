"""Objectives: pair costs, λ-gradients for any measure, pointwise targets."""

from gradrank.objectives.costs import COSTS, ObjectiveError, PairCost, Printed, RankNet, Sigmoid
from gradrank.objectives.lambda_gradient import Lambda
from gradrank.objectives.objective import BoundObjective, Gradients, Objective
from gradrank.objectives.pointwise import Regression
from gradrank.objectives.registry import normalised_by_deviation, parse_objective, recommended
from gradrank.objectives.schedule import Scheduled
from gradrank.objectives.tiers import Tiered

__all__ = [
    "COSTS",
    "BoundObjective",
    "Gradients",
    "Lambda",
    "Objective",
    "ObjectiveError",
    "PairCost",
    "Printed",
    "RankNet",
    "Regression",
    "Scheduled",
    "Sigmoid",
    "Tiered",
    "normalised_by_deviation",
    "parse_objective",
    "recommended",
]
