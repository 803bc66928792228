"""Learning to rank for the measure you care about.

Public names load on first use, so that ``import gradrank`` and the command line's help stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradrank.version import __version__ as __version__

# Where each public name lives. This is the one list of them: what is exported and what loads comes from it.
_MODULES: dict[str, tuple[str, ...]] = {
    "gradrank.combine": ("combine_rankers", "optimal_combination", "refit_weights", "search_weights"),
    "gradrank.data.artificial": ("make_data", "make_splits"),
    "gradrank.data.clicks.joining": ("join_clicks",),
    "gradrank.data.clicks.labels": ("click_labels",),
    "gradrank.data.clicks.propensity": ("estimate_propensities",),
    "gradrank.data.clicks.readers": ("read_click_log",),
    "gradrank.data.clicks.sessions": ("impression_data", "session_data"),
    "gradrank.data.clicks.simulate": ("Users", "simulate_log"),
    "gradrank.data.clicks.traffic": ("read_traffic",),
    "gradrank.data.drift": ("find_drift",),
    "gradrank.data.feature_profile": ("load_profile", "profile_features"),
    "gradrank.data.formats.columns": ("read_column", "write_column"),
    "gradrank.data.frames": ("from_frame", "to_frame"),
    "gradrank.data.formats.registry": ("read_data", "write_data"),
    "gradrank.data.profile": ("profile",),
    "gradrank.data.ranking_data": ("RankingData",),
    "gradrank.data.splits": ("concatenate", "k_folds", "letor_folds", "sample_queries", "split_queries"),
    "gradrank.data.texts": ("Texts", "read_texts"),
    "gradrank.errors": ("GradrankError", "GradrankWarning"),
    "gradrank.evaluation": ("Comparison", "Evaluation", "compare", "evaluate"),
    "gradrank.evaluation.ablation": ("ablate",),
    "gradrank.evaluation.counterfactual": ("counterfactual",),
    "gradrank.evaluation.explain": ("explain",),
    "gradrank.evaluation.importance": ("permutation_importance",),
    "gradrank.evaluation.partial_dependence": ("partial_dependence",),
    "gradrank.evaluation.interleaving": ("analyze_interleaving", "team_draft"),
    "gradrank.evaluation.segments": ("compare_segments",),
    "gradrank.experiments.constructions": ("study_constructions",),
    "gradrank.learners": (
        "AdaRank",
        "FocusedBoost",
        "FocusedNet",
        "FocusedSVM",
        "LambdaMART",
        "LambdaRank",
        "LambdaSMART",
        "ListMLE",
        "ListNet",
        "MART",
        "McRank",
        "RankBoost",
        "RankNet",
        "RankSVM",
        "RegressionNet",
        "SVMmap",
    ),
    "gradrank.measures": (
        "CNDCG",
        "DCG",
        "ERR",
        "MAP",
        "MRR",
        "NDCG",
        "RBP",
        "WTA",
        "Bpref",
        "Graded",
        "KappaERR",
        "KappaNDCG",
        "KendallTau",
        "MeanNDCG",
        "Measure",
        "NWPref",
        "PPref",
        "Precision",
        "RPref",
        "Recall",
        "WPref",
        "measure_values",
        "parse_measure",
    ),
    "gradrank.models.feature": ("FeatureRanker",),
    "gradrank.models.linear": ("LinearRanker",),
    "gradrank.models.nets.module": ("ModuleRanker",),
    "gradrank.models.nets.net": ("NetRanker",),
    "gradrank.models.ranker": ("Ranker",),
    "gradrank.models.registry": ("load_ranker",),
    "gradrank.models.systems": ("as_ranker",),
    "gradrank.models.trees.ensemble": ("TreeEnsemble",),
    "gradrank.models.weighted_sum": ("WeightedSum",),
    "gradrank.objectives": ("parse_objective",),
    "gradrank.optimality": ("climb", "local_optimality"),
    "gradrank.report.headline": ("headline",),
    "gradrank.report.page": ("write_report",),
    "gradrank.report.several": ("write_report_comparison",),
    "gradrank.selection.adapt": ("adapt", "compare_adaptation"),
    "gradrank.selection.auto": ("auto",),
    "gradrank.selection.constrained": ("improve",),
    "gradrank.selection.distil": ("distil",),
    "gradrank.selection.sweep": ("sweep",),
    "gradrank.selection.tune": ("tune",),
    "gradrank.selection.unbiased": ("train_on_clicks",),
}
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    # The same for type checkers, which cannot read the table; a test compares the two.
    from gradrank.combine import combine_rankers as combine_rankers
    from gradrank.combine import optimal_combination as optimal_combination
    from gradrank.combine import refit_weights as refit_weights
    from gradrank.combine import search_weights as search_weights
    from gradrank.data.artificial import make_data as make_data
    from gradrank.data.artificial import make_splits as make_splits
    from gradrank.data.clicks.joining import join_clicks as join_clicks
    from gradrank.data.clicks.labels import click_labels as click_labels
    from gradrank.data.clicks.propensity import estimate_propensities as estimate_propensities
    from gradrank.data.clicks.readers import read_click_log as read_click_log
    from gradrank.data.clicks.sessions import impression_data as impression_data
    from gradrank.data.clicks.sessions import session_data as session_data
    from gradrank.data.clicks.simulate import Users as Users
    from gradrank.data.clicks.simulate import simulate_log as simulate_log
    from gradrank.data.clicks.traffic import read_traffic as read_traffic
    from gradrank.data.drift import find_drift as find_drift
    from gradrank.data.feature_profile import load_profile as load_profile
    from gradrank.data.feature_profile import profile_features as profile_features
    from gradrank.data.formats.columns import read_column as read_column
    from gradrank.data.formats.columns import write_column as write_column
    from gradrank.data.formats.registry import read_data as read_data
    from gradrank.data.formats.registry import write_data as write_data
    from gradrank.data.frames import from_frame as from_frame
    from gradrank.data.frames import to_frame as to_frame
    from gradrank.data.profile import profile as profile
    from gradrank.data.ranking_data import RankingData as RankingData
    from gradrank.data.splits import concatenate as concatenate
    from gradrank.data.splits import k_folds as k_folds
    from gradrank.data.splits import letor_folds as letor_folds
    from gradrank.data.splits import sample_queries as sample_queries
    from gradrank.data.splits import split_queries as split_queries
    from gradrank.data.texts import Texts as Texts
    from gradrank.data.texts import read_texts as read_texts
    from gradrank.errors import GradrankError as GradrankError
    from gradrank.errors import GradrankWarning as GradrankWarning
    from gradrank.evaluation import Comparison as Comparison
    from gradrank.evaluation import Evaluation as Evaluation
    from gradrank.evaluation import compare as compare
    from gradrank.evaluation import evaluate as evaluate
    from gradrank.evaluation.ablation import ablate as ablate
    from gradrank.evaluation.counterfactual import counterfactual as counterfactual
    from gradrank.evaluation.explain import explain as explain
    from gradrank.evaluation.importance import permutation_importance as permutation_importance
    from gradrank.evaluation.interleaving import analyze_interleaving as analyze_interleaving
    from gradrank.evaluation.interleaving import team_draft as team_draft
    from gradrank.evaluation.partial_dependence import partial_dependence as partial_dependence
    from gradrank.evaluation.segments import compare_segments as compare_segments
    from gradrank.experiments.constructions import study_constructions as study_constructions
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
    from gradrank.measures import CNDCG as CNDCG
    from gradrank.measures import DCG as DCG
    from gradrank.measures import ERR as ERR
    from gradrank.measures import MAP as MAP
    from gradrank.measures import MRR as MRR
    from gradrank.measures import NDCG as NDCG
    from gradrank.measures import RBP as RBP
    from gradrank.measures import WTA as WTA
    from gradrank.measures import Bpref as Bpref
    from gradrank.measures import Graded as Graded
    from gradrank.measures import KappaERR as KappaERR
    from gradrank.measures import KappaNDCG as KappaNDCG
    from gradrank.measures import KendallTau as KendallTau
    from gradrank.measures import MeanNDCG as MeanNDCG
    from gradrank.measures import Measure as Measure
    from gradrank.measures import NWPref as NWPref
    from gradrank.measures import PPref as PPref
    from gradrank.measures import Precision as Precision
    from gradrank.measures import Recall as Recall
    from gradrank.measures import RPref as RPref
    from gradrank.measures import WPref as WPref
    from gradrank.measures import measure_values as measure_values
    from gradrank.measures import parse_measure as parse_measure
    from gradrank.models.feature import FeatureRanker as FeatureRanker
    from gradrank.models.linear import LinearRanker as LinearRanker
    from gradrank.models.nets.module import ModuleRanker as ModuleRanker
    from gradrank.models.nets.net import NetRanker as NetRanker
    from gradrank.models.ranker import Ranker as Ranker
    from gradrank.models.registry import load_ranker as load_ranker
    from gradrank.models.systems import as_ranker as as_ranker
    from gradrank.models.trees.ensemble import TreeEnsemble as TreeEnsemble
    from gradrank.models.weighted_sum import WeightedSum as WeightedSum
    from gradrank.objectives import parse_objective as parse_objective
    from gradrank.optimality import climb as climb
    from gradrank.optimality import local_optimality as local_optimality
    from gradrank.report.headline import headline as headline
    from gradrank.report.page import write_report as write_report
    from gradrank.report.several import write_report_comparison as write_report_comparison
    from gradrank.selection.adapt import adapt as adapt
    from gradrank.selection.adapt import compare_adaptation as compare_adaptation
    from gradrank.selection.auto import auto as auto
    from gradrank.selection.constrained import improve as improve
    from gradrank.selection.distil import distil as distil
    from gradrank.selection.sweep import sweep as sweep
    from gradrank.selection.tune import tune as tune
    from gradrank.selection.unbiased import train_on_clicks as train_on_clicks


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gradrank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
