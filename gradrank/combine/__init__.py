"""Combining rankers: the exact best mixture of two, weights for many, and new weights for the trees of a model."""

from gradrank.combine.curve import Curve
from gradrank.combine.ensemble import Weighting, combine_rankers, given_weights, search_weights
from gradrank.combine.optimal import Combination, Combiner, optimal_combination
from gradrank.combine.refit import Refit, refit_weights

__all__ = [
    "Combination",
    "Combiner",
    "Curve",
    "Refit",
    "Weighting",
    "combine_rankers",
    "given_weights",
    "optimal_combination",
    "refit_weights",
    "search_weights",
]
