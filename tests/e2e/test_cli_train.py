"""Training, scoring, importance and model facts on the command line."""

from __future__ import annotations

import io
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradrank.cli.interruption import Interruption
from gradrank.data.formats.registry import read_data, write_data
from gradrank.learners import LambdaMART, Step
from gradrank.learners.base.checkpoint import unsealed
from gradrank.learners.base.progress import Progress
from gradrank.learners.trees.size_rule import (
    DEFAULT_RATE,
    DEFAULT_SHARE,
    default_leaves,
    default_reg_lambda,
    fixed_trees,
)
from gradrank.models.registry import load_ranker
from tests.support.commands import PROGRAM, enter, error_of, kill_at, make_files, run
from tests.support.model_files import content

QUICK = ("--trees", 12, "--min-docs", 5, "--threads", 1)


def train(*arguments: object, output: str = "model.json"):
    return run("train", "--train", "d/train.txt", *arguments, "-o", output)


def with_kinds(file: str) -> str:
    """The same data as a table that has one more feature: whole numbers, which part documents by their second one."""
    data = read_data(file)
    kinds = np.digitize(data.X[:, 1], np.quantile(data.X[:, 1], [0.2, 0.4, 0.6, 0.8]))
    table = replace(data, X=np.column_stack([data.X, kinds.astype(np.float32)]))
    table = replace(table, feature_names=(*data.feature_names, "kind"))
    name = f"{Path(file).stem}.parquet"
    write_data(table, name)
    return name


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return make_files(tmp_path_factory.mktemp("made") / "d", "--clicks")


@pytest.fixture(autouse=True)
def folder(made, tmp_path, monkeypatch) -> Path:
    return enter(tmp_path, made, monkeypatch)


# ---------------------------------------------------------------- the way from data to values
def test_train_score_evaluate_agree() -> None:
    trained = train("--valid", "d/vali.txt", "--test", "d/test.txt", *QUICK, "--format", "json")
    assert trained.exit_code == 0
    said = json.loads(trained.stdout)
    for key, name in (("train", "train"), ("valid", "vali"), ("test", "test")):
        assert run("score", "model.json", f"d/{name}.txt", "-o", "scores.txt").exit_code == 0
        shown = run("evaluate", f"d/{name}.txt", "--scores", "scores.txt", "-m", "NDCG@10", "--format", "json")
        assert json.loads(shown.stdout)["scores.txt"] == said["measures"][key]
    training = content("model.json")["training"]
    assert said["measures"]["valid"]["NDCG@10"] == max(training["curves"]["valid"]["NDCG@10"])
    assert (said["trees"], said["grown"], said["interrupted"]) == (training["best"], 12, False)
    assert len(load_ranker("model.json").trees) == said["trees"]
    assert said["command"] == training["command"]


def test_it_is_what_the_library_trains() -> None:
    train("--valid", "d/vali.txt", *QUICK, "--objective", "MAP", "--leaves", 7, "--rate", 0.2, "--seed", 3)
    data = {name: read_data(f"d/{name}.txt") for name in ("train", "vali")}
    learner = LambdaMART(
        "MAP", n_estimators=12, min_child_samples=5, num_leaves=7, learning_rate=0.2, random_state=3, n_jobs=1
    )
    expected = learner.fit(data["train"], valid=data["vali"]).ranker_
    assert content("model.json")["payload"] == expected.to_dict()["payload"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--algorithm", "lambdamart", "--colsample-bytree", 0.6, "--subsample", 0.5, "--seed", 4,
         "--early-stopping", 5),
        ("--objective", "Lambda(NDCG@5, cost=sigmoid)", "--max-depth", 3, "--lightgbm", "min_gain_to_split=0.01"),
        ("--objective", "MAP", "--step", "gradient", "--split", "mse", "--train-measure", "--test", "d/test.txt"),
        ("--monotone", "f1=1", "--monotone", "f3=-1", "--categorical", "kind", "--bins", 31, "--quantized"),
        ("--base", "f1"),
        ("--algorithm", "MART", "--l2", 1),
        ("--algorithm", "mcrank", "--trees", 4),
        ("--measure", "Graded(NDCG@3, CNDCG@3)", "--label", "clicks=d/train.clicks.txt",
         "--valid-label", "clicks=d/vali.clicks.txt"),
    ],
)  # fmt: skip
def test_the_command_said_repeats_the_run(arguments) -> None:
    files = ["d/train.txt", "d/vali.txt"]
    if "--categorical" in arguments:
        files = [with_kinds(file) for file in files]
    first = run("train", "--train", files[0], "--valid", files[1], *QUICK, *arguments, "-o", "model.json")
    assert first.exit_code == 0, first.stderr
    once = content("model.json")
    command = once["training"]["command"]
    assert f"this command repeats the run: {command}\n" in first.stderr
    Path("model.json").unlink()
    words = shlex.split(command)
    assert words[:2] == ["gradrank", "train"]
    assert run(*words[1:]).exit_code == 0
    # What was left open the command spells out.
    left_open = ["num_leaves", "learning_rate"] + ([] if "--subsample" in arguments else ["subsample"])
    left_open += [] if "--l2" in arguments else ["reg_lambda"]
    assert once["training"].pop("by_data") == left_open
    assert content("model.json") == once


