"""Learning from clicks: gradrank beside LightGBM's ``position`` and XGBoost's ``lambdarank_unbiased``, on the same log.

    python benchmarks/clicks.py [--small] [--seeds N] [--queries N] [--sessions N] [--read N]

Artificial data with grades; two strong logging rankers, each trained on a twentieth of the queries, show their first
ten of 20 documents; users examine position k with probability 1/k and click by grade. Every system gets the log alone
and is measured by NDCG@10 on test queries with grades, beside the same trees trained on the grades of all training
documents. The peers get one query per session, as they want it. Last, how fast logs are read and turned into labels.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from numpy.typing import NDArray
from scipy.stats import ttest_rel

from gradrank import NDCG, LambdaMART, RankingData, make_splits
from gradrank.data.clicks.propensity import estimate_propensities
from gradrank.data.clicks.readers import ClickLog, write_click_log
from gradrank.data.clicks.sessions import session_data
from gradrank.data.clicks.simulate import Users, simulate_log
from gradrank.selection.unbiased import train_on_clicks

TREES = {"n_estimators": 150, "learning_rate": 0.1, "num_leaves": 15}
OURS, TRUE = "gradrank unbiased", "true labels"
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


def systems(
    data: RankingData, test: RankingData, log: ClickLog, seed: int, *, every: bool
) -> dict[str, Callable[[], Scores]]:
    """Trainings by name; each gives the scores of the test documents."""
    known = estimate_propensities(log)
    sessions = session_data(data, log, known)
    plain = sessions.with_document_weight(None)
    clicked = plain.label().astype(np.int64)
    position = plain.label("position").astype(np.int64) - 1
    both: list[Scores] = []

    def unbiased() -> Scores:
        result = train_on_clicks(data, log, parameters=TREES, random_state=seed, n_jobs=1)
        both.append(result.naive.predict(test))
        return result.unbiased.predict(test)

    def with_lightgbm(**extra: Any) -> Scores:
        parameters = {
            "objective": "lambdarank", "lambdarank_truncation_level": 30, "num_leaves": TREES["num_leaves"],
            "learning_rate": TREES["learning_rate"], "num_threads": 1, "verbose": -1, "seed": seed,
        }  # fmt: skip
        train = lightgbm.Dataset(plain.X, clicked, group=plain.sizes, **extra)
        booster = lightgbm.train(parameters, train, int(TREES["n_estimators"]))
        return np.asarray(booster.predict(test.X))

    def with_xgboost() -> Scores:
        ranker = xgboost.XGBRanker(
            objective="rank:ndcg", lambdarank_unbiased=True, lambdarank_pair_method="topk",
            lambdarank_num_pair_per_sample=10, n_estimators=TREES["n_estimators"], max_depth=0,
            learning_rate=TREES["learning_rate"], max_leaves=TREES["num_leaves"], grow_policy="lossguide",
            tree_method="hist", n_jobs=1, random_state=seed,
        )  # fmt: skip
        # Documents stand in the order in which they were shown, from which XGBoost takes their positions.
        ranker.fit(plain.X, clicked, qid=np.repeat(np.arange(plain.n_queries), plain.sizes))
        return np.asarray(ranker.predict(test.X), dtype=np.float64)

    found: dict[str, Callable[[], Scores]] = {
        TRUE: lambda: ours("NDCG", seed).fit(data).predict(test),
        OURS: unbiased,
        "gradrank naive": lambda: both[0],
        "LightGBM position": lambda: with_lightgbm(position=position),
        "XGBoost lambdarank_unbiased": with_xgboost,
    }
    if every:
        found |= {
            "LightGBM naive": with_lightgbm,
            "gradrank inverse propensity": lambda: ours("NDCG", seed).fit(sessions).predict(test),
            "gradrank position terms": lambda: ours("NDCG", seed, positions="position").fit(plain).predict(test),
        }
    return found


def learning(seeds: int, queries: int, sessions: int, *, every: bool) -> None:
    """Print how well each system ranks."""
    values: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    for seed in range(seeds):
        data, test, log = logged(seed, queries, sessions)
        for name, train in systems(data, test, log, seed, every=every).items():
            start = time.perf_counter()
            scores = train()
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
            values.setdefault(name, []).append(float(np.nanmean(NDCG(10).values(scores, test))))
        print(f"seed {seed}: " + ", ".join(f"{name} {found[-1]:.4f}" for name, found in values.items()), flush=True)
    print(f"\n{queries:,} queries, {sessions} sessions per query, {seeds} seeds")
    print(f"{'system':32}{'NDCG@10':>9}{'of true':>9}{'seconds':>9}{'p (ours)':>10}")
    for name, found in values.items():
        share = np.mean(found) / np.mean(values[TRUE])
        p = ttest_rel(values[OURS], found).pvalue if seeds > 1 and name not in (OURS, TRUE) else float("nan")
        print(f"{name:32}{np.mean(found):9.4f}{share:9.1%}{seconds[name] / seeds:9.1f}{p:10.4f}")


def reading(sessions: int) -> None:
    """Print how fast a log is read and turned into labels, and in how much memory."""
    data = make_splits(20_000, n_docs=15, n_features=3)["train"]
    log = simulate_log(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, sessions)
    with tempfile.TemporaryDirectory() as folder:
        lines, text = Path(folder) / "log.jsonl", Path(folder) / "log.txt"
        write_click_log(log, lines)
        write_pyclick(log, text)
        print(f"\n{sessions:,} sessions of 10 documents, {len(log.documents):,} documents; seconds of one core")
        print(f"{'':32}{'MB':>9}{'sessions/s':>12}{'peak MB':>9}")
        for path in (lines, text):
            size = path.stat().st_size / 1e6
            for what, call in (
                ("log in memory", "read_click_log(path)"),
                ("labels, block by block", "stream_click_labels(path)"),
            ):
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
    parser.add_argument("--seeds", type=int, default=10, help="0 = no training")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--sessions", type=int, default=200, help="per query")
    parser.add_argument("--read", type=int, default=1_000_000, help="sessions to read; 0 = none")
    given = parser.parse_args()
    if given.small:
        given.seeds, given.queries, given.sessions, given.read = 2, 300, 60, 100_000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if given.seeds:
            learning(given.seeds, given.queries, given.sessions, every=given.all)
        if given.read:
            reading(given.read)


if __name__ == "__main__":
    main()
