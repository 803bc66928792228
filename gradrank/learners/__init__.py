"""Learners: they take query-grouped data and give a ranker.

Names load on first use, so that the declarations of parameters can be read without NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradrank.learners.base.loop import Step as Step
    from gradrank.learners.boosting.adarank import AdaRank as AdaRank
    from gradrank.learners.boosting.rankboost import RankBoost as RankBoost
    from gradrank.learners.focused.focused_boost import FocusedBoost as FocusedBoost
    from gradrank.learners.focused.focused_net import FocusedNet as FocusedNet
    from gradrank.learners.focused.focused_svm import FocusedSVM as FocusedSVM
    from gradrank.learners.linear.ranksvm import RankSVM as RankSVM
    from gradrank.learners.linear.svmmap import SVMmap as SVMmap
    from gradrank.learners.nets.lambdarank import LambdaRank as LambdaRank
    from gradrank.learners.nets.listmle import ListMLE as ListMLE
    from gradrank.learners.nets.listnet import ListNet as ListNet
    from gradrank.learners.nets.ranknet import RankNet as RankNet
    from gradrank.learners.nets.regression import RegressionNet as RegressionNet
    from gradrank.learners.trees.lambdamart import LambdaMART as LambdaMART
    from gradrank.learners.trees.lambdasmart import LambdaSMART as LambdaSMART
    from gradrank.learners.trees.mart import MART as MART
    from gradrank.learners.trees.mcrank import McRank as McRank

_MODULES = {
    "AdaRank": "boosting.adarank",
    "FocusedBoost": "focused.focused_boost",
    "FocusedNet": "focused.focused_net",
    "FocusedSVM": "focused.focused_svm",
    "LambdaMART": "trees.lambdamart",
    "LambdaRank": "nets.lambdarank",
    "LambdaSMART": "trees.lambdasmart",
    "ListMLE": "nets.listmle",
    "ListNet": "nets.listnet",
    "MART": "trees.mart",
    "McRank": "trees.mcrank",
    "RankBoost": "boosting.rankboost",
    "RankNet": "nets.ranknet",
    "RankSVM": "linear.ranksvm",
    "RegressionNet": "nets.regression",
    "SVMmap": "linear.svmmap",
    "Step": "base.loop",
}

__all__ = [
    "MART",
    "AdaRank",
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
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'gradrank.learners' has no attribute {name!r}")
    value = getattr(import_module(f"gradrank.learners.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
