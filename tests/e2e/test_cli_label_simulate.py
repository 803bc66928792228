"""``gradrank label simulate``, from options to output."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.support import commands

run = partial(commands.run, "label", "simulate")


@pytest.mark.parametrize("name", ["heap", "heap-infer", "tournament", "insertion"])
def test_json_holds_counts_and_exactness(name: str) -> None:
    result = run("--strategy", name, "--n", 50, "--k", 10, "--runs", 20, "--format", "json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["strategy"] == name
    assert 49 <= found["mean_judgments"] <= found["max_judgments"] < 250
    assert found["exact_top_k"] == 1.0


def test_the_default_is_the_tournament_as_a_table() -> None:
    result = run("--runs", 3)
    assert result.exit_code == 0
    assert "tournament" in result.stdout
    assert "mean judgments" in result.stdout


def test_a_study_shows_the_papers_tables_and_writes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "study.html"
    result = run("--study", "--strategy", "heap", "--n", 12, "--k", 3, "--runs", 5, "--html", page)
    assert result.exit_code == 0
    assert "judgments per query" in result.stdout
    assert result.stdout.count("A≻B") == 4
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    found = json.loads(run("--study", "--n", 12, "--k", 3, "--runs", 5, "--format", "json").stdout)
    assert [row["tool"] for row in found["efficiency"]] == ["T1", "T2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--study", "--levels", 5), "--levels does not go with --study"),
        (("--html", "x.html"), "--html needs --study"),
        (("--strategy", "heap", "--prior-tau", 0.5), "heap uses no prior order"),
        (("--study", "--html", "missing/x.html"), "missing/x.html: cannot be written"),
    ],
)
def test_wrong_options_are_one_line_and_exit_code_2(arguments: tuple[object, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_strategy_that_does_not_exist_is_refused() -> None:
    assert run("--strategy", "grades").exit_code == 2
