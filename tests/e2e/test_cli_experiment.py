"""The papers' experiments on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradrank.cli.main import app
from gradrank.experiments import RECIPES

SMALL = ("--set", "rankers=RankSVM,SVMmap,FocusedSVM", "--set", "beta=0.5", "--set", "C=1.0", "--set", "k=3")


def run(*arguments: object):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(app, ["experiment", *(str(argument) for argument in arguments)])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def data() -> None:
    made = CliRunner().invoke(app, ["make-data", "d", "--queries", "30", "--docs", "12", "--features", "4"])
    assert made.exit_code == 0


def test_list() -> None:
    result = run("list", "--format", "json")
    assert result.exit_code == 0
    rows = {row["id"]: row for row in json.loads(result.stdout)}
    assert list(rows) == list(RECIPES)
    assert rows["wu-fig2"]["shows"] == "figure 2"
    assert rows["wu-fig2"]["the paper's finding"].startswith("LambdaMART reaches McRank's accuracy")


def test_show() -> None:
    result = run("show", "donmez-1", "--format", "json")
    assert result.exit_code == 0
    rows = {row["setting"]: row for row in json.loads(result.stdout)}
    assert (rows["queries"]["small"], rows["queries"]["paper"]) == ("1000", "5000")
    assert rows["activation"]["small"] == "tanh"
    assert rows["lambdarank: learning_rate"]["meaning"] == "pinned"
    said = run("show", "donmez-1").stdout
    assert "Donmez, Svore, Burges (2009), table 1" in said
    assert "The paper's finding: RankNetWeightPairs has a higher MAP" in said
    # Its sizes in the paper are not known.
    assert "paper" not in json.loads(run("show", "donmez-fig5", "--format", "json").stdout)[0]


def test_on_a_folder_of_data(data) -> None:
    result = run("run", "niu-4", "--data", "d", "--out", "out", *SMALL, "--format", "json")
    assert result.exit_code == 0, result.stderr
    value = json.loads(result.stdout)
    written = json.loads(Path("out/niu-4.json").read_text())
    assert value == {key: item for key, item in written.items() if key not in ("command", "seconds", "versions")}
    assert written["command"].startswith("gradrank experiment run niu-4 ")
    assert [row["ranker"] for row in value["tables"][1]["rows"]] == ["RankSVM", "SVMmap", "FocusedSVM"]
    assert Path("out/niu-4.md").read_text().startswith("### niu-4")
    again = run("run", "niu-4", "--data", "d", "--out", "out", *SMALL, "--format", "json")
    assert again.stdout == result.stdout
    assert "niu-4: 6 of 6 trainings are kept from before" in again.stderr


def test_several_at_once_with_several_seeds() -> None:
    result = run(
        "run",
        "wu-fig2",
        "donmez-fig6",
        "--scale",
        "tiny",
        "--seeds",
        2,
        "--seed",
        7,
        "--threads",
        1,
        "--format",
        "json",
    )
    assert result.exit_code == 0, result.stderr
    values = json.loads(result.stdout)
    assert [value["name"] for value in values] == ["wu-fig2", "donmez-fig6"]
    assert [each["settings"]["random_state"] for each in values[0]["runs"]] == [7, 8]
    text = run("run", "wu-fig2", "donmez-fig6", "--scale", "tiny", "--threads", 1, "--quiet")
    assert [line.split(":")[0] for line in text.stdout.splitlines() if line.startswith("### ")] == [
        "### wu-fig2", "### donmez-fig6",
    ]  # fmt: skip
    assert text.stderr == ""


def test_figure_is_drawn(data) -> None:
    pytest.importorskip("matplotlib")
    options = ("--data", "d", "--set", "rankers=FocusedSVM", "--set", "C=1.0", "--set", "k=3")
    options += ("--set", "betas=0,0.5,1", "--set", "truths=topk", "--plot", "beta.svg", "--quiet")
    assert run("run", "niu-fig1", *options).exit_code == 0
    assert "KappaNDCG@3" in Path("beta.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("niu-9",), "there is no experiment 'niu-9'"),
        (("niu-4", "--set", "foo=1"), "--set is 'foo=1', expected KEY=VALUE with one of queries, docs"),
        (("niu-4", "--set", "k=x"), "--set k is 'x', expected a number"),
        (("niu-4", "--data", "nowhere"), "nowhere: is no folder"),
        (("niu-4", "--data", "nowhere", "--set", "docs=9"), "--set docs=9 describes artificial data"),
        (("niu-fig1", "--plot", "x.txt"), "x.txt: has the suffix '.txt'"),
        (("niu-fig1", "niu-fig2", "--plot", "x.svg"), "--plot draws one figure: give one ID"),
        (("donmez-fig5", "--scale", "paper"), "are not known: choose small"),
        (("wu-1", "--scale", "huge"), "huge"),
    ],
)
def test_what_is_wrong_is_said(arguments, message: str) -> None:
    result = run("run", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
