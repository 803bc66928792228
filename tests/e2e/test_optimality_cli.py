"""``gradrank optimality``, from files to output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gradrank.data.artificial import make_data
from gradrank.data.formats.registry import read_data, write_data
from gradrank.measures import NDCG, parse_measure
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from tests.support import commands

QUICK = ("--epsilon", "0.05", "--delta", "0.05")


run = partial(commands.run, "optimality")


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    data = make_data(40, n_docs=8, n_features=4, random_state=1)
    write_data(data, tmp_path / "train.txt")
    LinearRanker([1.0, -1.0, 0.5, 0.0]).save("linear.json")
    rng = np.random.default_rng(0)
    NetRanker([(rng.normal(size=(3, 4)), np.zeros(3)), (rng.normal(size=(1, 3)), [0.0])]).save("net.safetensors")
    return tmp_path


def test_json_has_the_promised_fields(files) -> None:
    result = run("linear.json", "train.txt", "--measure", "NDCG@10", "--format", "json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    data = read_data("train.txt")
    value = NDCG(10).mean(load_ranker("linear.json").predict(data), data)
    assert found["measure_at_optimum"] == value
    assert (found["directions"], found["confidence"], found["measure"]) == (459, 0.99, "NDCG@10")
    assert found["local_optimum"] is False
    assert 0 < found["improving"] <= 459
    assert found["improving"] + found["falling"] + found["level"] == 459
    assert found["best"]["gain"] > 0
    assert "curves" not in found


def test_nets_are_tested_too(files) -> None:
    result = run("net.safetensors", "train.txt", "-m", "MAP(rel=2)", *QUICK, "--format", "json", "--steps", "fine")
    found = json.loads(result.stdout)
    assert (found["directions"], found["weights"], found["weights_tried"]) == (59, 3 * 4 + 3 + 3, 18)
    assert found["steps"][0] == 0.001


def test_climbing_saves_a_better_model(files) -> None:
    result = run(
        "net.safetensors", "train.txt", "-m", "NDCG@5", *QUICK, "--climb", "--moves", "5", "-o", "up.safetensors"
    )
    assert result.exit_code == 0
    assert "5 moves raise NDCG@5 from " in result.stdout
    data, measure = read_data("train.txt"), parse_measure("NDCG@5")
    before, after = (measure.mean(load_ranker(f"{name}.safetensors").predict(data), data) for name in ("net", "up"))
    assert after > before
    assert load_ranker("up.safetensors").training["climb"] == {
        "measure": "NDCG@5", "from": before, "to": after, "moves": 5,
    }  # fmt: skip


def test_a_climb_to_the_top_ends_with_a_local_optimum(files) -> None:
    arguments = ("linear.json", "train.txt", *QUICK, "--climb", "-o", "top.json", "--format", "json")
    found = json.loads(run(*arguments).stdout)
    assert found["local_optimum"] is True
    assert found["improving"] == 0
    assert found["climb"]["values"] == sorted(set(found["climb"]["values"]))
    data = read_data("train.txt")
    assert NDCG(10).mean(load_ranker("top.json").predict(data), data) == found["measure_at_optimum"]


def test_the_table_says_the_verdict(files) -> None:
    result = run("linear.json", "train.txt", *QUICK)
    assert result.stdout.startswith("Not a local optimum of NDCG@10: ")
    assert "random directions" in result.stdout
    assert "gradrank: direction 67 of 67" in result.stderr
    assert "one weight, up or down" in result.stdout
    assert "one weight" not in run("linear.json", "train.txt", *QUICK, "--no-single-weights").stdout
    assert run("linear.json", "train.txt", *QUICK, "--quiet").stderr == ""


def test_everything_is_kept_and_drawn(files) -> None:
    for name in ("plot.svg", "plot.png", "plot.pdf", "page.html"):
        assert run("linear.json", "train.txt", *QUICK, "--plot", name, "--json", "kept.json").exit_code == 0
    assert Path("plot.svg").read_text().lstrip().startswith("<?xml")
    assert Path("plot.png").read_bytes().startswith(b"\x89PNG")
    assert Path("plot.pdf").read_bytes().startswith(b"%PDF")
    page = Path("page.html").read_text()
    assert "Not a local optimum of NDCG@10" in page
    assert page.count("<polyline") == 4
    kept = json.loads(Path("kept.json").read_text())
    assert np.shape(kept["curves"]) == (59, 10)
    assert [row["weight"] for row in kept["weight_curves"]] == ["f1", "f2", "f3", "f4"]
    assert kept["model"] == "linear.json"


def test_the_models_own_measure_is_the_default(files) -> None:
    LinearRanker([1.0, 0.0, 0.0, 0.0], training={"measure": "MRR(rel=2)"}).save("own.json")
    assert json.loads(run("own.json", "train.txt", *QUICK, "--format", "json").stdout)["measure"] == "MRR(rel=2)"
    LinearRanker([1.0, 0.0, 0.0, 0.0], training={"measure": "Graded(MAP, MRR)"}).save("own.json")
    assert json.loads(run("own.json", "train.txt", *QUICK, "--format", "json").stdout)["measure"] == "MAP"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--climb",), "give -o FILE"),
        (("-o", "x.json"), "-o is where --climb writes"),
        (("--plot", "x.gif"), "the suffix '.gif' is none of"),
        (("--json", "missing/x.json"), "cannot be written"),
        (("--steps", "a,b"), "--steps is 'a,b'"),
        (("--steps", "1,0.5"), "ascending"),
        (("--epsilon", "2"), "epsilon is 2.0"),
        (("-m", "Graded(MAP, MRR)"), "expected a single measure"),
        (("-m", "NDGC"), "did you mean NDCG"),
    ],
)
def test_bad_options(files, arguments, message) -> None:
    result = run("linear.json", "train.txt", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert sorted(path.name for path in files.iterdir()) == ["linear.json", "net.safetensors", "train.txt"]


def test_trees_have_no_weights(files) -> None:
    TreeEnsemble([], ["f1", "f2", "f3", "f4"]).save("trees.json")
    result = run("trees.json", "train.txt")
    assert result.exit_code == 2
    assert "trees.json: a ranker of kind 'trees' has no vector of weights" in result.stderr


def test_weights_of_0(files) -> None:
    LinearRanker([0.0] * 4).save("zero.json")
    assert "take absolute steps" in run("zero.json", "train.txt").stderr
    assert run("zero.json", "train.txt", *QUICK, "--scale", "absolute").exit_code == 0


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_ctrl_c_tells_what_is_known(files) -> None:
    # Half a million directions: the test can only end by the signal, sent once some are done.
    arguments = ["optimality", "linear.json", "train.txt", "--format", "json", "--epsilon", "0.00001"]
    process = subprocess.Popen(
        [*commands.PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        assert process.stderr.readline().startswith("gradrank: direction 16 of ")
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    found = json.loads(stdout)
    assert found["complete"] is False
    assert 0 < found["directions"] < found["planned"]
    assert found["confidence"] == pytest.approx(1 - (1 - 0.00001) ** found["directions"])
