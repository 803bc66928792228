"""Simulated assessors and the report on them, against the paper's tables."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from statistics import fmean

import numpy as np
import pytest
from scipy.stats import kendalltau

from gradrank.errors import DataError
from gradrank.labeling import Judgment, Outcome, Tool, Verdict, strategy
from gradrank.labeling.analysis.agreement import agreement
from gradrank.labeling.analysis.report import LabelingReport, labeling_report
from gradrank.labeling.analysis.simulate import PAPER_ASSESSORS, Study, simulate_counts, simulate_study


@pytest.fixture(scope="module")
def study() -> Study:
    return simulate_study(queries=50, seed=1)


@pytest.fixture(scope="module")
def studies(study: Study) -> list[Study]:
    return [study, *(simulate_study(queries=50, seed=seed) for seed in (2, 3, 4))]


@pytest.fixture(scope="module")
def report(study: Study) -> LabelingReport:
    return labeling_report(study.records, study.outcomes, permutations=500)


# ---------------------------------------------------------------------- counts
def test_counts_have_the_fields_that_scripts_read() -> None:
    found = simulate_counts("tournament", runs=20).to_dict()
    assert found["mean_judgments"] <= found["max_judgments"] <= 94
    assert found["exact_top_k"] == found["overlap_at_k"] == 1.0
    json.dumps(found)


@pytest.mark.parametrize("name", ["tournament", "heap", "heap-infer", "insertion"])
@pytest.mark.parametrize("levels", [None, 1, 5])
def test_right_answers_find_the_exact_top(name: str, levels: int | None) -> None:
    assert all(simulate_counts(name, n=20, k=5, runs=20, levels=levels).exact)


def test_the_same_seed_gives_the_same_counts() -> None:
    first, again, other = (simulate_counts("heap", n=20, k=5, runs=10, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_noise_costs_exactness_and_overlap_as_in_an_independent_simulation() -> None:
    # There, logistic noise of 1, 2 and 4 ranks left an overlap@10 of 0.96, 0.90 to 0.91 and 0.79 to 0.82.
    for noise, low, high in ((1.0, 0.94, 0.98), (2.0, 0.88, 0.93), (4.0, 0.77, 0.84)):
        found = simulate_counts("tournament", runs=150, noise=noise).to_dict()
        assert low <= found["overlap_at_k"] <= high
        assert found["exact_top_k"] < 0.6


@pytest.mark.parametrize("tau", [0.3, 0.64, 0.9])
def test_the_prior_has_the_tau_asked_for(tau: float) -> None:
    from random import Random

    from gradrank.labeling.analysis.simulate import _noisy_order

    level = {str(index): index for index in range(50)}
    found = []
    for seed in range(60):
        order = _noisy_order(level, tau, Random(seed))
        found.append(kendalltau(range(50), [-int(document) for document in order]).statistic)
    assert fmean(found) == pytest.approx(tau, abs=0.03)


def test_insertion_takes_about_78_judgments_behind_a_trusted_prior() -> None:
    assert fmean(simulate_counts("insertion", runs=150).judgments) == pytest.approx(78, abs=3)
    assert set(simulate_counts("insertion", runs=5, prior_tau=1.0).judgments) == {49}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "grades"}, "nothing to simulate"),
        ({"name": "bubble"}, "no strategy 'bubble'"),
        ({"name": "heap", "runs": 0}, "runs is 0"),
        ({"name": "heap", "levels": 0}, "levels is 0"),
        ({"name": "heap", "noise": -1.0}, "noise is -1.0"),
        ({"name": "insertion", "prior_tau": 2.0}, "tau is 2.0"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        simulate_counts(**arguments)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- the study
def test_table_1_has_the_papers_shape(report: LabelingReport) -> None:
    pairs, grades = report.efficiency
    assert (pairs.complexity, grades.complexity) == ("O(n log k)", "O(n)")
    assert pairs.judgments_per_query == pytest.approx(142.76, abs=3)
    assert pairs.seconds_per_judgment == pytest.approx(5.51, abs=0.15)
    assert pairs.minutes_per_query == pytest.approx(13.13, abs=0.5)
    assert grades.judgments_per_query == 50
    assert grades.seconds_per_judgment == pytest.approx(13.87, abs=0.5)
    assert grades.minutes_per_query == pytest.approx(11.78, abs=0.7)


# The paper's tables read one way only; documents and assessors exchanged, they become these (see _symmetric).
TABLE_2 = np.array([[0.6749, 0.2766, 0.0485], [0.1138, 0.8198, 0.0664], [0.1047, 0.3779, 0.5174]])
TABLE_3 = np.array([[0.6272, 0.2913, 0.0815], [0.2825, 0.5232, 0.1944], [0.1534, 0.3826, 0.4640]])
# Shares of the rows, which the paper's rates of agreement with and without ties imply (see test_agreement).
ROWS_2, ROWS_3 = (0.2208, 0.6377, 0.1415), (0.4112, 0.2680, 0.3208)


def _symmetric(counts: np.ndarray) -> np.ndarray:
    """Rows after exchanging assessors and documents: which is A and who comes first means nothing."""
    both = counts + counts.T
    both = both + both[::-1, ::-1]
    return both / both.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("tool", "table", "rows", "overall", "without_ties"),
    [(Tool.PREFERENCES, TABLE_2, ROWS_2, 0.745, 0.897), (Tool.GRADES, TABLE_3, ROWS_3, 0.547, 0.831)],
)
def test_tables_2_and_3_have_the_papers_shape(
    studies: list[Study],
    tool: Tool,
    table: np.ndarray,
    rows: tuple[float, ...],
    overall: float,
    without_ties: float,
) -> None:
    found = [agreement(tool, study.outcomes) for study in studies]
    # One study of five assessors has a standard deviation of up to 0.021 in the agreement, 0.008 without ties and
    # 0.054 in the cell of ties of grades: three of them, over the root of four studies.
    assert fmean(each.overall() for each in found) == pytest.approx(overall, abs=0.032)
    assert fmean(each.overall(ties=False) for each in found) == pytest.approx(without_ties, abs=0.012)
    expected = _symmetric(table * np.array(rows)[:, None])
    assert _symmetric(sum(each.counts for each in found)) == pytest.approx(expected, abs=0.08)


def test_preferences_agree_more_than_grades(report: LabelingReport) -> None:
    with_ties, without = report.comparisons[:2]
    for comparison in (with_ties, without):
        assert comparison.permutation.difference > 0
        assert comparison.permutation.p < 0.01
        assert comparison.chi_square.p < 0.001


def test_nobody_sees_a_query_with_both_tools_and_all_use_both(study: Study) -> None:
    seen = Counter((outcome.assessor, outcome.query) for outcome in study.outcomes)
    assert set(seen.values()) == {1}
    by_tool = Counter((outcome.assessor, outcome.tool) for outcome in study.outcomes)
    assert set(by_tool.values()) == {20}
    each = Counter((outcome.query, outcome.tool) for outcome in study.outcomes)
    assert set(each.values()) == {2}


def test_records_replay_to_the_outcomes() -> None:
    study = simulate_study(queries=2, n=15, k=4, name="tournament", seed=3)
    for outcome in study.outcomes:
        history = [
            Judgment(record.verdict, record.first, record.second, record.grade)
            for record in study.records
            if (record.assessor, record.query) == (outcome.assessor, outcome.query)
        ]
        # The seed of the order is not recorded: the answers, in any order, must bear out the groups.
        if outcome.tool is Tool.GRADES:
            assert {judgment.first: judgment.grade for judgment in history} == dict(outcome.grades)
            continue
        place = {document: index for index, group in enumerate(outcome.top) for document in group}
        for judgment in history:
            assert judgment.second is not None
            first, second = (place.get(document, 99) for document in (judgment.first, judgment.second))
            if judgment.verdict is Verdict.FIRST:
                assert first < second or first == second == 99
            elif judgment.verdict is Verdict.TIE:
                assert first == second
    assert {record.tool for record in study.records} == set(Tool)


def test_a_biased_hand_shows_in_the_report() -> None:
    biased = simulate_study(queries=6, n=20, k=5, model=replace(PAPER_ASSESSORS, left=0.5), seed=2)
    sides = labeling_report(biased.records, biased.outcomes, permutations=10).sides
    assert sides[""].share > 0.55
    assert sides[""].p < 0.001
    fair = simulate_study(queries=6, n=20, k=5, seed=2)
    assert labeling_report(fair.records, fair.outcomes, permutations=10).sides[""].p > 0.001


def test_a_study_needs_enough_assessors_and_a_strategy_for_pairs() -> None:
    with pytest.raises(DataError, match="there are 3 assessors, expected 4 or more"):
        simulate_study(assessors=3)
    with pytest.raises(DataError, match="expected one that asks for preferences"):
        simulate_study(name="grades")


# ---------------------------------------------------------------------- the report's forms
class Page(HTMLParser):
    """Tags that open and close in order, the text, and the attributes."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_json_holds_no_nan_and_what_the_tables_need(report: LabelingReport) -> None:
    found = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert {row["tool"] for row in found["efficiency"]} == {"T1", "T2"}
    first = found["agreement"][0]
    assert (first["tool"], first["scope"], first["pairs"]) == ("T1", "all", 50 * 1225)
    assert sum(map(sum, first["counts"])) == first["agreed"] + first["disagreed"] == first["pairs"]
    assert [sum(row) for row in first["row_normalized"]] == pytest.approx([1, 1, 1])
    assert found["side_bias"]["total"] > 0
    assert set(found["side_bias_by_assessor"]) == {f"U{index}" for index in range(1, 6)}


