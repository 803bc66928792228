"""What a search for parameters gains over the defaults, judged on queries that have chosen nothing.

Run: python benchmarks/tune.py [--letor FOLDER --folds 1,2] [--artificial 150,600,2000] [--trials 25 --processes 2]

Artificial data of several sizes is searched on training queries and judged on 3,000 test queries. Of
LETOR's parts (``S1.txt`` to ``S5.txt``, or ``.xz``) a fold's training parts are searched, its validation part judges,
and its test part is not touched. Both models, of the defaults and of the best setting, are trained on all queries that
were searched, with the number of trees that cross-validation found for each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.data.formats.registry import read_data
from gradrank.data.splits import letor_folds
from gradrank.evaluation.significance import t_test
from gradrank.measures import parse_measure
from gradrank.selection.tune import refitted, tune

JUDGES, DOCS, FEATURES, NOISE = 3000, 20, 30, 0.5


def data_sets(given: argparse.Namespace) -> Iterator[tuple[str, RankingData, RankingData]]:
    """Name, queries to search on, queries to judge on."""
    for queries in map(int, given.artificial.split(",") if given.artificial else ()):
        made = make_splits(JUDGES, n_docs=DOCS, n_features=FEATURES, noise=NOISE, random_state=queries)
        yield f"artificial {queries}", made["train"].take_queries(range(queries)), made["test"]
    if given.letor is not None:
        parts = [read_data(next(given.letor.glob(f"S{number}.txt*"))) for number in range(1, 6)]
        rotation = list(letor_folds(parts))
        for fold in map(int, given.folds.split(",")):
            train, valid, _ = rotation[fold - 1]
            yield f"LETOR fold {fold}", train, valid


def main() -> None:
    """Search each data set, print a row for it."""
    options = argparse.ArgumentParser()
    options.add_argument("--letor", type=Path, default=None)
    options.add_argument("--folds", default="1,2")
    options.add_argument("--artificial", default="150,600,2000", help="numbers of training queries")
    options.add_argument("--algorithm", default="lambdamart")
    options.add_argument("--measure", default="NDCG@10")
    options.add_argument("--trials", type=int, default=25)
    options.add_argument("--no-prune", action="store_true")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    measure = parse_measure(given.measure).parts[0]
    print("data | queries | cv defaults | cv best | judged defaults | judged best | gain | p | pruned | seconds")
    for name, pool, judge in data_sets(given):
        start = time.perf_counter()
        found = tune(
            pool, None, measure, algorithm=given.algorithm, trials=given.trials, prune=not given.no_prune,
            processes=given.processes, n_jobs=given.processes, random_state=given.seed,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        plain = refitted(found, found.defaults, n_jobs=given.processes)
        values = [measure.values(ranker.predict(judge), judge) for ranker in (plain, found.ranker)]
        there = ~np.isnan(values[0])
        test = t_test(values[1][there], values[0][there])
        print(
            f"{name} | {pool.n_queries} | {found.defaults.value:.4f} | {found.best.value:.4f} | "
            f"{np.nanmean(values[0]):.4f} | {np.nanmean(values[1]):.4f} | {test.difference:+.4f} | {test.p:.2g} | "
            f"{sum(trial.state == 'pruned' for trial in found.trials)} | {seconds:.0f}",
            flush=True,
        )
        print(f"    {found.best_params}", flush=True)


if __name__ == "__main__":
    main()
