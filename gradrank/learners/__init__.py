"""Learners: they take query-grouped data and give a ranker."""

from gradrank.learners.boosting import BoostingSettings, Step, boost
from gradrank.learners.grower import TrainingError, TreeSettings
from gradrank.learners.lambdamart import MART, LambdaMART, LambdaSMART
from gradrank.learners.mcrank import McRank
from gradrank.learners.nets import LambdaRank, ListMLE, ListNet, RankNet, RegressionNet

__all__ = [
    "MART",
    "BoostingSettings",
    "LambdaMART",
    "LambdaRank",
    "LambdaSMART",
    "ListMLE",
    "ListNet",
    "McRank",
    "RankNet",
    "RegressionNet",
    "Step",
    "TrainingError",
    "TreeSettings",
    "boost",
]
