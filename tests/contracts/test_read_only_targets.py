"""What every command that writes promises where it cannot: exit code 2, one line that names the path, nothing left.

Where it cannot: folders that may not be written, what is no folder, and a disk without room for one more byte.
"""

from __future__ import annotations

import inspect
import re
import shutil
import tempfile
import typing
from pathlib import Path
from typing import Any

import pytest

from gradrank import make_splits
from gradrank.data.clicks.click_log import write_click_log
from gradrank.data.clicks.simulate import simulate_log
from gradrank.data.formats.registry import write_data
from gradrank.labeling.project.assignment import assign
from gradrank.labeling.project.backup import backup
from gradrank.labeling.project.importing import import_files
from gradrank.labeling.project.store import create_project
from gradrank.models.linear import LinearRanker
from tests.support.commands import COMMANDS, content_of, error_of, run
from tests.support.disks import file_size_limit, read_only

CLOSED, FILE, OPEN = "closed", "file", "open"
"""A folder that cannot be written, a file, below which nothing can be, and a folder on a disk that is full."""

TRAIN = ("--train", "data.txt", "--trees", 1, "--min-docs", 1, "--threads", 1, "-q")
TIERS = ("--objective", "Tiered(NDCG, CNDCG(label=clicks))", "--weights", 0.3, "-m", "NDCG@3", "-m", "CNDCG@3")
CLICKS = ("--label", "clicks=scores.txt", "--valid-label", "clicks=scores.txt")
SWEEP = (*TRAIN, "--valid", "data.txt", *TIERS, *CLICKS)
TUNE = ("--train", "data.txt", "--trials", 1, "--folds", 2, "--trees", 1, "--processes", 1, "-q")
AUTO = ("--train", "data.txt", "--budget", "1s", "--most", 1, "--folds", 2, "--processes", 1, "-q")
UNBIASED = ("log.jsonl", "--train", "data.csv", "--trees", 1, "-q")
STUDY = ("--study", "--n", 12, "--k", 3, "--runs", 1)

