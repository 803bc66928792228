"""From a click log to a ranker and its evaluation, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gradrank import make_splits
from gradrank.data.clicks.click_log import write_click_log
from gradrank.data.clicks.simulate import simulate_log
from gradrank.data.formats.registry import write_data
from tests.support.commands import error_of, run

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clicks")
    splits = make_splits(80, n_docs=8, n_features=5, random_state=2, n_jobs=1)
    for name in ("train", "test"):
        write_data(splits[name], path / f"{name}.parquet")
    data = splits["train"]
    rankers = {"old": data.X[:, 0], "new": data.X[:, 1]}
    write_click_log(simulate_log(data, rankers, 12_000, shown=8, random_state=2), path / "log.jsonl")
    write_click_log(simulate_log(data, {"old": data.X[:, 0]}, 500, shown=8), path / "one.jsonl")
    return path


def test_from_log_to_ranker_to_its_worth(folder: Path) -> None:
    log, known = folder / "log.jsonl", folder / "propensities.json"
    told = run("propensity", log, "-o", known, "--format", "json")
    rows = json.loads(told.stdout)
    assert [row["position"] for row in rows] == list(range(1, 9))
    assert all(row["low"] <= 1.05 / row["position"] and row["high"] >= 0.95 / row["position"] for row in rows)
    assert "propensities by method harvest" in told.stderr
    assert "position foretells clicks best" in told.stderr
    options = ("--trees", 40, "--rate", 0.1, "--leaves", 7, "--threads", 1)
    trained = run(
        "unbiased", log, "--train", folder / "train.parquet", "--judged", folder / "test.parquet", "-o",
        folder / "unbiased.json", "--naive", folder / "naive.json", "--propensities", known, "--format", "json",
        *options,
    )  # fmt: skip
    (row,) = json.loads(trained.stdout)
    assert (row["system"], row["measure"]) == ("unbiased", "NDCG@10")
    assert row["mean"] > 0.75
    assert row["mean"] > row["baseline"] - 0.01
    worth = run(
        "counterfactual", log, "--data", folder / "train.parquet", "--model", f"u={folder / 'unbiased.json'}",
        "--propensities", known, "--cutoff", 8, "--format", "json",
    )  # fmt: skip
    (row,) = json.loads(worth.stdout)
    assert row["system"] == "u"
    assert 0 < row["gain interval low"] < row["gain"] < row["gain interval high"]


def test_click_models_are_compared_and_trained_by(folder: Path) -> None:
    told = run("propensity", folder / "log.jsonl", "--method", "trust", "--compare", "--format", "json")
    rows = json.loads(told.stdout)
    assert all(row["false clicks"] < 0.1 for row in rows)  # these users have no trust
    values = dict(
        part.split()[::-1] for part in told.stderr.split("held-out impressions: ")[1].split(":")[0].split(", ")
    )
    assert list(values) == ["naive", "position", "trust", "cascade", "dbn"]
    assert max(values, key=lambda name: float(values[name])) in ("position", "trust")
    labels = folder / "dbn.tsv"
    run("clicks", folder / "log.jsonl", "--method", "dbn", "-o", labels)
    assert len(labels.read_text().splitlines()) > 500
    options = ("--train", folder / "train.parquet", "-o", folder / "other.json", "--threads", 1)
    trained = run("unbiased", folder / "log.jsonl", *options, "--click-model", "cascade", "--trees", 5)
    assert "documents have labels from their own clicks" in trained.stderr
    failed = run("unbiased", folder / "log.jsonl", *options, "--click-model", "dbn", "--method", "em")
    assert "belong to the click model position, not to dbn" in error_of(failed)


def test_two_towers_say_what_positions_add(folder: Path) -> None:
    pytest.importorskip("torch")
    options = ("--train", folder / "train.parquet", "-o", folder / "tower.json", "--threads", 1)
    towers = ("--learner", "two-towers", "--epochs", 20)
    trained = run("unbiased", folder / "log.jsonl", *options, *towers, "--format", "json")
    rows = json.loads(trained.stdout)
    assert [row["position"] for row in rows] == list(range(1, 9))
    assert 0 == rows[0]["log-odds"] > rows[3]["log-odds"] > rows[7]["log-odds"]
    assert (folder / "tower.json").exists()
    failed = run("unbiased", folder / "log.jsonl", *options, *towers, "--click-model", "dbn")
    assert "are for --learner trees" in error_of(failed)
    failed = run("unbiased", folder / "log.jsonl", *options, *towers, "--trees", 5)
    assert "--n-estimators does not go with lambdarank" in error_of(failed)


def test_a_log_that_cannot_tell_is_refused(folder: Path) -> None:
    failed = run("propensity", folder / "one.jsonl", "-o", folder / "none.json")
    assert "the log cannot tell how likely positions are examined" in error_of(failed)
    assert not (folder / "none.json").exists()
    failed = run("clicks", folder / "log.jsonl", "-o", folder / "none.tsv", "--method", "examined")
    assert "--method examined and --propensities FILE go together" in error_of(failed)


def test_labels_of_similar_queries_are_counted(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    sessions = [("cheap flight", ["a", "b"], ["a"]), ("cheap flights", ["a", "c"], ["c"]), ("news", ["d"], [])]
    log.write_text("".join(json.dumps(dict(zip(("qid", "shown", "clicks"), s, strict=True))) + "\n" for s in sessions))
    told = run("clicks", log, "-o", tmp_path / "labels.tsv", "--similar", "edits", "--similar-threshold", 0.8)
    assert "1 pair of similar queries: 2 labels won beside 5, 2 changed, in 2 queries" in told.stderr
    assert len((tmp_path / "labels.tsv").read_text().splitlines()) == 1 + 7


def test_interleaving_names_the_winner(tmp_path: Path) -> None:
    log = tmp_path / "traffic.jsonl"
    lines = []
    for number in range(12):
        shown = {"event": "shown", "id": f"i{number}", "time": f"{number:02}", "qid": "q", "shown": ["a", "b"],
                 "models": ["old", "new"], "teams": [0, 1]}  # fmt: skip
        lines += [
            shown,
            {"event": "click", "id": f"i{number}", "time": f"{number:02}", "docid": "b" if number else "a"},
        ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = json.loads(run("interleave", log, "--format", "json").stdout)
    assert found["wins"] == [1, 11]
    assert found["winner"] == "new"
    # The sign test: 2·(1 + 12)/2^12.
    assert found["p"] == pytest.approx(2 * 13 / 4096)
    assert "users prefer new" in run("interleave", log).stdout
    assert np.isclose(found["preference"], 11 / 12)
