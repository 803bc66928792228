"""Labeling by people: finding the ordered top k documents of each query with few judgments."""

from gradrank.errors import StaleJudgment
from gradrank.labeling.judgments import GRADE_NAMES, Judgment, Verdict
from gradrank.labeling.records import Outcome, Record, Tool
from gradrank.labeling.strategies import (
    DEFAULT_STRATEGY,
    STRATEGIES,
    Estimate,
    Pair,
    Request,
    Single,
    State,
    Strategy,
    strategy,
)

__all__ = [
    "DEFAULT_STRATEGY",
    "GRADE_NAMES",
    "STRATEGIES",
    "Estimate",
    "Judgment",
    "Outcome",
    "Pair",
    "Record",
    "Request",
    "Single",
    "StaleJudgment",
    "State",
    "Strategy",
    "Tool",
    "Verdict",
    "strategy",
]
