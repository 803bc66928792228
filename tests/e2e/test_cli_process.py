"""The command as a process: start-up, streams, exit codes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gradrank.cli.main import app
from tests.support.commands import PROGRAM, error_of, process, run


@pytest.fixture
def data(tmp_path) -> Path:
    (tmp_path / "data.txt").write_text("0 qid:a 1:1\n1 qid:a 1:2\n")
    (tmp_path / "scores.txt").write_text("1\n2\n")
    return tmp_path


def test_help_lists_the_commands_without_loading_anything_heavy() -> None:
    script = (
        "import sys\n"
        "from gradrank.cli.main import run\n"
        "sys.argv = ['gradrank', '--help']\n"
        "try:\n    run()\nexcept SystemExit as end:\n    code = end.code\n"
        "heavy = {'numpy', 'scipy', 'numba', 'pyarrow', 'pandas', 'sklearn', 'lightgbm'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy or code else 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    for command in ("evaluate", "compare", "measures", "info", "convert", "split", "clicks", "make-data"):
        assert command in result.stdout


def test_version() -> None:
    from gradrank import __version__

    assert process("--version").stdout == f"gradrank {__version__}\n"


def test_standard_output_holds_the_json_and_nothing_else(data) -> None:
    result = process("evaluate", "data.txt", "--scores", "scores.txt", "-m", "MRR", "--format", "json", cwd=data)
    assert result.returncode == 0
    assert json.loads(result.stdout) == {"scores.txt": {"MRR": 1.0}, "queries": 1}


def test_error_is_one_line_and_exit_code_two(data) -> None:
    (data / "data.txt").write_text("0 qid:a 1:1\n1 qid:a 1:x\n")
    result = process("evaluate", "data.txt", "--scores", "scores.txt", cwd=data)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("gradrank: error: data.txt:2: ")


def run_limited(setup: str, *arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """A command after some lines of Python."""
    call = [sys.executable, "-c", f"{setup}\nfrom gradrank.cli.main import run; run()", *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, check=False, timeout=120, **more)


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "data.txt", "--scores", "scores.txt", "-o", "new.html"),
        ("convert", "data.txt", "new.csv"),
        ("label", "init", "new.db"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_full_disk_is_one_line(data, arguments) -> None:
    # Every file ends at its first bytes, as on a disk without room.
    before = {path.name for path in data.iterdir()}
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))"
    result = run_limited(full, *arguments, cwd=data)
    errors = [line for line in result.stderr.splitlines() if line.startswith("gradrank: error: ")]
    assert (result.returncode, len(errors)) == (2, 1), result.stderr
    assert "cannot be written" in errors[0]
    assert "new." in errors[0]
    assert "Traceback" not in result.stderr
    assert {path.name for path in data.iterdir()} == before


def test_a_model_on_a_full_disk_is_one_line(data, monkeypatch) -> None:
    def full(self: Path, *_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    arguments = ["train", "--train", data / "data.txt", "--trees", 1, "--min-docs", 1, "-o", data / "new.json"]
    assert error_of(run(*arguments, "--quiet")).endswith("new.json: cannot be written: No space left on device")
    assert {path.name for path in data.iterdir()} == {"data.txt", "scores.txt"}


def test_output_that_nobody_can_take_is_one_line(data) -> None:
    with open("/dev/full", "wb") as full:
        arguments = ["evaluate", "data.txt", "--scores", "scores.txt", "--quiet"]
        result = subprocess.run(
            [*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, cwd=data, check=False, timeout=120
        )
    assert result.returncode == 2
    assert result.stderr == "gradrank: error: the output cannot be written: No space left on device\n"


def test_a_device_stays_a_device(data) -> None:
    result = CliRunner().invoke(app, ["convert", str(data / "data.txt"), "/dev/null", "--to", "csv"])
    assert result.exit_code == 0, result.output
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluat"], "No such command 'evaluat'. Did you mean 'evaluate'? (gradrank --help tells more)"),
        (["info"], "(gradrank info --help tells more)"),
        (["label", "ini"], "(gradrank label --help tells more)"),
    ],
)
def test_usage_error_is_one_line_and_exit_code_two(words, said) -> None:
    result = process(*words)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("gradrank: error: ")
    assert said in result.stderr


@pytest.mark.parametrize("form", ["json", "table", "csv"])
def test_a_closed_pipe_is_quiet(data, form) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = subprocess.run(
            [*PROGRAM, "evaluate", "data.txt", "--scores", "scores.txt", "--format", form, "--quiet"],
            stdout=writing,
            stderr=subprocess.PIPE,
            cwd=data,
            check=False,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert (result.returncode, result.stderr) == (141, b"")


def test_a_terminal_without_unicode_gets_an_answer(data) -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    (data / "scorés.txt").write_text("1\n2\n")
    arguments = ("evaluate", "data.txt", "--scores", "scorés.txt", "-m", "MRR", "--quiet")
    shown = process(*arguments, "--format", "md", cwd=data, env=ascii_only)
    assert (shown.returncode, shown.stdout.splitlines()[-1]) == (0, "| scor?s.txt | 1.0000 |")
    exact = process(*arguments, "--format", "json", cwd=data, env=ascii_only)
    assert json.loads(exact.stdout) == {"scorés.txt": {"MRR": 1.0}, "queries": 1}


def test_interruption_is_exit_code_130(data, monkeypatch) -> None:
    def interrupt(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gradrank.data.formats.registry.read_data", interrupt)
    assert CliRunner().invoke(app, ["info", str(data / "data.txt")]).exit_code == 130


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "there is not enough memory"),
        (MemoryError("Unable to allocate 18.2 TiB\nfor an array"), "(Unable to allocate 18.2 TiB for an array)"),
        (RuntimeError("[x] DefaultCPUAllocator: can't allocate memory: you tried"), "there is not enough memory ([x] "),
    ],
)
def test_memory_that_there_is_not_is_one_line(data, monkeypatch, error, said) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr("gradrank.data.formats.registry.read_data", fail)
    result = CliRunner().invoke(app, ["info", str(data / "data.txt")])
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("gradrank: error: there is not enough memory")
    assert said in line


def test_our_own_faults_are_not_swallowed(data, monkeypatch) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("gradrank.data.formats.registry.read_data", fail)
    result = CliRunner().invoke(app, ["info", str(data / "data.txt")])
    assert isinstance(result.exception, ZeroDivisionError)
