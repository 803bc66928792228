"""``gradrank explain`` from a model file and a data file to its forms."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from gradrank.models.linear import LinearRanker
from tests.support.commands import content_of, error_of, run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    LinearRanker([1.0, -2.0]).save("model.json")
    lines = ["1 qid:7 1:5 2:1 #docid = d1", "0 qid:7 1:1 2:0 #docid = d2", "2 qid:7 1:4 2:1 #docid = d3"]
    Path("data.txt").write_text("\n".join([*lines, "1 qid:8 1:1 2:1 #docid = d1"]) + "\n")
    Path("data.csv").write_text("qid,docid,label,bm25,age\n7,d1,1,5,1\n7,d2,0,1,0\n7,d3,2,4,1\n")
    return tmp_path


def test_a_pair_as_table_and_json(folder: Path) -> None:
    asked = ("explain", "model.json", "data.txt", "--query", 7, "--above", "d1", "--below", "d2")
    shown = run(*asked)
    assert shown.exit_code == 0, shown.output
    assert "d1 (rank 1) stands above d2 (rank 3) by +2" in shown.stdout
    assert "weight × difference" in shown.stderr
    (contrast,) = json.loads(run(*asked, "--format", "json", "-q").stdout)["contrasts"]
    assert [(part["name"], part["share"]) for part in contrast["features"]] == [("f1", 4.0), ("f2", -2.0)]


def test_names_of_the_data_are_shown_and_the_one_query_needs_no_name(folder: Path) -> None:
    shown = run("explain", "model.json", "data.csv", "--format", "csv", "-q")
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert [(row["document"], row["against"], row["feature"], float(row["share"])) for row in rows] == [
        ("d1", "d3", "bm25", 1.0),
        ("d3", "d2", "bm25", 3.0),
        ("d3", "d2", "age", -2.0),
    ]


@pytest.mark.parametrize("suffix", ["html", "json", "csv", "md"])
def test_files_have_the_form_of_their_suffix(folder: Path, suffix: str) -> None:
    asked = ("explain", "model.json", "data.txt", "--query", 7, "--against", "mean")
    assert run(*asked, "-o", f"why.{suffix}").exit_code == 0
    written = Path(f"why.{suffix}").read_text(encoding="utf-8")
    assert written == run(*asked, "-q", "--format", suffix).stdout
    assert ("<!DOCTYPE html>" in written) is (suffix == "html")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--query", "9"), "there is no query '9'"),
        ((), "there are 2 queries"),
        (("--query", "7", "--above", "d9"), "query 7 has no document 'd9'"),
        (("--query", "7", "-o", "why.xyz"), "why.xyz: its suffix tells no form"),
        (("--query", "7", "-o", "nowhere/why.html"), "nowhere/why.html: cannot be written"),
    ],
)
def test_wrong_words_are_one_line_and_write_nothing(folder: Path, more, message) -> None:
    before = content_of(folder)
    assert message in error_of(run("explain", "model.json", "data.txt", *more))
    assert content_of(folder) == before


def test_data_that_lacks_features_is_named(folder: Path) -> None:
    Path("narrow.txt").write_text("1 qid:7 1:5\n")
    assert error_of(run("explain", "model.json", "narrow.txt")).startswith("narrow.txt: ")
