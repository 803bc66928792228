"""Every format declares what its reader can be told, and every command that reads data offers all of it."""

from __future__ import annotations

import inspect
import json
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from gradrank.cli.main import app
from gradrank.cli.reading import Reading
from gradrank.data.artificial import make_data
from gradrank.data.formats.file_formats import FORMATS, reader_options
from gradrank.data.formats.registry import read_data, write_data
from gradrank.data.frames import to_frame
from gradrank.errors import DataError
from gradrank.measures import parse_measure
from gradrank.models.registry import load_ranker

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

READING = {
    "train", "sweep", "score", "evaluate", "compare", "combine", "adapt", "auto", "report", "constructions", "check",
    "optimality", "importance", "info", "convert", "split", "clicks", "profile", "unbiased", "counterfactual",
    "experiment run", "label export", "explain", "tune",
}  # fmt: skip


def commands(group: object, prefix: str = "") -> dict[str, object]:
    found = {}
    for name, command in group.commands.items():
        full = f"{prefix}{name}"
        found |= commands(command, f"{full} ") if hasattr(command, "commands") else {full: command}
    return found


COMMANDS = commands(typer.main.get_command(app))


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_options_are_the_arguments_of_the_reader(form):
    reader = inspect.signature(form.function(form.read)).parameters
    arguments = {
        name: parameter.default
        for name, parameter in reader.items()
        if parameter.kind is parameter.KEYWORD_ONLY and not name.startswith("_") and name != "n_jobs"
    }
    assert {option.name: option.default for option in form.options} == arguments


def test_an_option_has_one_meaning():
    flags = [option.flag for option in reader_options()]
    assert len(set(flags)) == len(flags)


def test_commands_that_read_data_are_known():
    assert {name for name, command in COMMANDS.items() if any("--from" in p.opts for p in command.params)} == READING


@pytest.mark.parametrize("name", sorted(READING))
def test_every_command_has_all_options(name):
    flags = {flag for parameter in COMMANDS[name].params for flag in parameter.opts}
    assert {option.flag for option in reader_options()} <= flags


# ---------------------------------------------------------------------- in use
ROLES = ["--qid-column", "session", "--label-column", "grade=stars", "--ignore-column", "title"]


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Tables whose columns have names of their own, rows in any order."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("train", "vali", "test")):
        data = make_data(40, n_docs=(4, 8), n_features=5, random_state=number)
        frame = to_frame(data).rename(columns={"qid": "session", "label": "stars"})
        frame["title"] = "a"
        frame = frame.sample(frac=1.0, random_state=number)
        frame.to_csv(f"{name}.csv", index=False)
        frame.to_csv(f"{name}.txt.csv", index=False, sep=";")
        frame.to_parquet(f"{name}.parquet", index=False)
    (tmp_path / "letor.txt").write_text("0 qid:1 1:1\n1 qid:1 1:2\n")
    return tmp_path


def trained(name: str = "model.json", *more: object) -> None:
    result = run("train", "--train", "train.csv", "--valid", "vali.parquet", "-o", name, "--trees", 5, *ROLES, *more)
    assert result.exit_code == 0, result.output


def test_the_command_that_repeats_a_run_tells_how_data_was_read(folder):
    trained()
    command = shlex.split(load_ranker("model.json").training["command"])
    at = [command.index(flag) for flag in ("--qid-column", "--label-column", "--ignore-column")]
    assert [command[place + 1] for place in at] == ["session", "grade=stars", "title"]
    Path("model.json").rename("first.json")
    assert run(*command[1:]).exit_code == 0
    data = read_data("test.csv", qid="session", labels={"grade": "stars"}, ignore=["title"])
    assert np.array_equal(load_ranker("first.json").predict(data), load_ranker("model.json").predict(data))


