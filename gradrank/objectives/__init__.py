"""Objectives: pair costs, λ-gradients for any measure, pointwise targets."""

from gradrank.objectives.costs import COSTS, ObjectiveError, PairCost, RankNet, Sigmoid
from gradrank.objectives.lambda_gradient import Lambda
from gradrank.objectives.objective import BoundObjective, Gradients, Objective
from gradrank.objectives.pointwise import Regression
from gradrank.objectives.registry import parse_objective, recommended

__all__ = [
    "COSTS",
    "BoundObjective",
    "Gradients",
    "Lambda",
    "Objective",
    "ObjectiveError",
    "PairCost",
    "RankNet",
    "Regression",
    "Sigmoid",
    "parse_objective",
    "recommended",
]
