"""Several reports on one page."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from scipy import stats

from gradrank import compare, evaluate, write_report, write_report_comparison
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.report.several import read_report, same_queries
from gradrank.report.summary import MARK
from tests.unit.report.test_page import DATE, Page

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    data = RankingData.from_arrays(np.zeros((160, 1)), np.tile([0, 1, 2, 0], 40), group=[4] * 40)
    old, mid, new = (data.label() + size * rng.normal(size=160) for size in (3.0, 2.0, 0.5))
    other = data.take_queries(np.arange(30))
    for name, held, systems in (
        ("a b.html", data, {"old": old, "new": new}),
        ("b.html", data, {"old": old, HOSTILE: mid, "new": mid}),
        ("c.html", other, {"old": old[:120], "new": new[:120]}),
    ):
        result = evaluate(held, systems, ["NDCG@4", "MRR"])
        write_report(
            tmp_path / name, result, compare(result), title=f"Report {name}{HOSTILE}", data={"test": held}, date=DATE
        )
    return tmp_path


def test_a_page_tells_what_it_shows(folder: Path) -> None:
    report = read_report(folder / "a b.html")
    assert report.title == f"Report a b.html{HOSTILE}"
    assert (report.queries, report.baseline, report.measures, report.data) == (40, "old", ("NDCG@4", "MRR"), "test")
    old, new = report.systems
    assert old.values is not None
    assert new.values is not None
    assert new.means["NDCG@4"].mean == pytest.approx(np.mean(new.values), abs=1e-6)
    assert new.means["NDCG@4"].low < new.means["NDCG@4"].mean < new.means["NDCG@4"].high


def test_systems_of_the_same_queries_are_tested_against_each_other(folder: Path) -> None:
    reports = [read_report(folder / name) for name in ("a b.html", "b.html", "c.html")]
    (same,) = same_queries(reports)
    # "old" is the same in both; "new" is another system in the second.
    assert same.names == ("old", "new", HOSTILE, "new (b.html)")
    new, mid = reports[0].systems[1].values, reports[1].systems[1].values
    cell = same.cells["new", HOSTILE]
    assert cell.difference == pytest.approx(np.mean(new) - np.mean(mid))
    assert cell.p >= stats.ttest_rel(new, mid).pvalue
    assert same.cells[HOSTILE, "new (b.html)"].difference == 0.0


def test_a_measure_that_a_report_lacks_is_left_empty(folder: Path) -> None:
    data = RankingData.from_arrays(np.zeros((160, 1)), np.tile([0, 1, 2, 0], 40), group=[4] * 40)
    result = evaluate(data, {"old": data.label(), "new": -data.label()}, ["NDCG@4"])
    write_report(folder / "d.html", result, compare(result), title="one measure", data={"test": data}, date=DATE)
    write_report_comparison(folder / "all.html", [folder / "a b.html", folder / "d.html"])
    table = (folder / "all.html").read_text().partition('<table class="means')[2].partition("</table>")[0]
    assert table.count('<td data-value="') == 2 * 2 + 2  # both systems by both measures, and by one
    assert table.count('aria-label="not measured"') == 2


def test_the_page_links_and_escapes(folder: Path) -> None:
    (folder / "out").mkdir()
    target = folder / "out" / "all.html"
    write_report_comparison(target, [folder / "a b.html", folder / "b.html", folder / "c.html"], date=DATE)
    text = target.read_text(encoding="utf-8")
    page = Page(text)
    links = [given["href"] for tag, given in page.tags if tag == "a"]
    assert [unquote(link) for link in links] == ["./../a b.html", "./../b.html", "./../c.html"]
    assert len([1 for tag, _ in page.tags if tag == "script"]) == 1
    assert "different queries" in text
    rows = page.table("Report")
    assert len(rows) == 1 + 2 + 3 + 2
    assert rows[0][2:] == ["NDCG@4", "MRR"]


def test_reports_of_the_same_title_are_told_apart_by_their_files(folder: Path) -> None:
    data = RankingData.from_arrays(np.zeros((40, 1)), np.tile([0, 1, 2, 0], 10), group=[4] * 10)
    (folder / "old").mkdir()
    for name in ("x.html", "y.html", "old/y.html"):
        result = evaluate(data, {"old": data.label(), "new": -data.label()}, ["NDCG@4"])
        write_report(folder / name, result, compare(result), data={"test": data}, date=DATE)
    names = [folder / name for name in ("a b.html", "x.html", "y.html", "old/y.html")]
    write_report_comparison(folder / "all.html", names)
    shown = [row[1] for row in Page((folder / "all.html").read_text(encoding="utf-8")).table("Report")[1:]]
    assert shown[2::2] == ["Ranking report (x.html)", f"Ranking report ({names[2]})", f"Ranking report ({names[3]})"]
    assert shown[0] == f"Report a b.html{HOSTILE}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<html></html>", "is not a report that gradrank wrote"),
        (MARK, "is damaged: what it tells of itself is not JSON"),
        (MARK + "{</script>", "is not JSON"),
        (MARK + "[]</script>", "of another version"),
        (MARK + '{"format":"gradrank-report","version":99}</script>', "of another version"),
        (MARK + '{"format":"gradrank-report","version":1,"measures":3}</script>', "is not whole"),
    ],
)
def test_what_is_no_report_is_refused_and_nothing_written(folder: Path, content: str, message: str) -> None:
    (folder / "x.html").write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        write_report_comparison(folder / "all.html", [folder / "b.html", folder / "x.html"])
    assert "x.html: " in str(caught.value)
    assert not (folder / "all.html").exists()
    with pytest.raises(DataError, match="expected two or more"):
        write_report_comparison(folder / "all.html", [folder / "b.html"])
