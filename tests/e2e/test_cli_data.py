"""Commands that make, convert, split and describe data."""

from __future__ import annotations

import csv
import json
import re
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from gradrank.data.formats.registry import read_data
from tests.support.commands import run


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers(path: str) -> list[float]:
    return [float(line) for line in Path(path).read_text().splitlines()]


def names(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


# ---------------------------------------------------------------- make-data
def test_make_data(folder) -> None:
    result = run("make-data", "d/e", "--queries", 12, "--docs", 6, "--features", 5, "--seed", 3, "--clicks")
    assert (result.exit_code, result.output) == (0, "")
    assert names(folder / "d/e") == [
        "test.clicks.txt",
        "test.txt",
        "train.clicks.txt",
        "train.txt",
        "vali.clicks.txt",
        "vali.txt",
    ]
    for name, queries in (("train", 12), ("vali", 6), ("test", 12)):
        lines = Path(f"d/e/{name}.txt").read_text().splitlines()
        assert len(lines) == 6 * queries == len(numbers(f"d/e/{name}.clicks.txt"))
        assert len({re.search(r"qid:(\S+)", line)[1] for line in lines}) == queries
        assert all(" 5:" in line and " 6:" not in line for line in lines)
        assert all(0 <= click <= 1 for click in numbers(f"d/e/{name}.clicks.txt"))


def test_make_data_obeys_the_seed() -> None:
    for target, random_state in (("a", 1), ("b", 1), ("c", 2)):
        run("make-data", target, "--queries", 4, "--docs", 3, "--features", 4, "--seed", random_state)
    assert Path("a/train.txt").read_bytes() == Path("b/train.txt").read_bytes()
    assert Path("a/train.txt").read_bytes() != Path("c/train.txt").read_bytes()


def test_make_data_options() -> None:
    result = run(
        "make-data", "d", "--queries", 30, "--docs", 2, "--docs-to", 5, "--features", 4, "--grades", 3,
        "--noise", 0.5, "--second-graders", 0.5, "--domain-shift", 0.3, "--domain", 2,
    )  # fmt: skip
    assert result.exit_code == 0
    data = read_data("d/train.txt")
    assert set(data.sizes.tolist()) == {2, 3, 4, 5}
    assert set(data.label().tolist()) == {0, 1, 2}
    assert numbers("d/train.second.txt") != data.label().tolist()


def test_make_data_where_a_file_stands() -> None:
    Path("d").write_text("mine")
    result = run("make-data", "d", "--queries", 2, "--docs", 2, "--features", 3)
    assert (result.exit_code, result.stderr) == (2, "gradrank: error: d: is a file, expected a folder\n")
    assert Path("d").read_text() == "mine"


# ---------------------------------------------------------------- convert
LETOR = "0 qid:a 1:1.5 2:0.25 #docid = x\n2 qid:b 1:2 2:0 #docid = y\n1 qid:a 1:0.5 2:1 #docid = z\n"


def test_convert_to_letor_keeps_numbers_and_tells_lost_names() -> None:
    Path("mixed.csv").write_text("qid,f2,label,f1\na,0.5,1,3\na,0.25,0,4\n")
    done = run("convert", "mixed.csv", "numbered.txt")
    assert done.exit_code == 0
    assert done.stderr == ""
    assert Path("numbered.txt").read_text().splitlines() == ["1 qid:a 1:3 2:0.5", "0 qid:a 1:4 2:0.25"]
    Path("named.csv").write_text("qid,bm25,label,age\na,0.5,1,3\na,0.25,0,4\n")
    done = run("convert", "named.csv", "lost.txt")
    assert "lost.txt: LETOR text has no place for names: its features are 1 = 'bm25', 2 = 'age'" in done.stderr
    assert Path("lost.txt").read_text().splitlines() == ["1 qid:a 1:0.5 2:3", "0 qid:a 1:0.25 2:4"]


def test_convert_there_and_back() -> None:
    Path("in.txt").write_text(LETOR)
    Path("clicks.txt").write_text("0.5\n\n0.25\n")
    there = run("convert", "in.txt", "mid.parquet", "--label", "clicks=clicks.txt")
    assert there.exit_code == 0
    assert "rows of some queries are not consecutive" in there.stderr
    middle = read_data("mid.parquet")
    assert middle.label("clicks").tolist() == [0.5, 0.25, pytest.approx(np.nan, nan_ok=True)]
    back = run("convert", "mid.parquet", "out.txt")
    assert "LETOR text has no place for label 'clicks'" in back.stderr
    first, second, third = LETOR.splitlines()
    assert Path("out.txt").read_text().splitlines() == [first, third, second]


def test_convert_named_formats() -> None:
    Path("data").write_text("1 qid:a 0:1.5\n")
    assert run("convert", "data", "out", "--from", "letor", "--to", "csv", "--zero-based").exit_code == 0
    with open("out", newline="") as file:
        _, row = csv.reader(file)
    assert row == ["a", "1", "1.5"]


def test_convert_group_file_and_missing() -> None:
    Path("data.txt").write_text("1 1:nan\n0 1:2\nnan 1:3\n")
    Path("sizes").write_text("2\n1\n")
    assert run("convert", "data.txt", "out.gradrank", "--group", "sizes", "--missing").exit_code == 0
    data = read_data("out.gradrank")
    assert data.sizes.tolist() == [2, 1]
    assert np.isnan(data.X[0, 0])
    assert np.isnan(data.label()[2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["in.txt", "out.txt", "--strict-order"], "in.txt:3: "),
        (["in.txt", "out.xyz"], "out.xyz: has no known ending"),
        (["in.txt", "no/out.txt"], "no/out.txt: cannot be written"),
        (["bad.txt", "out.parquet"], "bad.txt:1: "),
        (["in.txt", "out.csv", "--label", "c=short.txt"], "short.txt: holds 1 c labels, expected 3"),
    ],
)
def test_convert_errors_write_nothing(folder, arguments, message) -> None:
    Path("in.txt").write_text(LETOR)
    Path("bad.txt").write_text("x qid:a 1:1\n")
    Path("short.txt").write_text("1\n")
    before = names(folder)
    result = run("convert", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[-1]
    assert names(folder) == before


# ---------------------------------------------------------------- split
def ten_queries(path: str) -> None:
    Path(path).write_text("".join(f"{q % 3} qid:q{q} 1:{q}.5\n0 qid:q{q} 1:{q}\n" for q in range(10)))


def queries(path: str) -> list[str]:
    return list(read_data(path).qid)


def test_split_into_folds_rotates_parts_as_letor_does(folder) -> None:
    ten_queries("data.txt")
    assert run("split", "data.txt", "--folds", 5, "--out", "folds", "--seed", 1).exit_code == 0
    assert len(names(folder / "folds")) == 15
    tests = [queries(f"folds/Fold{fold}/test.txt") for fold in range(1, 6)]
    assert sorted(chain.from_iterable(tests)) == sorted(f"q{q}" for q in range(10))
    for fold in range(1, 6):
        parts = [queries(f"folds/Fold{fold}/{name}.txt") for name in ("train", "vali", "test")]
        assert [len(part) for part in parts] == [6, 2, 2]
        assert len(set(chain.from_iterable(parts))) == 10
        # This fold's validation part is the test part of the fold before it.
        assert parts[1] == tests[fold - 2]


def test_split_by_fractions_keeps_labels_with_their_rows() -> None:
    ten_queries("data.txt")
    # Each row's click label is its own feature, so any mix-up shows.
    Path("clicks.txt").write_text("".join(f"{q}.5\n{q}\n" for q in range(10)))
    result = run("split", "data.txt", "--fractions", "0.5,0.2,0.3", "--out", "o", "--label", "clicks=clicks.txt")
    assert result.exit_code == 0
    assert [len(queries(f"o/{name}.txt")) for name in ("train", "vali", "test")] == [5, 2, 3]
    for name in ("train", "vali", "test"):
        assert numbers(f"o/{name}.clicks.txt") == read_data(f"o/{name}.txt").X[:, 0].tolist()


def test_split_keeps_the_format(folder) -> None:
    ten_queries("data.txt")
    run("convert", "data.txt", "data.parquet")
    run("split", "data.parquet", "--fractions", "0.8,0.2", "-o", "o")
    assert names(folder / "o") == ["test.parquet", "train.parquet"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --folds or --fractions"),
        (["--folds", 3, "--fractions", "1"], "give --folds or --fractions"),
        (["--fractions", "0.5;0.5"], "--fractions is '0.5;0.5'"),
        (["--fractions", "0.1,0.1,0.1,0.1"], "expected one to three"),
        (["--fractions", "0.9,0.9"], "add up to at most 1"),
        (["--folds", 11], "k is 11"),
    ],
)
def test_split_errors(arguments, message) -> None:
    ten_queries("data.txt")
    result = run("split", "data.txt", "--out", "o", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("o").exists()


# ---------------------------------------------------------------- info
def test_info() -> None:
    Path("data.txt").write_text("0 qid:a 1:7 2:0\n0 qid:a 1:7 2:1\n2 qid:b 1:7 2:2\n")
    table = run("info", "data.txt").stdout
    assert re.search(r"documents per query\s+1 to 2, median 1.5", table)
    assert re.search(r"label 0\s+2 \(66.7%\)", table)
    assert "! label 'label': 1 of 2 queries have no relevant document" in table
    described = json.loads(run("info", "data.txt", "--format", "json").stdout)
    assert described["file"] == "data.txt"
    assert (described["queries"], described["documents"], described["features"]) == (2, 3, 2)
    assert described["constant_features"] == ["f1"]
    assert described["labels"][0]["counts"] == {"0": 2, "2": 1}


# ---------------------------------------------------------------- clicks
LOG = "".join(
    json.dumps({"qid": query, "shown": shown, "clicks": clicked}) + "\n"
    for query, shown, clicked in [
        ("a", ["x", "z"], ["x", "z"]),
        ("a", ["x", "z"], ["x"]),
        ("a", ["x"], []),
        ("c", ["x"], ["x"]),
    ]
)


def test_clicks_table() -> None:
    Path("log.jsonl").write_text(LOG)
    result = run("clicks", "log.jsonl", "-o", "labels.tsv", "--method", "ctr", "--min-impressions", 3)
    assert result.exit_code == 0
    rows = [line.split("\t") for line in Path("labels.tsv").read_text().splitlines()]
    assert rows[0][:3] == ["qid", "docid", "label"]
    found = {(row[0], row[1]): row[2] for row in rows[1:]}
    assert float(found["a", "x"]) == pytest.approx(2 / 3)
    assert (found["a", "z"], found["c", "x"]) == ("nan", "nan")
    assert "4 sessions, 6 documents shown, 4 clicked" in result.stderr


def test_clicks_joined_as_a_column_in_row_order() -> None:
    Path("log.jsonl").write_text(LOG)
    Path("data.txt").write_text(LETOR)  # rows a/x, b/y, a/z: not consecutive
    result = run("clicks", "log.jsonl", "--join", "data.txt", "--out", "clicks.txt")
    assert result.exit_code == 0
    # Last clicks: x in 1 of 3 sessions, z in 1 of 2; y was never shown.
    assert numbers("clicks.txt") == pytest.approx([1 / 3, np.nan, 1 / 2], nan_ok=True)
    assert Path("clicks.txt").read_text().splitlines()[0] == "0.33333334"
    assert "2 of 3 documents matched (2 have a label), 1 of 2 queries; 1 row of click labels unused" in result.stderr


def test_clicks_joined_as_data() -> None:
    Path("log.jsonl").write_text(LOG)
    Path("data.txt").write_text(LETOR)
    run("clicks", "log.jsonl", "--join", "data.txt", "--out", "joined.parquet", "--name", "ctr", "--method", "ctr")
    assert read_data("joined.parquet").label("ctr").tolist() == pytest.approx([2 / 3, 1 / 2, np.nan], nan_ok=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is nothing to write"),
        (["--join", "data.txt"], "--join and --out are given together"),
        (["-o", "l.tsv", "--join", "plain.txt", "--out", "c.txt"], "no document ids"),
        (["-o", "l.tsv", "--log-format", "xml"], "format 'xml' does not exist"),
    ],
)
def test_clicks_errors_write_nothing(folder, arguments, message) -> None:
    Path("log.jsonl").write_text(LOG)
    Path("data.txt").write_text(LETOR)
    Path("plain.txt").write_text("1 qid:a 1:1\n")
    before = names(folder)
    result = run("clicks", "log.jsonl", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert names(folder) == before


# ---------------------------------------------------------------- measures
def test_measures_lists_the_whole_registry() -> None:
    from gradrank.measures import CONVENTIONS, REGISTRY

    described = json.loads(run("measures", "--format", "json").stdout)
    assert [row["measure"] for row in described["measures"]] == [*REGISTRY, "Graded"]
    assert [row["convention"] for row in described["conventions"]] == list(CONVENTIONS)
    table = run("measures").stdout
    assert all(name in table for name in REGISTRY)
    theirs = {row["measure"]: row["trec_eval's name"] for row in described["measures"]}
    assert (theirs["NDCG"], theirs["MRR"], theirs["ERR"]) == ("ndcg_cut_K", "recip_rank", "")


def test_measures_shows_one() -> None:
    (rows,) = json.loads(run("measures", "map", "--format", "json").stdout).values()
    relevant = next(row for row in rows if row["parameter"] == "rel")
    assert (relevant["letor4"], relevant["mslr"]) == ("1", "2")
    assert "sklearn" not in relevant
    assert run("measures", "nothing").exit_code == 2
