"""Learning to rank for the measure you care about.

Public names load on first use, so that ``import gradrank`` and the command line's help stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradrank.version import __version__ as __version__

if TYPE_CHECKING:
    from gradrank.data.formats import read_data as read_data
    from gradrank.data.formats import write_data as write_data
    from gradrank.data.ranking_data import RankingData as RankingData
    from gradrank.errors import GradrankError as GradrankError
    from gradrank.evaluation import compare as compare
    from gradrank.evaluation import evaluate as evaluate
    from gradrank.learners import MART as MART
    from gradrank.learners import LambdaMART as LambdaMART
    from gradrank.learners import LambdaRank as LambdaRank
    from gradrank.learners import LambdaSMART as LambdaSMART
    from gradrank.learners import ListMLE as ListMLE
    from gradrank.learners import ListNet as ListNet
    from gradrank.learners import McRank as McRank
    from gradrank.learners import RankNet as RankNet
    from gradrank.learners import RegressionNet as RegressionNet
    from gradrank.measures import Measure as Measure
    from gradrank.measures import measure_values as measure_values
    from gradrank.measures import parse_measure as parse_measure
    from gradrank.models.ranker import Ranker as Ranker
    from gradrank.models.saved import load_ranker as load_ranker
    from gradrank.objectives import parse_objective as parse_objective

# Public name → the module it lives in.
_PUBLIC = {
    "compare": "gradrank.evaluation",
    "evaluate": "gradrank.evaluation",
    "GradrankError": "gradrank.errors",
    "LambdaMART": "gradrank.learners",
    "LambdaRank": "gradrank.learners",
    "LambdaSMART": "gradrank.learners",
    "ListMLE": "gradrank.learners",
    "ListNet": "gradrank.learners",
    "load_ranker": "gradrank.models.saved",
    "MART": "gradrank.learners",
    "McRank": "gradrank.learners",
    "Measure": "gradrank.measures",
    "measure_values": "gradrank.measures",
    "parse_measure": "gradrank.measures",
    "parse_objective": "gradrank.objectives",
    "Ranker": "gradrank.models.ranker",
    "RankingData": "gradrank.data.ranking_data",
    "RankNet": "gradrank.learners",
    "read_data": "gradrank.data.formats",
    "RegressionNet": "gradrank.learners",
    "write_data": "gradrank.data.formats",
}

__all__ = [
    "MART",
    "GradrankError",
    "LambdaMART",
    "LambdaRank",
    "LambdaSMART",
    "ListMLE",
    "ListNet",
    "McRank",
    "Measure",
    "RankNet",
    "Ranker",
    "RankingData",
    "RegressionNet",
    "__version__",
    "compare",
    "evaluate",
    "load_ranker",
    "measure_values",
    "parse_measure",
    "parse_objective",
    "read_data",
    "write_data",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gradrank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