def test_the_page_is_whole_and_loads_nothing(report: LabelingReport) -> None:
    text = report.to_html("Our study")
    page = Page(text)
    assert page.open == []
    assert page.tags["script"] == 0
    assert page.tags["table"] >= 9
    assert not [value for name, value in page.attributes if name in ("src", "href") and value != "data:,"]
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]


def test_the_pages_policy_lets_its_own_style_through(report: LabelingReport) -> None:
    text = report.to_html()
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = b64encode(sha256(style.group(1).encode()).digest()).decode()
    policy = next(value for name, value in Page(text).attributes if value and "default-src" in value)
    assert f"'sha256-{digest}'" in policy


def test_names_from_outside_are_escaped(study: Study) -> None:
    evil = "<script>alert(1)</script>"
    records = [
        replace(record, assessor=evil if record.assessor == "U1" else record.assessor) for record in study.records
    ]
    outcomes = [
        replace(outcome, assessor=evil if outcome.assessor == "U1" else outcome.assessor) for outcome in study.outcomes
    ]
    text = labeling_report(records, outcomes, permutations=1).to_html(evil)
    page = Page(text)
    assert page.tags["script"] == 0
    assert page.text.count(evil) > 3


def test_an_empty_project_has_a_report() -> None:
    report = labeling_report([], [])
    found = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert found["efficiency"] == []
    assert found["agreement"][0]["overall"] is None
    assert found["side_bias"] is None
    assert "Nothing has been judged yet" in report.to_html("")


