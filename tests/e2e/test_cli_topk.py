"""Top-k truth, top-k rankers and experiments on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gradrank.data.formats.registry import read_data
from gradrank.data.topk import is_top_k
from gradrank.models.registry import load_ranker
from tests.support.commands import make_files, run

QUICK = ("--threads", 1, "--quiet")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_files(tmp_path / "d", queries=30, features=4)
    return tmp_path


def test_convert_makes_a_seeded_top_k_truth() -> None:
    assert run("convert", "d/train.txt", "topk.txt", "--top-k", 5, "--seed", 1).exit_code == 0
    truth, graded = read_data("topk.txt"), read_data("d/train.txt")
    assert is_top_k(truth.label(), truth.indptr)
    assert truth.label().max() == 5
    assert np.array_equal(truth.X, graded.X)
    assert run("convert", "d/train.txt", "again.txt", "--top-k", 5, "--seed", 1).exit_code == 0
    assert Path("again.txt").read_bytes() == Path("topk.txt").read_bytes()
    assert run("convert", "d/train.txt", "other.txt", "--top-k", 5, "--seed", 2).exit_code == 0
    assert Path("other.txt").read_bytes() != Path("topk.txt").read_bytes()


def test_truth_goes_to_jsonl_and_back() -> None:
    assert run("convert", "d/train.txt", "topk.txt", "--top-k", 5).exit_code == 0
    assert run("convert", "topk.txt", "topk.jsonl").exit_code == 0
    line = json.loads(Path("topk.jsonl").read_text().splitlines()[0])
    assert (line["k"], len(line["top"]), len(line["rest"])) == (5, 5, 7)
    assert run("convert", "d/train.txt", "back.txt", "--truth", "topk.jsonl").exit_code == 0
    assert np.array_equal(read_data("back.txt").label(), read_data("topk.txt").label())


def test_truth_from_preferences() -> None:
    data = read_data("d/train.txt")
    first = str(data.qid[0])
    names = [str(number) for number in range(1, 13)] if data.docid is None else list(data.docid[:12])
    judged = [f"{first} {names[3]} {names[1]} {names[3]}", f"{first} {names[1]} {names[0]} {names[1]}"]
    Path("judged.txt").write_text("\n".join(judged) + "\n")
    result = run("convert", "d/train.txt", "p.csv", "--top-k", 2, "--preferences", "judged.txt")
    assert result.exit_code == 0
    assert "documents are not in the truth: they are unjudged" in result.stderr
    labels = read_data("p.csv").label()
    assert [labels[0], labels[1], labels[3]] == [0, 1, 2]
    assert np.isnan(labels).sum() == len(labels) - 3


def test_convert_says_what_does_not_go_together() -> None:
    Path("judged.txt").write_text("q a b a\n")
    for arguments, message in (
        (("--preferences", "judged.txt"), "--preferences goes with --top-k"),
        (("--top-k", 3, "--truth", "x.jsonl"), "leave out --top-k"),
        (("--top-k", 3, "--preferences", "judged.txt"), "judged.txt: names no query and document of the data"),
    ):
        result = run("convert", "d/train.txt", "out.txt", *arguments)
        assert result.exit_code == 2
        assert message in result.stderr
        assert not Path("out.txt").exists()
    result = run("convert", "d/train.txt", "graded.jsonl")
    assert result.exit_code == 2
    assert "no top-k truth" in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("ranksvm", "--c", 1.0),
        ("ranksvm", "--c", "auto"),
        ("svmmap", "--c", 0.5),
        ("focusedsvm", "--k", 5, "--beta", 0.5, "--c", 1.0),
        ("rankboost", "--rounds", 5),
        ("adarank", "--rounds", 5),
        ("focusedboost", "--k", 5, "--beta", 0.5, "--rounds", 5),
        ("focusedboost", "--k", 5, "--beta", "auto", "--rounds", 2),
        ("focusednet", "--k", 5, "--beta", 0.5, "--epochs", 2),
        ("listmle", "--k", 5, "--epochs", 2),
    ],
    ids=lambda options: "-".join(map(str, options)),
)
def test_every_top_k_ranker_trains_and_scores(options: tuple[object, ...]) -> None:
    if options[0] in ("focusednet", "listmle"):
        pytest.importorskip("torch")
    for name in ("train", "vali"):
        assert run("convert", f"d/{name}.txt", f"{name}.txt", "--top-k", 5).exit_code == 0
    result = run(
        "train", "--algorithm", *options, "--train", "train.txt", "--valid", "vali.txt", "-o", "m.json",
        "--format", "json", *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    ranker = load_ranker("m.json")
    assert ranker.training["learner"] == facts["learner"]
    assert run("score", "m.json", "d/test.txt", "-o", "scores.txt", "--quiet").exit_code == 0
    assert run("evaluate", "d/test.txt", "--scores", "scores.txt", "-m", "NDCG@5", "--quiet").exit_code == 0


def test_training_says_what_is_wrong() -> None:
    for options, message in (
        (("focusedsvm", "--beta", 2), "beta is 2, expected a number from 0 to 1, or auto"),
        (("focusedsvm", "--beta", "auto"), "beta is auto: it is chosen on validation data, and there is none"),
        (("ranksvm", "--c", 0), "C is 0, expected a positive number, or auto"),
        (("rankboost", "--rounds", 0), "n_estimators is 0"),
        (("rankboost", "--c", 1), "--C does not go with rankboost"),
    ):
        result = run("train", "--algorithm", *options, "--train", "d/train.txt", "-o", "m.json", *QUICK)
        assert result.exit_code == 2
        assert message in result.stderr
        assert not Path("m.json").exists()


# ---------------------------------------------------------------------- experiments
SMALL = ("--set", "rankers=RankSVM,SVMmap,FocusedSVM", "--set", "beta=0.5", "--set", "c=1.0", "--set", "k=3")


def test_experiments_are_listed() -> None:
    result = run("experiment")
    assert result.exit_code == 0
    assert "niu-4" in result.stdout
    assert "wu-1" in result.stdout


def test_experiment_on_a_folder_of_data() -> None:
    result = run("experiment", "niu-4", "--data", "d", "--out", "out", *SMALL, "--format", "json")
    assert result.exit_code == 0, result.stderr
    value = json.loads(result.stdout)
    assert value == json.loads(Path("out/niu-4.json").read_text())
    assert [row["ranker"] for row in value["tables"][1]["rows"]] == ["RankSVM", "SVMmap", "FocusedSVM"]
    assert Path("out/niu-4.md").read_text().startswith("### niu-4")
    again = run("experiment", "niu-4", "--data", "d", "--out", "out", *SMALL, "--format", "json")
    assert again.stdout == result.stdout
    assert "6 of 6 trainings are kept from before" in again.stderr


def test_figure_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    options = ("--data", "d", *SMALL, "--set", "betas=0,0.5,1", "--set", "truths=topk", "--plot", "beta.svg", "--quiet")
    assert run("experiment", "niu-fig1", *options).exit_code == 0
    assert "KappaNDCG@3" in Path("beta.svg").read_text()


def test_experiments_say_what_is_wrong() -> None:
    for arguments, message in (
        (("niu-9",), "there is no experiment 'niu-9'"),
        (("niu-4", "--set", "foo=1"), "--set is 'foo=1', expected KEY=VALUE with one of k, rankers"),
        (("niu-4", "--set", "k=x"), "--set k is 'x', expected a number"),
        (("niu-4", "--set", "k=1.5"), "--set k is '1.5', expected a whole number"),
        (("niu-4", "--data", "nowhere"), "nowhere: is no folder"),
        (("niu-fig1", "--plot", "x.txt"), "x.txt: has the suffix '.txt'"),
    ):
        result = run("experiment", *arguments)
        assert result.exit_code == 2
        assert message in result.stderr
