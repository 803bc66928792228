"""The verdict in words: who ranks best by the first measure, by how much, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

from gradrank.evaluation import Column, Comparison, ComparisonRow, Evaluation, t_test
from gradrank.evaluation.compare import CORRECTION_NAMES, TEST_NAMES


@dataclass(frozen=True)
class Headline:
    """One sentence, and what it leaves unsaid."""

    sentence: str
    details: tuple[str, ...] = ()
    system: str | None = None
    """The system that the sentence compares with the baseline."""


def headline(evaluation: Evaluation, comparison: Comparison | None) -> Headline:
    """The verdict in a sentence: who ranks best by the first measure, by how much, and how sure that is.

    Parameters
    ----------
    evaluation
        What :func:`~gradrank.evaluate` gave.
    comparison
        What :func:`~gradrank.compare` made of it; None if nothing was tested.

    >>> import numpy as np
    >>> from gradrank.data.ranking_data import RankingData
    >>> from gradrank.evaluation import evaluate
    >>> from gradrank.measures import parse_measure
    >>> data = RankingData.from_arrays(np.zeros((2, 1)), [0, 1], qid=["a", "a"])
    >>> headline(evaluate(data, {"new": [1, 2]}, [parse_measure("MRR")]), None).sentence
    'new reaches MRR 1.0000 over 1 query.'
    """
    measure = evaluation.measures[0]
    summaries = {system: evaluation.summary(system, measure) for system in evaluation.systems}
    ranked = sorted((s for s in summaries if not isnan(summaries[s].mean)), key=lambda s: -summaries[s].mean)
    if not ranked:
        return Headline(f"No query can be evaluated by {measure}.")
    best = ranked[0]
    top = summaries[best]
    over = "over 1 query" if top.queries == 1 else f"over {top.queries:,} queries"
    if len(evaluation.systems) == 1:
        interval = "" if isnan(top.low) else f" (95 % interval {top.low:.4f} to {top.high:.4f})"
        return Headline(f"{best} reaches {measure} {top.mean:.4f}{interval} {over}.")
    rows = [] if comparison is None else [row for row in comparison.rows if row.measure == measure]
    rows = [row for row in rows if not isnan(row.test.difference)]
    if comparison is None or not rows:
        return Headline(f"{best} has the highest {measure}, {top.mean:.4f} {over}; significance was not tested.")

    row = max(rows, key=lambda row: row.test.difference)
    sentence = _sentence(comparison, row, over)
    details = [_tested(comparison, row)]
    if row.test.difference > 0 and len(ranked) > 2 and ranked[0] == row.system and ranked[1] != comparison.baseline:
        details.append(_runner_up(evaluation, comparison, row.system, ranked[1]))
    return Headline(sentence, tuple(details), row.system)


def p_text(p: float) -> str:
    """A p-value in a sentence.

    >>> p_text(0.00001), p_text(0.0312), p_text(float("nan"))
    ('p < 0.0001', 'p = 0.0312', 'p unknown')
    """
    shown = Column("p", "p").show(p)
    if isnan(p):
        return "p unknown"
    return f"p < {shown[1:]}" if shown.startswith("<") else f"p = {shown}"


def name_of_test(comparison: Comparison) -> str:
    """The comparison's test and correction, in words."""
    name = TEST_NAMES.get(comparison.rows[0].test.test, comparison.rows[0].test.test)
    return f"{name} with {CORRECTION_NAMES[comparison.correction]}" if comparison.correction else name


def _sentence(comparison: Comparison, row: ComparisonRow, over: str) -> str:
    base, difference = comparison.baseline, row.test.difference
    size = f"{abs(difference):.4f}"
    relative = "" if isnan(row.relative) else f", {row.relative:+.1%}"
    means = f"{row.mean:.4f} against {row.baseline_mean:.4f}{relative}"
    p = p_text(row.p_corrected)
    if row.verdict == "better":
        return f"{row.system} beats {base} by {size} {row.measure} ({means}) {over}: a significant difference, {p}."
    if difference > 0:
        return (
            f"No system is significantly better than {base} by {row.measure}: "
            f"the best, {row.system}, is {size} higher ({means}) {over}, {p}."
        )
    if difference == 0:
        return f"No system is better than {base} by {row.measure}: {row.system} has the same mean {over}, {p}."
    significant = "a significant difference" if row.verdict == "worse" else "not a significant difference"
    return (
        f"{base} stays ahead by {row.measure}: the closest, {row.system}, is {size} lower ({means}) {over}, "
        f"{significant}, {p}."
    )


def _tested(comparison: Comparison, row: ComparisonRow) -> str:
    interval = ""
    if not isnan(row.test.low):
        share = f"{100 * (1 - comparison.level):.6g}"
        interval = f"The difference is between {row.test.low:+.4f} and {row.test.high:+.4f} ({share} % interval). "
    changed = f"{row.system} is better on {row.wins:,} queries, equal on {row.ties:,}, worse on {row.losses:,}."
    return f"{interval}{changed}"


def _runner_up(evaluation: Evaluation, comparison: Comparison, best: str, second: str) -> str:
    measure = evaluation.measures[0]
    values = evaluation.values
    result = t_test(values[best][measure], values[second][measure], weights=evaluation.weights, level=comparison.level)
    significant = "significant" if result.p < comparison.level else "not significant"
    return (
        f"The runner-up, {second}, is {abs(result.difference):.4f} behind {best}: {significant}, {p_text(result.p)} "
        "(paired t-test of this one pair)."
    )
