"""Kernels do what their source says as plain Python, and never read or write beyond an array.

Compiled code says neither that an index is wrong nor that a variable has no value. So the tests that are marked
``kernel`` run a second time without Numba, and these and the ones marked ``checked`` a third time with a check of every
index; each in a process of its own, as Numba reads its settings once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from gradrank.runtime.kernels import njit

TESTS = Path(__file__).parents[1]
SETTINGS = (("NUMBA_DISABLE_JIT", "kernel"), ("NUMBA_BOUNDSCHECK", "kernel"), ("NUMBA_BOUNDSCHECK", "checked"))


@njit(nogil=True, plain=True)
def _take(values, place):  # type: ignore[no-untyped-def]
    return values[place]


@pytest.mark.kernel
def test_the_setting_is_heard() -> None:
    if numba.config.DISABLE_JIT:
        assert not hasattr(_take, "py_func")
    elif numba.config.BOUNDSCHECK:
        with pytest.raises(IndexError):
            _take(np.zeros(3), 3)
    assert _take(np.arange(3.0), 2) == 2.0


@pytest.mark.parametrize(("setting", "mark"), SETTINGS)
def test_kernels_under_another_setting(setting: str, mark: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    files = [str(path) for path in sorted(TESTS.rglob("test_*.py")) if f"pytest.mark.{mark}" in path.read_text()]
    assert len(files) > 5
    # Code with checks has a cache of its own, kept from one run of the tests to the next.
    kept = getattr(request.config, "cache", None)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "NUMBA_"))}
    environment |= {
        setting: "1",
        "NUMBA_OPT": "0",  # most of the time goes into compiling, half of it for speed that nobody needs here
        "NUMBA_CACHE_DIR": str(tmp_path if kept is None else kept.mkdir("numba_settings")),
        "GRADRANK_TEST_EXAMPLES": "2" if setting == "NUMBA_DISABLE_JIT" else "4",
    }
    # NumPy warns of what a compiled kernel does without a word: overflow, division by zero. Numba warns of code that it
    # cannot keep, as some is without optimization.
    ignored = ["-W", "ignore::RuntimeWarning", "-W", "ignore::numba.core.errors.NumbaWarning"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", mark, "-p", "no:cacheprovider", *ignored, *files]
    run = subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
