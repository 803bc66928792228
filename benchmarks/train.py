"""Speed and memory of training beside LightGBM's lambdarank, on made-up data of MSLR-WEB's shape.

Run: python benchmarks/train.py [--docs 480000 --features 136 --leaves 31 --threads 2 --rounds 8]

Both are timed at LightGBM's default truncation (30) and with the full list. The λ's shape the trees, and trees of
unequal shape take unequal time to grow: compare like with like.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gradrank.data import RankingData
from gradrank.learners.trees.grower import TreeGrower
from gradrank.learners.trees.leaf_values import leaf_values
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.measures import ERR, MAP, MRR, NDCG, Measure
from gradrank.models.trees.ensemble import assign_leaves
from gradrank.objectives import Lambda, recommended

DOCS_PER_QUERY = 120
WHOLE_LIST = 1_000_000


def made_up(docs: int, features: int, random_state: int = 0) -> RankingData:
    """Five grades that depend on a few of the features; lists as uneven as MSLR's (mean 120, deviation about 70)."""
    rng = np.random.default_rng(random_state)
    sizes = np.clip(rng.gamma(3.0, DOCS_PER_QUERY / 3.0, docs // DOCS_PER_QUERY * 2), 1, 1200).astype(np.int64)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), docs))]
    sizes = np.append(sizes, docs - sizes.sum())
    X = rng.standard_normal((docs, features), dtype=np.float32)
    X[:, : features // 3] = np.round(X[:, : features // 3])
    relevance = X[:, -1] + 0.5 * X[:, -2] * X[:, -3] + rng.standard_normal(docs, dtype=np.float32)
    labels = np.searchsorted(np.quantile(relevance, [0.5, 0.75, 0.9, 0.97]), relevance)
    return RankingData.from_arrays(X, labels, group=sizes)


def best(work: Callable[[], object], rounds: int) -> float:
    """Shortest of several runs, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def our_iteration(
    data: RankingData, leaves: int, n_jobs: int, *, quantized: bool = True, truncation: int | None = None
) -> Callable[[], object]:
    """One step of boosting: λ's of the full list (or truncated as LightGBM's), tree, leaf values, scores."""
    settings = TreeParameters(num_leaves=leaves, quantized=quantized, random_state=0, n_jobs=n_jobs)
    grower = TreeGrower(data, settings, split="newton")
    bound = replace(recommended(NDCG()), truncation=truncation).bind(data, n_jobs=n_jobs)
    scores = np.zeros(data.n_docs)
    step = 0

    def iteration() -> None:
        nonlocal step
        gradients = bound.gradients(scores)
        tree = grower.grow(gradients.lambdas, gradients.rhos, step)
        leaf = assign_leaves(tree, data.X, n_jobs=n_jobs)
        values = leaf_values("newton", leaf, tree.n_leaves, gradients.lambdas, gradients.rhos)
        scores[:] += 0.1 * values[leaf]
        step += 1

    return iteration


def their_iteration(data: RankingData, leaves: int, n_jobs: int, truncation: int) -> Callable[[], object]:
    """One step of LightGBM's lambdarank."""
    import lightgbm

    dataset = lightgbm.Dataset(data.X, data.label(), group=data.sizes)
    parameters = {"objective": "lambdarank", "num_leaves": leaves, "num_threads": n_jobs, "verbose": -1,
                  "lambdarank_truncation_level": truncation}  # fmt: skip
    return lightgbm.Booster(parameters, dataset).update  # type: ignore[no-any-return]


def tree_only(data: RankingData, leaves: int, n_jobs: int) -> Callable[[], object]:
    """A LightGBM tree for gradients that are there already: what remains of an iteration without the λ pass."""
    import lightgbm

    gradients = Lambda(NDCG()).bind(data, n_jobs=n_jobs).gradients(np.zeros(data.n_docs))
    dataset = lightgbm.Dataset(data.X, data.label(), group=data.sizes)
    booster = lightgbm.Booster(
        {"objective": "none", "num_leaves": leaves, "num_threads": n_jobs, "verbose": -1}, dataset
    )
    pair = (-gradients.lambdas, gradients.rhos)
    return lambda: booster.update(fobj=lambda _scores, _data: pair)


def lambda_pass(data: RankingData, measure: Measure, n_jobs: int) -> Callable[[], object]:
    """The λ's of the full list alone."""
    bound = Lambda(measure).bind(data, n_jobs=n_jobs)
    scores = np.random.default_rng(1).standard_normal(data.n_docs)
    return lambda: bound.gradients(scores)


def peak_memory(who: str, docs: int, features: int, leaves: int, n_jobs: int) -> float:
    """Peak memory in MB of a process that trains ten trees, its data included (Linux)."""
    command = [sys.executable, __file__, "--memory", who, "--docs", str(docs), "--features", str(features),
               "--leaves", str(leaves), "--threads", str(n_jobs)]  # fmt: skip
    return float(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def measure_memory(options: argparse.Namespace) -> None:
    """Child process: train and print the peak."""
    data = made_up(options.docs, options.features)
    # Making the data needed more than training does: the peak counts from here.
    Path("/proc/self/clear_refs").write_text("5")
    if options.memory == "gradrank":
        iteration = our_iteration(data, options.leaves, options.n_jobs)
    else:
        iteration = their_iteration(data, options.leaves, options.n_jobs, 30)
    for _ in range(10):
        iteration()
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(json.dumps(int(peak[1]) / 1024 if peak else None))


def main() -> None:
    """Print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=480_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--threads", dest="n_jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--memory", choices=["gradrank", "lightgbm"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        measure_memory(options)
        return
    data = made_up(options.docs, options.features)
    leaves, n_jobs, rounds = options.leaves, options.n_jobs, options.rounds
    print(
        f"{data.n_docs:,} documents × {data.n_features} features, {leaves} leaves, {n_jobs} threads; best of {rounds}"
    )
    # The contestants take turns, so that a busy moment hits all of them.
    iterations = {
        "gradrank, full list": our_iteration(data, leaves, n_jobs),
        "gradrank, truncated at 30": our_iteration(data, leaves, n_jobs, truncation=30),
        "gradrank, exact gradients": our_iteration(data, leaves, n_jobs, quantized=False),
        "LightGBM, truncated at 30": their_iteration(data, leaves, n_jobs, 30),
        "LightGBM, full list": their_iteration(data, leaves, n_jobs, WHOLE_LIST),
        "LightGBM, tree alone": tree_only(data, leaves, n_jobs),
    }
    times = dict.fromkeys(iterations, float("inf"))
    for _ in range(rounds):
        for name, iteration in iterations.items():
            times[name] = min(times[name], best(iteration, 1))
    default, full = times["LightGBM, truncated at 30"], times["LightGBM, full list"]
    print("one boosting iteration (ms; ratio to LightGBM truncated, to LightGBM full list)")
    for name, value in times.items():
        print(f"  {name:28} {value:8.1f}   {value / default:5.2f}   {value / full:5.2f}")
    del iterations
    theirs = full - times["LightGBM, tree alone"]
    print(f"λ pass over full lists (ms; ratio to LightGBM's, taken as iteration − tree = {theirs:.1f} ms)")
    for measure in (NDCG(), NDCG(10), MAP(), MRR(), ERR()):
        work = lambda_pass(data, measure, n_jobs)
        work()
        value = best(work, rounds)
        print(f"  {measure!s:28} {value:8.1f}   {value / theirs:5.2f}")
    print("time against documents (ms an iteration)")
    for share in (8, 4, 2, 1):
        part = made_up(options.docs // share, options.features)
        iteration = our_iteration(part, leaves, n_jobs)
        iteration()
        print(f"  {part.n_docs:>9,} {best(iteration, rounds):8.1f}")
    sizes = (options.docs, options.features, leaves, n_jobs)
    ours, lightgbms = peak_memory("gradrank", *sizes), peak_memory("lightgbm", *sizes)
    print(f"peak memory: gradrank {ours:.0f} MB, LightGBM {lightgbms:.0f} MB, ratio {ours / lightgbms:.2f}")


if __name__ == "__main__":
    main()
