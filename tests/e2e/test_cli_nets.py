"""Nets on the command line: trained, repeated, continued, described; options that do not go together."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import typer

from gradrank.cli.main import app
from gradrank.data.formats.registry import read_data
from gradrank.learners import LambdaRank
from gradrank.learners.algorithms import ALGORITHMS
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.registry import load_ranker
from tests.support.commands import enter, error_of, kill_at, make_files, run
from tests.support.model_files import content

QUICK = ("--epochs", 4, "--batch", 8, "--threads", 1)


def train(algorithm: str, *arguments: object, output: str = "model.json"):
    return run("train", "--train", "d/train.txt", "--algorithm", algorithm, *arguments, "-o", output)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return make_files(tmp_path_factory.mktemp("made") / "d", queries=40)


@pytest.fixture(autouse=True)
def folder(made, tmp_path, monkeypatch) -> Path:
    return enter(tmp_path, made, monkeypatch)


@pytest.mark.parametrize(
    "arguments",
    [
        ("lambdarank", "--objective", "MAP", "--hidden", 10, "--measure", "NDCG@5"),
        ("lambdarank", "--objective", "Lambda(NDCG)", "--hidden", 0, "--optimizer", "donmez", "--restart", 2),
        ("lambdarank", "--construction", "spring-smooth", "--hidden", "5,3", "--rates", "0.1,0.01"),
        ("ranknet", "--hidden", 3, "--batch", "full", "--optimizer", "sgd", "--rate", 0.01, "--train-measure"),
        ("listnet", "--scaling", "log", "--weight-decay", 0.5, "--early-stopping", 2, "--seed", 7),
        ("listmle", "--k", 3, "--activation", "tanh", "--device", "cpu"),
        ("regressionnet", "--hidden", 0),
    ],
)
def test_the_command_said_repeats_the_run(arguments) -> None:
    first = train(arguments[0], "--valid", "d/vali.txt", *QUICK, *arguments[1:])
    assert first.exit_code == 0, first.stderr
    once = content("model.json")
    command = once["training"]["command"]
    assert f"this command repeats the run: {command}\n" in first.stderr
    Path("model.json").unlink()
    assert run(*shlex.split(command)[1:]).exit_code == 0
    assert content("model.json") == once


def test_train_score_evaluate_agree() -> None:
    trained = train("lambdarank", "--valid", "d/vali.txt", "--test", "d/test.txt", *QUICK, "--format", "json")
    said = json.loads(trained.stdout)
    for key, name in (("train", "train"), ("valid", "vali"), ("test", "test")):
        assert run("score", "model.json", f"d/{name}.txt", "-o", "scores.txt").exit_code == 0
        shown = run("evaluate", f"d/{name}.txt", "--scores", "scores.txt", "-m", "NDCG@10", "--format", "json")
        assert json.loads(shown.stdout)["scores.txt"] == said["measures"][key]
    training = content("model.json")["training"]
    assert said["measures"]["valid"]["NDCG@10"] == max(training["curves"]["valid"]["NDCG@10"])
    assert (said["epochs"], said["grown"], said["learner"]) == (training["best"], 4, "LambdaRank")
    table = train("lambdarank", "--valid", "d/vali.txt", *QUICK).stdout
    assert any(line.split() == ["epochs", str(said["epochs"]), "of", "4"] for line in table.splitlines())


def test_it_is_what_the_library_trains() -> None:
    arguments = ("--objective", "MAP", "--hidden", 5, "--rate", 0.05, "--seed", 3)
    assert train("lambdarank", "--valid", "d/vali.txt", *QUICK, *arguments).exit_code == 0
    data = {name: read_data(f"d/{name}.txt") for name in ("train", "vali")}
    learner = LambdaRank("MAP", hidden_layer_sizes=5, learning_rate=0.05, random_state=3, epochs=4, batch_size=8)
    expected = learner.fit(data["train"], valid=data["vali"]).ranker_
    assert content("model.json")["payload"] == expected.to_dict()["payload"]


def test_files_and_kinds() -> None:
    assert train("lambdarank", *QUICK, output="net.safetensors").exit_code == 0
    assert train("lambdarank", *QUICK).exit_code == 0
    assert train("lambdarank", "--hidden", 0, *QUICK, output="linear.json").exit_code == 0
    kinds = {name: type(load_ranker(name)) for name in ("net.safetensors", "model.json", "linear.json")}
    assert kinds == {"net.safetensors": NetRanker, "model.json": NetRanker, "linear.json": LinearRanker}
    both = [run("score", name, "d/test.txt").stdout for name in ("net.safetensors", "model.json")]
    assert both[0] == both[1]
    facts = json.loads(run("info", "net.safetensors", "--format", "json").stdout)
    assert (facts["kind"], facts["hidden"], facts["features"]) == ("net", "10", 6)
    shown = run("info", "net.safetensors").stdout
    for text in ("hidden", "LambdaRank", "version of torch", "effective pairs", "best step"):
        assert text in shown
    assert run("importance", "model.json", "--kind", "permutation", "--data", "d/test.txt").exit_code == 0


def test_trees_may_start_from_a_net() -> None:
    assert train("lambdarank", *QUICK).exit_code == 0
    arguments = ("--base", "model.json", "--trees", 3, "--min-docs", 5, "--threads", 1, "-o", "both.json")
    assert run("train", "--train", "d/train.txt", *arguments).exit_code == 0
    data = read_data("d/test.txt")
    (_, net), (_, trees) = load_ranker("both.json").parts
    assert net.predict(data).tolist() == load_ranker("model.json").predict(data).tolist()
    assert load_ranker("both.json").predict(data).tolist() == (net.predict(data) + trees.predict(data)).tolist()


def test_constructions_of_trees() -> None:
    arguments = ("--construction", "spring-smooth", "--trees", 3, "--min-docs", 5, "--threads", 1)
    assert run("train", "--train", "d/train.txt", *arguments, "-o", "trees.json").exit_code == 0
    assert "construction=spring-smooth" in content("trees.json")["training"]["objective"]


def test_progress_notes_and_silence() -> None:
    loud = train("regressionnet", *QUICK, "--hidden", 0, "--optimizer", "sgd", "--rate", "1000", "--epochs", 20)
    assert "there is no --valid: all epochs are kept" in loud.stderr
    lines = [line for line in loud.stderr.splitlines() if line.startswith("gradrank: epoch ")]
    assert [line.split()[2].rstrip(",") for line in lines] == [str(number) for number in range(2, 21, 2)]
    assert "scores exploded at learning rate 1000: started anew at 100" in loud.stderr
    assert train("lambdarank", *QUICK, "--quiet").stderr == ""


def test_a_killed_run_goes_on_to_the_same_model() -> None:
    arguments = [
        "train", "--train", "d/train.txt", "--valid", "d/vali.txt", "--algorithm", "lambdarank", "--epochs", "9",
        "--batch", "8", "--threads", "1", "--checkpoint", "3", "-o", "model.json",
    ]  # fmt: skip
    assert run(*arguments).exit_code == 0
    whole = content("model.json")
    Path("model.json").unlink()
    kill_at(8, *arguments)
    assert not Path("model.json").exists()
    again = run(*arguments)
    assert again.exit_code == 0, again.stderr
    assert "going on from model.json.checkpoint" in again.stderr
    assert content("model.json") == whole
    assert not Path("model.json.checkpoint").exists()


def test_config_files_take_numbers_and_words() -> None:
    for hidden, batch in (("7", '"full"'), ('"4,3"', "8")):
        Path("run.toml").write_text(
            f'train = "d/train.txt"\nalgorithm = "lambdarank"\nepochs = 2\nhidden = {hidden}\nbatch = {batch}\n'
        )
        assert run("train", "--config", "run.toml", "-o", "model.json").exit_code == 0
        parameters = content("model.json")["training"]["parameters"]
        assert (str(parameters["hidden_layer_sizes"]), str(parameters["batch_size"])) == (
            hidden.strip('"'),
            batch.strip('"'),
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lambdarank", "--leaves", 5), "--num-leaves does not go with lambdarank; it has --"),
        (("lambdamart", "--hidden", 0), "--hidden-layer-sizes does not go with lambdamart; it has --objective,"),
        (("lambdamart", "--k", 3), "--k does not go with lambdamart"),
        (("ranknet", "--base", "f1"), "--base does not go with ranknet"),
        (("listnet", "--no-quantized"), "--quantized does not go with listnet"),
        (("mart", "--checkpoint", 3, "--epochs", 3), "--epochs does not go with mart"),
        (("ranknet", "--objective", "MAP"), "RankNet learns by RankNet, not by Lambda(MAP"),
        (("ranknet", "--construction", "spring-smooth"), "a construction makes λ's of a measure"),
        (("lambdarank", "--construction", "string"), "there is no construction 'string'"),
        (("lambdarank", "--hidden", "-3"), "hidden_layer_sizes is -3, expected a number of nodes"),
        (("lambdarank", "--hidden", "a"), "hidden_layer_sizes is 'a'"),
        (("lambdarank", "--rate", "0"), "learning_rate is 0.0, expected a positive number"),
        (("lambdarank", "--rates", "0.1,0.2"), "several learning rates need validation data"),
        (("lambdarank", "--optimizer", "x"), "optimizer is 'x', expected adam, sgd or donmez"),
        (("lambdarank", "--device", "x"), "device is 'x', expected auto, cpu or cuda"),
        (("lambdarank", "--label", "label=equal.txt"), "d/train.txt: all labels are 1"),
    ],
)
def test_errors(arguments, message) -> None:
    Path("equal.txt").write_text("1\n" * 480)
    assert error_of(train(*arguments, "--quiet")).startswith(message)
    assert not Path("model.json").exists()


def test_the_help_names_every_algorithm() -> None:
    command = typer.main.get_command(app).commands["train"]
    (option,) = (item for item in command.params if "--algorithm" in item.opts)
    assert set(ALGORITHMS) <= set((option.help or "").replace(",", " ").replace(".", " ").replace(";", " ").split())


def test_every_parameter_of_the_nets_that_is_plain_has_an_option() -> None:
    command = typer.main.get_command(app).commands["train"]
    known = {name for item in command.params for name in item.opts}
    apart = {"module", "checkpoint_every", "callbacks", "verbose"}
    wanted = {f"--{name.replace('_', '-')}" for name in LambdaRank().get_params() if name not in apart}
    assert wanted <= known


def test_seed_decides_and_threads_do_not() -> None:
    payloads = []
    for random_state, n_jobs in ((1, 1), (1, 2), (2, 1)):
        options = ("--epochs", 3, "--hidden", 3, "--seed", random_state, "--threads", n_jobs)
        assert train("lambdarank", "--valid", "d/vali.txt", *options).exit_code == 0
        payloads.append(content("model.json")["payload"])
    assert payloads[0] == payloads[1] != payloads[2]
