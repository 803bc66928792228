"""Learning from clicks: gradrank beside LightGBM's ``position`` and XGBoost's ``lambdarank_unbiased``, on the same log.

    python benchmarks/clicks.py [--small] [--all] [--seeds N] [--queries N] [--sessions N] [--keep FILE]
        [--read N] [--times N]

Artificial data with grades; two strong logging rankers, each trained on a twentieth of the queries, show their first
ten of 20 documents; users examine position k with probability 1/k and click by grade. Every system gets the log alone
and is measured by NDCG@10 on test queries with grades, beside the same trees trained on the grades of all training
documents. The peers get one query per session, as they want it. Last, how fast logs are read and turned into labels.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from numpy.typing import NDArray
from scipy.stats import ttest_rel

from gradrank import NDCG, LambdaMART, RankingData, make_splits
from gradrank.data.clicks.click_log import ClickLog, write_click_log
from gradrank.data.clicks.joining import join_clicks
from gradrank.data.clicks.labels import click_labels
from gradrank.data.clicks.propensity import estimate_propensities
from gradrank.data.clicks.sessions import session_data
from gradrank.data.clicks.simulate import Users, simulate_log
from gradrank.selection.unbiased import CLICKS, OBJECTIVE, train_on_clicks

TREES = {"n_estimators": 150, "learning_rate": 0.1, "num_leaves": 15, "reg_lambda": 0.0}
OURS, TRUE = "gradrank unbiased", "true labels"
MAIN = (TRUE, OURS, "gradrank naive", "LightGBM position", "XGBoost lambdarank_unbiased")
OTHERS = ("LightGBM naive", "gradrank inverse propensity", "gradrank position terms")
Scores = NDArray[np.float64]


def logged(seed: int, queries: int, sessions: int) -> tuple[RankingData, RankingData, ClickLog]:
    """Training and test data, and the log of two strong rankers."""
    splits = make_splits(queries, n_docs=20, n_features=20, random_state=seed, noise=0.3)
    data = splits["train"]
    rng = np.random.default_rng(seed)
    rankers = {}
    for name in ("first", "second"):
        part = data.take_queries(rng.choice(queries, max(20, queries // 20), replace=False))
        rankers[name] = ours("NDCG", seed, n_estimators=50).fit(part).predict(data)
    users = Users(low=0.1)
    return data, splits["test"], simulate_log(data, rankers, sessions * queries, users=users, random_state=seed)


def ours(objective: str, seed: int, **parameters: Any) -> LambdaMART:
    """LambdaMART with the benchmark's parameters."""
    return LambdaMART(objective, n_jobs=1, verbose=False, random_state=seed, **{**TREES, **parameters})


def systems(data: RankingData, test: RankingData, log: ClickLog, seed: int) -> dict[str, Callable[[], Scores]]:
    """Trainings by name; each gives the scores of the test documents."""

    @cache
    def sessions() -> RankingData:
        return session_data(data, log, estimate_propensities(log))

    def unbiased() -> Scores:
        result = train_on_clicks(data, log, parameters=TREES, random_state=seed, n_jobs=1)
        return result.unbiased.predict(test)

    def naive() -> Scores:
        joined, _ = join_clicks(data, click_labels(log, "ctr"), CLICKS)
        return ours(OBJECTIVE, seed).fit(joined).predict(test)

    def with_lightgbm(*, positions: bool) -> Scores:
        plain = sessions()
        parameters = {
            "objective": "lambdarank", "lambdarank_truncation_level": 30, "num_leaves": TREES["num_leaves"],
            "learning_rate": TREES["learning_rate"], "num_threads": 1, "verbose": -1, "seed": seed,
        }  # fmt: skip
        position = plain.label("position").astype(np.int64) - 1 if positions else None
        train = lightgbm.Dataset(plain.X, plain.label().astype(np.int64), group=plain.sizes, position=position)
        booster = lightgbm.train(parameters, train, int(TREES["n_estimators"]))
        return np.asarray(booster.predict(test.X))

    def with_xgboost() -> Scores:
        plain = sessions()
        ranker = xgboost.XGBRanker(
            objective="rank:ndcg", lambdarank_unbiased=True, lambdarank_pair_method="topk",
            lambdarank_num_pair_per_sample=10, n_estimators=TREES["n_estimators"], max_depth=0,
            learning_rate=TREES["learning_rate"], max_leaves=TREES["num_leaves"], grow_policy="lossguide",
            tree_method="hist", n_jobs=1, random_state=seed,
        )  # fmt: skip
        # Documents stand in the order in which they were shown, from which XGBoost takes their positions.
        qid = np.repeat(np.arange(plain.n_queries), plain.sizes)
        ranker.fit(plain.X, plain.label().astype(np.int64), qid=qid)
        return np.asarray(ranker.predict(test.X), dtype=np.float64)

    def with_terms() -> Scores:
        plain = sessions().with_document_weight(None)
        return ours("NDCG", seed, positions="position").fit(plain).predict(test)

    return {
        TRUE: lambda: ours("NDCG", seed).fit(data).predict(test),
        OURS: unbiased,
        "gradrank naive": naive,
        "LightGBM position": lambda: with_lightgbm(positions=True),
        "XGBoost lambdarank_unbiased": with_xgboost,
        "LightGBM naive": lambda: with_lightgbm(positions=False),
        "gradrank inverse propensity": lambda: ours("NDCG", seed).fit(sessions()).predict(test),
        "gradrank position terms": with_terms,
    }