def test_every_command_reads_such_tables(folder):
    trained()
    trained("other.json", "--seed", 3)
    assert run("score", "model.json", "test.csv", "-o", "a.txt", *ROLES).exit_code == 0
    assert run("score", "other.json", "test.parquet", "-o", "b.txt", *ROLES).exit_code == 0
    data = read_data("test.csv", qid="session", labels={"grade": "stars"}, ignore=["title"])
    assert np.array_equal(np.loadtxt("a.txt"), load_ranker("model.json").predict(data))
    for arguments in (
        ["evaluate", "test.csv", "--scores", "a.txt", *ROLES],
        ["compare", "test.parquet", "--scores", "a.txt", "--scores", "b.txt", *ROLES],
        ["report", "test.csv", "--scores", "a.txt", "-o", "report.html", *ROLES],
        ["combine", "a.txt", "b.txt", "--data", "test.csv", *ROLES],
        ["importance", "model.json", "--kind", "permutation", "--data", "test.csv", *ROLES],
        ["info", "test.csv", *ROLES],
        ["info", "test.txt.csv", "--delimiter", ";", *ROLES],
        ["convert", "test.csv", "test.gradrank", *ROLES],
        ["split", "test.parquet", "--fractions", "0.5,0.5", "-o", "parts", *ROLES],
        ["adapt", "model.json", "--data", "test.csv", "--trees", 2, "--folds", 3, *ROLES],
    ):
        result = run(*arguments)
        assert result.exit_code == 0, (arguments, result.output)
    assert np.array_equal(read_data("test.gradrank").X, data.X)
    shown = run("evaluate", "test.csv", "--scores", "a.txt", "--format", "json", "-m", "NDCG@5", *ROLES)
    expected = parse_measure("NDCG@5").mean(load_ranker("model.json").predict(data), data)
    assert json.loads(shown.stdout)["a.txt"]["NDCG@5"] == pytest.approx(expected)


def test_options_from_a_config_file(folder):
    Path("run.toml").write_text(
        'train = "train.csv"\nqid-column = "session"\nlabel-column = ["grade=stars"]\n'
        'ignore-column = "title"\ntrees = 3\n'
    )
    result = run("train", "--config", "run.toml", "-o", "model.json")
    assert result.exit_code == 0, result.output
    assert load_ranker("model.json").feature_names == ("f1", "f2", "f3", "f4", "f5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["letor.txt", "--qid-column", "q"],
            "letor.txt: --qid-column goes with the formats parquet, arrow, csv, not with",
        ),
        (["test.csv", "--zero-based"], "test.csv: --zero-based goes with the formats letor, not with csv"),
        (["test.parquet", "--delimiter", ";"], "test.parquet: --delimiter goes with the formats csv, not with parquet"),
        (["d.gradrank", "--missing"], "d.gradrank: --missing goes with the formats letor, not with binary"),
        (["test.csv", "--label-column", "=x"], "--label-column is '=x', expected NAME[=COLUMN]"),
        (["test.csv", "--label-column", "a", "--label-column", "a=b"], "--label-column gives the label 'a' twice"),
        (["test.csv"], "there is no column 'qid' or 'query_id', and qid= (--qid-column) names no other"),
        (["test.csv", "--qid-column", "session"], "test.csv: feature column 'title' holds 'a' in row 1"),
        (["test.csv", *ROLES, "--strict-order"], "are not consecutive"),
        (["test.csv", "--from", "excel"], "there is no format 'excel'"),
    ],
)
def test_what_does_not_fit_is_one_clear_error(folder, arguments, message):
    write_data(make_data(2), "d.gradrank")
    result = run("info", *arguments)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_columns_left_out_are_said_as_a_note(folder):
    header, *rows = Path("test.csv").read_text().splitlines()
    Path("more.csv").write_text("\n".join([f"{header},clicks", *(f"{row},1" for row in rows)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run("info", "more.csv", *ROLES)
    assert result.exit_code == 0
    assert "note: more.csv: column 'clicks' looks like" in result.stderr
    assert "clicks" not in run("info", "more.csv", *ROLES, "--ignore-column", "clicks").stderr
    kept = run("info", "more.csv", *ROLES, "--keep-column", "clicks", "--format", "json")
    assert json.loads(kept.stdout)["features"] == 6


def test_options_do_not_go_with_qrels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("qrels").write_text("1 0 a 1\n1 0 b 0\n")
    Path("run").write_text("1 Q0 a 1 2.0 x\n1 Q0 b 2 1.0 x\n")
    assert run("evaluate", "qrels", "--scores", "run").exit_code == 0
    result = run("evaluate", "qrels", "--scores", "run", "--missing")
    assert (result.exit_code, result.stderr) == (2, "gradrank: error: qrels: --missing does not go with TREC qrels\n")


def test_a_file_that_does_not_take_an_option_is_named():
    with pytest.raises(DataError, match=r"^a\.csv: --zero-based goes with"):
        Reading(None, {"zero_based": True}).check(FORMATS[3], Path("a.csv"))
