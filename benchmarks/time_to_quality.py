"""Seconds until a validation NDCG@10 is reached: that of LightGBM's lambdarank after its default 100 trees.

Run: python benchmarks/time_to_quality.py [--docs 500000 --features 136 --threads 2 --seed 1 --only 'gradrank;XGB']

Artificial data, lists of 40 to 200 documents, noise 0.3. Every contestant gets the same features (float32, in memory)
and trains on two threads; its clock starts before it makes its own form of the data and is read after every tree. No
contestant evaluates while it trains: the curves are computed afterwards from the trees of each, every five trees, by
one and the same NDCG@10. Kernels are compiled and libraries loaded before, on small data. All have the rate 0.1, and 31
leaves or the tool's own symmetric trees, unless the row says otherwise; all else is each tool's default. ``LightGBM,
rate 0.3`` shows what a larger rate alone brings. The last columns: NDCG@10 after all trees; for gradrank's rows the
difference to the first of them, and p of the paired t-test over the validation queries.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradrank import LambdaMART
from gradrank.data import RankingData
from gradrank.data.artificial import make_data
from gradrank.measures import NDCG

Floats = NDArray[np.float64]
LEAVES, RATE, TREES, EVERY = 31, 0.1, 100, 5
DOCS = (40, 200)
VALIDATION_QUERIES = 2000
GOAL = NDCG(10)


class Seconds(NamedTuple):
    """Time by the clock, and the processor's, of all threads together: the latter is the same on a busy machine."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Seconds:
        """Since some fixed moment."""
        return cls(time.perf_counter(), time.process_time())

    def since(self, other: Seconds) -> Seconds:
        """From another moment to this."""
        return Seconds(self.wall - other.wall, self.cpu - other.cpu)


@dataclass(frozen=True)
class Trained:
    """When each tree was there, and the scores that trees ``first`` to ``end`` add to documents."""

    ready: Seconds
    """Clock and processor time until the tool's own form of the data was made."""
    clock: list[Seconds]
    """The same until each tree was there."""
    added: Callable[[RankingData, int, int], Floats]


Trainer = Callable[[RankingData, int, int], Trained]
"""Training data, number of trees, number of threads."""


def gradrank_trees(train: RankingData, trees: int, n_jobs: int, **settings: Any) -> Trained:
    """LambdaMART for NDCG@10."""
    from gradrank.models.trees.ensemble import assign_leaves

    clock: list[Seconds] = []
    began = Seconds.now()
    learner = LambdaMART(
        "NDCG@10", n_estimators=trees, **{"num_leaves": LEAVES, "learning_rate": RATE, **settings}, random_state=0,
        n_jobs=n_jobs, callbacks=[lambda _step: clock.append(Seconds.now().since(began))],
    ).fit(train)  # fmt: skip

    def added(data: RankingData, first: int, end: int) -> Floats:
        parts = [tree.leaf_value[assign_leaves(tree, data.X)] for (tree,) in learner.trees_[first:end]]
        return np.asarray(np.sum(parts, axis=0))

    # Its data is made inside: the first tree's time less that of the second.
    return Trained(clock[0].since(clock[1].since(clock[0])), clock, added)


def lightgbm_trees(train: RankingData, trees: int, n_jobs: int, rate: float = RATE) -> Trained:
    """LightGBM's lambdarank."""
    import lightgbm

    settings = {"objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": rate, "verbose": -1,
                "num_threads": n_jobs}  # fmt: skip
    clock: list[Seconds] = []
    began = Seconds.now()
    data = lightgbm.Dataset(train.X, train.label(), group=train.sizes, params={"verbose": -1, "num_threads": n_jobs})
    data.construct()
    ready = Seconds.now().since(began)
    booster = lightgbm.Booster(settings, data)
    for _ in range(trees):
        booster.update()
        clock.append(Seconds.now().since(began))

    def added(part: RankingData, first: int, end: int) -> Floats:
        found = booster.predict(part.X, start_iteration=first, num_iteration=end - first, raw_score=True)
        return np.asarray(found, dtype=np.float64)

    return Trained(ready, clock, added)


def xgboost_trees(train: RankingData, trees: int, n_jobs: int) -> Trained:
    """XGBoost's rank:ndcg, as many leaves, grown where the gain is largest."""
    import xgboost

    settings = {"objective": "rank:ndcg", "max_leaves": LEAVES, "grow_policy": "lossguide", "max_depth": 0,
                "eta": RATE, "nthread": n_jobs, "tree_method": "hist"}  # fmt: skip
    clock: list[Seconds] = []
    began = Seconds.now()
    data = xgboost.QuantileDMatrix(train.X, train.label(), group=train.sizes, nthread=n_jobs)
    ready = Seconds.now().since(began)
    booster = xgboost.Booster(settings, [data])
    for number in range(trees):
        booster.update(data, number)
        clock.append(Seconds.now().since(began))

    def added(part: RankingData, first: int, end: int) -> Floats:
        found = booster.predict(xgboost.DMatrix(part.X), iteration_range=(first, end), output_margin=True)
        return np.asarray(found, dtype=np.float64)

    return Trained(ready, clock, added)


