"""Top-k truth and top-k rankers on the command line."""

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