# Arguments with one path in PLACE, where nothing can be written; what else they write could be. There are data.txt and
# data.csv (the same, the latter with document ids), scores.txt, model.json and other.json (linear), trees.json (a
# trained one), report.html, log.jsonl (clicks), project.db and copy.db (labeling).
NEW: dict[str, list[tuple[object, ...]]] = {
    "train": [(*TRAIN, "-o", "PLACE/new.json"), (*TRAIN, "--checkpoint", 1, "-o", "PLACE/new.json")],
    "sweep": [(*SWEEP, "-o", "PLACE/new.json"), (*SWEEP, "-o", "new.json", "--plot", "PLACE/new.html")],
    "score": [("model.json", "data.txt", "-o", "PLACE/new.txt")],
    "serve": [
        ("model.json", "--port", 0, "--log", "PLACE/new.jsonl"),
        ("model.json", "--port", 0, "--access-log", "PLACE/new.jsonl"),
        ("model.json", "--port", 0, "--log", "new.jsonl", "--access-log", "PLACE/new.jsonl"),
    ],
    "evaluate": [("data.txt", "--scores", "scores.txt", "--per-query", "PLACE/new.csv")],
    "combine": [
        ("model.json", "other.json", "--data", "data.txt", "-o", "PLACE/new.json"),
        ("model.json", "other.json", "--data", "data.txt", "-o", "new.json", "--plot", "PLACE/new.html"),
    ],
    "adapt": [("trees.json", "--data", "data.txt", "--trees", 1, "--folds", 3, "-q", "-o", "PLACE/new.json")],
    "auto": [
        (*AUTO, "-o", "PLACE/new.json"),
        (*AUTO, "-o", "new.json", "--members", "PLACE/new"),
        (*AUTO, "-o", "new.json", "--report", "PLACE/new.html"),
    ],
    "tune": [
        (*TUNE, "-o", "PLACE/new.json"),
        (*TUNE, "-o", "new.json", "--config", "PLACE/new.toml"),
        (*TUNE, "-o", "new.json", "--storage", "PLACE/new.db"),
        (*TUNE, "-o", "new.json", "--report", "PLACE/new.html"),
    ],
    "report": [("data.txt", "--scores", "scores.txt", "-q", "-o", "PLACE/new.html")],
    "compare-reports": [("report.html", "report.html", "-q", "-o", "PLACE/new.html")],
    "optimality": [
        ("model.json", "data.txt", "--climb", "-q", "-o", "PLACE/new.json"),
        ("model.json", "data.txt", "-q", "--plot", "PLACE/new.html"),
        ("model.json", "data.txt", "-q", "--plot", "new.html", "--json", "PLACE/new.json"),
    ],
    "explain": [("model.json", "data.txt", "--query", 1, "-q", "-o", "PLACE/new.html")],
    "diagnose": [("trees.json", "-o", "PLACE/new.html"), ("trees.json", "-o", "PLACE/new")],
    "info": [("trees.json", "--format", "html", "-o", "PLACE/new.html")],
    "profile": [("data.txt", "-o", "PLACE/new.json")],
    "check": [("trees.json", "data.txt", "-q", "--html", "PLACE/new.html")],
    "convert": [("data.txt", f"PLACE/new.{ending}") for ending in ("csv", "txt.gz", "parquet", "arrow", "gradrank")],
    "export": [("trees.json", "--to", "c", "-o", "PLACE/new.c"), ("trees.json", "--to", "vespa", "-o", "PLACE/new")],
    "import": [("trees.json", "-o", "PLACE/new.json")],
    "split": [("data.txt", "--folds", 5, "-o", "PLACE/new"), ("data.txt", "--fractions", "0.5,0.5", "-o", "PLACE")],
    "clicks": [
        ("log.jsonl", "-q", "-o", "PLACE/new.tsv"),
        ("log.jsonl", "-q", "--join", "data.csv", "--out", "PLACE/new.csv"),
        ("log.jsonl", "-q", "--join", "data.csv", "--out", "PLACE/new.txt"),
        ("log.jsonl", "-q", "--join", "data.csv", "--out", "new.csv", "-o", "PLACE/new.tsv"),
    ],
    "propensity": [("log.jsonl", "-q", "-o", "PLACE/new.json")],
    "unbiased": [
        (*UNBIASED, "-o", "PLACE/new.json"),
        (*UNBIASED, "-o", "new.json", "--naive", "PLACE/new.json"),
    ],
    "make-data": [("PLACE/new", "--queries", 6), ("PLACE", "--queries", 6)],
    "experiment run": [
        ("svore-1", "--scale", "tiny", "-q", "--out", "PLACE/new"),
        ("svore-1", "--scale", "tiny", "-q", "--out", "PLACE"),
        ("wu-fig2", "--scale", "tiny", "-q", "--out", "new", "--plot", "PLACE/new.svg"),
    ],
    "label init": [("PLACE/new.db", "-q")],
    "label backup": [("project.db", "-o", "PLACE/new.db")],
    "label restore": [("copy.db", "PLACE/new.db", "-q")],
    "label report": [("project.db", "-o", "PLACE/new.json")],
    "label export": [("project.db", "--to", to, "-o", "PLACE/new.txt") for to in ("topk", "qrels", "events")]
    + [("project.db", "--to", "preferences", "-o", "PLACE/new.csv")],
    "label simulate": [(*STUDY, "--html", "PLACE/new.html")],
}
# Done by processes of their own, to whom permissions are nothing if they belong to root.
ELSEWHERE: dict[str, list[tuple[object, ...]]] = {
    "serve": [
        ("model.json", "--port", 0, "--log", "file/new.jsonl", "--processes", 2, "-q"),
        ("model.json", "--port", 0, "--access-log", "file/new.jsonl", "--processes", 2, "-q"),
    ],
    "train": [(*TRAIN, "--workers", 1, "-o", "file/new.json")],
    "score": [("model.json", "data.txt", "--workers", 1, "-q", "-o", "file/new.txt")],
    "convert": [("data.txt", "file/new", "--to", "csv", "--workers", 1, "-q")],
    "auto": [(*AUTO, "--processes", 2, "-o", "new.json", "--members", "file/new")],
}
# What is changed in its place: there is a copy of everything in CLOSED.
CHANGED: dict[str, list[tuple[object, ...]]] = {
    "train": [(*TRAIN, "-o", "closed/trees.json")],
    "convert": [("data.txt", "closed/data.csv"), ("data.txt", "closed/binary.gradrank")],
    "serve": [("model.json", "--port", 0, "--log", "closed/log.jsonl")],
    "auto": [(*AUTO, "-o", "new.json", "--members", "closed")],
    "tune": [(*TUNE, "-o", "new.json", "--storage", "closed/project.db")],
    "label import": [("closed/project.db", "--queries", "queries.tsv")],
    "label assign": [("closed/project.db", "--assessors", 2, "-q")],
    "label invite": [("closed/project.db", "anna")],
    "label serve": [("closed/project.db", "--port", 0)],
    "label void": [("closed/project.db", 1, "--reason", "x")],
    "label backup": [("closed/project.db",)],
    "label restore": [("copy.db", "closed/project.db", "-q")],
}
WRITE_NOTHING = {
    "compare", "measures", "constructions", "importance", "counterfactual", "interleave",
    "experiment list", "experiment show", "label status", "label board",
    "warm-up",  # its cache, which may be anywhere or nowhere, is tried in tests/e2e/test_cli_warm_up.py
}  # fmt: skip
# Options for files that are read, whatever the command; but tune writes its --config.
READ = {
    "--train", "--valid", "--test", "--held-out", "--judged", "--data", "--baseline", "--group", "--config", "--join",
    "--features", "--feature-names", "--queries", "--documents", "--run", "--qrels", "--guidelines", "--preferences",
    "--truth", "--profile", "--propensities", "--api-keys", "--scores",
}  # fmt: skip
TRIED = [(name, given, place) for name, cases in NEW.items() for given in cases for place in (CLOSED, FILE)]
TRIED += [(name, given, FILE) for name, cases in ELSEWHERE.items() for given in cases]
TRIED += [(name, given, CLOSED) for name, cases in CHANGED.items() for given in cases]
IN_CLOSED = [tried for tried in TRIED if tried[2] == CLOSED]


