"""Learning to rank for the measure you care about.

Public names load on first use, so that ``import gradrank`` and the command line's help stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradrank.version import __version__ as __version__

if TYPE_CHECKING:
    from gradrank.combine import combine_rankers as combine_rankers
    from gradrank.combine import optimal_combination as optimal_combination
    from gradrank.data.artificial import make_data as make_data
    from gradrank.data.artificial import make_splits as make_splits
    from gradrank.data.formats.registry import read_data as read_data
    from gradrank.data.formats.registry import write_data as write_data
    from gradrank.data.ranking_data import RankingData as RankingData
    from gradrank.errors import GradrankError as GradrankError
    from gradrank.evaluation import compare as compare
    from gradrank.evaluation import evaluate as evaluate
    from gradrank.learners import MART as MART
    from gradrank.learners import AdaRank as AdaRank
    from gradrank.learners import FocusedBoost as FocusedBoost
    from gradrank.learners import FocusedNet as FocusedNet
    from gradrank.learners import FocusedSVM as FocusedSVM
    from gradrank.learners import LambdaMART as LambdaMART
    from gradrank.learners import LambdaRank as LambdaRank
    from gradrank.learners import LambdaSMART as LambdaSMART
    from gradrank.learners import ListMLE as ListMLE
    from gradrank.learners import ListNet as ListNet
    from gradrank.learners import McRank as McRank
    from gradrank.learners import RankBoost as RankBoost
    from gradrank.learners import RankNet as RankNet
    from gradrank.learners import RankSVM as RankSVM
    from gradrank.learners import RegressionNet as RegressionNet
    from gradrank.learners import SVMmap as SVMmap
    from gradrank.measures import Measure as Measure
    from gradrank.measures import measure_values as measure_values
    from gradrank.measures import parse_measure as parse_measure
    from gradrank.models.feature import FeatureRanker as FeatureRanker
    from gradrank.models.ranker import Ranker as Ranker
    from gradrank.models.registry import load_ranker as load_ranker
    from gradrank.objectives import parse_objective as parse_objective
    from gradrank.optimality import local_optimality as local_optimality
    from gradrank.selection.adapt import adapt as adapt
    from gradrank.selection.auto import auto as auto

# Public name → the module it lives in.
_PUBLIC = {
    "adapt": "gradrank.selection.adapt",
    "AdaRank": "gradrank.learners",
    "auto": "gradrank.selection.auto",
    "combine_rankers": "gradrank.combine",
    "compare": "gradrank.evaluation",
    "evaluate": "gradrank.evaluation",
    "FocusedBoost": "gradrank.learners",
    "FocusedNet": "gradrank.learners",
    "FocusedSVM": "gradrank.learners",
    "GradrankError": "gradrank.errors",
    "LambdaMART": "gradrank.learners",
    "LambdaRank": "gradrank.learners",
    "LambdaSMART": "gradrank.learners",
    "ListMLE": "gradrank.learners",
    "ListNet": "gradrank.learners",
    "load_ranker": "gradrank.models.registry",
    "local_optimality": "gradrank.optimality",
    "MART": "gradrank.learners",
    "make_data": "gradrank.data.artificial",
    "make_splits": "gradrank.data.artificial",
    "FeatureRanker": "gradrank.models.feature",
    "McRank": "gradrank.learners",
    "Measure": "gradrank.measures",
    "measure_values": "gradrank.measures",
    "optimal_combination": "gradrank.combine",
    "parse_measure": "gradrank.measures",
    "parse_objective": "gradrank.objectives",
    "RankBoost": "gradrank.learners",
    "Ranker": "gradrank.models.ranker",
    "RankingData": "gradrank.data.ranking_data",
    "RankNet": "gradrank.learners",
    "RankSVM": "gradrank.learners",
    "read_data": "gradrank.data.formats.registry",
    "RegressionNet": "gradrank.learners",
    "SVMmap": "gradrank.learners",
    "write_data": "gradrank.data.formats.registry",
}

__all__ = [
    "MART",
    "AdaRank",
    "FeatureRanker",
    "FocusedBoost",
    "FocusedNet",
    "FocusedSVM",
    "GradrankError",
    "LambdaMART",
    "LambdaRank",
    "LambdaSMART",
    "ListMLE",
    "ListNet",
    "McRank",
    "Measure",
    "RankBoost",
    "RankNet",
    "RankSVM",
    "Ranker",
    "RankingData",
    "RegressionNet",
    "SVMmap",
    "__version__",
    "adapt",
    "auto",
    "combine_rankers",
    "compare",
    "evaluate",
    "load_ranker",
    "local_optimality",
    "make_data",
    "make_splits",
    "measure_values",
    "optimal_combination",
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