def learning(seeds: range, queries: int, sessions: int, wanted: Sequence[str], keep: Path | None) -> None:
    """Print how well each system ranks; results that the file holds already are taken from it."""
    setting = {"queries": queries, "sessions": sessions}
    kept = [json.loads(line) for line in keep.read_text().splitlines()] if keep is not None and keep.exists() else []
    known = {(row["seed"], row["system"]): row for row in kept if {key: row[key] for key in setting} == setting}
    for seed in seeds:
        if not all((seed, name) in known for name in wanted):
            data, test, log = logged(seed, queries, sessions)
            trainings = systems(data, test, log, seed)
        for name in wanted:
            if (seed, name) in known:
                continue
            start = time.perf_counter()
            value = float(np.nanmean(NDCG(10).values(trainings[name](), test)))
            row = {"seed": seed, "system": name, **setting, "ndcg": value, "seconds": time.perf_counter() - start}
            known[seed, name] = row
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        print(f"seed {seed}: " + ", ".join(f"{name} {known[seed, name]['ndcg']:.4f}" for name in wanted), flush=True)
    print(f"\n{queries:,} queries, {sessions} sessions per query, seeds {seeds.start} to {seeds.stop - 1}")
    print(f"{'system':32}{'NDCG@10':>9}{'of true':>9}{'seconds':>9}{'p (ours)':>10}")
    values = {name: np.array([known[seed, name]["ndcg"] for seed in seeds]) for name in wanted}
    for name, found in values.items():
        share = found.mean() / values[TRUE].mean() if TRUE in values else float("nan")
        compared = OURS in values and len(seeds) > 1 and name not in (OURS, TRUE)
        p = ttest_rel(values[OURS], found).pvalue if compared else float("nan")
        seconds = np.mean([known[seed, name]["seconds"] for seed in seeds])
        print(f"{name:32}{found.mean():9.4f}{share:9.1%}{seconds:9.1f}{p:10.4f}")


def reading(sessions: int, times: int) -> None:
    """Print how fast a log is read and turned into labels, and in how much memory; the file holds the log ``times``."""
    data = make_splits(20_000, n_docs=15, n_features=3)["train"]
    log = simulate_log(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, sessions)
    with tempfile.TemporaryDirectory() as folder:
        lines, text = Path(folder) / "log.jsonl", Path(folder) / "log.txt"
        write_click_log(log, lines)
        write_pyclick(log, text)
        for path in (lines, text):
            once = path.read_bytes()
            with path.open("ab") as file:
                for _ in range(times - 1):
                    file.write(once)
        sessions *= times
        print(f"\n{sessions:,} sessions of 10 documents, {len(log.documents):,} documents; seconds of one core")
        print(f"{'':32}{'MB':>9}{'sessions/s':>12}{'peak MB':>9}")
        for path in (lines, text):
            size = path.stat().st_size / 1e6
            for what, call in (
                ("log in memory", "read_click_log(path)"),
                ("labels, block by block", "stream_click_labels(path)"),
            )[int(times > 1) :]:
                program = _MEASURE.format(call=call, path=str(path))
                done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
                seconds, peak = map(float, done.stdout.split())
                print(f"{f'{path.suffix}: {what}':32}{size:9.0f}{sessions / seconds:12,.0f}{peak:9.0f}")


# In a process of its own, whose memory is that of reading alone; the first, short run compiles.
_MEASURE = """
import tempfile, time
from pathlib import Path
from gradrank.data.clicks.readers import read_click_log
from gradrank.data.clicks.streaming import stream_click_labels
whole = Path({path!r})
with tempfile.TemporaryDirectory() as folder, whole.open("rb") as file:
    path = Path(folder) / whole.name
    path.write_bytes(b"".join(file.readline() for _ in range(100)))
    {call}
path = whole
start = time.process_time()
{call}
seconds = time.process_time() - start
# The system's own count of resources goes on from that of the process that started this one.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, int(peak.split()[1]) / 1024)
"""


def write_pyclick(log: ClickLog, path: Path) -> None:
    """The log as PyClick's text."""
    queries, documents = list(log.queries), list(log.documents)
    ends, shown, order = log.indptr.tolist(), log.document.tolist(), log.order.tolist()
    with path.open("w", encoding="utf-8") as file:
        for session, query in enumerate(log.query.tolist()):
            rows = range(ends[session], ends[session + 1])
            listed = ",".join(documents[shown[i]] for i in rows)
            file.write(f"{queries[query]}\t{listed} : {' , '.join(documents[shown[i]] for i in rows if order[i])}\n")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Learning from clicks beside LightGBM and XGBoost.")
    parser.add_argument("--small", action="store_true", help="two seeds of 300 queries with 60 sessions each")
    parser.add_argument("--all", action="store_true", help="other ways of gradrank and LightGBM without positions, too")
    parser.add_argument("--only", nargs="+", choices=(*MAIN, *OTHERS), help="these systems alone")
    parser.add_argument("--seeds", type=int, default=10, help="0 = no training")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="file of results as JSON lines; a run that was ended goes on from it")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--sessions", type=int, default=200, help="per query")
    parser.add_argument("--read", type=int, default=1_000_000, help="sessions to read; 0 = none")
    parser.add_argument("--times", type=int, default=1, help="the log so often in a file, labels alone: a longer log")
    given = parser.parse_args()
    if given.small:
        given.seeds, given.queries, given.sessions, given.read = 2, 300, 60, 100_000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if given.seeds:
            wanted = given.only or (*MAIN, *(OTHERS if given.all else ()))
            seeds = range(given.first_seed, given.first_seed + given.seeds)
            learning(seeds, given.queries, given.sessions, wanted, given.keep)
        if given.read:
            reading(given.read, given.times)


if __name__ == "__main__":
    main()