def test_a_convention_holds_for_the_measure_that_chooses() -> None:
    assert train("--valid", "d/vali.txt", *QUICK, "--convention", "letor4").exit_code == 0
    training = content("model.json")["training"]
    assert training["measure"] == "NDCG(convention=letor4)@10"
    assert set(training["curves"]["valid"]) == {"NDCG(convention=letor4)@10"}
    assert "--measure 'NDCG(convention=letor4)@10'" in training["command"]
    assert training["objective"] == "LambdaWide(NDCG, normalize=log, gap=true, goal=NDCG@10)"


def test_the_command_tells_what_was_left_open() -> None:
    train(*QUICK)
    words = shlex.split(content("model.json")["training"]["command"])
    options = dict(itertools.pairwise(words))
    defaults = LambdaMART().get_params()
    assert options["--objective"] == "LambdaWide(NDCG, normalize=log, gap=true, goal=NDCG@10)"
    assert (options["--split"], options["--step"], options["--measure"]) == ("newton", "newton", "NDCG@10")
    for name in ("max_bin", "random_state"):
        assert options[f"--{name.replace('_', '-')}"] == str(defaults[name])
    docs, queries = (content("model.json")["training"]["data"][name] for name in ("documents", "queries"))
    assert (options["--num-leaves"], options["--learning-rate"]) == (
        str(default_leaves(queries, docs)), str(DEFAULT_RATE),
    )  # fmt: skip
    assert options["--reg-lambda"] == str(default_reg_lambda(queries))
    assert (options["--grow-policy"], options["--subsample"]) == ("lossguide", str(DEFAULT_SHARE))


def test_without_validation_the_number_of_trees_is_found_on_held_out_queries() -> None:
    assert run("make-data", "many", "--queries", 120, "--docs", 6, "--features", 3, "--seed", 2).exit_code == 0
    options = ("--train", "many/train.txt", "--rate", 0.3, "--early-stopping", 6, "--threads", 1)
    result = run("train", *options, "-o", "found.json")
    assert result.exit_code == 0, result.stderr
    assert "24 queries are held out to find the number of trees" in result.stderr
    assert "all trees are kept" not in result.stderr
    found = content("found.json")
    trees = len(load_ranker("found.json").trees)
    assert found["training"]["held_out"] == {"queries": 24, "best": trees}
    assert f"24 queries in a first training, best at step {trees}" in run("info", "found.json").stdout
    words = shlex.split(found["training"]["command"])
    assert dict(itertools.pairwise(words))["--n-estimators"] == str(trees)
    again = run(*[word if word != "found.json" else "again.json" for word in words[1:]])
    assert "there is no --valid: all trees are kept" in again.stderr
    assert "early_stopping_rounds" not in again.stderr
    assert content("again.json")["payload"] == found["payload"]
    assert "all trees are kept" in run("train", *options[:4], "--hold-out", 0, "-o", "fixed.json").stderr
    assert len(load_ranker("fixed.json").trees) == fixed_trees(0.3)


def test_seed_decides_and_threads_do_not() -> None:
    payloads = []
    for random_state, n_jobs in ((1, 1), (1, 2), (2, 1)):
        options = ("--trees", 6, "--min-docs", 5, "--subsample", 0.5, "--seed", random_state, "--threads", n_jobs)
        assert train("--valid", "d/vali.txt", *options).exit_code == 0
        payloads.append(content("model.json")["payload"])
    assert payloads[0] == payloads[1]
    assert payloads[0] != payloads[2]


