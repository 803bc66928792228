"""Sweeps and diagnoses on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from gradrank.models.registry import load_ranker
from tests.support.commands import PROGRAM, enter, error_of, make_files, run


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return make_files(tmp_path_factory.mktemp("made") / "d", "--clicks")


@pytest.fixture(autouse=True)
def folder(made, tmp_path, monkeypatch) -> Path:
    return enter(tmp_path, made, monkeypatch)


FILES = ("--train", "d/train.txt", "--label", "clicks=d/train.clicks.txt",
         "--valid", "d/vali.txt", "--valid-label", "clicks=d/vali.clicks.txt")  # fmt: skip
TEST = ("--test", "d/test.txt", "--test-label", "clicks=d/test.clicks.txt")
QUICK = ("--trees", 10, "--min-docs", 5, "--threads", 1, "-m", "NDCG@3", "-m", "CNDCG@3")


def sweep(*arguments: object):
    return run("sweep", *FILES, *QUICK, *arguments, "-o", "model.json")


# ---------------------------------------------------------------- sweep
def test_a_sweep_agrees_with_train_and_evaluate() -> None:
    result = sweep(*TEST, "--weights", "0.3,0.6", "--format", "json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert list(said["weights"]) == ["w=0", "w=0.3", "w=0.6"]
    objective = "Tiered(NDCG, CNDCG, weight=0.3)"
    trained = run("train", *FILES, "--objective", objective, "--trees", 10, "--min-docs", 5, "--threads", 1,
                  "-m", "Graded(NDCG@3, CNDCG@3)", "-o", "alone.json")  # fmt: skip
    assert trained.exit_code == 0, trained.output
    member = load_ranker("model.json.sweep/w=0.3.json")
    assert member.to_dict()["payload"] == load_ranker("alone.json").to_dict()["payload"]
    assert run("score", "alone.json", "d/test.txt", "-o", "s.txt").exit_code == 0
    shown = run("evaluate", "d/test.txt", "--scores", "s.txt", "--label", "clicks=d/test.clicks.txt",
                "-m", "NDCG@3", "-m", "CNDCG@3", "--format", "json")  # fmt: skip
    assert json.loads(shown.stdout)["s.txt"] == said["data"]["test"]["means"]["w=0.3"]
    chosen = said["choice"]["system"]
    assert (
        load_ranker("model.json").to_dict()["payload"]
        == load_ranker(f"model.json.sweep/{chosen}.json").to_dict()["payload"]
    )
    assert load_ranker("model.json").training["choice"]["system"] == chosen


def test_what_people_see_and_doing_it_again() -> None:
    first = sweep("--weights", "0.5", "--plot", "trade.html")
    assert first.exit_code == 0, first.output
    assert "CNDCG@3" in first.stdout
    assert first.stdout.splitlines()[-1] == "model.json: the chosen model"
    assert "training w=0.5, 2 of 2" in first.stderr
    assert "<svg" in Path("trade.html").read_text()
    before = Path("model.json").read_text()
    again = sweep("--weights", "0.5", "--quiet")
    assert again.exit_code == 0
    assert again.stdout == first.stdout
    assert again.stderr == ""
    assert json.loads(Path("model.json").read_text())["payload"] == json.loads(before)["payload"]


def test_a_choice_on_few_queries_is_noted() -> None:
    assert run("make-data", "few", "--queries", 16, "--docs", 12, "--features", 6, "--clicks").exit_code == 0
    files = [str(word).replace("d/", "few/") for word in FILES]
    result = run("sweep", *files, *QUICK, "--weights", 0.05, "-o", "few.json")
    assert result.exit_code == 0
    assert "gradrank: note: the choice of the weight means little: on 8 queries" in result.stderr
    assert Path("few.json").exists()
    quiet = run("sweep", *files, *QUICK, "--weights", 0.05, "-o", "quiet.json", "--quiet")
    assert quiet.exit_code == 0
    assert quiet.stderr == ""


def test_a_killed_sweep_goes_on() -> None:
    words = ["sweep", *map(str, (*FILES, *QUICK, "--weights", "0.2,0.4")), "-o", "m.json"]
    process = subprocess.Popen(
        [*PROGRAM, *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )  # fmt: skip
    assert process.stderr is not None
    heard = next(line for line in process.stderr if "training w=0.2" in line)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert heard
    finished = Path("m.json.sweep/w=0.json")
    assert not Path("m.json").exists()
    done = finished.read_bytes()
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert finished.read_bytes() == done
    assert "training w=0," not in result.stderr
    assert "training w=0.4" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--weights", "a"), "--weights is 'a', expected numbers between commas"),
        (("--weights", "2"), "a weight is 2, expected numbers from 0 to 1"),
        (("--objective", "NDCG"), "expected tiers"),
        (("--objective", "Tiered(NDCG, CNDCG(label=nothing))"), "there is no label source 'nothing'"),
        (("--level", "1"), "--level is 1.0"),
        (("--margin", "0"), "--margin is 0.0"),
        (("--plot", "x.gif"), "x.gif: is no plot that can be written"),
        (("--plot", "nowhere/x.html"), "nowhere/x.html: cannot be written"),
        (("--hidden-layer-sizes", 3), "--hidden-layer-sizes does not go with lambdamart"),
    ],
)
def test_wrong_input(arguments, message: str) -> None:
    assert message in error_of(sweep(*arguments))
    assert not Path("model.json").exists()


def test_other_parameters_of_the_learner() -> None:
    assert sweep("--weights", "0.5", "--leaves", 4, "--subsample", 0.5).exit_code == 0
    training = load_ranker("model.json").training
    assert (training["parameters"]["num_leaves"], training["parameters"]["subsample"]) == (4, 0.5)


# ---------------------------------------------------------------- diagnose
@pytest.fixture
def model() -> str:
    objective = "Tiered(NDCG@3, CNDCG(label=clicks)@3, weight=0.2)"
    result = run("train", *FILES, "--objective", objective, "--trees", 6, "--min-docs", 5, "--threads", 1,
                 "--diagnostics", 2, "-o", "model.json")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "on label 'clicks': " in result.stderr
    return "model.json"


def test_a_diagnosis(model: str) -> None:
    result = run("diagnose", model, "-o", "page.html", "--format", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["steps"] == [0, 2, 4, 6]
    assert Path("page.html").read_text().count("<svg") == 6
    shown = run("diagnose", model)
    assert "rank_changes: top" in shown.stdout
    assert run("diagnose", model, "-o", "figures", "--image", "png").exit_code == 0
    assert Path("figures/agreement.png").read_bytes().startswith(b"\x89PNG")


def test_models_without_diagnostics() -> None:
    assert run("train", *FILES, "--trees", 3, "--min-docs", 5, "--threads", 1, "-o", "model.json").exit_code == 0
    assert "was trained without --diagnostics N" in error_of(run("diagnose", "model.json"))
    result = run("diagnose", "model.json", "-o", "page.html")
    assert result.exit_code == 0
    assert "was trained without --diagnostics N" in result.stderr
    assert "<svg" in Path("page.html").read_text()


def test_models_that_tell_nothing() -> None:
    from gradrank.models.linear import LinearRanker

    LinearRanker([1.0], feature_names=["a"]).save("bare.json")
    assert "tells nothing of its training" in error_of(run("diagnose", "bare.json", "-o", "page.html"))
    assert not Path("page.html").exists()
    assert "there is no such file" in error_of(run("diagnose", "none.json"))


# ---------------------------------------------------------------- improve and keep
IMPROVE = ("sweep", *FILES, "--trees", 10, "--min-docs", 5, "--threads", 1, "-o", "model.json",
           "--improve", "CNDCG(label=clicks)@3")  # fmt: skip


def test_improve_one_measure_and_keep_another() -> None:
    result = run(*IMPROVE, *TEST, "--keep", "NDCG@10 >= 80%", "--plot", "walk.html", "--format", "json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["keep"] == ["NDCG@10 >= 80%"]
    assert said["chosen"]["goal"] > said["walk"][0]["goal"]
    shown = run("evaluate", "d/test.txt", "--model", "model.json", "--label", "clicks=d/test.clicks.txt",
                "-m", "CNDCG(label=clicks)@3", "--format", "json")  # fmt: skip
    rows = {(row["system"], row["measure"]): row for row in said["test"]["rows"]}
    mean = json.loads(shown.stdout)["model.json"]["CNDCG(label=clicks)@3"]
    assert mean == pytest.approx(rows["chosen", "CNDCG(label=clicks)@3"]["mean"])
    assert "<svg" in Path("walk.html").read_text(encoding="utf-8")
    assert "the baseline is kept" in run(*IMPROVE, "--keep", "NDCG@10 >= 100%", "--level", "0.0001").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--improve and --keep go together"),
        (("--keep", "NDCG"), "'NDCG' is no constraint"),
        (("--keep", "NDCG >= 90%", "--objective", "NDCG"), "--objective goes with tiers"),
        (("--keep", "NDCG >= 90%", "--baseline", "nothing.json"), "nothing.json"),
    ],
)
def test_wrong_constraints(arguments: tuple[str, ...], message: str) -> None:
    assert message in error_of(run(*IMPROVE, *arguments))
