"""What is learned for a goal, beside LightGBM, XGBoost and CatBoost at comparable settings.

Run: python benchmarks/quality.py [--size tiny|small|medium] [--seeds 1] [--goal NDCG@10] [--nets] [--mq2007 FOLDER]

Every contestant trains on the same data with as many trees, leaves and the same rate; the goal chooses the number of
trees on the validation data, and the test data has the last word. A row is a training target, a column a data set.
Behind each row: the mean difference to the best of LightGBM's truncations on each data set, and on how many of them it
is significant (paired t-test over the queries, 5 %), won and lost. ``--mq2007`` adds MQ2007 (a folder with S1.txt.xz …
S5.txt.xz), folds 1 to 3: the number of trees is chosen on one half of the *validation* part and judged on the other, so
that no test part is touched. How long it takes to get there: ``time_to_quality.py``.
"""

from __future__ import annotations

import argparse
import lzma
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank import LambdaMART, LambdaRank, make_splits
from gradrank.data import RankingData
from gradrank.data.formats.letor import read_letor
from gradrank.measures import Measure, as_measure
from gradrank.models.trees.ensemble import assign_leaves

Floats = NDArray[np.float64]
EVERY = 10
# Queries, documents per query, features, noise.
SIZES: dict[str, list[tuple[int, int, int, float]]] = {
    "tiny": [(100, 20, 10, 0.3)],
    "small": [(300, 40, 25, 0.3), (300, 150, 25, 0.3), (1000, 10, 25, 0.0), (1000, 60, 25, 0.3)],
    "medium": [
        (300, 40, 25, 0.3), (300, 150, 25, 0.0), (2000, 20, 25, 0.3), (2000, 60, 50, 0.3), (2000, 60, 50, 0.0),
        (3000, 100, 136, 0.3), (20_000, 20, 25, 0.3),
    ],
}  # fmt: skip
TARGETS = (
    "{goal}",
    "Lambda({goal}, normalize=log, gap=true)",
    "Lambda(NDCG@30, normalize=log, gap=true)",
    "Lambda(NDCG, normalize=log, gap=true)",
    "LambdaLoss(NDCG, normalize=log, gap=true)",
    "XENDCG(terms=3)",
    "RankNet",
    "Noisy({goal}, samples=2)",
)
NET_TARGETS = (
    "{goal}", "Lambda({goal}, normalize=log, gap=true)", "Lambda(NDCG, normalize=log, gap=true)", "XENDCG",
    "ApproxNDCG", "NeuralNDCG", "ListNet",
)  # fmt: skip


@dataclass(frozen=True)
class Contest:
    """Data to learn from, and pairs of parts: the first chooses the number of trees, the second judges."""

    name: str
    train: RankingData
    parts: Sequence[tuple[RankingData, RankingData]]
    trees: int = 200
    leaves: int = 31
    rate: float = 0.1


Staged = Callable[[RankingData], list[Floats]]
"""Scores after every so many trees."""


def artificial(size: tuple[int, int, int, float], seed: int) -> Contest:
    """Made-up data of a known truth."""
    queries, docs, features, noise = size
    data = make_splits(queries, n_docs=docs, n_features=features, noise=noise, random_state=seed)
    name = f"{queries}×{docs}×{features} noise {noise:g} seed {seed}"
    return Contest(name, data["train"], [(data["vali"], data["test"])])


def mq2007(folder: Path) -> list[Contest]:
    """Folds 1 to 3, judged on their validation parts."""
    texts = {part: lzma.decompress((folder / f"S{part}.txt.xz").read_bytes()) for part in range(1, 6)}
    contests = []
    with tempfile.TemporaryDirectory() as place:

        def read(*parts: int) -> RankingData:
            path = Path(place) / "part.txt"
            path.write_bytes(b"".join(texts[(part - 1) % 5 + 1] for part in parts))
            return read_letor(path)

        for fold in (1, 2, 3):
            valid = read(fold + 3)
            order = np.random.default_rng(0).permutation(valid.n_queries)
            half = len(order) // 2
            one, two = (valid.take_queries(np.sort(part)) for part in (order[:half], order[half:]))
            train = read(fold, fold + 1, fold + 2)
            contests.append(Contest(f"MQ2007 fold {fold}", train, [(one, two), (two, one)], 300, 15, 0.05))
    return contests


