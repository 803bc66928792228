"""Changed files that a command left for the next one: checkpoints, members of portfolios, reports, settings."""

from __future__ import annotations

import random
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import typer

from gradrank.cli.main import app
from gradrank.data.clicks.click_log import click_log
from gradrank.data.clicks.label_files import read_click_labels, write_click_labels
from gradrank.data.clicks.labels import click_labels
from gradrank.data.ranking_data import RankingData
from gradrank.data.texts import read_texts
from gradrank.errors import DataError
from gradrank.evaluation.evaluate import evaluate
from gradrank.experiments.cells import kept_values
from gradrank.learners.algorithms import algorithm
from gradrank.models.ranker import Ranker
from gradrank.report.page import write_report
from gradrank.report.several import read_report
from gradrank.report.summary import MARK
from gradrank.selection.crossfit import Fitted
from gradrank.selection.kept import keep, kept
from gradrank.serve.api_keys import load_keys
from tests.fuzz.data import change_lines, named, small
from tests.fuzz.mutations import Mutation, changed, changed_json, either
from tests.fuzz.targets import Target
from tests.support.rankers import example_rankers

_SMALL = {
    "lambdamart": {"n_estimators": 3, "num_leaves": 3, "min_child_samples": 1},
    "mcrank": {"n_estimators": 3, "num_leaves": 3, "min_child_samples": 1},
    "lambdarank": {"epochs": 3, "hidden_layer_sizes": 2},
}
_RUN = {"member": "mart", "data": "0123"}


@cache
def lists() -> RankingData:
    """Something to learn, at once."""
    chance = np.random.default_rng(0)
    X = chance.normal(size=(24, 3)).astype(np.float32)
    return RankingData.from_arrays(X, np.clip(np.round(X[:, 0] + 1), 0, 2), qid=np.repeat(np.arange(6), 4))


def fit(name: str, checkpoint: Path, **more: Any) -> Ranker:
    """Train, going on from a checkpoint if there is one."""
    settings = {**_SMALL[name], "checkpoint": checkpoint, "checkpoint_every": 1, "random_state": 0, "n_jobs": 1, **more}
    ranker: Ranker = algorithm(name)(**settings).fit(lists(), valid=lists()).ranker_
    return ranker


@cache
def checkpoint(name: str) -> bytes:
    """What a training left that was to make fewer steps than the one that goes on."""
    path = Path(mkdtemp()) / "c"
    fit(name, path, **{"epochs" if "epochs" in _SMALL[name] else "n_estimators": 2})
    return path.read_bytes()


def resumed(name: str) -> Any:
    """Goes on from a changed checkpoint."""

    def attempt(content: bytes, folder: Path) -> None:
        path = folder / "checkpoint"
        path.write_bytes(content)
        ranker = named(path, lambda: fit(name, path))
        assert np.isfinite(ranker.predict(lists().X)).all()

    return attempt


@cache
def member_bytes() -> bytes:
    """A member of a portfolio."""
    path = Path(mkdtemp()) / "m.json"
    keep(Fitted(example_rankers()["linear"], np.array([0.5, 0.6]), 1.5, False), _RUN, path)
    return path.read_bytes()


@cache
def report_bytes() -> bytes:
    """A report's page, with what it tells of itself and little else."""
    path = Path(mkdtemp()) / "r.html"
    scores = {"a": lists().X[:, 0], "b": lists().X[:, 1]}
    write_report(path, evaluate(lists(), scores, "NDCG@3"))
    text = path.read_text()
    return text[text.rfind(MARK) :].encode()


def change_report(content: bytes, chance: random.Random) -> bytes:
    """Change what a report tells of itself within the grammar of JSON."""
    head, rest = content[: len(MARK)], content[len(MARK) :]
    end = rest.index(b"</script>")
    return head + changed_json(rest[:end], chance) + rest[end:]


@cache
def label_bytes() -> bytes:
    """Labels from clicks."""
    path = Path(mkdtemp()) / "clicks.tsv"
    write_click_labels(click_labels(click_log([("q", ["a", "b"], ["a"]), ("r", ["c"], [])])), path)
    return path.read_bytes()


@cache
def cell_bytes() -> bytes:
    """What is kept of a training of an experiment."""
    file = BytesIO()
    np.savez(file, **{"NDCG@3": np.linspace(0, 1, 5), "MAP": np.full(5, np.nan)})
    return file.getvalue()


CONFIG = b"""trees = 5
rate = 0.1
quantized = true
objective = "NDCG@10"  # a comment
categorical = ["a", "b"]
min-docs = 7
"""


@cache
def train_command() -> Any:
    """The command ``gradrank train``, which reads options from a file."""
    return typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]


def configured(path: Path) -> Any:
    """The options of a command with a file of them."""
    words = ["--config", str(path), "--train", "a", "-o", "b"]
    try:
        return train_command().make_context("train", words)
    except Exception as error:
        if not hasattr(error, "format_message"):  # a value that Typer does not take, which is said in one line
            raise
        raise DataError(error.format_message(), path=path) from None


def targets() -> list[Target]:
    """One for every form of file."""
    both: Mutation = either(changed, changed_json)
    texts = {"tsv": b"7\tred shoes\n8\tblue\n", "csv": b'7,"red, blue"\n8,x\n', "jsonl": b'{"id": 7, "text": "red"}\n'}
    return [
        *(Target(f"kept/checkpoint {name}", lambda name=name: {"file": checkpoint(name)}, resumed(name))
          for name in _SMALL),
        Target("kept/member", lambda: {"file": member_bytes()}, small(lambda path: kept(_RUN, path), "m.json"), both),
        Target("kept/report", lambda: {"file": report_bytes()}, small(read_report, "r.html"),
               either(changed, change_report)),
        Target("kept/click labels", lambda: {"file": label_bytes()}, small(read_click_labels, "l.tsv")),
        *(Target(f"kept/texts {form}", lambda content=content: {"file": content}, small(read_texts, f"t.{form}"),
                 either(changed, change_lines) if form == "jsonl" else changed) for form, content in texts.items()),
        Target("kept/api keys", lambda: {"file": b"0123456789abcdef # mine\n\nABCDEFGHIJKLMNOP\n"},
               small(load_keys, "keys")),
        Target("kept/config", lambda: {"file": CONFIG}, small(configured, "c.toml")),
        Target("kept/cell", lambda: {"file": cell_bytes()},
               small(lambda path: kept_values(path, ("NDCG@3", "MAP")), "c.npz")),
    ]  # fmt: skip
