"""Comparing λ constructions on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradrank.objectives import CONSTRUCTIONS
from tests.support.commands import make_files, run

QUICK = ("--parameter", "n_estimators=3", "--parameter", "min_child_samples=5", "--threads", 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return make_files(tmp_path_factory.mktemp("made") / "d", queries=40, docs=10, features=5)


def test_all_constructions_are_compared_with_the_reference(made) -> None:
    result = run("constructions", "--train", made / "train.txt", "--valid", made / "vali.txt", "-m", "MAP(rel=2)",
                 *QUICK, "--format", "json")  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert list(found["constructions"]) == list(CONSTRUCTIONS)
    assert found["comparison"]["baseline"] == "ranknet-weight-pairs"
    assert {row["system"] for row in found["comparison"]["rows"]} == set(CONSTRUCTIONS) - {"ranknet-weight-pairs"}
    for row in found["comparison"]["rows"]:
        assert row["measure"] == "MAP(rel=2)"
        assert row["p_corrected"] is None or row["p_corrected"] >= row["p"]
    assert "gradrank: note: spring-smooth: MAP(rel=2) 0." in result.stderr


def test_chosen_constructions_as_a_table(made) -> None:
    result = run("constructions", "--train", made / "train.txt", "--valid", made / "vali.txt", *QUICK,
                 "--construction", "local-cost(reach=3)", "--construction", "spring-smooth", "-q")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == "lambdamart, 20 validation queries"
    assert sum(name in result.stdout for name in CONSTRUCTIONS) == 3
    assert "local-cost(reach=3)" in result.stdout


def test_list_of_constructions() -> None:
    result = run("constructions", "--list", "--format", "json")
    rows = json.loads(result.stdout)
    assert [row["construction"] for row in rows] == list(CONSTRUCTIONS)
    assert {row["options"] for row in rows} == {"", "floor=1", "margin=1", "reach=1", "bound=1"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--train FILE and --valid FILE are needed"),
        (("--train", "train.txt"), "--train FILE and --valid FILE are needed"),
        (("--train", "no.txt", "--valid", "vali.txt"), "no.txt"),
        (
            ("--train", "train.txt", "--valid", "vali.txt", "--construction", "spring"),
            "there is no construction 'spring'",
        ),
        (("--train", "train.txt", "--valid", "vali.txt", "--parameter", "trees"), "expected KEY=VALUE"),
        (("--train", "train.txt", "--valid", "vali.txt", "--parameter", "tree=1"), "has no parameter 'tree'"),
        (("--train", "train.txt", "--valid", "vali.txt", "-m", "MAPP"), "there is no measure 'MAPP'"),
        (("--train", "train.txt", "--valid", "vali.txt", "--algorithm", "mart"), "learns by regression"),
    ],
)
def test_wrong_options(made, monkeypatch, arguments, message: str) -> None:
    monkeypatch.chdir(made)
    result = run("constructions", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_train_takes_a_construction(made, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("train", "--train", made / "train.txt", "--objective", "MAP", "--construction", "spring-smooth",
                 "--trees", 5, "--min-docs", 5, "--threads", 1, "-o", "model.json", "-q")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "Lambda(MAP, construction=spring-smooth)" in (tmp_path / "model.json").read_text()
