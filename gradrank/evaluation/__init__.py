"""Evaluating systems, comparing them, and showing the result."""

from gradrank.data.label_facts import LabelFacts, label_facts
from gradrank.evaluation.compare import Comparison, ComparisonRow, compare
from gradrank.evaluation.evaluate import Evaluation, Summary, evaluate
from gradrank.evaluation.significance import PairedTest, bootstrap_test, holm, randomization_test, t_test
from gradrank.evaluation.tables import Column, Table

__all__ = [
    "Column",
    "Comparison",
    "ComparisonRow",
    "Evaluation",
    "LabelFacts",
    "PairedTest",
    "Summary",
    "Table",
    "bootstrap_test",
    "compare",
    "evaluate",
    "holm",
    "label_facts",
    "randomization_test",
    "t_test",
]
