"""Learners: they take query-grouped data and give a ranker."""

from gradrank.learners.boosting import BoostingSettings, Step, boost
from gradrank.learners.grower import TrainingError, TreeSettings
from gradrank.learners.lambdamart import MART, LambdaMART, LambdaSMART

__all__ = ["MART", "BoostingSettings", "LambdaMART", "LambdaSMART", "Step", "TrainingError", "TreeSettings", "boost"]
