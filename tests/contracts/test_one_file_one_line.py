"""What CONTRIBUTING promises: a measure with swap deltas of its own, or a pair cost, is a file and a registry line.

Both are added to a copy of the package; a process then trains with them and compares with brute force.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gradrank

PACKAGE = Path(gradrank.__file__).parent

MEASURE = '''
"""Share of neighbors in the right order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gradrank.measures.base import Measure, Prepared
from gradrank.measures.parameters import parameter
from gradrank.measures.position import highest
from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True)
def _values(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option, out):
    for q in range(first, end):
        total = 0.0
        for at in range(indptr[q], indptr[q + 1] - 1):
            total += gain[order[at]] >= gain[order[at + 1]]
        out[q] = total / norm[q]


@njit(cache=True, nogil=True, plain=True)
def neighbors_prepare(n, order, rank, gain, weight, norm, depth, option, state):
    for r in range(n):
        state[0, r] = gain[order[r]]


@njit(cache=True, nogil=True, plain=True)
def _right(n, state, r):
    return 1.0 if 0 <= r < n - 1 and state[0, r] >= state[0, r + 1] else 0.0


@njit(cache=True, nogil=True, plain=True)
def _around(n, state, a, b):
    total = _right(n, state, a - 1) + _right(n, state, a)
    if b != a + 1:
        total += _right(n, state, b - 1)
    return total + _right(n, state, b)


@njit(cache=True, nogil=True, plain=True)
def neighbors_row(i, low, high, n, order, rank, gain, norm, option, state, out):
    for j in range(low, high):
        a, b = min(rank[i], rank[j]), max(rank[i], rank[j])
        out[j] = 0.0
        if a < b:
            before = _around(n, state, a, b)
            state[0, a], state[0, b] = state[0, b], state[0, a]
            out[j] = (_around(n, state, a, b) - before) / norm
            state[0, a], state[0, b] = state[0, b], state[0, a]


@dataclass(frozen=True, repr=False)
class Neighbors(Measure):
    """Share of neighbors in the list of which the upper has no smaller gain."""

    power: float = parameter("what labels are raised to", low=0.0, default=2.0)

    name: ClassVar[str] = "Neighbors"
    takes_cutoff: ClassVar[bool] = False
    swap: ClassVar[SwapKernels | None] = SwapKernels(neighbors_prepare, neighbors_row, state_rows=1)

    def kernel(self):
        return _values

    def prepare(self, labels, indptr, n_jobs=None):
        gain = np.nan_to_num(labels, nan=0.0).astype(np.float64) ** self.power
        sizes = np.diff(indptr)
        return Prepared(gain, np.maximum(sizes - 1.0, 1.0), sizes, highest(gain, indptr) <= 0.0)
'''

COST = '''
"""The hinge as a pair cost."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gradrank.objectives.costs.pair_cost import CostKernels, PairCost
from gradrank.runtime.kernels import njit


@njit(cache=True, nogil=True, plain=True, inline="always")
def hinge_row(low, high, own, slope, e_shift, deltas, powers, lambdas, rhos):
    own_lambda = np.float32(0.0)
    for j in range(np.uint64(low), np.uint64(high)):
        force = abs(deltas[j]) if own * e_shift < powers[j] else np.float32(0.0)
        lambdas[j] -= force
        own_lambda += force
    return own_lambda, np.float32(0.0)


@njit(cache=True, nogil=True, plain=True)
def hinge_pair(o, slope, shift):
    return (1.0 if o + shift < 0.0 else 0.0), 0.0


@dataclass(frozen=True)
class Hinge(PairCost):
    """The hinge max(0, margin − o)."""

    margin: float = 1.0

    name: ClassVar[str] = "hinge"
    usable_curvature: ClassVar[bool] = False
    kernels: ClassVar[CostKernels] = CostKernels(hinge_row, hinge_pair)

    @property
    def shift(self):
        return -self.margin

    def cost(self, o):
        return max(0.0, self.margin - o)

    def force(self, o):
        return 1.0 if o < self.margin else 0.0

    def curvature(self, o):
        return 0.0
'''

SCRIPT = """
import numpy as np
from gradrank.data.artificial import make_splits
from gradrank.learners import LambdaMART
from gradrank.measures import parse_measure
from gradrank.objectives import parse_objective

measure = parse_measure("neighbors")
assert str(measure) == "Neighbors" and str(parse_measure("Neighbors(power=3)")) == "Neighbors(power=3)"
sets = make_splits(40, n_docs=10, n_features=5, random_state=1)
train = sets["train"]


def brute(objective, scores):
    lambdas, labels = np.zeros(train.n_docs), train.label()
    for start, end in zip(train.indptr[:-1], train.indptr[1:]):
        deltas = objective.target.swap_deltas_by_definition(labels[start:end], scores[start:end])
        for i in range(start, end):
            for j in range(start, end):
                if labels[i] > labels[j]:
                    force = objective.cost.force(scores[i] - scores[j]) * abs(deltas[i - start, j - start])
                    lambdas[i] += force
                    lambdas[j] -= force
    return lambdas


rng = np.random.default_rng(0)
labels, standing = rng.integers(0, 4, 9).astype(np.float32), rng.normal(size=9)
np.testing.assert_allclose(
    measure.swap_deltas(labels, standing), measure.swap_deltas_by_definition(labels, standing), atol=1e-12
)
learner = LambdaMART("Lambda(Neighbors, cost=hinge)").fit(train, valid=sets["vali"])
scores = rng.normal(size=train.n_docs)  # nothing is tied, and much is in the wrong order
named = ["Neighbors", "Neighbors, cost=hinge", "Neighbors, cost=hinge, margin=0.3", "MAP, cost=hinge"]
for name in [*named, "Neighbors, construction=unit-pairs", "NDCG, construction=local-cost, reach=99, cost=hinge"]:
    objective = parse_objective(f"Lambda({name})")
    assert parse_objective(str(objective)) == objective
    got = objective.bind(train).gradients(scores).lambdas
    if "unit-pairs" not in name:
        np.testing.assert_allclose(got, brute(objective, scores), rtol=1e-5, atol=1e-5)
    assert got.any()
assert measure.mean(learner.predict(train), train) > measure.mean(rng.normal(size=train.n_docs), train) + 0.05
print("trained")
"""


def test_a_measure_with_its_own_swaps_and_a_pair_cost(tmp_path: Path) -> None:
    copy = tmp_path / "gradrank"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "measures" / "neighbors.py").write_text(MEASURE)
    (copy / "objectives" / "costs" / "hinge.py").write_text(COST)
    added = {
        copy / "measures" / "registry.py": ("        Bpref,\n", "        Neighbors,\n"),
        copy / "objectives" / "costs" / "__init__.py": ("        Printed,\n", "        Hinge,\n"),
    }
    imports = {
        "registry.py": "from gradrank.measures.neighbors import Neighbors\n",
        "__init__.py": "from gradrank.objectives.costs.hinge import Hinge\n",
    }
    for file, (after, line) in added.items():
        text = file.read_text()
        assert text.count(after) == 1
        head, _, rest = text.partition("from gradrank.")
        file.write_text(head + imports[file.name] + "from gradrank." + rest.replace(after, after + line))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["NUMBA_OPT"] = "0"  # kernels that run once need not be fast

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    assert "trained" in run(sys.executable, "-c", SCRIPT)
    listed = run(sys.executable, "-c", "from gradrank.cli.main import run; run()", "measures")
    assert "Neighbors" in listed