def catboost_trees(train: RankingData, trees: int, n_jobs: int, **shape: Any) -> Trained:
    """CatBoost's YetiRank; its trees are symmetric and have six levels unless ``shape`` says otherwise."""
    import catboost

    class Clock:
        def after_iteration(self, _info: Any) -> bool:
            clock.append(Seconds.now().since(began))
            return True

    clock: list[Seconds] = []
    queries = np.repeat(np.arange(train.n_queries), train.sizes)
    began = Seconds.now()
    pool = catboost.Pool(np.asarray(train.X), train.label(), group_id=queries)
    ready = Seconds.now().since(began)
    model = catboost.CatBoost({"loss_function": "YetiRank", "iterations": trees, "learning_rate": RATE,
                               "thread_count": n_jobs, "verbose": False, "allow_writing_files": False,
                               "random_seed": 0, **shape})  # fmt: skip
    model.fit(pool, callbacks=[Clock()])

    def added(part: RankingData, first: int, end: int) -> Floats:
        return np.asarray(model.predict(np.asarray(part.X), ntree_start=first, ntree_end=end), dtype=np.float64)

    return Trained(ready, clock, added)


def contestants(split_docs: list[int], our_trees: int) -> dict[str, tuple[Trainer, int]]:
    """Who trains, and how many trees."""
    return {
        "LightGBM": (lightgbm_trees, TREES),
        "gradrank": (gradrank_trees, our_trees),
        "gradrank, symmetric": (partial(gradrank_trees, num_leaves=None), our_trees),
        **{
            f"gradrank, split_docs={number:,}": (partial(gradrank_trees, split_docs=number), our_trees)
            for number in split_docs
        },
        "LightGBM, rate 0.3": (partial(lightgbm_trees, rate=0.3), TREES // 2),
        "XGBoost": (xgboost_trees, TREES),
        "CatBoost": (catboost_trees, TREES),
        "CatBoost, leaf by leaf": (partial(catboost_trees, grow_policy="Lossguide", max_leaves=LEAVES), TREES),
    }


def curve(trained: Trained, valid: RankingData) -> list[tuple[int, Floats]]:
    """The goal on each validation query after every so many trees."""
    scores, found = np.zeros(valid.n_docs), []
    for first in range(0, len(trained.clock), EVERY):
        end = min(first + EVERY, len(trained.clock))
        scores = scores + trained.added(valid, first, end)
        found.append((end, GOAL.values(scores, valid)))
    return found


def p_value(differences: Floats) -> float:
    """Paired t-test."""
    from scipy import stats

    return float(stats.ttest_1samp(differences[~np.isnan(differences)], 0.0).pvalue) if differences.any() else 1.0


def main() -> None:
    """Train one after the other and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=500_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--threads", dest="n_jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--split-docs", default="50000,25000", help="numbers of documents, joined by commas")
    parser.add_argument("--our-trees", type=int, default=TREES, help="of the rows of gradrank, which need fewer")
    parser.add_argument("--only", default="", help="beginnings of names, joined by semicolons; LightGBM always is")
    options = parser.parse_args()
    make = partial(make_data, n_docs=DOCS, n_features=options.features, noise=0.3, random_state=options.seed)
    wanted = tuple(name.strip() for name in options.only.split(";") if name)
    numbers = [int(number) for number in options.split_docs.split(",")]
    who = {
        name: value
        for name, value in contestants(numbers, options.our_trees).items()
        if not wanted or name == "LightGBM" or name.startswith(wanted)
    }
    small = make(60, part=2)
    for train_one, _ in who.values():
        train_one(small, 2, options.n_jobs)
    train, valid = make(2 * options.docs // sum(DOCS), part=0), make(VALIDATION_QUERIES, part=1)
    print(f"{train.n_docs:,} documents × {train.n_features} features, {train.n_queries:,} queries, {options.n_jobs} "
          f"threads, seed {options.seed}; validation {valid.n_queries:,} queries", flush=True)  # fmt: skip
    print("| | data, s | tree, s | trees | to the goal, s | ratio | processor, s | ratio | NDCG@10 | difference | p |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    goal, theirs, plain = np.nan, Seconds(np.nan, np.nan), None
    for name, (train_one, trees) in who.items():
        trained = train_one(train, trees, options.n_jobs)
        points = curve(trained, valid)
        means = [(count, float(np.nanmean(values))) for count, values in points]
        last = points[-1][1]
        if name == "LightGBM":
            goal, theirs = means[-1][1], trained.clock[-1]
        if name == "gradrank":
            plain = last
        there = next((count for count, mean in means if mean >= goal), None)
        spent = Seconds(np.nan, np.nan) if there is None else trained.clock[there - 1]
        each = (trained.clock[-1].wall - trained.ready.wall) / len(trained.clock)
        compared = " | | "
        if plain is not None and name.startswith("gradrank"):
            compared = f" | {float(np.nanmean(last - plain)):+.4f} | {p_value(last - plain):.3f} "
        print(f"| {name} | {trained.ready.wall:.1f} | {each:.3f} | {there or '–'} | {spent.wall:.1f} | "
              f"{spent.wall / theirs.wall:.2f} | {spent.cpu:.1f} | {spent.cpu / theirs.cpu:.2f} | "
              f"{means[-1][1]:.4f}{compared}|", flush=True)  # fmt: skip
        print("    " + ", ".join(f"{count}: {mean:.4f}" for count, mean in means if count % 20 == 0), flush=True)
        del trained


if __name__ == "__main__":
    main()
