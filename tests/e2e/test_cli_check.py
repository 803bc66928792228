"""``gradrank profile``, ``gradrank check`` and the card of a model, as people use them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from gradrank.data.formats.registry import read_data
from gradrank.measures import NDCG
from gradrank.models.registry import load_ranker
from tests.support.commands import content_of, enter, error_of, make_files, run

TRAIN = ("train", "--train", "d/train.txt", "--valid", "d/vali.txt", "--test", "d/test.txt", "--trees", 5, "-q")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_files(tmp_path_factory.mktemp("made"))


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, made, monkeypatch)
    assert run(*TRAIN, "-o", "m.json").exit_code == 0
    return tmp_path


def moved(by: float) -> None:
    data = read_data("d/test.txt")
    with open("live.csv", "w", encoding="utf-8") as file:
        file.write("qid,label," + ",".join(data.feature_names) + "\n")
        for qid, label, row in zip(
            data.query_of_row(), data.label(), data.X + np.array([by, 0, 0, 0, 0, 0]), strict=True
        ):
            file.write(",".join(map(str, (qid, label, *row))) + "\n")


def test_check_by_the_models_own_profile_and_by_a_file(folder: Path) -> None:
    same = run("check", "m.json", "d/test.txt", "--format", "json")
    assert same.exit_code == 0
    assert json.loads(same.stdout)["faults"] == 0
    moved(100.0)
    found = run("check", "m.json", "live.csv", "--html", "drift.html")
    assert found.exit_code == 1
    assert "Changed beyond a threshold in 720 documents: f1." in found.stdout
    page = Path("drift.html").read_text()
    assert page.count("<svg") == 1
    assert "Changed beyond a threshold in 720 documents: f1." in page
    assert run("profile", "d/train.txt", "-o", "p.json", "-q").exit_code == 0
    assert json.loads(Path("p.json").read_text()) == load_ranker("m.json").training["profile"]
    by_file = run("check", "m.json", "live.csv", "--profile", "p.json", "--format", "csv")
    assert by_file.stdout.splitlines()[1].startswith("f1,")
    assert run("check", "m.json", "live.csv", "--psi", 99, "-q").exit_code == 0
    Path("narrow.txt").write_text("0 qid:1 1:1\n")
    assert error_of(run("check", "m.json", "narrow.txt")).startswith("narrow.txt: has 1 features")


def test_the_card_tells_what_a_reviewer_asks(folder: Path) -> None:
    assert run(*TRAIN, "-o", "again.json").exit_code == 0
    cards = [json.loads(run("info", name, "--format", "json").stdout) for name in ("m.json", "again.json")]
    assert cards[0]["scores_sha256"] == cards[1]["scores_sha256"]
    assert cards[0]["file_sha256"] == hashlib.sha256(Path("m.json").read_bytes()).hexdigest()
    assert run(*TRAIN, "--learning-rate", 0.3, "-o", "other.json").exit_code == 0
    other = json.loads(run("info", "other.json", "--format", "json").stdout)
    assert other["scores_sha256"] != cards[0]["scores_sha256"]
    ranker, data = load_ranker("m.json"), read_data("d/test.txt")
    values = NDCG(10).values(ranker.predict(data), data)
    kept = cards[0]["training"]["sets"]["test"]
    told = kept["measures"]["NDCG@10"]
    assert told["mean"] == pytest.approx(values.mean())
    half = 2.001 * values.std(ddof=1) / np.sqrt(60)  # t of 59 degrees of freedom
    assert told["low"] == pytest.approx(values.mean() - half, abs=1e-5)
    assert (kept["file"], kept["queries"], kept["labels"]) == ("d/test.txt", 60, {"label": 720})
    text = run("info", "m.json", "--format", "md").stdout
    for part in (cards[0]["file_sha256"], kept["sha256"], f"| test | NDCG@10 | {values.mean():.4f} |", "## Importances",
                 "LambdaWide(NDCG, normalize=log, gap=true, goal=NDCG@10)", "| learning_rate |", "| lightgbm |",
                 f"```sh\n{ranker.training['command']}\n```"):  # fmt: skip
        assert part in text
    assert run("info", "m.json", "--format", "html", "-o", "card.html").exit_code == 0
    page = Path("card.html").read_text()
    assert kept["sha256"] in page
    assert "<svg" in page
    before = content_of(folder)
    assert "--output is for cards" in error_of(run("info", "m.json", "-o", "x.txt"))
    assert content_of(folder) == before


def test_cards_of_models_that_tell_little_or_nonsense(folder: Path) -> None:
    value = json.loads(Path("m.json").read_text())
    odd = {"sets": {"train": 3, "test": {"labels": [], "queries": "x", "measures": {"a": 1, "b": {"mean": "nan"}}}},
           "curves": 5, "data": 1, "parameters": [], "notes": 7, "best": "x", "grown": None}  # fmt: skip
    for training in ({}, odd):
        Path("odd.json").write_text(json.dumps(value | {"training": training}))
        for form in ("md", "html", "json"):
            assert run("info", "odd.json", "--format", form).exit_code == 0
