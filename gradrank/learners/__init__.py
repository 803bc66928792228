"""Learners: they take query-grouped data and give a ranker."""

from gradrank.learners.boosting import BoostingSettings, Step, boost
from gradrank.learners.grower import TrainingError, TreeSettings
from gradrank.learners.lambdamart import MART, LambdaMART, LambdaSMART
from gradrank.learners.mcrank import McRank

__all__ = [
    "MART",
    "BoostingSettings",
    "LambdaMART",
    "LambdaSMART",
    "McRank",
    "Step",
    "TrainingError",
    "TreeSettings",
    "boost",
]
