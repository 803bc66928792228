"""Comparisons worked by hand, on evaluations made of plain numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.evaluation import Evaluation, compare
from gradrank.evaluation.tables import to_json
from gradrank.measures import parse_measure

MRR, MAP = parse_measure("MRR"), parse_measure("MAP")


def evaluation(values: dict[str, dict], weights=None) -> Evaluation:
    arrays = {name: {m: np.array(v, dtype=float) for m, v in by.items()} for name, by in values.items()}
    first = next(iter(arrays.values()))
    n = len(next(iter(first.values())))
    return Evaluation(Strings.of(range(n)), tuple(first), arrays, {}, weights)


OLD = [0.2, 0.4, 0.6, 0.5, 0.3]
NEW = [0.3, 0.5, 0.6, 0.7, 0.2]


def test_row_hand_worked() -> None:
    comparison = compare(evaluation({"old": {MRR: OLD}, "new": {MRR: NEW}}))
    (row,) = comparison.rows
    theirs = stats.ttest_rel(NEW, OLD)
    assert comparison.baseline == "old"
    assert (row.system, row.measure) == ("new", MRR)
    assert (row.wins, row.ties, row.losses) == (3, 1, 1)
    assert (row.baseline_mean, row.mean) == (pytest.approx(0.4), pytest.approx(0.46))
    assert row.test.difference == pytest.approx(0.06)
    assert row.relative == pytest.approx(0.15)
    assert row.test.p == row.p_corrected == pytest.approx(theirs.pvalue)
    assert row.verdict == "no significant difference"


def test_verdicts_use_the_corrected_p() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(200)
    noise = rng.normal(0, 0.1, 200)
    shifted = {name: base + noise + shift - noise.mean() for name, shift in [("up", 0.1), ("down", -0.1)]}
    # p of this row is about .03: significant alone, not among three.
    edge = base + noise - noise.mean() + 2.2 * noise.std() / math.sqrt(200)
    values = {"base": {MRR: base}, **{name: {MRR: v} for name, v in shifted.items()}, "edge": {MRR: edge}}
    plain = compare(evaluation({"base": {MRR: base}, "edge": {MRR: edge}})).rows[0]
    assert plain.verdict == "better"
    among = {row.system: row for row in compare(evaluation({**values, "edge2": {MRR: edge}})).rows}
    assert among["up"].verdict == "better"
    assert among["down"].verdict == "worse"
    assert among["edge"].verdict == "no significant difference"
    assert among["edge"].p_corrected == pytest.approx(2 * plain.test.p)
    uncorrected = compare(evaluation({**values, "edge2": {MRR: edge}}), correction=None)
    assert all(row.verdict != "no significant difference" for row in uncorrected.rows)


def test_level_decides_the_verdict() -> None:
    values = evaluation({"old": {MRR: OLD * 4}, "new": {MRR: NEW * 4}})
    p = compare(values).rows[0].test.p
    assert compare(values, level=p * 1.01).rows[0].verdict == "better"
    assert compare(values, level=p * 0.99).rows[0].verdict == "no significant difference"


def test_pairs_without_a_value_are_left_out_of_everything() -> None:
    values = evaluation({"old": {MRR: [0.5, math.nan, 0.2]}, "new": {MRR: [0.6, 1.0, 0.1]}})
    (row,) = compare(values).rows
    assert row.test.n == 2
    assert (row.wins, row.ties, row.losses) == (1, 0, 1)
    assert row.mean == pytest.approx(0.35)


@pytest.mark.parametrize("test", ["t", "randomization", "bootstrap"])
def test_means_and_difference_agree_under_weights(test) -> None:
    weights = np.array([1.0, 2, 0, 4, 3])
    values = evaluation({"old": {MRR: OLD}, "new": {MRR: NEW}}, weights)
    (row,) = compare(values, test=test).rows
    assert row.test.test == test
    assert row.mean == pytest.approx((0.3 + 2 * 0.5 + 4 * 0.7 + 3 * 0.2) / 10)
    assert row.test.difference == pytest.approx(row.mean - row.baseline_mean)
    assert row.wins + row.ties + row.losses == row.test.n == 4


def test_one_query_is_said() -> None:
    comparison = compare(evaluation({"old": {MRR: [0.5]}, "new": {MRR: [0.6]}}))
    assert comparison.rows[0].verdict == "no significant difference"
    assert comparison.notes() == ["new by MRR: only one query: no test is possible"]


def test_chosen_baseline_and_order_of_rows() -> None:
    values = evaluation({name: {MRR: OLD, MAP: NEW} for name in ("a", "b", "c")})
    comparison = compare(values, baseline="b")
    assert [(row.system, str(row.measure)) for row in comparison.rows] == [
        ("a", "MRR"),
        ("a", "MAP"),
        ("c", "MRR"),
        ("c", "MAP"),
    ]
    assert all(row.ties == 5 and row.test.p == 1 for row in comparison.rows)


def test_relative_difference_to_zero_is_unknown() -> None:
    (row,) = compare(evaluation({"old": {MRR: [0, 0]}, "new": {MRR: [0, 1]}})).rows
    assert math.isnan(row.relative)


def test_nothing_to_compare() -> None:
    values = evaluation({"old": {MRR: OLD}})
    with pytest.raises(DataError, match="one system only"):
        compare(values)
    with pytest.raises(DataError, match="no system 'x'"):
        compare(values, baseline="x")


def test_table_and_dict() -> None:
    comparison = compare(evaluation({"old": {MRR: OLD}, "new": {MRR: NEW}}))
    described = json.loads(to_json(comparison.to_dict()))
    assert described["baseline"] == "old"
    assert described["rows"][0]["wins"] == 3
    (record,) = comparison.table().records()
    assert record["p (holm)"] == described["rows"][0]["p_corrected"]
    assert record["verdict"] == "no significant difference"
