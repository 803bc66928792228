"""Evaluations and comparisons in a notebook: the best in bold, signs for what differs, harmless names."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

from gradrank import FeatureRanker, LinearRanker, RankingData, compare, evaluate, permutation_importance
from gradrank.evaluation.tables import Column, Table

EVIL = "<script>alert('x')</script>"
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 400)
DATA = RankingData.from_arrays(RNG.normal(size=(400, 2)), LABELS, qid=np.repeat(np.arange(40), 10))
SYSTEMS = {
    EVIL: LABELS + 1.5 * RNG.normal(size=400),
    "good": LABELS + 0.3 * RNG.normal(size=400),
    "noise": RNG.normal(size=400),
    "same": LABELS + 1.5 * RNG.normal(size=400),
}
RESULT = evaluate(DATA, SYSTEMS, ["NDCG@5", "MAP"])


def cells(html: str) -> list[list[str]]:
    """The cells of the table's body, as HTML."""
    rows = re.findall(r"<tr>(.*?)</tr>", html.partition("<tbody>")[2].partition("</tbody>")[0], re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]


def text(cell: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", cell))


def test_the_best_mean_of_each_measure_is_in_bold() -> None:
    rows = cells(RESULT._repr_html_())
    assert [text(row[0]) for row in rows] == list(SYSTEMS)
    for column, measure in enumerate(RESULT.measures, 1):
        means = [RESULT.summary(system, measure).mean for system in SYSTEMS]
        bold = [row[column].startswith("<strong>") for row in rows]
        assert bold == [mean == max(means) for mean in means]
        assert [text(row[column])[:6] for row in rows] == [f"{mean:.4f}" for mean in means]


def test_one_system_alone_is_not_praised_and_notes_are_said() -> None:
    html = evaluate(RankingData.from_arrays([[1.0]], [0], qid=[1]), {"x": [1.0]}, "MRR")._repr_html_()
    assert "<strong>" not in html
    assert "1 without a relevant document" in html


@pytest.mark.parametrize("baseline", [EVIL, "noise"])
def test_signs_of_a_comparison_are_its_verdicts(baseline: str) -> None:
    comparison = compare(RESULT, baseline=baseline)
    found = {(row.system, row.measure): row for row in comparison.rows}
    rows = cells(comparison._repr_html_())
    assert text(rows[0][0]) == f"{baseline} baseline"
    for row in rows[1:]:
        for measure, cell in zip(RESULT.measures, row[1:], strict=True):
            tested = found[text(row[0]), measure]
            sign = {"better": "▲", "worse": "▼"}.get(tested.verdict, "=")
            assert text(cell) == f"{tested.mean:.4f} {sign}"
            assert f"{tested.wins} queries won" in cell
            assert cell.startswith("<strong>") == (tested.system == "good")
    base = [f"{found['good', measure].baseline_mean:.4f}" for measure in RESULT.measures]
    assert [text(cell) for cell in rows[0][1:]] == base
    # All outcomes are met with: the better, the worse and the same.
    assert {row.verdict for row in compare(RESULT).rows} == {"better", "worse", "no significant difference"}


def test_names_are_harmless() -> None:
    for html in (RESULT._repr_html_(), compare(RESULT)._repr_html_(), Table((Column(EVIL),), ((EVIL,),))._repr_html_()):
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_measures_without_a_value_are_shown_as_a_dash() -> None:
    unjudged = RankingData.from_arrays([[1.0], [2.0]], [np.nan, np.nan], qid=[1, 1])
    result = evaluate(unjudged, {"a": [1, 2], "b": [2, 1]}, "MRR")
    assert [text(row[1]) for row in cells(result._repr_html_())] == ["–", "–"]
    assert [text(row[1]) for row in cells(compare(result)._repr_html_())] == ["–", "– ="]
    assert "nan" not in repr(compare(result))


def test_lines_of_text() -> None:
    assert repr(RESULT).splitlines()[0] == "Evaluation: 40 queries, mean ± half of its 95 % interval"
    assert len(repr(RESULT).splitlines()) == 3 + len(SYSTEMS)
    said = repr(compare(RESULT, test="randomization", correction=None, level=0.01)).splitlines()
    assert said[0] == f"Comparison against {EVIL}: randomization test, level 0.01"
    assert len(said) == 3 + 2 * (len(SYSTEMS) - 1)


def test_importances() -> None:
    found = permutation_importance(LinearRanker([1.0, 0.0]), DATA, "NDCG@5", repeats=2)
    rows = cells(found._repr_html_())
    order = sorted(range(2), key=lambda feature: -found.mean[feature])
    assert [row[0] for row in rows] == [found.feature_names[feature] for feature in order]
    assert repr(found).startswith(f"PermutationImportance: NDCG@5 is {found.baseline:.4f}; drop when")
    assert permutation_importance(FeatureRanker("f1"), DATA).table().columns[1].name == "drop of NDCG@10"