def test_without_validation_all_trees_are_kept() -> None:
    result = train(*QUICK)
    assert "there is no --valid: all trees are kept" in result.stderr
    assert len(load_ranker("model.json").trees) == 12


def test_several_sets_and_label_sources() -> None:
    clicks = [f"clicks=d/{name}.clicks.txt" for name in ("train", "vali", "test")]
    result = train(
        "--label", clicks[0], "--objective", "CNDCG@3", *QUICK, "--format", "json",
        "--valid", "d/vali.txt", "--valid-label", clicks[1], "--valid", "d/test.txt", "--valid-label", clicks[2],
        "--test", "d/test.txt", "--test-label", clicks[2],
    )  # fmt: skip
    measures = json.loads(result.stdout)["measures"]
    assert list(measures) == ["train", "valid", "valid2", "test"]
    assert measures["valid2"] == measures["test"]
    training = content("model.json")["training"]
    assert training["best"] == 1 + int(np.argmax(training["curves"]["valid"]["CNDCG@3"]))


def test_base_model_is_inside() -> None:
    train(*QUICK, output="base.json")
    assert train(*QUICK, "--base", "base.json", "--valid", "d/vali.txt").exit_code == 0
    data = read_data("d/test.txt")
    both = load_ranker("model.json")
    (_, base), (_, trees) = both.parts
    assert base.predict(data).tolist() == load_ranker("base.json").predict(data).tolist()
    assert both.predict(data).tolist() == (base.predict(data) + trees.predict(data)).tolist()
    assert both.training["learner"] == "LambdaSMART"


def test_columns_in_another_order_are_found_by_name() -> None:
    pytest.importorskip("pyarrow")
    run("convert", "d/vali.txt", "vali.csv")
    lines = [line.split(",") for line in Path("vali.csv").read_text().splitlines()]
    order = [*range(len(lines[0]) - 6), *reversed(range(len(lines[0]) - 6, len(lines[0])))]
    Path("turned.csv").write_text("".join(",".join(line[i] for i in order) + "\n" for line in lines))
    models = []
    for valid in ("vali.csv", "turned.csv"):
        assert train("--valid", valid, *QUICK).exit_code == 0
        models.append(content("model.json")["training"]["curves"])
    assert models[0] == models[1]


# ---------------------------------------------------------------- options from a file
def test_config_file_and_the_command_line_wins() -> None:
    Path("run.toml").write_text(
        'train = "d/train.txt"\nvalid = ["d/vali.txt"]\ntrees = 7\nmin_docs = 5\nrate = 1\nthreads = 1\n'
        'train-measure = true\noutput = "model.json"\n[lightgbm]\nextra_trees = true\n'
    )
    assert run("train", "--config", "run.toml", "--trees", 3).exit_code == 0
    training = content("model.json")["training"]
    expected = {
        "n_estimators": 3, "min_child_samples": 5, "learning_rate": 1.0, "train_measure": True,
        "lightgbm": {"extra_trees": "true"},
    }  # fmt: skip
    assert {key: training["parameters"][key] for key in expected} == expected
    assert "--config" not in training["command"]
    assert run("train", "--config", "run.toml", "--no-train-measure", "--trees", 2).exit_code == 0
    assert content("model.json")["training"]["parameters"]["train_measure"] is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tree = 5", "run.toml: 'tree' is not an option; there are C, absent-missing, activation,"),
        ('trees = "5"', "run.toml: trees is '5', expected a whole number"),
        ("trees = true", "run.toml: trees is True, expected a whole number"),
        ("rate = []", "run.toml: rate is [], expected a number"),
        ("quantized = 1", "run.toml: quantized is 1, expected true or false"),
        ("objective = 3", "run.toml: objective is 3, expected a string"),
        ("categorical = [1]", "run.toml: categorical is 1, expected a string, or a list of them"),
        ("min-docs = 5\nmin_docs = 6", "run.toml: 'min_docs' is given twice"),
        ("trees = ", "run.toml: is not TOML: "),
        ("trees = " + "9" * 5000, "run.toml: is not TOML: "),
        ('config = "other.toml"', "run.toml: 'config' is not an option"),
    ],
)
def test_config_file_with_a_fault(text, message) -> None:
    Path("run.toml").write_text(text)
    assert error_of(train("--config", "run.toml")).startswith(message)
    assert not Path("model.json").exists()


