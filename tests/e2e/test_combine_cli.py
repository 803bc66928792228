"""``gradrank combine``, from files to output."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.artificial import make_data
from gradrank.data.formats.registry import write_data
from gradrank.measures import MAP, NDCG
from gradrank.models.linear import LinearRanker
from gradrank.models.registry import load_ranker
from tests.support.commands import run

WEIGHTS = {"a.json": [1, 0, 0.5, 0], "b.json": [0, 1, 0, 0.2], "c.json": [0, 0, 1, -1]}


def scores(name: str, data: RankingData) -> np.ndarray:
    return LinearRanker(WEIGHTS[name]).predict(data)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RankingData:
    monkeypatch.chdir(tmp_path)
    made = make_data(30, n_docs=10, n_features=4, random_state=1)
    write_data(made, "data.txt")
    for name, weights in WEIGHTS.items():
        LinearRanker(weights).save(name)
        np.savetxt(name.replace(".json", ".txt"), scores(name, made), fmt="%.17g")
    return made


@pytest.mark.parametrize("convex", [False, True])
def test_two_models(data: RankingData, convex: bool) -> None:
    form = ["--convex"] if convex else []
    result = run("combine", "a.json", "b.json", "--data", "data.txt", "-m", "NDCG@5", *form, "-o", "ab.json",
                 "--format", "json")  # fmt: skip
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    alone = [NDCG(5).mean(scores(name, data), data) for name in ("a.json", "b.json")]
    assert told["values_of_parts"] == pytest.approx(alone)
    assert told["value"] >= max(told["values_of_parts"])
    alpha = told["alpha"]
    first = 1 - alpha if convex else 1.0
    together = first * scores("a.json", data) + alpha * scores("b.json", data)
    assert told["value"] == pytest.approx(NDCG(5).mean(together, data), abs=1e-12)
    assert told["interval"][0] <= alpha <= told["interval"][1]
    model = load_ranker("ab.json")
    np.testing.assert_allclose(model.predict(data), together)
    grid = np.linspace(0, 1, 500)
    mixed = [(1 - share) * scores("a.json", data) + share * scores("b.json", data) for share in grid]
    assert told["value"] >= max(NDCG(5).mean(column, data) for column in mixed) - 1e-12


@pytest.mark.parametrize("method", ["exact", "powell"])
def test_several_models(data: RankingData, method: str) -> None:
    result = run("combine", *WEIGHTS, "--data", "data.txt", "-m", "MAP", "--method", method, "-o", "all.json",
                 "--format", "json")  # fmt: skip
    told = json.loads(result.stdout)
    assert told["alpha"] is None
    assert told["value"] >= max(told["values_of_parts"])
    assert told["value"] == pytest.approx(MAP().mean(load_ranker("all.json").predict(data), data), abs=1e-12)


def test_score_files_give_scores(data: RankingData) -> None:
    result = run("combine", "a.txt", "b.json", "--data", "data.txt", "-m", "NDCG@5", "-o", "ab.txt")
    assert result.exit_code == 0
    assert "ab.txt holds the combined scores of the data" in result.stderr
    whole = json.loads(run("combine", "a.json", "b.json", "--data", "data.txt", "-m", "NDCG@5", "--format",
                           "json").stdout)  # fmt: skip
    assert NDCG(5).mean(np.loadtxt("ab.txt"), data) == pytest.approx(whole["value"])


def test_given_weights_and_table(data: RankingData) -> None:
    result = run("combine", "a.json", "b.json", "--data", "data.txt", "-m", "MAP", "--weights", "1,-0.5")
    value = MAP().mean(scores("a.json", data) - 0.5 * scores("b.json", data), data)
    assert result.stdout.split("together")[1].split() == [f"{value:.4f}"]


@pytest.mark.parametrize("name", ["curve.png", "curve.html"])
def test_curve(data: RankingData, name: str) -> None:
    result = run("combine", "a.json", "b.json", "--data", "data.txt", "--range", 0.1, 100, "--plot", name)
    assert result.exit_code == 0
    content = Path(name).read_bytes()
    assert content.startswith(b"\x89PNG") or b"a.json and b.json together" in content


def test_graded_measures(data: RankingData) -> None:
    result = run("combine", "a.json", "b.json", "--data", "data.txt", "-m", "Graded(NDCG@1, MAP)", "--format", "json")
    told = json.loads(result.stdout)
    assert list(told["values"]) == ["NDCG@1", "MAP"]
    assert told["value"] == told["values"]["NDCG@1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.json"], "one ranker is given, expected two or more"),
        (["a.json", "none.json"], "none.json: there is no such file"),
        (["a.json", "data.txt"], "data.txt:1: found '"),
        (["a.json", "short.txt"], "short.txt: holds 2 scores, expected 300"),
        (["a.json", "hidden.txt"], "hidden.txt: score of document 300 is -inf, expected a finite number"),
        (["a.json", "b.json", "--weights", "1"], "--weights has 1 numbers, expected one for each of 2"),
        (["a.json", "b.json", "--weights", "1,x"], "expected numbers with commas"),
        (["a.json", "b.json", "--weights", "1,2", "--method", "powell"], "nothing left for --method"),
        (["a.json", "b.json", "c.json", "--plot", "x.png"], "--plot goes with the exact search for two"),
        (["a.json", "b.json", "--plot", "x.gif"], "'.gif' is none of"),
        (["a.json", "b.json", "--range", "2", "1"], "ascending order"),
        (["a.json", "b.json", "--convex", "--range", "0", "2"], "within 0…1"),
        (["a.json", "b.json", "-o", "nowhere/x.json"], "cannot be written"),
        (["a.json", "b.json", "-m", "NDGC"], "did you mean NDCG"),
        (["wide.json", "b.json"], "has 4 features, the model wide.json has 5"),
    ],
)
def test_wrong_input_is_one_line(data: RankingData, arguments: list[str], message: str) -> None:
    Path("short.txt").write_text("1\n2\n")
    Path("hidden.txt").write_text("1\n" * 299 + "-inf\n")
    LinearRanker([1, 2, 3, 4, 5]).save("wide.json")
    result = run("combine", *arguments, "--data", "data.txt")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path("x.png").exists()