def _is_path(parameter: Any, hints: dict[str, Any]) -> bool:
    kind = hints.get(parameter.name)
    return kind is Path or Path in typing.get_args(kind) or parameter.metavar == "FILE"


def _put(arguments: tuple[object, ...], place: str) -> tuple[list[str], str]:
    """Arguments with the place for PLACE, and the one among them that is a path there."""
    given = [re.sub(r"^PLACE\b", place, str(word)) for word in arguments]
    (target,) = (word for word in given if Path(word).parts[:1] == (place,))
    return given, target


def _named(tried: list[tuple[str, tuple[object, ...], str]]) -> list[str]:
    return [f"{name} {_put(arguments, place)[1]}" for name, arguments, place in tried]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("read-only")
    data = make_splits(20, n_docs=5, n_features=3, random_state=1, n_jobs=1)["train"]
    for name in ("data.txt", "data.csv", "binary.gradrank"):
        write_data(data, folder / name)
    (folder / "scores.txt").write_text("".join(f"{row % 2}\n" for row in range(data.n_docs)))
    LinearRanker([1.0, 0.5, 0.2]).save(folder / "model.json")
    LinearRanker([0.5, 1.0, 0.1]).save(folder / "other.json")
    log = simulate_log(data, {"old": data.X[:, 0], "new": data.X[:, 1]}, 800, shown=5, random_state=1)
    write_click_log(log, folder / "log.jsonl")
    (folder / FILE).write_text("a file\n")
    (folder / "queries.tsv").write_text("q1\tone\nq2\ttwo\n")
    (folder / "documents.tsv").write_text("d1\tone\nd2\ttwo\n")
    (folder / "run.txt").write_text("q1 Q0 d1 1 2 r\nq1 Q0 d2 2 1 r\n")
    with create_project(folder / "project.db") as store:
        import_files(
            store, queries=folder / "queries.tsv", documents=[folder / "documents.tsv"], runs=[folder / "run.txt"]
        )
        assign(store, assessors=1, k=1)
        backup(store, folder / "copy.db")
    for words in (
        (
            "train",
            "--train",
            folder / "data.txt",
            "--trees",
            2,
            "--min-docs",
            1,
            "--diagnostics",
            1,
            "-q",
            "-o",
            folder / "trees.json",
        ),
        ("report", folder / "data.txt", "--scores", folder / "scores.txt", "-q", "-o", folder / "report.html"),
    ):
        result = run(*words)
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    shutil.copytree(made, tmp_path / CLOSED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_is_tried_here() -> None:
    assert {*NEW, *CHANGED} | WRITE_NOTHING == set(COMMANDS)
    assert {*NEW, *CHANGED} & WRITE_NOTHING == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_that_names_a_file_is_read_or_tried(command: str) -> None:
    hints = typing.get_type_hints(inspect.unwrap(COMMANDS[command].callback))
    files = {
        option.opts[-1]: set(option.opts)
        for option in COMMANDS[command].params
        if option.opts[0].startswith("-") and _is_path(option, hints) and not READ & set(option.opts)
    }
    tried = {word for case in NEW.get(command, []) for word in case}
    assert {name for name, spellings in files.items() if not spellings & tried} == set()


@pytest.mark.parametrize(("command", "arguments", "place"), TRIED, ids=_named(TRIED))
def test_what_cannot_be_written_is_one_line_and_leaves_nothing(
    command: str, arguments: tuple[object, ...], place: str, folder: Path
) -> None:
    before = content_of(folder), sorted(folder.rglob("*"))
    given, target = _put(arguments, place)
    with read_only(folder / CLOSED):
        result = run(*command.split(), *given)
    assert error_of(result).startswith(target)
    assert result.stdout == ""
    assert (content_of(folder), sorted(folder.rglob("*"))) == before


@pytest.mark.parametrize(("command", "arguments", "place"), IN_CLOSED, ids=_named(IN_CLOSED))
def test_so_is_what_can_no_longer_be_written_when_the_work_is_done(
    command: str, arguments: tuple[object, ...], place: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The look before the work has found nothing wrong.
    monkeypatch.setattr("gradrank.cli.common._try_to_write_in", lambda _folder, _path: None)
    closed = folder / place
    before = content_of(closed), sorted(closed.rglob("*"))
    given, target = _put(arguments, place)
    with read_only(closed):
        result = run(*command.split(), *given)
    # A folder is named, or the first file that was to be written there.
    assert error_of(result).startswith(target)
    assert (content_of(closed), sorted(closed.rglob("*"))) == before


# Servers write when they are asked.
ON_A_FULL_DISK = [(name, given, OPEN) for name, cases in NEW.items() for given in cases if name != "serve"]


@pytest.mark.parametrize(("command", "arguments", "place"), ON_A_FULL_DISK, ids=_named(ON_A_FULL_DISK))
def test_a_full_disk_is_one_line_and_leaves_nothing(
    command: str, arguments: tuple[object, ...], place: str, folder: Path
) -> None:
    (folder / place).mkdir()
    before = content_of(folder)
    given, target = _put(arguments, place)
    with file_size_limit(0):
        result = run(*command.split(), *given)
    # Named is what is written first: another output, the project that is opened, what is sorted in a temporary file.
    assert error_of(result).startswith((target, "new.", "new/", "project.db", tempfile.gettempdir()))
    # A folder that was made for outputs may stay, empty; and what SQLite lays beside a project that it cannot open.
    left = {name: content for name, content in content_of(folder).items() if content or name in before}
    assert left == before
