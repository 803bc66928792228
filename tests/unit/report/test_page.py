"""The HTML file: its numbers, its shape, and what it must never do."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pytest

from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError, MissingExtraError
from gradrank.evaluation import Evaluation, LabelFacts, compare, evaluate
from gradrank.measures import parse_measure
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.report import render_report, write_report

DATE = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
NDCG, MRR = parse_measure("NDCG@10"), parse_measure("MRR")
VOID = {"meta", "link", "br", "img", "input", "hr"}
# SVG shapes are written with a closing slash, which html.parser reports as a start and an end.


class Page(HTMLParser):
    """Tables, texts and attributes of a page; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in VOID:
            return
        self.open.append(tag)
        self.texts.setdefault(tag, []).append("")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data

    def table(self, head: str) -> list[list[str]]:
        """The rows of the first table with this text in its heading row, white space tidied."""
        found = next(table for table in self.tables if any(head in cell for cell in table[0]))
        return [[" ".join(cell.split()) for cell in row] for row in found]


def evaluation(systems: int = 2, queries: int = 40, measures=(NDCG, MRR)) -> Evaluation:
    rng = np.random.default_rng(3)
    values = {f"s{i}": {m: np.clip(rng.random(queries) + 0.1 * i, 0, 1) for m in measures} for i in range(systems)}
    facts = {"label": LabelFacts(queries, 0, 0, 0, 0)}
    return Evaluation(Strings.of(f"q{i}" for i in range(queries)), tuple(measures), values, facts)


def tree_model(n_features: int = 3, name: str = "f{}", **training) -> TreeEnsemble:
    trees = [
        Tree.numerical(split_feature=[i], threshold=[0.0], left=[-1], right=[-2], leaf_value=[0.0, 1.0])
        for i in range(n_features)
    ]
    return TreeEnsemble(trees, [name.format(i) for i in range(n_features)], training=training)


def full_page(**changes) -> str:
    result = evaluation()
    data = RankingData.from_arrays(np.zeros((4, 1)), [0, 1, 2, 0], qid=["a", "a", "a", "b"])
    given = {
        "evaluation": result,
        "comparison": compare(result),
        "title": "A report",
        "models": {
            "s1": tree_model(curves={"valid": {"NDCG@10": [0.1, 0.3, 0.2]}}, best=2, command="gradrank train x")
        },
        "data": {"test": data},
        "commands": ["gradrank report 'a b.txt'"],
        "notes": ["one note"],
        "facts": {"Seed": 7},
        "date": DATE,
    }
    return render_report(**(given | changes))


def test_measures_in_the_table_are_those_of_the_evaluation() -> None:
    result = evaluation(3)
    rows = Page(render_report(evaluation=result, comparison=compare(result), date=DATE)).table("MRR")
    assert rows[0] == ["System", "NDCG@10", "MRR"]
    for row, system in zip(rows[1:], result.systems, strict=True):
        assert row[0] == (f"{system} baseline" if system == "s0" else system)
        for cell, measure in zip(row[1:], result.measures, strict=True):
            values = result.values[system][measure]
            mean, low, high = re.fullmatch(r"(\d\.\d{4}).*?(\d\.\d{4}) to (\d\.\d{4})", cell).groups()
            half = 2.0227 * values.std(ddof=1) / np.sqrt(len(values))  # t's 97.5 % quantile at 39 degrees
            assert float(mean) == pytest.approx(values.mean(), abs=6e-5)
            assert float(low) == pytest.approx(values.mean() - half, abs=2e-4)
            assert float(high) == pytest.approx(values.mean() + half, abs=2e-4)


def test_significance_is_said_in_words_and_signs() -> None:
    result = evaluation(4)
    comparison = compare(result)
    rows = Page(render_report(evaluation=result, comparison=comparison, date=DATE)).table("MRR")
    cells = {(row[0], head): cell for row in rows[1:] for head, cell in zip(rows[0][1:], row[1:], strict=True)}
    words = {"better": "▲ significantly better", "worse": "▼ significantly worse"}
    assert {row.verdict for row in comparison.rows} == {"better", "no significant difference"}
    for row in comparison.rows:
        assert words.get(row.verdict, "= no significant difference") in cells[row.system, str(row.measure)]


