"""Defaults beside those of LightGBM, XGBoost and CatBoost, and the grid that the rule was chosen on.

Run: python benchmarks/defaults.py [--grid | --added | --short | --forms | --policies | --objectives | --nets | --tuned]
     [--mq2007 FOLDER] [--lightgbm-rank FOLDER] [--seeds 301] [--sizes 300x40,3000x20:0,…]
     [--families crossed:500x60x30,…] [--only TEXT] [--processes 2] [--store FOLDER]

A row is a contestant, a column a data set: test NDCG@10, and the CPU seconds that training took. Without an option
the contestants are gradrank without options, with validation data and without; gradrank with ``reg_lambda=0`` and as
its first defaults were (300 trees of 15 leaves, rate 0.05); each other tool without options; and each with a lower
rate, more trees and early stopping on the validation data. With an option:

``--grid``        shapes of gradrank's trees, each with several patiences
``--added``       values of ``reg_lambda``
``--short``       the weights of LambdaWide on short lists, beside LightGBM
``--forms``       the ways to weigh pairs that a measure's λ's may have; all so far grow trees leaf by leaf
``--policies``    such trees beside symmetric ones
``--objectives``  all that symmetric trees are trained for
``--nets``        all that nets are trained for
``--tuned``       four settings of each tool, and the one of them that the validation data chooses

``--families`` adds data of other makes (families.py). No test part of MQ2007 is touched: one half of a validation part
chooses the number of trees, the other judges. Results are kept in a folder, so that nothing is trained twice.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from contests import Key, artificial, families, run, title

SIZES = "300x40,300x40:0,1000x25,3000x20,3000x20:0,10000x12,20000x10:0"
# Leaves, rate.
SHAPES = ((15, 0.1), (31, 0.1), (63, 0.1), (31, 0.05), (31, 0.2))
LARGE_SHAPES = ((31, 0.1), (63, 0.1), (127, 0.1), (63, 0.2))
SMALL_SHAPES = ((7, 0.1), (15, 0.1), (31, 0.1), (15, 0.05))
PATIENCES = (40, 60, 100, 150)
# Shares of the gains' difference; the goal has 0.2.
MUS = (0.05, 0.5, 1.0, 2.0)
# Curvature that is added to leaves.
ADDED = (0.0, 2.0, 5.0, 10.0, 20.0)
SHORT_SIZES = "1000x10,1000x10:0,2000x6,700x15"
LEVELS = (5, 6)
FORM_MUS = (0.0, 0.05, 0.1, 0.2)
WIDE = "LambdaWide(NDCG, normalize=log, gap=true, goal={goal}, mu={mu})"
# What trees are trained for, and nets.
OBJECTIVES = (
    "{goal}", "Lambda({goal}, normalize=log, gap=true)", "Lambda(NDCG, normalize=log, gap=true)",
    "LambdaLoss(NDCG, normalize=log, gap=true, scheme=loss1)",
    "LambdaLoss(NDCG, normalize=log, gap=true, scheme=loss2)",
    "LambdaLoss(NDCG, normalize=log, gap=true)", "LambdaGap(P@5, normalize=log, gap=true)", "Noisy({goal}, samples=2)",
    "Lambda({goal})", "Lambda(NDCG)", "MAP", "RankNet", "XENDCG", "XENDCG(terms=3)", "ListNet", "Regression",
    "Differences",
)  # fmt: skip
NET_OBJECTIVES = (
    "{goal}", "Lambda({goal}, normalize=log, gap=true)", "Lambda(NDCG, normalize=log, gap=true)",
    "LambdaLoss(NDCG, normalize=log, gap=true)", "XENDCG", "ApproxNDCG", "NeuralNDCG(k=10)", "ListNet", "RankNet",
)  # fmt: skip


FULL = 1_000_000
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gradrank": ("gradrank", {}),
    "gradrank, no validation data": ("gradrank", {"alone": True}),
    "gradrank, leaf by leaf": ("gradrank", {"grow_policy": "lossguide"}),
    "gradrank, 300 × 15 leaves, rate 0.05": (
        "gradrank", {"n_estimators": 300, "num_leaves": 15, "learning_rate": 0.05, "reg_lambda": 0.0},
    ),
    "LightGBM": ("LightGBM", {}),
    "LightGBM, early stopping": ("LightGBM", {"trees": 2000, "patience": 100}),
    "LightGBM, full list, rate 0.05, early stopping": (
        "LightGBM",
        {"trees": 4000, "patience": 100, "learning_rate": 0.05, "lambdarank_truncation_level": FULL},
    ),
    "XGBoost": ("XGBoost", {}),
    "XGBoost, rate 0.1, early stopping": ("XGBoost", {"trees": 2000, "patience": 100, "eta": 0.1}),
    "CatBoost": ("CatBoost", {}),
    "CatBoost, rate 0.1, early stopping": (
        "CatBoost", {"iterations": 2000, "patience": 100, "learning_rate": 0.1},
    ),
}  # fmt: skip


# Of each tool four settings; the best value on the validation data chooses.
TUNED: dict[str, tuple[dict[str, Any], ...]] = {
    "gradrank": ({}, {"learning_rate": 0.05}, {"max_depth": 6}, {"grow_policy": "lossguide"}),
    "LightGBM": tuple(
        {"trees": 3000, "patience": 100, **more}
        for more in (
            {},
            {"learning_rate": 0.05, "lambdarank_truncation_level": FULL},
            {"num_leaves": 15, "lambdarank_truncation_level": FULL},
            {"num_leaves": 15, "learning_rate": 0.05, "lambda_l2": 5.0, "feature_fraction": 0.7},
        )
    ),
    "XGBoost": tuple(
        {"trees": 3000, "patience": 100, "eta": 0.1, **more}
        for more in (
            {}, {"max_depth": 4}, {"eta": 0.05, "lambda": 5.0}, {"subsample": 0.7, "colsample_bytree": 0.7},
        )
    ),
    "CatBoost": tuple(
        {"iterations": 3000, "patience": 100, "learning_rate": 0.1, **more}
        for more in ({}, {"learning_rate": 0.05}, {"depth": 4}, {"depth": 5, "l2_leaf_reg": 10.0})
    ),
}  # fmt: skip


# ---------------------------------------------------------------------- runs
def stopped_at(curves: Mapping[str, Sequence[float]], patience: int) -> tuple[float, int]:
    """What early stopping with this patience would have given, and after how many trees."""
    best = 0
    for step, value in enumerate(curves["valid"]):
        if value > curves["valid"][best]:
            best = step
        if step - best >= patience:
            break
    return curves["test"][best], best + 1


def grid_jobs(keys: Sequence[Key], goal: str, store: str) -> dict[tuple[str, Key], Any]:
    """Shapes of trees for each data set."""
    jobs = {}
    for key in keys:
        small = key[0] != "artificial"
        shapes = SMALL_SHAPES if small else LARGE_SHAPES if key[1] >= 10_000 else SHAPES
        for leaves, rate in shapes:
            settings = {"num_leaves": leaves, "learning_rate": rate, "n_estimators": 2000,
                        "early_stopping_rounds": max(PATIENCES), "curves": True}  # fmt: skip
            jobs[f"{leaves} leaves, rate {rate}", key] = (key, "gradrank", settings, goal, store)
    return jobs


def added_jobs(keys: Sequence[Key], goal: str, store: str) -> dict[tuple[str, Key], Any]:
    """Values of ``reg_lambda`` for each data set, all else by default."""
    return {
        (f"reg_lambda {added:g}", key): (
            key,
            "gradrank",
            {"reg_lambda": added, "grow_policy": "lossguide"},
            goal,
            store,
        )
        for key in keys
        for added in ADDED
    }


def short_jobs(keys: Sequence[Key], goal: str, store: str) -> dict[tuple[str, Key], Any]:
    """Weights of pairs for each data set."""
    shape: dict[str, Any] = {"n_estimators": 200, "num_leaves": 31, "learning_rate": 0.1}
    forms = {"goal": goal, "exact": f"Lambda({goal}, normalize=log, gap=true)"}
    forms |= {f"μ = {mu}": WIDE.format(goal=goal, mu=mu) for mu in MUS}
    jobs = {}
    for key in keys:
        settings: dict[str, Any]
        for name, truncation in (("LightGBM, 30", 30), ("LightGBM, full list", FULL)):
            if truncation == FULL and key[0] == "artificial" and key[2] <= 30:
                continue  # the same
            settings = {"trees": 200, "patience": 200, "lambdarank_truncation_level": truncation}
            jobs[name, key] = (key, "LightGBM", settings, goal, store)
        for name, objective in forms.items():
            jobs[name, key] = (key, "gradrank", {"objective": objective, **shape}, goal, store)
    return jobs


def form_jobs(keys: Sequence[Key], goal: str, store: str) -> dict[tuple[str, Key], Any]:
    """Shares of the gains' difference, with λ's divided by the gap of the scores and not; all else by default."""
    jobs: dict[tuple[str, Key], Any] = {}
    for key in keys:
        for gap in ("true", "false"):
            for mu in FORM_MUS:
                kind, option = ("LambdaWide", f", mu={mu}") if mu else ("Lambda", "")
                objective = f"{kind}(NDCG, normalize=log, gap={gap}, goal={goal}{option})"
                settings = {"objective": objective, "grow_policy": "lossguide"}
                jobs[f"gap {gap}, μ = {mu}", key] = (key, "gradrank", settings, goal, store)
        for name in ("LightGBM, early stopping", "LightGBM, full list, rate 0.05, early stopping"):
            jobs[name, key] = (key, *CONTESTANTS[name], goal, store)
    return jobs


def policy_jobs(keys: Sequence[Key], goal: str, store: str) -> dict[tuple[str, Key], Any]:
    """Trees grown leaf by leaf and symmetric ones of several depths, beside those of LightGBM and CatBoost."""
    shapes: dict[str, dict[str, Any]] = {"leaf by leaf": {"grow_policy": "lossguide"}}
    shapes |= {f"symmetric, {n} levels": {"grow_policy": "symmetric", "max_depth": n} for n in LEVELS}
    jobs: dict[tuple[str, Key], Any] = {}
    for key in keys:
        for name, shape in shapes.items():
            jobs[name, key] = (key, "gradrank", shape, goal, store)
        for name in ("LightGBM, early stopping", "CatBoost, rate 0.1, early stopping"):
            jobs[name, key] = (key, *CONTESTANTS[name], goal, store)
    return jobs


def objective_jobs(keys: Sequence[Key], goal: str, store: str) -> dict[tuple[str, Key], Any]:
    """What trees are trained for, all of them symmetric; all else by default."""
    jobs: dict[tuple[str, Key], Any] = {}
    for key in keys:
        for name in OBJECTIVES:
            settings = {"objective": name.format(goal=goal), "grow_policy": "symmetric"}
            jobs[name.format(goal=goal), key] = (key, "gradrank", settings, goal, store)
        name = "LightGBM, early stopping"
        jobs[name, key] = (key, *CONTESTANTS[name], goal, store)
    return jobs


def net_jobs(keys: Sequence[Key], goal: str, store: str) -> dict[tuple[str, Key], Any]:
    """What nets are trained for."""
    return {
        (name.format(goal=goal), key): (key, "nets", {"objective": name.format(goal=goal)}, goal, store)
        for key in keys
        for name in NET_OBJECTIVES
    }


def tuned_jobs(keys: Sequence[Key], goal: str, store: str) -> dict[tuple[str, Key], Any]:
    """Every setting of each tool."""
    return {
        (f"{tool} {number}", key): (key, tool, settings, goal, store)
        for key in keys
        for tool, all_settings in TUNED.items()
        for number, settings in enumerate(all_settings, start=1)
    }


def with_tuned(results: Mapping[tuple[str, Key], Any]) -> dict[tuple[str, Key], Any]:
    """Beside the first setting of each tool the one that is best on the validation data."""
    found = dict(results)
    for tool in TUNED:
        for key in dict.fromkeys(key for _, key in results):
            of_tool = [result for (name, at), result in results.items() if at == key and name.startswith(tool)]
            if of_tool:
                found[f"{tool}, tuned", key] = max(of_tool, key=lambda result: result["valid"])
    return found


JOBS: dict[str, Callable[[Sequence[Key], str, str], dict[tuple[str, Key], Any]]] = {
    "grid": grid_jobs, "added": added_jobs, "short": short_jobs, "forms": form_jobs, "policies": policy_jobs,
    "objectives": objective_jobs, "nets": net_jobs, "tuned": tuned_jobs,
}  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    for name in JOBS:
        which.add_argument(f"--{name}", dest="which", action="store_const", const=name)
    parser.add_argument("--families", default="", help="such as crossed:500x60x30,rare:400x30x20")
    parser.add_argument("--goal", default="NDCG@10")
    parser.add_argument("--mq2007", type=Path)
    parser.add_argument("--folds", default="1,2")
    parser.add_argument("--lightgbm-rank", type=Path)
    parser.add_argument("--seeds", default="301")
    parser.add_argument("--sizes")
    parser.add_argument("--only", default="", help="contestants whose names hold this")
    parser.add_argument("--skip", default="-", help="contestants whose names hold this are left out")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--store", type=Path, default=Path(tempfile.gettempdir()) / "gradrank-defaults")
    given = parser.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    store, goal = str(given.store), given.goal
    sizes = given.sizes or (SHORT_SIZES if given.which == "short" else SIZES)
    keys = artificial(sizes, map(int, given.seeds.split(","))) if sizes != "none" else []
    keys += families(given.families, [int(seed) for seed in given.seeds.split(",")])
    if given.mq2007:
        keys += [("mq2007", str(given.mq2007), int(fold), half) for fold in given.folds.split(",") for half in (0, 1)]
    if given.lightgbm_rank:
        keys += [("lightgbm-rank", str(given.lightgbm_rank), fold) for fold in (0, 1)]
    if given.which:
        jobs = JOBS[given.which](keys, goal, store)
    else:
        jobs = {(name, key): (key, *how, goal, store) for key in keys for name, how in CONTESTANTS.items()}
    jobs = {name: job for name, job in jobs.items() if given.only in name[0] and given.skip not in name[0]}
    with ProcessPoolExecutor(given.processes) as pool:
        results = dict(zip(jobs, pool.map(run, jobs.values()), strict=True))
    if given.which == "tuned":
        results = with_tuned(results)
    for name in dict.fromkeys(name for name, _ in results):
        cells = []
        for key in keys:
            found = results.get((name, key))
            if found is None:
                cells.append("–")
            elif "curves" in found:
                stops = (stopped_at(found["curves"], patience) for patience in PATIENCES)
                cells.append(
                    " ".join(f"{value:.4f}/{trees}" for value, trees in stops) + f" ({found['seconds']:.1f} s)"
                )
            else:
                cells.append(f"{found['value']:.4f} ({found['trees']}, {found['seconds']:.1f} s)")
        there = [found["value"] for (row, _), found in results.items() if row == name]
        print(f"| {name} | {' | '.join(cells)} | {np.mean(there):.4f} |")
    print("columns:", ", ".join(map(title, keys)), "; mean")


if __name__ == "__main__":
    main()
