"""The algorithms by the names that their papers gave them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from gradrank.errors import TrainingError
from gradrank.learners.base.estimator import RankingEstimator

# A new algorithm is one line here: its name -> where its learner lives (loaded only when needed).
ALGORITHMS: dict[str, str] = {
    "lambdamart": "gradrank.learners.trees.lambdamart:LambdaMART",
    "lambdasmart": "gradrank.learners.trees.lambdasmart:LambdaSMART",
    "mart": "gradrank.learners.trees.mart:MART",
    "mcrank": "gradrank.learners.trees.mcrank:McRank",
    "lambdarank": "gradrank.learners.nets.lambdarank:LambdaRank",
    "ranknet": "gradrank.learners.nets.ranknet:RankNet",
    "listnet": "gradrank.learners.nets.listnet:ListNet",
    "listmle": "gradrank.learners.nets.listmle:ListMLE",
    "regressionnet": "gradrank.learners.nets.regression:RegressionNet",
    "ranksvm": "gradrank.learners.linear.ranksvm:RankSVM",
    "svmmap": "gradrank.learners.linear.svmmap:SVMmap",
    "focusedsvm": "gradrank.learners.focused.focused_svm:FocusedSVM",
    "rankboost": "gradrank.learners.boosting.rankboost:RankBoost",
    "adarank": "gradrank.learners.boosting.adarank:AdaRank",
    "focusedboost": "gradrank.learners.focused.focused_boost:FocusedBoost",
    "focusednet": "gradrank.learners.focused.focused_net:FocusedNet",
}


def algorithm(name: str) -> type[RankingEstimator]:
    """The learner of a name, in any case.

    >>> algorithm("LambdaMART").__name__
    'LambdaMART'
    """
    try:
        module, learner = ALGORITHMS[name.lower()].split(":")
    except KeyError:
        raise TrainingError(f"there is no algorithm {name!r}; there are {', '.join(ALGORITHMS)}") from None
    kind: type[RankingEstimator] = getattr(import_module(module), learner)
    return kind


def parameters_of(learner: RankingEstimator | type[RankingEstimator]) -> tuple[str, ...]:
    """Names of a learner's parameters.

    >>> "n_estimators" in parameters_of(algorithm("mart"))
    True
    """
    return tuple(learner.declared)


def effective_parameters(learner: RankingEstimator) -> Mapping[str, Any]:
    """A learner's parameters with what it chooses by itself (objective, measure, rules) spelt out.

    A learner made from them learns the same. Parameters that are out of range raise TrainingError.

    >>> chosen = effective_parameters(algorithm("lambdamart")("MAP"))
    >>> chosen["objective"], chosen["measure"], chosen["split"], chosen["step"]
    ('Lambda(MAP, normalize=log, gap=true)', 'MAP', 'newton', 'newton')
    """
    learner.check_parameters()
    return {**learner.get_params(deep=False), **learner._chosen()}
