"""Nets on PyTorch (extra ``nets``): LambdaRank, RankNet, ListNet, ListMLE, and regression."""

from gradrank.learners.nets.learner import NetLearner
from gradrank.learners.nets.named import LambdaRank, ListMLE, ListNet, RankNet, RegressionNet

__all__ = ["LambdaRank", "ListMLE", "ListNet", "NetLearner", "RankNet", "RegressionNet"]
