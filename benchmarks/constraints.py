"""Improve clicks and keep 99 % of NDCG@10: the walk over a few rankers beside a sweep over 20 weights.

Over many made-up data sets: how often the constraint holds on test data, what is gained there, and what it costs.
The sweep has the same test for each weight and takes the best that passes; its rankers are not mixed.

    python benchmarks/constraints.py --seeds 100 [--results FILE]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gradrank import LambdaMART, make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.measures import Measure, as_measure, measure_values
from gradrank.models.ranker import Ranker
from gradrank.objectives import Tiered, recommended
from gradrank.selection.constrained import _lower_bound, improve
from gradrank.selection.keep import Keep

GOAL, KEEP = "CNDCG(label=clicks)@3", "NDCG@10 >= 99%"


def means(ranker: Ranker, data: RankingData, goal: Measure, keep: Keep) -> tuple[float, np.ndarray]:
    """The goal's mean and the kept measure per query."""
    values = measure_values([goal, keep.measure], ranker.grouped_scores(data), data)
    return float(np.nanmean(values[goal])), values[keep.measure]


def swept(learner: LambdaMART, parts: dict[str, RankingData], goal: Measure, keep: Keep, level: float) -> Ranker:
    """The best of 20 weights that passes the test on all validation queries."""
    rankers = []
    for weight in (0.0, *np.linspace(0.05, 1.0, 20)):
        objective = Tiered((recommended(keep.measure), recommended(goal)), (1.0 - weight, weight))
        learner.set_params(objective=objective, measure=keep.measure if weight < 1.0 else goal)
        rankers.append(learner.fit(parts["train"], valid=parts["vali"]).ranker_)
    base = means(rankers[0], parts["vali"], goal, keep)[1]
    allowed = []
    for ranker in rankers:
        own, kept = means(ranker, parts["vali"], goal, keep)
        if ranker is rankers[0] or _lower_bound(keep.excess(kept, base), level) >= 0:
            allowed.append((own, ranker))
    return max(allowed, key=lambda item: item[0])[1]


def one_data_set(
    seed: int, args: argparse.Namespace, goal: Measure, keep: Keep, *, sweep_too: bool
) -> dict[str, dict[str, Any]]:
    """What the walk, and the sweep, do on one made-up data set."""
    parts = make_splits(args.queries, n_docs=20, n_features=15, random_state=seed, noise=0.2, clicks=True)
    test = parts["test"]
    learner = LambdaMART(n_estimators=args.trees, learning_rate=0.1, random_state=seed, verbose=False)
    began = time.process_time()
    found = improve(learner, parts["train"], parts["vali"], goal, keep, level=args.level, random_state=seed)
    rankers = {"walk": (found.ranker, time.process_time() - began)}
    if sweep_too:
        began = time.process_time()
        rankers["sweep"] = (swept(learner, parts, goal, keep, args.level), time.process_time() - began)
    base_goal, base_kept = means(found.rankers["w=0"], test, goal, keep)
    results = {}
    for name, (ranker, seconds) in rankers.items():
        own, kept = means(ranker, test, goal, keep)
        holds = bool(np.nanmean(keep.excess(kept, base_kept)) >= 0)
        results[name] = {"holds": holds, "gain": own - base_goal, "seconds": seconds}
    return results


def main() -> None:
    """Run the simulation and print its summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--queries", type=int, default=1000, help="training queries; half as many for validation")
    parser.add_argument("--trees", type=int, default=60)
    parser.add_argument("--level", type=float, default=0.05)
    parser.add_argument("--no-sweep", action="store_true", help="leave the sweep out")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--results", type=Path, help="file of results as JSON lines; a run that was ended goes on from it"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    goal, keep = as_measure(GOAL), Keep.parse(KEEP)
    assert isinstance(goal, Measure)
    setting = {"queries": args.queries, "trees": args.trees, "level": args.level}
    done = args.results.read_text().splitlines() if args.results is not None and args.results.exists() else []
    kept_rows = [row for row in map(json.loads, done) if {key: row[key] for key in setting} == setting]
    known = {(row["seed"], row["name"]): row for row in kept_rows}
    names = ("walk",) if args.no_sweep else ("walk", "sweep")
    outcome: dict[str, list[tuple[bool, float, float]]] = {"walk": [], "sweep": []}
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        if not all((seed, name) in known for name in names):
            for name, found in one_data_set(seed, args, goal, keep, sweep_too="sweep" in names).items():
                known[seed, name] = {"seed": seed, "name": name, **setting, **found}
                if args.results is not None:
                    with args.results.open("a") as file:
                        file.write(json.dumps(known[seed, name]) + "\n")
        for name in names:
            row = known[seed, name]
            outcome[name].append((row["holds"], row["gain"], row["seconds"]))
        print(seed, {name: (rows[-1][0], round(rows[-1][1], 4)) for name, rows in outcome.items() if rows}, flush=True)
    for name, results in outcome.items():
        if results:
            held, gain, spent = (np.array(column, dtype=float) for column in zip(*results, strict=True))
            error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else float("nan")
            print(
                f"{name}: constraint held on test in {int(held.sum())} of {len(held)}, {goal} {gain.mean():+.4f} "
                f"± {error:.4f}, {spent.mean():.2f} s"
            )
    if outcome["sweep"]:
        ratio = sum(row[2] for row in outcome["walk"]) / sum(row[2] for row in outcome["sweep"])
        print(f"time of the walk: {ratio:.2f} × that of the sweep")


if __name__ == "__main__":
    main()
