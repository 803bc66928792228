"""Learners: they take query-grouped data and give a ranker."""

from gradrank.learners.adarank import AdaRank
from gradrank.learners.boosting import Step, boost
from gradrank.learners.boosting_settings import BoostingSettings
from gradrank.learners.focused_boost import FocusedBoost
from gradrank.learners.focused_net import FocusedNet
from gradrank.learners.focused_svm import FocusedSVM
from gradrank.learners.grower import TrainingError, TreeSettings
from gradrank.learners.lambdamart import MART, LambdaMART, LambdaSMART
from gradrank.learners.mcrank import McRank
from gradrank.learners.nets import LambdaRank, ListMLE, ListNet, RankNet, RegressionNet
from gradrank.learners.rankboost import RankBoost
from gradrank.learners.svm import RankSVM, SVMmap

__all__ = [
    "MART",
    "AdaRank",
    "BoostingSettings",
    "FocusedBoost",
    "FocusedNet",
    "FocusedSVM",
    "LambdaMART",
    "LambdaRank",
    "LambdaSMART",
    "ListMLE",
    "ListNet",
    "McRank",
    "RankBoost",
    "RankNet",
    "RankSVM",
    "RegressionNet",
    "SVMmap",
    "Step",
    "TrainingError",
    "TreeSettings",
    "boost",
]
