"""Defaults beside those of LightGBM, XGBoost and CatBoost, and the grid that the rule was chosen on.

Run: python benchmarks/defaults.py [--grid | --added | --short | --forms | --policies] [--mq2007 FOLDER]
     [--lightgbm-rank FOLDER] [--seeds 301] [--sizes 300x40,3000x20:0,…] [--families crossed:500x60x30,…]
     [--only TEXT] [--processes 2] [--store FOLDER]

A row is a contestant, a column a data set: test NDCG@10, and the CPU seconds that training took. Without
``--grid`` the contestants are gradrank without options, with validation data and without; gradrank with
``reg_lambda=0`` and as its first defaults were (300 trees of 15 leaves, rate 0.05); each other tool without options;
and each with a lower rate, more trees and early stopping on the validation data. ``--grid`` has shapes of gradrank's
trees instead, each with several patiences; ``--added`` values of ``reg_lambda``; ``--short`` the weights of LambdaWide
on short lists, beside LightGBM; ``--forms`` the ways to weigh pairs that a measure's λ's may have; all of these
grow trees leaf by leaf. ``--policies`` compares such trees with symmetric ones, with several seeds. ``--families``
adds data of other makes (families.py). No test part of MQ2007 is touched: one half of a validation part chooses the
number of trees, the other judges. Results are kept in a folder, so that nothing is trained twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
from families import family_splits
from numpy.typing import NDArray

from gradrank import LambdaMART, make_splits
from gradrank.data import RankingData
from gradrank.data.formats.letor import read_letor
from gradrank.measures import as_measure

Key = tuple[Any, ...]
Parts = tuple[RankingData, RankingData, RankingData]
Result = dict[str, Any]
FEATURES = 15
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


# ---------------------------------------------------------------------- data
@lru_cache(maxsize=1)
def parts(key: Key) -> Parts:
    """Training data, data that chooses the number of trees, data that judges."""
    kind = key[0]
    if kind == "artificial":
        _, queries, docs, noise, seed = key
        data = make_splits(queries, n_docs=docs, n_features=FEATURES, noise=noise, random_state=seed)
        return data["train"], data["vali"], data["test"]
    if kind == "family":
        data = family_splits(*key[1:])
        return data["train"], data["vali"], data["test"]
    if kind == "mq2007":
        _, folder, fold, half = key
        train, valid = _letor(folder, fold, fold + 1, fold + 2), _letor(folder, fold + 3)
        order = np.random.default_rng(0).permutation(valid.n_queries)
        halves = [valid.take_queries(np.sort(part)) for part in np.array_split(order, 2)]
        return train, halves[half], halves[1 - half]
    _, folder, fold = key
    whole = _grouped_lines(Path(folder) / "rank.train")
    quarters = np.array_split(np.random.default_rng(1).permutation(whole.n_queries), 4)
    rest = np.concatenate([quarters[(fold + 2) % 4], quarters[(fold + 3) % 4]])
    cut = (rest, quarters[(fold + 1) % 4], quarters[fold])
    train, valid, test = (whole.take_queries(np.sort(part)) for part in cut)
    return train, valid, test


def _letor(folder: str, *numbers: int) -> RankingData:
    texts = [lzma.decompress((Path(folder) / f"S{(number - 1) % 5 + 1}.txt.xz").read_bytes()) for number in numbers]
    return _read(b"".join(texts))


def _grouped_lines(path: Path) -> RankingData:
    """A file of LightGBM's examples: svmlight lines, and the number of documents of each query beside it."""
    sizes = [int(word) for word in path.with_suffix(path.suffix + ".query").read_text().split()]
    query = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    lines = [line.split(" ", 1) for line in path.read_text().splitlines()]
    return _read("".join(f"{y} qid:{q} {x}\n" for q, (y, x) in zip(query, lines, strict=True)).encode())


def _read(text: bytes) -> RankingData:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "part.txt"
        path.write_bytes(text)
        return read_letor(path)


def title(key: Key) -> str:
    """A data set in words.

    >>> title(("artificial", 300, 40, 0.3, 7))
    '300×40 noise 0.3 seed 7'
    """
    if key[0] == "artificial":
        return f"{key[1]}×{key[2]} noise {key[3]:g} seed {key[4]}"
    if key[0] == "family":
        return f"{key[1]} {key[2]}×{key[3]}×{key[4]} seed {key[5]}"
    return f"MQ2007 fold {key[2]}{'ab'[key[3]]}" if key[0] == "mq2007" else f"lightgbm-rank {key[2] + 1}"