def test_config_file_that_is_missing() -> None:
    assert error_of(train("--config", "run.toml")) == "run.toml: there is no such file"


# ---------------------------------------------------------------- interrupted runs
def test_a_killed_run_goes_on_to_the_same_model() -> None:
    arguments = [
        "train", "--train", "d/train.txt", "--valid", "d/vali.txt", "--colsample-bytree", "0.7", "--subsample", "0.7",
        *map(str, QUICK), "--checkpoint", "5", "-o", "model.json",
    ]  # fmt: skip
    assert run(*arguments).exit_code == 0
    whole = content("model.json")
    assert not Path("model.json.checkpoint").exists()
    Path("model.json").write_text("mine")
    # The process kills itself, as kill -9 would, after tree 8: the last whole state is that of tree 5.
    kill_at(8, *arguments)
    assert Path("model.json").read_text() == "mine"
    assert len(json.loads(unsealed(Path("model.json.checkpoint").read_bytes()))["model"]["payload"]["trees"]) == 5
    again = run(*arguments)
    assert again.exit_code == 0
    assert "going on from model.json.checkpoint" in again.stderr
    assert "tree 5 of" not in again.stderr
    assert content("model.json") == whole
    assert not Path("model.json.checkpoint").exists()


def test_a_checkpoint_of_another_run_is_refused(monkeypatch) -> None:
    stop_at(monkeypatch, 4)
    assert train(*QUICK, "--checkpoint", 2).exit_code == 130
    kept = Path("model.json.checkpoint").read_bytes()
    message = error_of(train(*QUICK, "--rate", 0.3, "--checkpoint", 2, "--quiet"))
    assert message.startswith("model.json.checkpoint: belongs to another run (learning_rate differ)")
    assert Path("model.json.checkpoint").read_bytes() == kept
    assert "model.json.checkpoint is left from another run and not used" in train(*QUICK).stderr


def test_ctrl_c_keeps_the_best_model() -> None:
    arguments = [
        "train", "--train", "d/train.txt", "--valid", "d/vali.txt", "--trees", "1000000", "--min-docs", "5",
        "--threads", "1", "--checkpoint", "3", "--format", "json", "-o", "model.json",
    ]  # fmt: skip
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not Path("model.json.checkpoint").exists():
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.05)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    said = json.loads(output)
    assert said["interrupted"]
    assert 3 <= said["grown"] < 1_000_000
    assert len(load_ranker("model.json").trees) == said["trees"]
    assert f"interrupted: model.json is the best model of {said['grown']:,} trees" in errors
    assert "model.json.checkpoint is kept" in errors


def stop_at(monkeypatch, number: int, times: int = 1, by: signal.Signals = signal.SIGINT) -> None:
    """Let Ctrl-C be pressed, or another signal come, during the tree of that number."""

    def press(self, step) -> None:
        for _ in range(times if step.number == number else 0):
            signal.raise_signal(by)

    monkeypatch.setattr(Progress, "__call__", press)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_the_interrupted_model_is_that_of_fewer_trees(monkeypatch, by: signal.Signals) -> None:
    assert train("--trees", 4, "--min-docs", 5, "--threads", 1, output="four.json").exit_code == 0
    stop_at(monkeypatch, 4, by=by)
    assert train(*QUICK).exit_code == 130
    assert content("model.json")["payload"] == content("four.json")["payload"]
    assert content("model.json")["training"]["interrupted"] is True


def test_a_second_ctrl_c_ends_at_once(monkeypatch) -> None:
    stop_at(monkeypatch, 4, times=2)
    assert train(*QUICK).exit_code == 130
    assert not Path("model.json").exists()


def test_ctrl_c_is_as_before_when_training_is_over() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruption():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


