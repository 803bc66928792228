"""What kernels.py takes from Numba beyond its documentation: still there, and done without if it is not."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from gradrank.runtime import kernel_cache, kernels

ADVICE = (
    "Numba {version} has changed {what}, which its documentation does not promise. Nothing is broken yet: kernels.py "
    "does without it, and {loss}. Look at `git log -p {file}` of Numba for what took its place and adapt "
    "gradrank/runtime/kernels.py, or keep the upper bound of numba in pyproject.toml below this version."
)
CACHE = "processes that compile at once may load each other's code, until this is adapted"
METHODS = {
    "save": ["self", "key", "data"],
    "load": ["self", "key"],
    "_load_index": ["self"],
    "_save_data": ["self", "name", "data"],
    "_load_data": ["self", "name"],
    "_data_path": ["self", "name"],
    "_dump": ["self", "obj"],
    "_open_for_write": ["self", "filepath"],
}
SLOW = "kernels compile more slowly"


def advice(what: str, loss: str, file: str) -> str:
    return ADVICE.format(version=numba.__version__, what=what, loss=loss, file=file)


def test_the_cache_can_be_shared() -> None:
    @kernels.njit(cache=True)
    def kernel(x: float) -> float:
        return x

    said = advice("the files of its cache", CACHE, "numba/core/caching.py")
    assert kernel_cache.IndexDataCacheFile is not None, said
    assert isinstance(kernel._cache._cache_file, kernel_cache.SharedCacheFile), said
    wanted = ["self", "cache_path", "filename_base", "source_stamp"]
    assert list(inspect.signature(kernel_cache.IndexDataCacheFile.__init__).parameters) == wanted, said
    for name, parameters in METHODS.items():
        method = getattr(kernel_cache.IndexDataCacheFile, name, None)
        assert method is not None, said
        assert list(inspect.signature(method).parameters) == parameters, said
    assert hasattr(kernel._cache, "_guard_against_spurious_io_errors"), said
    assert isinstance(kernel_cache.CompileResultCacheImpl._locator_classes, list), said


def test_options_that_save_compiling_are_known() -> None:
    wanted = {kernels.NO_REFERENCES, kernels.NO_C_ENTRY, kernels.NO_PYTHON_ENTRY}
    missing = wanted - kernels.OPTIONS
    assert not missing, advice(f"the options {sorted(missing)} of njit", SLOW, "numba/core/options.py")


def test_compiling_is_announced() -> None:
    assert kernels.event is not None, advice(
        "numba.core.event", "nobody is told that the first use compiles", "numba/core/event.py"
    )


SCRIPT = """
import sys
import numba, numba.core.caching, numba.core.event, numba.core.options
hidden = sys.argv[1].split(",")
kept = {name: sys.modules[name] for name in hidden}
for name in hidden:
    sys.modules[name] = None
    delattr(numba.core, name.rpartition(".")[2])
from gradrank.runtime import kernels
for name, module in kept.items():  # Numba itself goes on with what it has
    sys.modules[name] = module
    setattr(numba.core, name.rpartition(".")[2], module)
import numpy as np
from part import twice

def change(x):
    raise NotImplementedError

@kernels.njit(cache=True, nogil=True, plain=True, inner=True)
def total(values):
    result = 0.0
    for value in values:
        result += twice(value)
    return result

@kernels.template(change, cache=True, nogil=True)
def changed(values):
    return change(total(values))

@kernels.njit(cache=True)
def negative(x):
    return -x

kernel = changed.using(change=negative)
print(kernel(np.arange(4.0)))
print("loaded" if kernel.stats.cache_hits else "compiled")
"""
PART = """
from gradrank.runtime.kernels import njit

@njit(cache=True, nogil=True)
def twice(x):
    return FACTOR * x
"""
PRIVATE = ["numba.core.caching", "numba.core.event", "numba.core.options"]


@pytest.mark.parametrize("missing", ["numba.core.caching", ",".join(PRIVATE)])
def test_kernels_work_and_are_cached_without_it(missing: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "part.py").write_text(PART.replace("FACTOR", "2"))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}

    def run() -> list[str]:
        made = subprocess.run(
            [sys.executable, str(script), missing], capture_output=True, text=True, env=environment, check=False
        )
        assert made.returncode == 0, made.stderr
        return made.stdout.split()

    assert run() == ["-12.0", "compiled"]
    assert run() == ["-12.0", "loaded"]
    # A change of the script itself is a change of the kernel.
    script.write_text(SCRIPT.replace("return -x", "return -x - 1.0"))
    assert run() == ["-13.0", "compiled"]