def test_one_tool_alone_and_unfinished_or_void_work_are_told(study: Study) -> None:
    records = [record for record in study.records if record.tool is Tool.PREFERENCES and record.assessor == "U1"]
    records = [replace(record, voided=record.query == "q01") for record in records]
    outcomes = [
        replace(outcome, complete=outcome.query != "q06")
        for outcome in study.outcomes
        if outcome.tool is Tool.PREFERENCES and outcome.assessor == "U1" and outcome.query != "q01"
    ]
    report = labeling_report(records, outcomes, permutations=1)
    (row,) = report.efficiency
    assert (row.finished, row.unfinished) == (18, 1)
    assert len(report.notes) == 3
    assert "void judgments are left out" in report.notes[0]
    assert "1 unfinished" in report.notes[1]
    assert "No query was finished by two assessors with preferences" in report.notes[2]
    text = report.to_html()
    assert Page(text).open == []
    assert "Difference between the tools" not in text


def test_replayed_states_make_outcomes() -> None:
    documents = ("a", "b", "c")
    state = strategy("tournament").replay(documents, 1, 0, [])
    outcome = Outcome("x", "q", Tool.PREFERENCES, "tournament", 1, documents, state.top, complete=state.done)
    assert labeling_report([], [outcome]).efficiency[0].unfinished == 1