# ---------------------------------------------------------------- progress
def test_ten_lines_of_progress_or_none() -> None:
    options = ("--valid", "d/vali.txt", "--trees", 20, "--min-docs", 5, "--threads", 1)
    lines = [line for line in train(*options).stderr.splitlines() if line.startswith("gradrank: tree ")]
    assert [line.split()[2] for line in lines] == [str(number) for number in range(2, 21, 2)]
    assert all("NDCG@10 0." in line for line in lines)
    assert train(*options, "--quiet").stderr == ""


def test_a_terminal_shows_a_bar(monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "150")
    with Progress(quiet=False) as progress:
        for number, value in ((1, 0.25), (2, 0.5), (3, 0.375)):
            progress(Step(number, 3, {"valid": {"MAP": value}}, min(number, 2), float(number), ()))
    assert "3 of 3" in terminal.getvalue()
    assert "MAP 0.3750 (best MAP 0.5000 at tree 2)" in terminal.getvalue()


# ---------------------------------------------------------------- wrong input
NARROW = "0 qid:1 1:1 2:2\n1 qid:1 1:2 2:1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--algorithm", "ranknot"), "there is no algorithm 'ranknot'; there are lambdamart, lambdasmart, mart"),
        (("--objective", "NDGC"), "there is no measure 'NDGC'"),
        (("--measure", "NDCG@0"), "NDCG"),
        (("--trees", 0), "n_estimators is 0, expected a whole number of 1 or more"),
        (("--split", "best"), "split is 'best', expected auto, mse or newton"),
        (("--algorithm", "lambdasmart"), "lambdasmart starts from a model: give --base MODEL"),
        (("--algorithm", "mcrank", "--base", "f1"), "mcrank cannot start from a base"),
        (("--base", "bm25"), "--base is 'bm25': there is no such file, and d/train.txt has no such feature"),
        (("--base", "d/vali.txt"), "d/vali.txt: is not a model"),
        (("--base", "other.json"), "other.json: does not fit d/train.txt: "),
        (("--valid", "nowhere.txt"), "nowhere.txt: there is no such file"),
        (("--valid", "narrow.txt"), "narrow.txt: has 2 features, d/train.txt has 6 (if its last ones are all 0, "),
        (("--test", "narrow.txt"), "narrow.txt: has 2 features, d/train.txt has 6"),
        (("--objective", "NDCG(label=clicks)"), "d/train.txt: there is no label source 'clicks'; this data has"),
        (("--measure", "CNDCG@3", "--label", "clicks=d/train.clicks.txt", "--valid", "d/vali.txt"),
         "d/vali.txt: there is no label source 'clicks'"),
        (("--label", "clicks"), "--label is 'clicks', expected NAME=FILE"),
        (("--valid", "d/vali.txt", "--valid-label", "clicks"), "--valid-label is 'clicks', expected NAME=FILE"),
        (("--valid-label", "clicks=x"), "--valid-label gives 'clicks' 1 times, but there are 0 --valid"),
        (("--label", "label=equal.txt"), "d/train.txt: all labels are 1: there is nothing to learn from"),
        (("--label", "label=equal.txt", "--algorithm", "mart"), "d/train.txt: all labels are 1"),
        (("--label", "label=none.txt"), "d/train.txt: no document is judged"),
        (("--monotone", "f1=up"), "--monotone-constraints is 'f1=up', expected FEATURE=1 or FEATURE=-1"),
        (("--monotone", "f9=1"), "monotone_constraints names 'f9', which is not among the data's features"),
        (("--categorical", "f9"), "categorical feature 'f9' is not among the data's features"),
        (("--lightgbm", "x"), "--lightgbm is 'x', expected KEY=VALUE"),
    ],
)  # fmt: skip
def test_errors(arguments, message) -> None:
    Path("narrow.txt").write_text(NARROW)
    Path("equal.txt").write_text("1\n" * 720)
    Path("none.txt").write_text("\n" * 720)
    run("train", "--train", "narrow.txt", "--trees", 1, "--min-docs", 1, "--threads", 1, "-o", "other.json")
    other = json.loads(Path("other.json").read_text())
    Path("other.json").write_text(json.dumps({**other, "feature_names": ["price", "age"]}))
    before = sorted(os.listdir())
    assert error_of(train("--quiet", *arguments)).startswith(message)
    assert sorted(os.listdir()) == before


