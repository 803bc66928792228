"""Data sets and contestants of the tables of defaults.py: what is trained on what, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
from families import family_splits
from numpy.typing import NDArray

from gradrank import LambdaMART, LambdaRank, make_splits
from gradrank.data import RankingData
from gradrank.data.formats.letor import read_letor
from gradrank.measures import as_measure

Key = tuple[Any, ...]
Parts = tuple[RankingData, RankingData, RankingData]
Result = dict[str, Any]
FEATURES = 15


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
        "valid": None if alone else max(learner.record_.curves["valid"][goal]),
        "value": _value(learner.predict(test), test, goal),
    }
    if curves:
        found["curves"] = {name: [round(x, 6) for x in learner.record_.curves[name][goal]] for name in sets}
    return found


def nets(data: Parts, settings: Mapping[str, Any], goal: str) -> Result:
    """LambdaRank nets of 32 hidden nodes, all features standardized."""
    train, valid, test = data
    learner = LambdaRank(
        hidden_layer_sizes="32", scaling="standard", measure=goal, early_stopping_rounds=20, n_jobs=1, **settings
    )
    began = time.process_time()
    learner.fit(train, valid=valid)
    seconds = time.process_time() - began
    curve = learner.record_.curves["valid"][goal]
    value = _value(learner.predict(test), test, goal)
    return {"trees": learner.record_.best, "seconds": seconds, "valid": max(curve), "value": value}


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

    best, reached = _stopped(more, valid, goal, trees, patience)
    seconds = time.process_time() - began
    scores = np.asarray(booster.predict(test.X, num_iteration=best, raw_score=True, num_threads=1))
    return {"trees": best, "seconds": seconds, "valid": reached, "value": _value(scores, test, goal)}


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

    best, reached = _stopped(more, valid, goal, trees, patience)
    seconds = time.process_time() - began
    predicted = booster.predict(xgboost.DMatrix(test.X), iteration_range=(0, best), output_margin=True)
    return {"trees": best, "seconds": seconds, "valid": reached, "value": _value(predicted, test, goal)}


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
    reached = None if patience is None else _value(model.predict(valid.X), valid, goal)
    return {
        "trees": model.tree_count_, "seconds": seconds, "valid": reached,
        "value": _value(model.predict(test.X), test, goal),
    }  # fmt: skip


def _stopped(
    more: Callable[[int], NDArray[np.float64]], valid: RankingData, goal: str, trees: int, patience: int | None
) -> tuple[int, float | None]:
    """Boost until nothing improves; the best number of trees and its value, or all of them without patience."""
    bound, values = as_measure(goal).parts[0].bind(valid, n_jobs=1), []
    for step in range(trees):
        scores = more(step)
        if patience is None:
            continue
        values.append(float(np.nanmean(bound.values(scores))))
        if step - int(np.argmax(values)) >= patience:
            break
    return (trees, None) if patience is None else (int(np.argmax(values)) + 1, max(values))


def _value(scores: Any, data: RankingData, goal: str) -> float:
    values = as_measure(goal).parts[0].bind(data, n_jobs=1).values(np.asarray(scores, dtype=np.float64))
    return float(np.nanmean(values))


TOOLS = {
    "gradrank": gradrank_trees, "nets": nets, "LightGBM": lightgbm_trees, "XGBoost": xgboost_trees,
    "CatBoost": catboost_trees,
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


def artificial(sizes: str, seeds: Iterable[int]) -> list[Key]:
    """Data sets of sizes such as ``300x40`` (noise 0.3) and ``300x40:0``."""
    found: list[Key] = []
    for seed in seeds:
        for size in sizes.split(","):
            shape, _, noise = size.partition(":")
            queries, docs = (int(number) for number in shape.split("x"))
            found.append(("artificial", queries, docs, float(noise or 0.3), seed))
    return found


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
