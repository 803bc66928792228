"""``gradrank auto``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gradrank.cli.main import app
from gradrank.data.artificial import make_splits
from gradrank.data.formats.registry import write_data
from gradrank.models.registry import load_ranker

RUN = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("auto")
    for name, data in make_splits(40, n_docs=8, n_features=4, random_state=1).items():
        write_data(data, path / f"{name}.txt")
    return path


def run(folder: Path, *options: object) -> tuple[int, str]:
    files = ["--train", folder / "train.txt", "--valid", folder / "vali.txt", "-o", folder / "model.json"]
    result = RUN.invoke(app, ["auto", *map(str, (*files, *options))])
    return result.exit_code, result.output


def test_trains_combines_and_reports(folder: Path) -> None:
    report = folder / "report.html"
    code, _ = run(folder, "--measure", "NDCG@5", "--most", 2, "--test", folder / "test.txt", "--report", report)
    assert code == 0
    model = load_ranker(folder / "model.json")
    assert [member["name"] for member in model.training["members"]] == ["plain", "deep-trees 1"]
    assert model.training["measure"] == "NDCG@5"
    assert np.isfinite(model.predict(np.zeros((2, 4)))).all()
    assert "Portfolio for NDCG@5" in report.read_text(encoding="utf-8")
    assert RUN.invoke(app, ["info", str(folder / "model.json")]).exit_code == 0


def test_json_of_left_out_queries_and_members_are_kept(folder: Path) -> None:
    members = folder / "members"
    code, output = run(folder, "--most", 2, "--budget", "2min", "--members", members, "--format", "json", "--quiet")
    assert code == 0
    found = json.loads(output)
    assert set(found["values"]) == {"NDCG@10"}
    assert found["values"]["NDCG@10"] >= max(member["value"] for member in found["members"]) - 1e-12
    assert found["comparison"]["baseline"] == "plain"
    means = {row["system"]: row["mean"] for row in found["comparison"]["rows"]}
    assert means["combined"] == pytest.approx(found["values"]["NDCG@10"])
    kept = {path.name: path.stat().st_mtime_ns for path in members.iterdir()}
    assert len(kept) == 8
    before = load_ranker(folder / "model.json").predict(np.eye(4))
    assert run(folder, "--most", 2, "--budget", "2min", "--members", members, "--quiet")[0] == 0
    assert {path.name: path.stat().st_mtime_ns for path in members.iterdir()} == kept
    np.testing.assert_array_equal(load_ranker(folder / "model.json").predict(np.eye(4)), before)


def test_distils_to_a_serving_budget(folder: Path) -> None:
    report = folder / "served.html"
    code, output = run(
        folder, "--most", 1, "--folds", 2, "--budget", "1s", "--serve-budget", "0.5x", "--report", report,
        "--format", "json", "--quiet",
    )  # fmt: skip
    assert code == 0
    found = json.loads(output)["distilled"]
    model = load_ranker(folder / "model.json")
    assert model.shape()["trees"] <= found["most_trees"]
    assert model.training["distilled"]["chosen"] == found["chosen"]
    page = report.read_text(encoding="utf-8")
    assert "Quality against cost" in page
    assert "sum of all" in page


def test_ctrl_c_while_distilling_writes_the_whole_portfolio(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gradrank.selection.distil.distil", stop)
    code, output = run(folder, "--most", 1, "--folds", 2, "--budget", "1s", "--serve-budget", "0.5x")
    assert code == 130
    assert "interrupted while distilling: the whole portfolio is written" in output
    assert "distilled" not in load_ranker(folder / "model.json").training


def test_without_validation_data(folder: Path) -> None:
    options = ["--train", folder / "train.txt", "-o", folder / "alone.json", "--most", 1, "--folds", 2, "--quiet"]
    assert RUN.invoke(app, ["auto", *map(str, options)]).exit_code == 0
    assert load_ranker(folder / "alone.json").training["folds"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budget", "soon"), "--budget is 'soon', expected a duration like 300s, 20min or 2h"),
        (("--budget", "0s"), "--budget is '0s'"),
        (("--serve-budget", "cheap"), "--serve-budget is 'cheap', expected a factor like 1.5x"),
        (("--valid-apart", "--most", 0), "--most"),
        (("--folds", 100_000), "folds is 100000, expected 2 to "),
        (("--measure", "NDGC"), "NDGC"),
        (("--test", "missing.txt"), "missing.txt"),
    ],
)
def test_bad_input(folder: Path, options: tuple[object, ...], message: str) -> None:
    code, output = run(folder, *options)
    assert code == 2
    assert message in output
