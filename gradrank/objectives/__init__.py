"""Objectives: pair costs, λ-gradients of any measure by any construction, listwise, pairwise and pointwise losses."""

from gradrank.errors import ObjectiveError
from gradrank.objectives.constructed import Constructed, constructed
from gradrank.objectives.constructions import CONSTRUCTIONS, Construction, construction_of
from gradrank.objectives.costs import COSTS, PairCost, Printed, RankNet, Sigmoid
from gradrank.objectives.differences import Differences
from gradrank.objectives.focused import Focused
from gradrank.objectives.lambda_gradient import Lambda
from gradrank.objectives.lambda_loss import LambdaGap, LambdaLoss, LambdaWide
from gradrank.objectives.listwise import ListMLE, ListNet
from gradrank.objectives.noisy import Noisy
from gradrank.objectives.objective import BoundObjective, Gradients, Objective
from gradrank.objectives.pointwise import Logistic, Regression
from gradrank.objectives.ranknet import RankNetPairs
from gradrank.objectives.registry import as_objective, parse_objective, recommended, with_construction
from gradrank.objectives.schedule import Scheduled
from gradrank.objectives.smooth_ndcg import ApproxNDCG, NeuralNDCG
from gradrank.objectives.tiers import Tiered
from gradrank.objectives.xendcg import XENDCG

__all__ = [
    "CONSTRUCTIONS",
    "COSTS",
    "XENDCG",
    "ApproxNDCG",
    "BoundObjective",
    "Constructed",
    "Construction",
    "Differences",
    "Focused",
    "Gradients",
    "Lambda",
    "LambdaGap",
    "LambdaLoss",
    "LambdaWide",
    "ListMLE",
    "ListNet",
    "Logistic",
    "NeuralNDCG",
    "Noisy",
    "Objective",
    "ObjectiveError",
    "PairCost",
    "Printed",
    "RankNet",
    "RankNetPairs",
    "Regression",
    "Scheduled",
    "Sigmoid",
    "Tiered",
    "as_objective",
    "constructed",
    "construction_of",
    "parse_objective",
    "recommended",
    "with_construction",
]
