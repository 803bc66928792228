"""What ``gradrank auto`` ranks within a time budget, beside one plain training and LightGBM.

Run: python benchmarks/auto.py FOLDER [--folds 1,2,3,4,5 --budget 600 --serve 1.5 --processes 2 --on test]

FOLDER has a collection's five parts, ``S1.txt`` to ``S5.txt`` (or ``.xz``), which LETOR's rotation makes into folds.
All systems learn from a fold's training and validation parts: LightGBM and plain training choose their number of trees
on the validation part, ``auto`` cross-fits over both. With ``--on valid`` nothing sees the test part: training queries
are cut four to one instead, and systems are judged on the validation part; that is the way to try other rules.

Printed are means over all queries of the folds, and p-values of paired t-tests against LightGBM.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import lightgbm
import numpy as np
from numpy.typing import NDArray

from gradrank.data import RankingData
from gradrank.data.formats.registry import read_data
from gradrank.data.splits import letor_folds, split_queries
from gradrank.evaluation.significance import t_test
from gradrank.learners import LambdaMART
from gradrank.measures import Measure, parse_measure
from gradrank.models.ranker import Ranker
from gradrank.selection.auto import auto
from gradrank.selection.distil import distil

LEAVES, RATE, TREES = 15, 0.05, 300


def parts_of(folder: Path) -> list[RankingData]:
    """The five parts of a collection."""
    found = []
    for number in range(1, 6):
        names = [folder / f"S{number}.txt", folder / f"S{number}.txt.xz"]
        found.append(read_data(next(path for path in names if path.exists())))
    return found


def lightgbm_scores(
    train: RankingData, valid: RankingData, test: RankingData, measure: Measure, threads: int
) -> NDArray[np.float64]:
    """Scores of lambdarank with the number of trees that is best on the validation data, by our measure."""
    sets = [lightgbm.Dataset(data.X, data.label(), group=data.sizes) for data in (train, valid)]
    at = measure.cutoff or 10
    settings = {
        "objective": "lambdarank", "metric": "ndcg", "eval_at": [at], "num_leaves": LEAVES, "learning_rate": RATE,
        "num_threads": threads, "verbose": -1, "seed": 0, "deterministic": True, "min_data_in_leaf": 20,
    }  # fmt: skip
    booster = lightgbm.train(settings, sets[0], TREES)
    values = []
    scores = np.zeros(valid.n_docs)
    for tree in range(TREES):
        scores += booster.predict(valid.X, start_iteration=tree, num_iteration=1, raw_score=True)
        values.append(measure.mean(scores, valid))
    return np.asarray(booster.predict(test.X, num_iteration=int(np.argmax(values)) + 1, raw_score=True))


def n_trees(ranker: Ranker) -> int:
    """Trees in a ranker."""
    return sum(len(ensemble.trees) for ensemble in ranker.tree_ensembles())


def main() -> None:
    """Run the folds, print values per fold, then the means with p-values."""
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--folds", default="1,2,3,4,5")
    options.add_argument("--budget", type=float, default=600.0, help="seconds for each fold")
    options.add_argument("--most", type=int, default=None, help="most members")
    options.add_argument("--serve", type=float, default=None, help="distil to so many times the trees of plain")
    options.add_argument("--measure", default="NDCG@10")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--members", type=Path, default=None, help="folder that keeps members of each fold")
    options.add_argument("--on", choices=("test", "valid"), default="test")
    given = options.parse_args()
    measure = parse_measure(given.measure).parts[0]
    values: dict[str, list[NDArray[np.float64]]] = {}
    rotation = list(letor_folds(parts_of(given.folder)))
    for fold in map(int, given.folds.split(",")):
        train, valid, test = rotation[fold - 1]
        if given.on == "valid":
            test = valid
            train, valid = split_queries(train, [0.8, 0.2], random_state=1)
        plain = LambdaMART(str(measure), n_jobs=given.processes).fit(train, valid=valid).ranker_
        start = time.perf_counter()
        result = auto(
            train, valid, measure, budget=given.budget, most=given.most, processes=given.processes,
            n_jobs=given.processes, folder=None if given.members is None else given.members / f"fold-{fold}",
        )  # fmt: skip
        seconds = time.perf_counter() - start
        scores = {
            "LightGBM": lightgbm_scores(train, valid, test, measure, given.processes),
            "plain": plain.predict(test),
            "auto": result.ranker.predict(test),
        }
        served = ""
        if given.serve is not None:
            # The trees of the plain model beside it, not of the member, are what must not be exceeded so many times.
            member = result.members[0].parts[0][1]
            found = distil(
                result, measure, given.serve * n_trees(plain) / n_trees(member),
                budget=given.budget / 4, n_jobs=given.processes,
            )  # fmt: skip
            scores["distilled"] = found.ranker.predict(test)
            served = f"; distilled to {n_trees(found.ranker)} trees: {found.chosen}"
        for name, column in scores.items():
            values.setdefault(name, []).append(measure.values(column, test))
        told = "  ".join(f"{name} {np.nanmean(parts[-1]):.4f}" for name, parts in values.items())
        print(
            f"fold {fold}: {told}  ({len(result.rows)} members in {seconds:.0f} s, {result.blend.rule} weights, "
            f"{n_trees(plain)} and {n_trees(result.ranker)} trees{served})",
            flush=True,
        )
    print(f"\n{measure}, {given.on} queries of folds {given.folds}; p against LightGBM, all queries")
    base = np.concatenate(values["LightGBM"])
    for name, parts in values.items():
        mean = np.mean([np.nanmean(part) for part in parts])
        test_of = t_test(np.concatenate(parts), base) if name != "LightGBM" else None
        print(f"{name:<10} {mean:.4f}" + ("" if test_of is None else f"  p = {test_of.p:.2g}"))


if __name__ == "__main__":
    main()
