"""Learners: they take query-grouped data and give a ranker."""

from gradrank.errors import TrainingError
from gradrank.learners.boosting.adarank import AdaRank
from gradrank.learners.boosting.rankboost import RankBoost
from gradrank.learners.focused.focused_boost import FocusedBoost
from gradrank.learners.focused.focused_net import FocusedNet
from gradrank.learners.focused.focused_svm import FocusedSVM
from gradrank.learners.linear.svm import RankSVM, SVMmap
from gradrank.learners.nets import LambdaRank, ListMLE, ListNet, RankNet, RegressionNet
from gradrank.learners.trees.boosting import Step, boost
from gradrank.learners.trees.grower import TreeSettings
from gradrank.learners.trees.lambdamart import MART, LambdaMART, LambdaSMART
from gradrank.learners.trees.mcrank import McRank
from gradrank.learners.trees.settings import BoostingSettings

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
