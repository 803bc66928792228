"""``gradrank adapt``, from files to output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradrank.data.artificial import make_data
from gradrank.data.formats.registry import write_data
from gradrank.models.linear import LinearRanker
from gradrank.models.registry import load_ranker
from tests.support.commands import run

FAST = ("--folds", 3, "--trees", 5, "--min-docs", 3)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_data(make_data(30, n_docs=8, n_features=3, random_state=1), "data.txt")
    LinearRanker([1.0, 0.5, 0.0]).save("base.json")
    LinearRanker([1.0, 0.5, 0.0, 2.0]).save("wide.json")


def test_table_and_model() -> None:
    result = run("adapt", "base.json", "--data", "data.txt", "-m", "NDCG@5", *FAST, "-o", "adapted.json")
    assert result.exit_code == 0
    assert "base.json, adapted" in result.stdout
    assert "interpolation" in result.stdout
    assert "fold 3 of 3: base.json, adapted" in result.stderr
    assert load_ranker("adapted.json").n_features == 3


def test_json() -> None:
    result = run("adapt", "base.json", "--data", "data.txt", "-m", "NDCG@5", *FAST, "--format", "json", "-q")
    told = json.loads(result.stdout)
    assert list(told["systems"]) == ["base.json", "own data", "base.json, adapted", "interpolation"]
    assert [row["against"] for row in told["comparisons"]] == ["base.json", "own data", "interpolation"]
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wide.json"], "wide.json: does not fit data.txt: has 3 features, the model has 4"),
        (["base.json", "base.json"], "base base.json is given twice"),
        (["none.json"], "none.json: there is no such file"),
        (["base.json", "--folds", "31"], "folds is 31, expected 3 to 30"),
        (["base.json", "--rate", "-1"], "learning_rate is -1.0, expected a positive number"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], message: str) -> None:
    result = run("adapt", *arguments, "--data", "data.txt", "-o", "x.json")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path("x.json").exists()
