"""Scoring speed beside LightGBM and ONNX Runtime: documents per second for a batch, one query and a few documents.

    python benchmarks/score.py [--trees 500] [--leaves 31] [--features 136] [--documents 94620]

The model is trained on little random data and kept in the temporary folder. LightGBM gives identical scores, which is
checked. It runs with its default threads and with one thread; the faster of the two counts. For up to 10 documents its
peer is its own fast path for single rows (``LGBM_BoosterPredictForMatSingleRowFast``), called without any checks by
ctypes, and ONNX Runtime with the same trees in float32; ours is the public ``predict``. Every call gets other
documents, as it is in service: with the same few again and again, processors learn the branches that they take.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lightgbm
import numpy as np
from numpy.typing import NDArray

from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import TreeEnsemble, assign_leaves, read_booster_tree

FEW = (1, 2, 4, 8, 10)


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


def onnx_bytes(model: TreeEnsemble) -> bytes:
    """The ensemble as ONNX's TreeEnsembleRegressor, thresholds in float32."""
    from onnx import TensorProto, helper

    names = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes", "nodes_truenodeids",
             "nodes_falsenodeids", "nodes_missing_value_tracks_true", "target_treeids", "target_nodeids", "target_ids",
             "target_weights")  # fmt: skip
    columns: dict[str, list[float | int | str]] = {name: [] for name in names}

    def add(*values: float | int | str) -> None:
        for name, value in zip(names[:8], values, strict=True):
            columns[name].append(value)

    for number, tree in enumerate(model.trees):
        n = tree.n_nodes
        place = [int(child) if child >= 0 else n + ~int(child) for child in np.concatenate((tree.left, tree.right))]
        for node in range(n):
            add(number, node, int(tree.split_feature[node]), float(tree.threshold[node]), "BRANCH_LEQ", place[node],
                place[n + node], 0)  # fmt: skip
        for leaf in range(tree.n_leaves):
            add(number, n + leaf, 0, 0.0, "LEAF", 0, 0, 0)
            for name, value in zip(names[8:], (number, n + leaf, 0, float(tree.leaf_value[leaf])), strict=True):
                columns[name].append(value)
    node = helper.make_node(
        "TreeEnsembleRegressor", ["X"], ["score"], domain="ai.onnx.ml", n_targets=1, aggregate_function="SUM", **columns
    )
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, model.n_features])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, [None, 1])],
    )
    opsets = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def single_rows(booster: lightgbm.Booster, X: NDArray[np.float32]) -> Callable[[int, int], None]:
    """LightGBM's fast path: scores ``count`` rows from ``first`` on, one call per row."""
    library = lightgbm.basic._LIB
    prepared, length, score = ctypes.c_void_p(), ctypes.c_int64(), np.empty(1)
    status = library.LGBM_BoosterPredictForMatSingleRowFastInit(
        booster._handle, 1, 0, -1, 0, X.shape[1], b"num_threads=1", ctypes.byref(prepared)
    )
    if status:
        raise SystemExit("LightGBM's fast path cannot be prepared")
    rows = [row.ctypes.data_as(ctypes.c_void_p) for row in X]
    out, out_length = score.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), ctypes.byref(length)
    call = library.LGBM_BoosterPredictForMatSingleRowFast

    def run(first: int, count: int) -> None:
        for row in range(first, first + count):
            call(prepared, rows[row], out_length, out)

    run(0, 1)
    if score[0] != booster.predict(X[:1], raw_score=True)[0]:
        raise SystemExit("LightGBM's fast path gives another score than its predict")
    return run


def few_documents(booster: lightgbm.Booster, model: TreeEnsemble, X: NDArray[np.float32], repeats: int) -> None:
    """Microseconds per call for 1 to 10 documents, the median over calls with other documents each."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx_bytes(model), settings, providers=["CPUExecutionProvider"])
    theirs = np.asarray(session.run(None, {"X": X[:100]})[0]).ravel()
    if not np.allclose(theirs, model.predict(X[:100]), rtol=1e-3, atol=1e-3 * float(np.abs(theirs).max())):
        raise SystemExit("ONNX Runtime scores other trees")
    fast = single_rows(booster, X)
    print(
        f"{'documents':>10} {'LightGBM fast µs':>17} {'ONNX µs':>9} {'gradrank µs':>12} {'ratio':>7} {'ONNX ratio':>11}"
    )
    for count in FEW:
        starts = list(range(0, len(X) - count, count))
        batches = [np.ascontiguousarray(X[start : start + count]) for start in starts]
        ways: list[Callable[[int], object]] = [
            lambda at: fast(starts[at], count),  # noqa: B023
            lambda at: session.run(None, {"X": batches[at]}),  # noqa: B023
            lambda at: model.predict(batches[at], n_jobs=1),  # noqa: B023
        ]
        seconds = []
        for way in ways:
            taken = []
            for at in itertools.islice(itertools.cycle(range(len(starts))), 40 * repeats + 50):
                start = time.perf_counter()
                way(at)
                taken.append(time.perf_counter() - start)
            seconds.append(float(np.median(taken[50:])))
        lgb, onnx, ours = seconds
        print(
            f"{count:>10} {lgb * 1e6:>17.1f} {onnx * 1e6:>9.1f} {ours * 1e6:>12.1f} {lgb / ours:>7.2f} "
            f"{onnx / ours:>11.2f}"
        )


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
    assert isinstance(model, TreeEnsemble)
    X = random_documents(options.documents, options.features, 1)
    if not np.array_equal(model.predict(X), booster.predict(X, raw_score=True)):
        raise SystemExit("scores differ from LightGBM's")

    print(f"{options.trees} trees x {options.leaves} leaves x {options.features} features, float32")
    print(f"{'documents':>10} {'LightGBM docs/s':>16} {'gradrank docs/s':>16} {'ratio':>7}")
    for n_docs in (options.documents, 100):
        rows = np.ascontiguousarray(X[:n_docs])
        repeats = options.repeats if n_docs > 1000 else 40 * options.repeats
        theirs = min(
            best_seconds(partial(booster.predict, rows, raw_score=True), repeats=repeats),
            best_seconds(partial(booster.predict, rows, raw_score=True, num_threads=1), repeats=repeats),
        )
        ours = best_seconds(partial(model.predict, rows), repeats=repeats)
        print(f"{n_docs:>10,} {n_docs / theirs:>16,.0f} {n_docs / ours:>16,.0f} {theirs / ours:>7.1f}")

    few_documents(booster, model, X[:2000], options.repeats)

    columns = np.asfortranarray(X)
    tree = read_booster_tree(booster, 0)
    theirs = best_seconds(
        lambda: booster.predict(X, pred_leaf=True, start_iteration=0, num_iteration=1), repeats=options.repeats
    )
    ours = best_seconds(lambda: assign_leaves(tree, columns), repeats=options.repeats)
    print(f"one tree's leaves: LightGBM {theirs * 1e3:.1f} ms, gradrank {ours * 1e3:.1f} ms, ratio {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