def test_output_is_checked_before_anything_is_read() -> None:
    assert error_of(train("--valid", "nowhere.txt", output="no/model.json")).startswith(
        "no/model.json: cannot be written: No such file or directory"
    )
    assert error_of(train("--valid", "nowhere.txt", output="d")) == "d: is a folder, expected a file to write"
    message = "d/train.txt: is read by this command and cannot be its output as well"
    assert error_of(train(output="d/train.txt")) == message


def test_features_that_a_letor_file_lacks_at_its_end() -> None:
    Path("narrow.txt").write_text(NARROW)
    assert train("--valid", "narrow.txt", "--n-features", 6, *QUICK).exit_code == 0
    assert "--n-features 6" in content("model.json")["training"]["command"]


# ---------------------------------------------------------------- score
@pytest.fixture
def model() -> str:
    assert train("--valid", "d/vali.txt", *QUICK).exit_code == 0
    return "model.json"


def numbers(text: str) -> list[float]:
    return [float(line) for line in text.splitlines()]


def test_scores_are_the_rankers_in_the_order_of_the_rows(model) -> None:
    lines = Path("d/test.txt").read_text().splitlines()
    # Rows of the first two queries take turns, so that the reader has to regroup them.
    mixed = [line for pair in zip(lines[:12], lines[12:24], strict=True) for line in pair]
    Path("mixed.txt").write_text("\n".join(mixed) + "\n")
    expected = load_ranker(model).predict(read_data("d/test.txt"))
    assert run("score", model, "mixed.txt", "-o", "scores.txt").stdout == ""
    assert numbers(Path("scores.txt").read_text()) == [expected[i + j] for i in range(12) for j in (0, 12)]
    for output in ([], ["-o", "-"]):
        shown = run("score", model, "mixed.txt", "--quiet", *output)
        assert shown.stdout == Path("scores.txt").read_text()


def test_scores_without_labels(model) -> None:
    pytest.importorskip("pyarrow")
    data = read_data("d/test.txt")
    rows = [",".join(["q", *map(repr, row)]) for row in data.X[:5].tolist()]
    Path("plain.csv").write_text("\n".join([",".join(["qid", *data.feature_names]), *rows]) + "\n")
    assert numbers(run("score", model, "plain.csv").stdout) == load_ranker(model).predict(data)[:5].tolist()


def test_lightgbm_and_xgboost_models() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    xgboost = pytest.importorskip("xgboost")
    data, test = read_data("d/train.txt"), read_data("d/test.txt")
    booster = lightgbm.train(
        {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5},
        lightgbm.Dataset(np.array(data.X), data.label(), group=data.sizes),
        num_boost_round=5,
    )
    booster.save_model("lightgbm.txt")
    assert (
        numbers(run("score", "lightgbm.txt", "d/test.txt").stdout) == booster.predict(test.X, raw_score=True).tolist()
    )
    matrix = xgboost.DMatrix(np.array(data.X), data.label(), group=data.sizes)
    other = xgboost.train({"objective": "rank:ndcg", "nthread": 1}, matrix, num_boost_round=5)
    other.save_model("xgboost.json")
    expected = other.predict(xgboost.DMatrix(np.array(test.X)), output_margin=True)
    # XGBoost adds leaf values in float32.
    assert numbers(run("score", "xgboost.json", "d/test.txt").stdout) == pytest.approx(expected.tolist(), rel=1e-5)
    for name, source in (("lightgbm.txt", "lightgbm"), ("xgboost.json", "xgboost")):
        facts = json.loads(run("info", name, "--format", "json").stdout)
        assert (facts["kind"], facts["trees"], facts["training"]["source"]) == ("trees", 5, source)
        assert run("importance", name).exit_code == 0
    assert train(*QUICK, "--base", "lightgbm.txt").exit_code == 0
    assert load_ranker("model.json").feature_names == data.feature_names
    assert len(numbers(run("score", "model.json", "d/test.txt").stdout)) == test.n_docs