def test_differences_in_the_forest_plot_are_those_of_the_comparison() -> None:
    result = evaluation(4)
    comparison = compare(result)
    page = Page(render_report(evaluation=result, comparison=comparison, date=DATE))
    shown = [table for table in page.tables if "Verdict" in table[0][-1]]
    lines = [[" ".join(cell.split()) for cell in row] for table in shown for row in table[1:]]
    by_measure = sorted(comparison.rows, key=lambda row: result.measures.index(row.measure))
    for line, row in zip(lines, by_measure, strict=True):
        assert line[0] == row.system
        assert line[2].split()[0] == f"{row.test.difference:+.4f}"
        assert line[3] == ("<0.0001" if row.p_corrected < 1e-4 else f"{row.p_corrected:.4f}")
        assert line[4].endswith(row.verdict)


def test_shape_of_the_page() -> None:
    page = Page(full_page())
    assert page.texts["h1"] == ["A report"]
    assert len(page.texts["caption"]) == len(page.tables)
    headings = [attrs for tag, attrs in page.tags if tag == "th"]
    assert headings
    assert all(attrs.get("scope") in ("col", "row") for attrs in headings)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = [attrs["href"][1:] for tag, attrs in page.tags if tag == "a"]
    labels = [attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs]
    assert {*targets, *labels} <= set(ids)
    assert {"measures", "differences", "queries", "models", "data", "repeat"} <= set(targets)
    assert all(attrs.get("aria-label") for _, attrs in page.tags if attrs.get("role") == "img")
    for said in ("one note", "gradrank train x", "gradrank report 'a b.txt'", "2 of 3 iterations chosen at 0.3000"):
        assert said in " ".join(page.texts["body"])


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = full_page()
    page = Page(text)
    for tag, attrs in page.tags:
        for name in ("src", "href", "xlink:href", "action", "srcset", "data"):
            assert attrs.get(name, "#").startswith(("#", "data:")), (tag, attrs)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    (policy,) = [a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")


EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;{{ 7 * 7 }}"


def test_names_are_harmless() -> None:
    rng = np.random.default_rng(1)
    values = {name: {NDCG: rng.random(5)} for name in ("s", EVIL, EVIL + "2")}
    result = Evaluation(Strings.of([EVIL] * 5), (NDCG,), values, {EVIL: LabelFacts(5, 1, 0, 0, 0)})
    model = tree_model(
        name=EVIL + "{}", curves={EVIL: {EVIL: [0.1, 0.2]}}, best=1, **{EVIL: EVIL, "group": {EVIL: EVIL}}
    )
    held = RankingData.from_arrays(np.zeros((2, 1)), [0, 1], qid=["a", "a"])
    text = render_report(
        evaluation=result,
        comparison=compare(result, baseline=EVIL),
        title=EVIL,
        models={EVIL: model},
        data={EVIL: held},
        commands=[EVIL],
        notes=[EVIL],
        facts={EVIL: EVIL},
        date=DATE,
    )
    page = Page(text)
    assert page.texts["h1"] == [EVIL]
    assert page.texts["title"] == [EVIL]
    # The numbers of the page, which no browser runs, and the one script.
    assert [given.get("type") for tag, given in page.tags if tag == "script"] == ["application/json", None]
    assert not set("<>&") & set(page.texts["script"][0])
    assert "alert" not in page.texts["script"][1]
    assert not any(tag == "img" or name.startswith("on") for tag, attrs in page.tags for name in attrs)
    assert not any(tag == "img" for tag, _ in page.tags)


def test_names_that_are_not_text() -> None:
    name = "run\udcff\x00\x1b.txt"  # a file name with a byte that is not UTF-8
    values = {name: {NDCG: np.array([0.5, 0.6])}}
    result = Evaluation(Strings.of("ab"), (NDCG,), values, {"label": LabelFacts(2, 0, 0, 0, 0)})
    text = render_report(evaluation=result, date=DATE)
    text.encode("utf-8")
    assert "run?\ufffd\ufffd.txt" in text


def test_same_input_same_file() -> None:
    assert full_page() == full_page()
    assert '<time datetime="2026-02-03T04:05:06+00:00">2026-02-03 04:05 UTC</time>' in full_page()


def test_one_system_without_anything_else() -> None:
    page = Page(render_report(evaluation=evaluation(1), date=DATE))
    assert page.table("NDCG@10")[1][0] == "s0"
    assert len(page.tables) == 1
    text = " ".join(page.texts["header"] + page.texts["main"])
    assert "baseline" not in text
    assert "No commands were recorded" in text


def test_thirty_systems() -> None:
    result = evaluation(30, measures=(NDCG,))
    page = Page(render_report(evaluation=result, comparison=compare(result), date=DATE))
    assert len(page.table("NDCG@10")) == 31
    assert "Every pair" not in " ".join(page.texts["body"])


def test_two_hundred_features() -> None:
    page = Page(full_page(models={"m": tree_model(200)}))
    assert len(page.table("Feature")) == 21
    assert "those not shown make up 90.0%" in " ".join(" ".join(page.texts["caption"]).split())


@pytest.mark.parametrize("compared", [True, False])
def test_measures_without_a_value(compared: bool) -> None:
    values = {name: {NDCG: np.full(4, np.nan), MRR: np.array([0.1, 0.2, np.nan, 1.0])} for name in ("a", "b")}
    result = Evaluation(Strings.of("wxyz"), (NDCG, MRR), values, {"label": LabelFacts(4, 4, 4, 0, 0)})
    text = render_report(evaluation=result, comparison=compare(result) if compared else None, date=DATE)
    page = Page(text)
    assert page.table("MRR")[1][1].startswith("–")
    body = re.sub(r'data-value="nan"', "", text[text.index("<body>") : text.index("<script>")])
    assert not re.search(r"\b(nan|None|inf)\b", body, flags=re.IGNORECASE)
    assert "NDCG@10 leaves out 4 of 4 queries" in text


def test_weighted_means_are_called_so() -> None:
    data = RankingData.from_arrays(np.zeros((4, 1)), [0, 1, 0, 1], qid=[1, 1, 2, 2]).with_weight([1.0, 3.0])
    result = evaluate(data, {"a": [0, 1, 1, 0]}, [MRR], weighted=True)
    page = Page(render_report(evaluation=result, date=DATE))
    assert page.table("MRR")[1][1].startswith("0.6250")  # (1 · 1 + 3 · 1/2) / 4
    assert "weighted by the queries' weights" in " ".join(page.texts["p"])


def test_facts_of_the_data() -> None:
    (row,) = Page(full_page()).table("Documents per query")[1:]
    assert row == ["test", "2", "4", "1", "1 to 3, median 2", "1", "0", "0: 50.0%, 1: 25.0%, 2: 25.0%"]


def test_data_without_labels() -> None:
    held = RankingData.from_arrays(np.zeros((2, 1)), None, qid=["a", "a"])
    (row,) = Page(full_page(data={"test": held})).table("Documents per query")[1:]
    assert row[-3:] == ["1", "2", "–"]


def test_a_comparison_of_something_else_is_refused() -> None:
    with pytest.raises(DataError, match=r"comparison is of s0, s1, s2, but the evaluation of s0, s1"):
        render_report(evaluation=evaluation(2), comparison=compare(evaluation(3)))


def test_the_old_file_stays_if_writing_fails(tmp_path, monkeypatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def no_space(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", no_space)
    with pytest.raises((OSError, DataError)):
        write_report(path, evaluation=evaluation())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there(tmp_path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        write_report(tmp_path / "no" / "report.html", evaluation=evaluation())


def test_the_file_is_the_page(tmp_path) -> None:
    path = tmp_path / "report.html"
    write_report(path, evaluation=evaluation(), date=DATE)
    assert path.read_bytes().decode("utf-8") == render_report(evaluation=evaluation(), date=DATE)


def test_jinja_is_optional(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"gradrank\[report\]"):
        render_report(evaluation=evaluation())