def our_trees(contest: Contest, target: str, seed: int) -> Staged:
    """LambdaMART by an objective."""
    learner = LambdaMART(target, n_estimators=contest.trees, num_leaves=contest.leaves, learning_rate=contest.rate,
                         random_state=seed, n_jobs=1).fit(contest.train)  # fmt: skip

    def staged(data: RankingData) -> list[Floats]:
        scores, kept = np.zeros(data.n_docs), []
        for number, (tree,) in enumerate(learner.trees_, start=1):
            scores = scores + tree.leaf_value[assign_leaves(tree, data.X, n_jobs=1)]
            if number % EVERY == 0:
                kept.append(scores)
        return kept

    return staged


def lightgbm_trees(contest: Contest, truncation: int) -> Staged:
    """LightGBM's lambdarank."""
    import lightgbm

    settings = {"objective": "lambdarank", "lambdarank_truncation_level": truncation, "num_leaves": contest.leaves,
                "learning_rate": contest.rate, "verbose": -1, "num_threads": 1}  # fmt: skip
    data = lightgbm.Dataset(contest.train.X, contest.train.label(), group=contest.train.sizes)
    booster = lightgbm.train(settings, data, contest.trees)
    return lambda part: [
        np.asarray(booster.predict(part.X, num_iteration=count, raw_score=True, num_threads=1))
        for count in range(EVERY, contest.trees + 1, EVERY)
    ]


def xgboost_trees(contest: Contest) -> Staged:
    """XGBoost's rank:ndcg, as many leaves, grown where the gain is largest."""
    import xgboost

    settings = {"objective": "rank:ndcg", "max_leaves": contest.leaves, "grow_policy": "lossguide", "max_depth": 0,
                "eta": contest.rate, "nthread": 1, "tree_method": "hist"}  # fmt: skip
    data = xgboost.DMatrix(contest.train.X, contest.train.label(), group=contest.train.sizes)
    booster = xgboost.train(settings, data, contest.trees)
    return lambda part: [
        booster.predict(xgboost.DMatrix(part.X), iteration_range=(0, count), output_margin=True).astype(np.float64)
        for count in range(EVERY, contest.trees + 1, EVERY)
    ]


def catboost_trees(contest: Contest) -> Staged:
    """CatBoost's YetiRank, as many leaves."""
    import catboost

    train = contest.train
    queries = np.repeat(np.arange(train.n_queries), train.sizes)
    model = catboost.CatBoost({"loss_function": "YetiRank", "iterations": contest.trees, "max_leaves": contest.leaves,
                               "grow_policy": "Lossguide", "learning_rate": contest.rate, "thread_count": 1,
                               "verbose": False, "allow_writing_files": False, "random_seed": 0})  # fmt: skip
    model.fit(catboost.Pool(np.asarray(train.X), train.label(), group_id=queries))
    return lambda part: [
        np.asarray(model.predict(np.asarray(part.X), ntree_end=count, thread_count=1), dtype=np.float64)
        for count in range(EVERY, contest.trees + 1, EVERY)
    ]


def judged(staged: Staged, contest: Contest, goal: Measure) -> Floats:
    """The goal on each judged query, with the number of trees that the other part chose."""
    values = []
    for chooses, judges in contest.parts:
        curve = [goal.mean(scores, chooses) for scores in staged(chooses)]
        values.append(goal.values(staged(judges)[int(np.argmax(curve))], judges))
    return np.concatenate(values)


