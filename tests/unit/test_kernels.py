"""The cache of compiled kernels, shared by processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import numpy as np
from gradrank.kernels import njit

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
