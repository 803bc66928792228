"""Measures of ranking quality: one per file, conventions spelt out, exact swap deltas."""

from gradrank.measures.average_precision import MAP
from gradrank.measures.base import BoundMeasure, Measure, mean_value
from gradrank.measures.bpref import Bpref
from gradrank.measures.cndcg import CNDCG
from gradrank.measures.compute import bind_measures, bound_values, measure_values
from gradrank.measures.conventions import CONVENTIONS, Convention
from gradrank.measures.dcg import DCG
from gradrank.measures.err import ERR
from gradrank.measures.graded import AnyMeasure, Graded, single_measures
from gradrank.measures.kappa_err import KappaERR
from gradrank.measures.kappa_ndcg import KappaNDCG
from gradrank.measures.kendall import KendallTau
from gradrank.measures.mean_ndcg import MeanNDCG
from gradrank.measures.ndcg import NDCG
from gradrank.measures.nwpref import NWPref
from gradrank.measures.ppref import PPref
from gradrank.measures.precision import Precision
from gradrank.measures.rbp import RBP
from gradrank.measures.recall import Recall
from gradrank.measures.reciprocal_rank import MRR
from gradrank.measures.registry import DEFAULT_MEASURES, REGISTRY, as_measure, as_measures, parse_measure
from gradrank.measures.rpref import RPref
from gradrank.measures.wpref import WPref
from gradrank.measures.wta import WTA

__all__ = [
    "CNDCG",
    "CONVENTIONS",
    "DCG",
    "DEFAULT_MEASURES",
    "ERR",
    "MAP",
    "MRR",
    "NDCG",
    "RBP",
    "REGISTRY",
    "WTA",
    "AnyMeasure",
    "BoundMeasure",
    "Bpref",
    "Convention",
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
    "as_measure",
    "as_measures",
    "bind_measures",
    "bound_values",
    "mean_value",
    "measure_values",
    "parse_measure",
    "single_measures",
]