# ---------------------------------------------------------------------- contestants
def gradrank_trees(data: Parts, settings: Mapping[str, Any], goal: str) -> Result:
    """LambdaMART; ``alone`` gives it no validation data, ``curves`` keeps what each number of trees is worth."""
    settings = dict(settings)
    alone, curves = settings.pop("alone", False), settings.pop("curves", False)
    train, valid, test = data
    learner = LambdaMART(**{"objective": goal, "measure": goal, "n_jobs": 1, **settings})
    sets = {} if alone else {"valid": valid, **({"test": test} if curves else {})}
    began = time.process_time()
    learner.fit(train, valid=sets)
    seconds = time.process_time() - began
    found: Result = {
        "trees": learner.record_.best,
        "seconds": seconds,
        "value": _value(learner.predict(test), test, goal),
    }
    if curves:
        found["curves"] = {name: [round(x, 6) for x in learner.record_.curves[name][goal]] for name in sets}
    return found


def lightgbm_trees(data: Parts, settings: Mapping[str, Any], goal: str) -> Result:
    """LightGBM's lambdarank; ``patience`` lets our measure choose on the validation data."""
    import lightgbm

    settings = {"objective": "lambdarank", "verbose": -1, "num_threads": 1, **settings}
    patience, trees = settings.pop("patience", None), settings.pop("trees", 100)
    train, valid, test = data
    began = time.process_time()
    booster = lightgbm.Booster(settings, lightgbm.Dataset(train.X, train.label(), group=train.sizes))
    scores = np.zeros(valid.n_docs)

    def more(step: int) -> NDArray[np.float64]:
        booster.update()
        if patience is not None:
            scores[:] += np.asarray(
                booster.predict(valid.X, start_iteration=step, num_iteration=1, raw_score=True, num_threads=1)
            )
        return scores

    best = _stopped(more, valid, goal, trees, patience)
    seconds = time.process_time() - began
    scores = np.asarray(booster.predict(test.X, num_iteration=best, raw_score=True, num_threads=1))
    return {"trees": best, "seconds": seconds, "value": _value(scores, test, goal)}


def xgboost_trees(data: Parts, settings: Mapping[str, Any], goal: str) -> Result:
    """XGBoost's rank:ndcg."""
    import xgboost

    settings = {"objective": "rank:ndcg", "nthread": 1, **settings}
    patience, trees = settings.pop("patience", None), settings.pop("trees", 100)
    train, valid, test = data
    began = time.process_time()
    matrix = xgboost.DMatrix(train.X, train.label(), group=train.sizes)
    booster, watched = xgboost.Booster(settings, [matrix]), xgboost.DMatrix(valid.X)
    scores = np.zeros(valid.n_docs)

    def more(step: int) -> NDArray[np.float64]:
        booster.update(matrix, step)
        if patience is not None:
            scores[:] += booster.predict(watched, iteration_range=(step, step + 1), output_margin=True)
        return scores

    best = _stopped(more, valid, goal, trees, patience)
    seconds = time.process_time() - began
    predicted = booster.predict(xgboost.DMatrix(test.X), iteration_range=(0, best), output_margin=True)
    return {"trees": best, "seconds": seconds, "value": _value(predicted, test, goal)}


def catboost_trees(data: Parts, settings: Mapping[str, Any], goal: str) -> Result:
    """CatBoost's YetiRank."""
    import catboost

    settings = {"loss_function": "YetiRank", "verbose": False, "thread_count": 1, "allow_writing_files": False,
                **settings}  # fmt: skip
    patience = settings.pop("patience", None)
    train, valid, test = data
    pools = [
        catboost.Pool(np.asarray(part.X), np.asarray(part.label()), group_id=part.query_of_row())
        for part in (train, valid)
    ]
    if patience is not None:
        settings |= {"eval_metric": "NDCG:top=10;type=Exp", "od_type": "Iter", "od_wait": patience}
    began = time.process_time()
    model = catboost.CatBoost(settings).fit(pools[0], eval_set=pools[1] if patience is not None else None)
    seconds = time.process_time() - began
    return {"trees": model.tree_count_, "seconds": seconds, "value": _value(model.predict(test.X), test, goal)}


