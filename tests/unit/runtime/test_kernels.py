"""The cache of compiled kernels, shared by processes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradrank.cli.common import Notes
from gradrank.runtime.first_use import on_compiling
from gradrank.runtime.kernels import njit

SCRIPT = """
import sys
import numpy as np
from gradrank.runtime.kernels import njit

@njit(cache=True, nogil=True)
def total(values):
    result = 0.0
    for value in values:
        result += value
    return result

print(total(np.arange(10).astype(sys.argv[1])))
print("loaded" if total.stats.cache_hits else "compiled")
"""
KINDS = ("float32", "float64", "int64")


def run_all(script: Path, cache: Path) -> list[list[str]]:
    """One process for each type, all at once."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    processes = [
        subprocess.Popen([sys.executable, str(script), kind], stdout=subprocess.PIPE, text=True, env=environment)
        for kind in KINDS
    ]
    outputs = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    return outputs


def test_processes_that_compile_at_once_keep_each_others_code(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert run_all(script, tmp_path / "cache") == [["45.0", "compiled"]] * 3
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 3
    assert run_all(script, tmp_path / "cache") == [["45.0", "loaded"]] * 3


def test_compiling_is_told_of_once_and_leaves_garbage_collection_as_it_was() -> None:
    told: list[bool] = []
    on_compiling(lambda: told.append(True))

    @njit(cache=False, nogil=True)
    def half(x: float) -> float:
        return x / 2

    assert gc.isenabled()
    assert (half(1), half(1.0)) == (0.5, 0.5)
    assert told == [True]
    assert gc.isenabled()

    @njit(cache=False, nogil=True)
    def broken(x: float) -> float:
        return x.no_such_thing  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(Exception, match="no_such_thing"):
        broken(1)
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("quiet", "terminal", "said"), [(False, True, True), (True, True, False), (False, False, False)]
)
def test_commands_on_a_terminal_say_that_they_compile(
    quiet: bool, terminal: bool, said: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    Notes(quiet)

    @njit(cache=False, nogil=True)
    def half(x: float) -> float:
        return x / 2

    half(1)
    assert ("compiling" in capsys.readouterr().err) == said
