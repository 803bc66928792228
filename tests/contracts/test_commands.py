"""What every command promises: quick help, one line and exit code 2 for wrong input, and nothing written then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gradrank.models.linear import LinearRanker
from tests.support.commands import COMMANDS, content_of, error_of, run

HEAVY = {"numpy", "scipy", "numba", "sklearn", "lightgbm", "torch", "pandas", "polars", "pyarrow", "matplotlib"}

# Arguments of which one is wrong, and what the one line must name. There are data.txt and scores.txt (whole),
# broken.txt (no number in line 2), model.json (whole), broken.json (cut off); nothing.txt is not there.
WRONG: dict[str, list[tuple[tuple[object, ...], str]]] = {
    "train": [
        (("--train", "nothing.txt", "-o", "new.json"), "nothing.txt: "),
        (("--train", "broken.txt", "-o", "new.json"), "broken.txt:2: "),
        (("--train", "data.txt", "--valid", "broken.txt", "-o", "new.json"), "broken.txt:2: "),
        (("--train", "data.txt", "--objective", "NDGC", "-o", "new.json"), "NDGC"),
        (("--train", "data.txt", "-o", "nowhere/new.json"), "nowhere/new.json: cannot be written"),
    ],
    "sweep": [
        (("--train", "nothing.txt", "--valid", "data.txt", "-o", "new.json"), "nothing.txt: "),
        (("--train", "data.txt", "--valid", "broken.txt", "-o", "new.json"), "broken.txt:2: "),
    ],
    "auto": [
        (("--train", "nothing.txt", "--valid", "data.txt", "-o", "new.json"), "nothing.txt: "),
        (("--train", "data.txt", "--valid", "data.txt", "--measure", "NDGC", "-o", "new.json"), "NDGC"),
    ],
    "score": [
        (("nothing.json", "data.txt", "-o", "new.txt"), "nothing.json: "),
        (("broken.json", "data.txt", "-o", "new.txt"), "broken.json: "),
        (("model.json", "broken.txt", "-o", "new.txt"), "broken.txt:2: "),
        (("model.json", "narrow.txt", "-o", "new.txt"), "narrow.txt: "),
    ],
    "evaluate": [
        (("nothing.txt", "--scores", "scores.txt"), "nothing.txt: "),
        (("data.txt", "--scores", "broken.txt"), "broken.txt"),
        (("data.txt", "--scores", "scores.txt", "-m", "NDGC"), "NDGC"),
    ],
    "compare": [
        (("data.txt", "--scores", "scores.txt", "--scores", "nothing.txt"), "nothing.txt: "),
        (("broken.txt", "--scores", "scores.txt", "--scores", "narrow.txt"), "broken.txt:2: "),
    ],
    "combine": [
        (("model.json", "nothing.json", "--data", "data.txt", "-o", "new.json"), "nothing.json: "),
        (("model.json", "other.json", "--data", "broken.txt", "-o", "new.json"), "broken.txt:2: "),
    ],
    "adapt": [
        (("broken.json", "--data", "data.txt", "-o", "new.json"), "broken.json: "),
        (("model.json", "--data", "nothing.txt", "-o", "new.json"), "nothing.txt: "),
    ],
    "report": [
        (("nothing.txt", "--scores", "scores.txt", "-o", "new.html"), "nothing.txt: "),
        (("data.txt", "--scores", "broken.txt", "-o", "new.html"), "broken.txt"),
        (("data.txt", "--scores", "scores.txt", "-o", "nowhere/new.html"), "nowhere/new.html: cannot be written"),
    ],
    "compare-reports": [
        (("nothing.html", "data.txt", "-o", "new.html"), "nothing.html: "),
        (("data.txt", "scores.txt", "-o", "new.html"), "data.txt: is not a report"),
    ],
    "measures": [(("NDGC",), "NDGC")],
    "constructions": [
        (("--train", "nothing.txt", "--valid", "data.txt"), "nothing.txt: "),
        (("--train", "data.txt", "--valid", "data.txt", "--construction", "string"), "'string'"),
    ],
    "optimality": [
        (("nothing.json", "data.txt", "--climb", "-o", "new.json"), "nothing.json: "),
        (("model.json", "broken.txt", "--climb", "-o", "new.json"), "broken.txt:2: "),
    ],
    "importance": [
        (("broken.json",), "broken.json: "),
        (("model.json", "--kind", "permutation", "--data", "nothing.txt"), "nothing.txt: "),
    ],
    "explain": [
        (("nothing.json", "data.txt", "-o", "new.html"), "nothing.json: "),
        (("model.json", "broken.txt", "-o", "new.html"), "broken.txt:2: "),
        (("model.json", "data.txt", "--query", "no such", "-o", "new.html"), "'no such'"),
    ],
    "diagnose": [
        (("nothing.json", "-o", "new.html"), "nothing.json: "),
        (("model.json", "-o", "new.html"), "model.json"),
    ],
    "serve": [
        (("nothing.json",), "nothing.json: "),
        (("broken.json",), "broken.json: "),
        (("m=model.json", "n=broken.json"), "broken.json: "),
        (("m=model.json", "m=other.json"), "m@1 is given twice"),
        (("m=model.json", "--interleave", "m,n", "--log", "new.jsonl"), "'n'"),
        (("m=model.json", "--shares", "m=2"), "add up to 2"),
        (("m=model.json", "--api-keys", "nothing.txt"), "nothing.txt: "),
    ],
    "profile": [
        (("nothing.txt", "-o", "new.json"), "nothing.txt: "),
        (("broken.txt", "-o", "new.json"), "broken.txt:2: "),
        (("data.txt", "-o", "nowhere/new.json"), "nowhere/new.json: cannot be written"),
    ],
    "check": [
        (("nothing.json", "data.txt"), "nothing.json: "),
        (("model.json", "data.txt"), "model.json: holds no profile"),
        (("model.json", "data.txt", "--profile", "broken.json"), "broken.json: "),
        (("model.json", "data.txt", "--profile", "other.json"), "other.json: is not a profile"),
        (("model.json", "data.txt", "--psi", "nan"), "threshold of psi"),
    ],
    "info": [
        (("data.txt", "--format", "html"), "data.txt: is data"),
        (("nothing.txt",), "nothing.txt: "),
        (("broken.txt",), "broken.txt"),
        (("broken.json",), "broken.json: "),
    ],
    "convert": [
        (("nothing.txt", "new.csv"), "nothing.txt: "),
        (("broken.txt", "new.csv"), "broken.txt:2: "),
        (("data.txt", "new.xyz"), "new.xyz: "),
    ],
    "export": [
        (("nothing.json", "--to", "c", "-o", "new.c"), "nothing.json: "),
        (("broken.json", "--to", "c", "-o", "new.c"), "broken.json: "),
        (("model.json", "--to", "java", "-o", "new.java"), "'java'"),
        (("model.json", "--to", "lightgbm", "-o", "new.txt"), "lightgbm holds trees only"),
        (("model.json", "--to", "c", "-o", "nowhere/new.c"), "nowhere/new.c: cannot be written"),
    ],
    "import": [
        (("nothing.json", "-o", "new.json"), "nothing.json: "),
        (("broken.json", "-o", "new.json"), "broken.json: "),
        (("model.json", "--feature-names", "nothing.txt", "-o", "new.json"), "nothing.txt: "),
        (("model.json", "--feature-names", "data.txt", "-o", "new.json"), "data.txt: has 12 names"),
        (("model.json", "-o", "nowhere/new.json"), "nowhere/new.json: cannot be written"),
    ],
    "split": [
        (("nothing.txt", "--folds", 3, "-o", "new"), "nothing.txt: "),
        (("broken.txt", "--folds", 3, "-o", "new"), "broken.txt:2: "),
        (("data.txt", "--folds", 100, "-o", "new"), "100"),
    ],
    "clicks": [
        (("nothing.jsonl", "-o", "new.txt"), "nothing.jsonl: "),
        (("broken.txt", "-o", "new.txt"), "broken.txt"),
    ],
    "propensity": [
        (("nothing.jsonl",), "nothing.jsonl: "),
        (("broken.txt",), "broken.txt"),
    ],
    "unbiased": [
        (("nothing.jsonl", "--train", "data.txt", "-o", "new.json"), "nothing.jsonl: "),
        (("broken.txt", "--train", "data.txt", "-o", "new.json"), "broken.txt"),
        (("nothing.jsonl", "--train", "data.txt", "-o", "new.json", "--propensities", "broken.txt"), "broken.txt: "),
    ],
    "counterfactual": [
        (("nothing.jsonl", "--data", "data.txt", "--model", "nothing", "--propensities", "no.json"), "no.json: "),
        (("nothing.jsonl", "--data", "data.txt", "--model", "m", "--propensities", "broken.txt"), "broken.txt: "),
    ],
    "interleave": [
        (("nothing.jsonl",), "nothing.jsonl: "),
        (("nothing.jsonl", "--models", "one"), "NAME,NAME"),
        (("broken.txt",), "broken.txt"),
    ],
    "make-data": [(("data.txt", "--queries", 3), "data.txt: ")],
    "tune": [
        (("--train", "broken.txt", "-o", "new.json"), "broken.txt:2: "),
        (("--train", "data.txt", "-o", "new.json", "--search", "num_leaves=8..2"), "8..2"),
        (("--train", "data.txt", "-o", "data.txt"), "data.txt: "),
        (("--train", "data.txt"), "nothing to write"),
    ],
    "warm-up": [],  # takes nothing that could be wrong; its cache is tried in tests/e2e/test_cli_warm_up.py
    "experiment list": [],  # takes nothing that could be wrong
    "experiment show": [(("no-such-one",), "no-such-one")],
    "experiment run": [
        (("no-such-one",), "no-such-one"),
        (("svore-1", "--set", "nonsense=1"), "nonsense"),
        (("svore-1", "--data", "nowhere"), "nowhere"),
    ],
    "label init": [(("data.txt",), "data.txt: ")],
    "label import": [
        (("nothing.db", "--queries", "data.txt"), "nothing.db: "),
        (("data.txt", "--queries", "data.txt"), "data.txt: "),
    ],
    "label assign": [(("nothing.db", "--assessors", 2), "nothing.db: ")],
    "label invite": [(("nothing.db", "anna"), "nothing.db: ")],
    "label serve": [(("nothing.db",), "nothing.db: ")],
    "label board": [(("nothing.db",), "nothing.db: ")],
    "label status": [(("nothing.db",), "nothing.db: "), (("data.txt",), "data.txt: ")],
    "label void": [(("nothing.db", 1, "--reason", "x"), "nothing.db: ")],
    "label backup": [(("nothing.db", "-o", "new.db"), "nothing.db: ")],
    "label restore": [(("nothing.db", "new.db"), "nothing.db: "), (("data.txt", "new.db"), "data.txt: ")],
    "label report": [(("nothing.db", "-o", "new.html"), "nothing.db: ")],
    "label export": [(("nothing.db", "--to", "qrels", "-o", "new.txt"), "nothing.db: ")],
    "label simulate": [(("--html", "new.html"), "--html needs")],
}


CASES = [(command, *case) for command, cases in WRONG.items() for case in cases]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{label} qid:{query} 1:{label} 2:0.5\n" for query in range(4) for label in (0, 1, 2)]
    Path("data.txt").write_text("".join(lines))
    Path("broken.txt").write_text(lines[0] + "1 qid:0 1:x 2:0.5\n" + "".join(lines[2:]))
    Path("narrow.txt").write_text("0 qid:1 1:1\n1 qid:1 1:2\n")
    Path("scores.txt").write_text("1\n2\n3\n" * 4)
    LinearRanker([1.0, 0.5]).save("model.json")
    LinearRanker([0.5, 1.0]).save("other.json")
    Path("broken.json").write_text(Path("model.json").read_text()[:-20])
    return tmp_path


def test_every_command_is_tried_here() -> None:
    assert set(WRONG) == set(COMMANDS)


@pytest.mark.parametrize(
    ("command", "arguments", "named"), CASES, ids=[f"{case[0]} {case[2]}".strip(": ") for case in CASES]
)
def test_wrong_input_is_one_line_and_writes_nothing(
    command: str, arguments: tuple[object, ...], named: str, folder: Path
) -> None:
    before = content_of(folder)
    result = run(*command.split(), *arguments)
    message = error_of(result)
    assert named in message
    assert result.stdout == ""
    # The file that keeps two processes off one project stays, as an empty file: removing it would race with them.
    left = {name: content for name, content in content_of(folder).items() if not name.endswith(".db.lock")}
    assert left == before
    assert [path for path in folder.rglob("*") if path.is_dir()] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_options_that_are_not_there_are_refused(command: str, folder: Path) -> None:
    before = content_of(folder)
    result = run(*command.split(), "--no-such-option")
    assert result.exit_code == 2
    assert "No such option" in result.stderr
    assert "--no-such-option" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert content_of(folder) == before


def test_help_of_every_command_loads_nothing_heavy() -> None:
    script = f"""
import contextlib, io, json, sys
from gradrank.cli.main import app
told = {{}}
for words in [[], *{[name.split() for name in COMMANDS]!r}]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            app([*words, "--help"], prog_name="gradrank")
            code = None
        except SystemExit as end:
            code = end.code
    told[" ".join(words)] = [code, out.getvalue(), sorted({HEAVY!r} & set(sys.modules))]
json.dump(told, sys.stdout)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    told = json.loads(result.stdout)
    assert set(told) == {"", *COMMANDS}
    for name, (code, text, loaded) in told.items():
        assert (name, code, loaded) == (name, 0, [])
        assert f"Usage: gradrank {name}".rstrip() in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(command: str) -> None:
    assert COMMANDS[command].help
    for parameter in COMMANDS[command].params:
        assert parameter.help, f"{command} {parameter.opts}"
