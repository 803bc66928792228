"""One seed gives the same λ's on processors whose vectors are of different width."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from gradrank.runtime import kernels

LAMBDAS = """
import hashlib
import numpy as np
from gradrank import make_data, parse_objective

data = make_data(20, n_docs=150, n_features=3, random_state=1)
scores = np.random.default_rng(1).standard_normal(data.n_docs)
for name in ("Lambda(NDCG)", "NDCG@10", "RankNet"):
    found = parse_objective(name).bind(data, random_state=1, n_jobs=1).gradients(scores)
    print(name, hashlib.sha256(found.lambdas.tobytes() + found.rhos.tobytes()).hexdigest())
"""
SUM = """
import numpy as np
import numba
OPTIONS = dict(nogil=True, fastmath={"reassoc", "contract", "nsz"})

@decorate(**OPTIONS)
def total(values):
    result = np.float32(0.0)
    for k in range(len(values)):
        result += values[k]
    return result

print(repr(total(np.random.default_rng(1).standard_normal(1001).astype(np.float32))))
"""
WIDE = llvm.get_host_cpu_features().get("avx512vl", False)
x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="vectors of other processors")


def features(width: int) -> str:
    """Those of this processor, made to take vectors of 256 or of 512 bits."""
    found = dict(llvm.get_host_cpu_features()) | {"prefer-256-bit": width == 256}
    return ",".join(f"{'+' if there else '-'}{name}" for name, there in sorted(found.items()))


def run(script: str, width: int, tmp_path: Path) -> str:
    environment = {**os.environ, "NUMBA_CPU_FEATURES": features(width), "NUMBA_CACHE_DIR": str(tmp_path / str(width))}
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout


@x86
def test_kernels_say_how_wide_vectors_are() -> None:
    @kernels.njit()
    def total(values: np.ndarray) -> float:
        result = 0.0
        for value in values:
            result += value
        return result

    total(np.ones(3))
    (code,) = total.inspect_llvm().values()
    assert '"prefer-vector-width"="256"' in code, (
        "Numba has changed what gradrank/runtime/vector_width.py goes by: "
        "models depend on the processor until it is adapted"
    )


@x86
@pytest.mark.skipif(not WIDE, reason="this processor has no vectors of 512 bits")
def test_lambdas_are_the_same_with_vectors_of_any_width(tmp_path: Path) -> None:
    assert run(LAMBDAS, 256, tmp_path) == run(LAMBDAS, 512, tmp_path)


@x86
@pytest.mark.skipif(not WIDE, reason="this processor has no vectors of 512 bits")
def test_without_it_a_sum_would_differ(tmp_path: Path) -> None:
    """What the test above compares does change what Numba's own compiler makes."""
    plain = "from numba import njit as decorate\n" + SUM
    assert run(plain, 256, tmp_path) != run(plain, 512, tmp_path)
    ours = "from gradrank.runtime.kernels import njit as decorate\n" + SUM
    assert run(ours, 256, tmp_path) == run(ours, 512, tmp_path) == run(plain, 256, tmp_path)
