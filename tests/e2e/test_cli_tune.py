"""``gradrank tune``."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradrank.cli.main import app
from gradrank.data.artificial import make_splits
from gradrank.data.formats.registry import write_data
from gradrank.data.splits import concatenate
from gradrank.models.registry import load_ranker

pytest.importorskip("optuna")
RUN = CliRunner()
QUICK = ("--trials", 9, "--folds", 2, "--n-estimators", 5, "--processes", 1, "--threads", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tune")
    sets = make_splits(30, n_docs=8, n_features=4, random_state=1)
    for name, data in sets.items():
        write_data(data, path / f"{name}.txt")
    write_data(concatenate([sets["train"], sets["vali"]]), path / "all.txt")
    return path


def run(folder: Path, *options: object) -> tuple[int, str]:
    files = ["--train", folder / "train.txt", "--valid", folder / "vali.txt"]
    result = RUN.invoke(app, ["tune", *map(str, (*files, *options))])
    return result.exit_code, result.output


def test_writes_a_model_a_config_that_trains_it_again_and_a_report(folder: Path) -> None:
    files = ("-o", folder / "best.json", "--config", folder / "best.toml", "--report", folder / "tune.html")
    more = (
        "--measure",
        "NDCG@5",
        "--search",
        "num_leaves=3..9:log",
        "--fix",
        "rate=0.2",
        "--test",
        folder / "test.txt",
    )
    code, output = run(folder, *QUICK, *files, *more)
    assert code == 0, output
    model = load_ranker(folder / "best.json")
    settings = tomllib.loads((folder / "best.toml").read_text(encoding="utf-8"))
    assert settings["learning-rate"] == 0.2
    assert settings["n-estimators"] == model.training["tuning"]["steps"] == model.shape()["trees"]
    assert settings["measure"] == "NDCG@5"
    assert 3 <= settings.get("num-leaves", 9) <= 9
    again = [
        "train",
        "--config",
        folder / "best.toml",
        "--train",
        folder / "all.txt",
        "-o",
        folder / "again.json",
        "-q",
    ]
    assert RUN.invoke(app, list(map(str, again))).exit_code == 0
    assert load_ranker(folder / "again.json").to_dict()["payload"] == model.to_dict()["payload"]
    page = (folder / "tune.html").read_text(encoding="utf-8")
    for words in ("Parameters of LambdaMART for NDCG@5", "History", "Parameter by parameter", "num_leaves"):
        assert words in page
    assert RUN.invoke(app, ["info", str(folder / "best.json")]).exit_code == 0


def test_goes_on_from_its_storage_and_refuses_that_of_others(folder: Path) -> None:
    options = (*QUICK, "--storage", folder / "study.db", "--config", folder / "b.toml", "--format", "json", "--quiet")
    code, output = run(folder, *options)
    assert code == 0
    found = json.loads(output)
    assert len(found["trial"]) == 9
    assert found["value"][0] >= found["defaults"][0]
    again = json.loads(run(folder, *options)[1])
    # Nothing was trained a second time: even the seconds are those of before.
    assert again["trial"] == found["trial"]
    longer = json.loads(run(folder, *options, "--trials", 11)[1])
    assert longer["trial"][:9] == found["trial"]
    assert len(longer["trial"]) == 11
    code, output = run(folder, *options, "--measure", "MAP")
    assert code == 2
    assert "study.db: belongs to another search (fixed, measure differ)" in output


def test_any_learner_with_its_own_parameters(folder: Path) -> None:
    few = ("--trials", 3, "--folds", 2, "--processes", 1, "--quiet")
    files = ("--config", folder / "svm.toml", "-o", folder / "svm.json")
    code, output = run(folder, "--algorithm", "ranksvm", *few, *files)
    assert code == 0, output
    assert tomllib.loads((folder / "svm.toml").read_text())["algorithm"] == "ranksvm"
    assert load_ranker(folder / "svm.json").training["tuning"]["trials"]["complete"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "there is nothing to write: give --output, --config or --report"),
        (("-o", "x.json", "--budget", "soon"), "--budget is 'soon', expected a duration"),
        (("-o", "x.json", "--search", "num_leaves"), "--search is 'num_leaves', expected NAME=RANGE"),
        (("-o", "x.json", "--search", "num_leaves=8..2"), "8..2, expected its first number below"),
        (("-o", "x.json", "--fix", "rat=1"), "no parameter 'rat'"),
        (("-o", "x.json", "--fix", "rate=1", "--fix", "rate=2"), "--fix names 'rate' twice"),
        (("-o", "x.json", "--algorithm", "ranksvm", "--num-leaves", 3), "--num-leaves does not go with ranksvm"),
        (("-o", "x.json", "--algorithm", "lambdasmart"), "lambdasmart starts from a model"),
        (("-o", "x.json", "--measure", "NDGC"), "NDGC"),
        (("-o", "x.json", "--test", "missing.txt"), "missing.txt"),
        (
            (
                "-o",
                "no/such/folder/x.json",
            ),
            "x.json: cannot be written",
        ),
    ],
)
def test_bad_input(folder: Path, options: tuple[object, ...], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    code, output = run(folder, "--trials", 2, *options)
    assert code == 2
    assert message in output
    assert sorted(folder.iterdir()) == before


def test_without_optuna_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    code, output = run(folder, "--trials", 2, "-o", folder / "x.json")
    assert code == 2
    assert "this needs the package optuna: pip install 'gradrank[tune]'" in output
