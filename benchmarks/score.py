"""Scoring speed beside LightGBM: documents per second for a batch, one query and one document.

    python benchmarks/score.py [--trees 500] [--leaves 31] [--features 136] [--documents 94620]

The model is trained on little random data and kept in the temporary folder. Both give identical scores, which is
checked. LightGBM runs with its default threads and with one thread; the faster of the two counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lightgbm
import numpy as np
from numpy.typing import NDArray

from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import assign_leaves, read_booster_tree


def random_documents(n_docs: int, n_features: int, random_state: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_docs, n_features), dtype=np.float32)
    X[:, ::3] = np.round(np.abs(X[:, ::3]) * 10)  # counts, as ranking data have
    return X


def trained_model(trees: int, leaves: int, n_features: int) -> Path:
    path = Path(tempfile.gettempdir()) / f"gradrank-score-{trees}x{leaves}x{n_features}.txt"
    if not path.exists():
        rng = np.random.default_rng(0)
        X = random_documents(20_000, n_features, 0)
        y = X @ rng.normal(size=n_features) + rng.normal(size=len(X)) * 5
        parameters = {"num_leaves": leaves, "min_data_in_leaf": 5, "feature_fraction": 0.3, "verbose": -1}
        lightgbm.train(parameters, lightgbm.Dataset(X, y), trees).save_model(path)
    return path


def best_seconds(work: Callable[[], object], *, repeats: int) -> float:
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--documents", type=int, default=94_620)
    parser.add_argument("--repeats", type=int, default=5, help="runs of the batch; small cases run 40 times as often")
    options = parser.parse_args()

    path = trained_model(options.trees, options.leaves, options.features)
    booster = lightgbm.Booster(model_file=path)
    model = load_ranker(path)
    X = random_documents(options.documents, options.features, 1)
    if not np.array_equal(model.predict(X), booster.predict(X, raw_score=True)):
        raise SystemExit("scores differ from LightGBM's")

    print(f"{options.trees} trees x {options.leaves} leaves x {options.features} features, float32")
    print(f"{'documents':>10} {'LightGBM docs/s':>16} {'gradrank docs/s':>16} {'ratio':>7}")
    for n_docs in (options.documents, 100, 1):
        rows = np.ascontiguousarray(X[:n_docs])
        repeats = options.repeats if n_docs > 1000 else 40 * options.repeats
        theirs = min(
            best_seconds(partial(booster.predict, rows, raw_score=True), repeats=repeats),
            best_seconds(partial(booster.predict, rows, raw_score=True, num_threads=1), repeats=repeats),
        )
        ours = best_seconds(partial(model.predict, rows), repeats=repeats)
        print(f"{n_docs:>10,} {n_docs / theirs:>16,.0f} {n_docs / ours:>16,.0f} {theirs / ours:>7.1f}")

    columns = np.asfortranarray(X)
    tree = read_booster_tree(booster, 0)
    theirs = best_seconds(
        lambda: booster.predict(X, pred_leaf=True, start_iteration=0, num_iteration=1), repeats=options.repeats
    )
    ours = best_seconds(lambda: assign_leaves(tree, columns), repeats=options.repeats)
    print(f"one tree's leaves: LightGBM {theirs * 1e3:.1f} ms, gradrank {ours * 1e3:.1f} ms, ratio {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
