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
from gradrank.runtime.kernels import njit, template

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


SHAPES = """
from typing import NamedTuple
from gradrank.runtime.kernels import njit

class Shape(NamedTuple):
    side: float

@njit(cache=True, nogil=True, inline="always")
def area(side):
    return side * side
"""
USE = """
import sys
import shapes
from gradrank.runtime.kernels import template

def measured(side):
    raise NotImplementedError

@template(measured, cache=True, nogil=True)
def twice(shape):
    return 2 * measured(shape.side)

kernel = twice.using(measured=shapes.area)
print(kernel(getattr(shapes, sys.argv[1])(3.0)))
print("loaded" if kernel.stats.cache_hits else "compiled")
"""


def test_a_filled_kernel_is_cached_until_the_file_of_a_function_changes(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "shapes.py").write_text(SHAPES)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(shape: str) -> list[str]:
        command = [sys.executable, str(tmp_path / "use.py"), shape]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run("Shape") == ["18.0", "compiled"]
    assert run("Shape") == ["18.0", "loaded"]
    # The cache names a class that is gone, which Numba alone could not read any more.
    (tmp_path / "shapes.py").write_text(SHAPES.replace("Shape", "Form").replace("side * side", "side * side * side"))
    assert run("Form") == ["54.0", "compiled"]
    assert run("Form") == ["54.0", "loaded"]


def change(x: float) -> float:
    """Stands for what is done to a number."""
    raise NotImplementedError


def test_templates_keep_what_they_are_filled_with_apart() -> None:
    @njit(nogil=True)
    def double(x: float) -> float:
        return 2 * x

    @njit(nogil=True)
    def square(x: float) -> float:
        return x * x

    @template(change, nogil=True)
    def again(x: float) -> float:
        """Do it twice."""
        return change(change(x))

    assert (again.using(change=double)(3), again.using(change=square)(3)) == (12, 81)
    assert again.using(change=double) is again.using(change=double)
    assert again.__doc__ == "Do it twice."
    with pytest.raises(TypeError, match="has the slots change"):
        again.using(turn=double)
    with pytest.raises(TypeError, match="does not call change"):
        template(change)(lambda x: x)


SUMS = """
import hashlib, sys
import numpy as np
from gradrank.data import RankingData
from gradrank.objectives import parse_objective

rng = np.random.default_rng(0)
data = RankingData.from_arrays(np.zeros((900, 1)), rng.integers(0, 5, 900), group=[300] * 3)
scores = rng.normal(size=900)
found = [parse_objective(name).bind(data).gradients(scores) for name in ("RankNet", "NDCG@10")]
print(hashlib.sha256(b"".join(one.lambdas.tobytes() + one.rhos.tobytes() for one in found)).hexdigest())
"""


def test_kernels_from_the_cache_round_as_those_that_were_just_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", SUMS], capture_output=True, text=True, env=environment, check=True).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].strip()) == 64


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


WATCHED = """
from pathlib import Path
from gradrank.runtime.kernel_cache import cache_use

with cache_use() as use:
    {script}
print(use.kept, use.loaded, sorted(map(str, use.folders)), use.refused is not None)
"""


def test_somebody_can_look_at_what_the_cache_is_used_for(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def look(before: str = "") -> list[str]:
        code = before + WATCHED.format(script="import runpy; runpy.run_path(__import__('sys').argv.pop(1))")
        call = [sys.executable, "-B", "-c", code, str(script), "float64"]
        done = subprocess.run(call, capture_output=True, text=True, env=environment, check=True)
        return done.stdout.splitlines()[-1].split(maxsplit=2)

    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    assert look(full) == ["0", "0", "[] True"]
    [kept, loaded, where] = look()
    assert (kept, loaded) == ("1", "0")
    assert str(tmp_path / "cache") in where
    assert where.endswith("False")
    assert look() == ["0", "1", where]


def test_a_cache_that_cannot_be_read_or_written_does_no_harm(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}
    plain = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | nowhere

    def run(before: str = "") -> list[str]:
        command = [sys.executable, "-B", "-c", f"{before}\nimport runpy, sys\nrunpy.run_path(sys.argv.pop(1))"]
        done = subprocess.run(
            [*command, str(script), "float64"], capture_output=True, text=True, env=plain, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    assert run(full) == ["45.0", "compiled"]
    assert not list(tmp_path.rglob("*.nbc"))
    assert run() == ["45.0", "compiled"]
    # A folder that may only be read: Numba tries to write there and takes no cache at all.
    refused = "import tempfile\ndef no(*_, **__): raise PermissionError\ntempfile.TemporaryFile = no"
    assert run(refused) == ["45.0", "loaded"]
    [index], [code] = tmp_path.rglob("*.nbi"), tmp_path.rglob("*.nbc")
    content = code.read_bytes()
    for file, damaged in (
        (index, b""),
        (index, index.read_bytes()[:-9]),
        (code, b""),
        (code, content[: len(content) // 2]),
        (code, content[:-100] + bytes(100)),
    ):
        file.write_bytes(damaged)
        assert run() == ["45.0", "compiled"]
    assert run() == ["45.0", "loaded"]
    # Neither the folder of the script nor a home: where the files would be is something else.
    for file in (tmp_path / "__pycache__").iterdir():
        file.unlink()
    (tmp_path / "__pycache__").rmdir()
    (tmp_path / "__pycache__").write_text("")
    assert run() == ["45.0", "compiled"]