def _stopped(
    more: Callable[[int], NDArray[np.float64]], valid: RankingData, goal: str, trees: int, patience: int | None
) -> int:
    """Boost until nothing improves; the best number of trees, or all of them without patience."""
    bound, values = as_measure(goal).parts[0].bind(valid, n_jobs=1), []
    for step in range(trees):
        scores = more(step)
        if patience is None:
            continue
        values.append(float(np.nanmean(bound.values(scores))))
        if step - int(np.argmax(values)) >= patience:
            break
    return trees if patience is None else int(np.argmax(values)) + 1


def _value(scores: Any, data: RankingData, goal: str) -> float:
    values = as_measure(goal).parts[0].bind(data, n_jobs=1).values(np.asarray(scores, dtype=np.float64))
    return float(np.nanmean(values))


TOOLS = {"gradrank": gradrank_trees, "LightGBM": lightgbm_trees, "XGBoost": xgboost_trees, "CatBoost": catboost_trees}
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


# ---------------------------------------------------------------------- runs
def run(job: tuple[Key, str, dict[str, Any], str, str]) -> Result:
    """One training, or what is kept of it."""
    key, tool, settings, goal, store = job
    name = json.dumps([key, tool, settings, goal], sort_keys=True)
    path = Path(store) / f"{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()}.json"
    if path.exists():
        kept: Result = json.loads(path.read_text())
        return kept
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {"name": name, **TOOLS[tool](parts(key), settings, goal)}
    path.write_text(json.dumps(found))
    return found


def stopped_at(curves: Mapping[str, Sequence[float]], patience: int) -> tuple[float, int]:
    """What early stopping with this patience would have given, and after how many trees."""
    best = 0
    for step, value in enumerate(curves["valid"]):
        if value > curves["valid"][best]:
            best = step
        if step - best >= patience:
            break
    return curves["test"][best], best + 1


def artificial(sizes: str, seeds: Iterable[int]) -> list[Key]:
    """Data sets of sizes such as ``300x40`` (noise 0.3) and ``300x40:0``."""
    found: list[Key] = []
    for seed in seeds:
        for size in sizes.split(","):
            shape, _, noise = size.partition(":")
            queries, docs = (int(number) for number in shape.split("x"))
            found.append(("artificial", queries, docs, float(noise or 0.3), seed))
    return found


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


def families(wanted: str, seeds: Sequence[int]) -> list[Key]:
    """Data sets of the family such as ``rare:400x30x20``: queries, documents, features.

    >>> families("rare:400x30x20", [1])
    [('family', 'rare', 400, 30, 20, 1)]
    """
    found: list[Key] = []
    for seed in seeds:
        for item in filter(None, wanted.split(",")):
            name, _, shape = item.partition(":")
            found.append(("family", name, *(int(number) for number in shape.split("x")), seed))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--added", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--forms", action="store_true")
    parser.add_argument("--policies", action="store_true")
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
    sizes = given.sizes or (SHORT_SIZES if given.short else SIZES)
    keys = artificial(sizes, map(int, given.seeds.split(","))) if sizes != "none" else []
    keys += families(given.families, [int(seed) for seed in given.seeds.split(",")])
    if given.mq2007:
        keys += [("mq2007", str(given.mq2007), int(fold), half) for fold in given.folds.split(",") for half in (0, 1)]
    if given.lightgbm_rank:
        keys += [("lightgbm-rank", str(given.lightgbm_rank), fold) for fold in (0, 1)]
    if given.grid:
        jobs = grid_jobs(keys, goal, store)
    elif given.added:
        jobs = added_jobs(keys, goal, store)
    elif given.forms:
        jobs = form_jobs(keys, goal, store)
    elif given.policies:
        jobs = policy_jobs(keys, goal, store)
    elif given.short:
        jobs = short_jobs(keys, goal, store)
    else:
        jobs = {(name, key): (key, *how, goal, store) for key in keys for name, how in CONTESTANTS.items()}
    jobs = {name: job for name, job in jobs.items() if given.only in name[0] and given.skip not in name[0]}
    with ProcessPoolExecutor(given.processes) as pool:
        results = dict(zip(jobs, pool.map(run, jobs.values()), strict=True))
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