def net(contest: Contest, target: str, goal: Measure, seed: int) -> Floats:
    """LambdaRank by an objective, 32 hidden nodes."""
    values = []
    for chooses, judges in contest.parts:
        learner = LambdaRank(target, hidden_layer_sizes=32, epochs=40, measure=goal, random_state=seed, n_jobs=1)
        learner.fit(contest.train, valid=chooses)
        values.append(goal.values(learner.predict(judges), judges))
    return np.concatenate(values)


def compared(found: Mapping[str, Mapping[str, Floats]], base: Callable[[str], bool]) -> str:
    """The table: means, and each row beside the best of the base rows on each data set."""
    from scipy import stats

    contests = list(found)
    rows = list(dict.fromkeys(row for per in found.values() for row in per))
    lines = [
        "| trained for | " + " | ".join(contests) + " | difference | won | lost |",
        "|---|" + "---|" * (len(contests) + 3),
    ]
    for row in rows:
        cells, differences, won, lost = [], [], 0, 0
        for contest in contests:
            per = found[contest]
            cells.append(f"{np.nanmean(per[row]):.4f}")
            best = max((name for name in per if base(name)), key=lambda name: float(np.nanmean(per[name])))
            difference = per[row] - per[best]
            difference = difference[~np.isnan(difference)]
            differences.append(float(difference.mean()))
            if difference.any() and stats.ttest_1samp(difference, 0.0).pvalue < 0.05:
                won, lost = won + (difference.mean() > 0), lost + (difference.mean() < 0)
        lines.append(f"| {row} | {' | '.join(cells)} | {np.mean(differences):+.4f} | {won} | {lost} |")
    return "\n".join(lines)


def contestants(contest: Contest, goal: Measure, *, nets: bool, peers: bool) -> dict[str, Callable[[], Floats]]:
    """What trains on a data set, by name."""
    targets = dict.fromkeys(target.format(goal=goal) for target in (NET_TARGETS if nets else TARGETS))
    if nets:
        return {target: partial(net, contest, target, goal, 0) for target in targets}
    makers: dict[str, Callable[[], Staged]] = {target: partial(our_trees, contest, target, 0) for target in targets}
    for truncation, name in ((10, "10"), (30, "30"), (1_000_000, "full list")):
        makers[f"LightGBM, {name}"] = partial(lightgbm_trees, contest, truncation)
    if peers:
        makers["XGBoost rank:ndcg"] = partial(xgboost_trees, contest)
        makers["CatBoost YetiRank"] = partial(catboost_trees, contest)

    def run(maker: Callable[[], Staged]) -> Floats:
        return judged(maker(), contest, goal)

    return {name: partial(run, maker) for name, maker in makers.items()}


def main() -> None:
    """Train everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(SIZES), default="small")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=101)
    parser.add_argument("--goal", default="NDCG@10")
    parser.add_argument("--nets", action="store_true", help="nets by several objectives instead of trees")
    parser.add_argument("--no-peers", action="store_true", help="leave out XGBoost and CatBoost")
    parser.add_argument("--mq2007", type=Path)
    options = parser.parse_args()
    goal = as_measure(options.goal)
    if not isinstance(goal, Measure):
        parser.error(f"--goal is {goal}, expected one measure")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    contests = [artificial(size, seed) for size in SIZES[options.size] for seed in seeds]
    if options.mq2007 is not None:
        contests += mq2007(options.mq2007)
    found: dict[str, dict[str, Floats]] = {}
    for contest in contests:
        per = found[contest.name] = {}
        for name, run in contestants(contest, goal, nets=options.nets, peers=not options.no_peers).items():
            began = time.perf_counter()
            per[name] = run()
            seconds = time.perf_counter() - began
            print(f"{contest.name}: {name}: {np.nanmean(per[name]):.4f} ({seconds:.0f} s)", flush=True)
    base = "Lambda(" if options.nets else "LightGBM"
    print(f"\n{goal}; difference: to the best {'exact λ' if options.nets else 'LightGBM'} of each data set\n")
    print(compared(found, lambda name: name.startswith(base)))


if __name__ == "__main__":
    main()
