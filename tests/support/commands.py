"""The command line, run inside this process or in one of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from gradrank.cli.main import app

COMMAND = "from gradrank.cli.main import run; run()"
"""The code of the ``gradrank`` script, for tests that put something before it."""
PROGRAM = (sys.executable, "-c", COMMAND)
"""The script as the beginning of a call."""


def _all_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _all_commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS: dict[str, Any] = dict(_all_commands(typer.main.get_command(app)))
"""Every command by its words, as Typer has it."""


def run(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def process(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    call = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, check=False, timeout=120, **more)


def kill_at(step: int, *arguments: object) -> None:
    """Run a training command in a process that kills itself, as ``kill -9`` would, when it reports a step."""
    die = (
        "import os, signal\nfrom gradrank.learners.base import progress\n"
        f"def die(self, step):\n    if step.number == {step}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "progress.Progress.__call__ = die\n"
    )
    call = [sys.executable, "-c", die + COMMAND, *map(str, arguments)]
    assert subprocess.run(call, check=False, timeout=300).returncode == -signal.SIGKILL


def error_of(result: Result) -> str:
    """The one line that a command refused its input with."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("gradrank: error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("gradrank: error: ").rstrip("\n")


def make_files(folder: Path, *options: object, queries: int = 60, docs: int = 12, features: int = 6) -> Path:
    """Write made-up training, validation and test data (``train.txt``, ``vali.txt``, ``test.txt``) into a folder."""
    sizes = ("--queries", queries, "--docs", docs, "--features", features)
    result = run("make-data", folder, *sizes, "--seed", 5, *options)
    assert result.exit_code == 0, result.output
    return folder


def enter(folder: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go into a folder of the test's own, where ``d`` is the made-up data."""
    monkeypatch.chdir(folder)
    (folder / "d").symlink_to(made)
    return folder


def content_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes, to see that nothing was written."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