def test_score_errors(model) -> None:
    Path("narrow.txt").write_text(NARROW)
    assert error_of(run("score", model, "narrow.txt")).startswith("narrow.txt: has 2 features, the model has 6")
    Path("wide.txt").write_text("0 qid:1 7:1\n")
    assert error_of(run("score", model, "wide.txt")) == "wide.txt: has 7 features, the model has 6"
    half = Path(model).read_bytes()
    Path("half.json").write_bytes(half[: len(half) // 2])
    message = "half.json: is not a whole model: its JSON breaks off or is damaged"
    assert error_of(run("score", "half.json", "d/test.txt", "-o", "scores.txt")) == message
    assert error_of(run("info", "half.json")) == message
    assert error_of(run("score", "no.json", "d/test.txt")) == "no.json: there is no such file"
    assert error_of(run("score", "d/vali.txt", "d/test.txt")).startswith("d/vali.txt: is not a model")
    assert error_of(run("score", model, "d/test.txt", "-o", "no/s")).startswith("no/s: cannot be written")
    assert not Path("scores.txt").exists()
    assert run("score", model, "narrow.txt", "--n-features", 6).exit_code == 0


# ---------------------------------------------------------------- info and importance
def test_info_of_a_model(model) -> None:
    ranker = load_ranker(model)
    facts = json.loads(run("info", model, "--format", "json").stdout)
    assert facts["trees"] == len(ranker.trees)
    assert facts["features"] == 6
    assert facts["training"]["learner"] == "LambdaMART"
    assert facts["training"]["data"] == {"queries": 60, "documents": 720, "features": 6, "dtype": "float32"}
    shown = run("info", model).stdout
    curve = ranker.training["curves"]["valid"]["NDCG@10"]
    best = f"{curve[0]:.4f} at step 1, best {max(curve):.4f} at step {len(ranker.trees)}, last {curve[-1]:.4f}"
    for text in ("LambdaMART", "LambdaWide(NDCG, normalize=log, gap=true, goal=NDCG@10)", "version of lightgbm", best):
        assert text in shown
    assert shown.endswith(f"command\n{ranker.training['command']}\n")


def test_info_of_a_sum_and_of_classes() -> None:
    train(*QUICK, "--base", "f1", output="sum.json")
    train(*QUICK, "--algorithm", "mcrank", "--trees", 2, output="classes.json")
    for name, kind in (("sum.json", "weighted_sum"), ("classes.json", "expected_grade")):
        assert json.loads(run("info", name, "--format", "json").stdout)["kind"] == kind
        assert "features used" in run("info", name).stdout
        assert run("importance", name).exit_code == 0


def test_importance_by_gain_and_split(model) -> None:
    ranker = load_ranker(model)
    for kind in ("gain", "split"):
        rows = json.loads(run("importance", model, "--kind", kind, "--format", "json").stdout)
        assert {row["feature"]: row[kind] for row in rows} == dict(
            zip(ranker.feature_names, ranker.feature_importance(kind).tolist(), strict=True)
        )
        assert [row[kind] for row in rows] == sorted((row[kind] for row in rows), reverse=True)
        assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert len(json.loads(run("importance", model, "--top", 2, "--format", "json").stdout)) == 2


def test_importance_by_permutation(model) -> None:
    from gradrank.evaluation.importance import permutation_importance
    from gradrank.measures import parse_measure

    arguments = ("importance", model, "--kind", "permutation", "--data", "d/test.txt", "--format", "json")
    rows = json.loads(run(*arguments, "-m", "MAP", "--repeats", 2, "--seed", 3).stdout)
    data, measure = read_data("d/test.txt"), parse_measure("MAP")
    found = permutation_importance(load_ranker(model), data, measure, repeats=2, random_state=3)
    assert {row["feature"]: row["drop of MAP"] for row in rows} == dict(
        zip(data.feature_names, found.mean.tolist(), strict=True)
    )
    assert "drop of NDCG@10" in json.loads(run(*arguments).stdout)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "permutation"), "--kind permutation needs data to measure on: give --data FILE"),
        (("--data", "d/test.txt"), "--data, --measure and --convention go with --kind permutation, not with gain"),
        (("--kind", "permutation", "--data", "d/test.txt", "-m", "CNDCG@3"),
         "d/test.txt: there is no label source 'clicks'"),
    ],
)  # fmt: skip
def test_importance_errors(model, arguments, message) -> None:
    assert error_of(run("importance", model, *arguments)).startswith(message)


def test_importance_of_a_model_without_trees() -> None:
    from gradrank.models.linear import LinearRanker

    LinearRanker([1.0, 2.0]).save("linear.json")
    assert "--kind permutation works for all" in error_of(run("importance", "linear.json"))
