"""Training on workers beside LightGBM's and XGBoost's Dask rankers, on the same workers in one run.

Run: python benchmarks/cluster.py [--docs 480000 --features 136 --trees 20 --leaves 31 --workers 1 2 3 4] [--small]
                                   [--keep FILE]

Every worker is a process of this machine with one thread, started by Dask's own command. A tool trains twice, with one
tree and with all: the difference is the time (and traffic) of a tree, the first is reading and binning. No tool sees
validation data while it trains; its curve is made afterwards, from the trees. Memory is the highest of a Dask worker
together with the processes that it starts, as gradrank does for the training, looked up 50 times a second: once with
the pages of files (libraries, which count in each process that uses them) and once without. Traffic is that of the
loopback device; gradrank also counts what its workers send. On a machine with fewer cores than workers the time of a
tree says little; the processor time of all workers per tree says what the work costs there too.

With --keep each measurement is kept in a file, and one that is there is not made again: a long run can be cut up.

At the end constants are fitted to what was measured, checked against it, and put into the formulas of the guide.
Whether workers cost quality is another question: benchmarks/cluster_quality.py.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gradrank import LambdaMART, RankingData
from gradrank.data.artificial import make_data
from gradrank.data.formats.registry import write_data
from gradrank.learners.trees.crew_training import model_digest
from gradrank.learners.trees.remote import fit_on_workers
from gradrank.measures import NDCG
from gradrank.models.trees.ensemble import TreeEnsemble

FILES = 12
DOCS = (40, 200)


@dataclass
class Found:
    """What one tool took on some workers."""

    setup: float
    per_tree: float
    processor: float
    """Seconds of processor time per tree, of all workers."""
    peak: list[float]
    """Megabytes of each worker, with the pages of files."""
    own: list[float]
    """Megabytes of each worker without them."""
    traffic: float
    """Megabytes over the loopback device per tree."""
    sent: float
    """Megabytes that gradrank's workers counted per tree, all together; 0 for others."""
    curve: list[float] = field(default_factory=list)
    """Validation NDCG@10 after each tree."""
    digest: str = ""

    @classmethod
    def of(cls, taken: Taken, watch: Watch, curve: list[float], digest: str = "") -> Found:
        """From what two trainings took."""
        return cls(taken.setup, taken.per_tree, taken.processor, watch.peak, watch.own, taken.traffic, taken.sent,
                   curve, digest)  # fmt: skip

    def seconds_to(self, target: float) -> float:
        """Time from the files until the validation measure is as good; infinite if it never is."""
        reached = [number for number, value in enumerate(self.curve) if value >= target]
        return self.setup + reached[0] * self.per_tree if reached else float("inf")


def loopback_bytes() -> int:
    """Bytes that went over the loopback device so far."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    return 0


@contextmanager
def dask_cluster(workers: int) -> Iterator[Any]:
    """A cluster of its own for each measurement, so that its memory is its own; as users start it."""
    from distributed import Client

    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        found = str(Path(place) / "scheduler.json")
        where = ["--scheduler-file", found, "--host", "127.0.0.1", "--no-dashboard"]
        calls = [["scheduler", "--port", "0", *where]]
        calls += [["worker", *where, "--nthreads", "1", "--no-nanny", "--memory-limit", "0"]] * workers
        for call in calls:
            process = subprocess.Popen([sys.executable, "-m", "dask", *call], stderr=subprocess.DEVNULL, cwd=place)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        while not Path(found).exists():
            time.sleep(0.1)
        with Client(scheduler_file=found) as client:
            client.wait_for_workers(workers, timeout=120)
            yield client


def free_ports(count: int) -> list[int]:
    """Ports for LightGBM: its own search for them fails with recent versions of Dask."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [item.getsockname()[1] for item in found]


class Watch:
    """The highest memory of each Dask worker with all that it has started, while the block lasts."""

    def __init__(self, client: Any) -> None:
        found = client.run(os.getpid)
        self.pids = [found[address] for address in sorted(found)]
        self.peak = [0.0] * len(self.pids)
        self.own = [0.0] * len(self.pids)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            for at, pid in enumerate(self.pids):
                found = [memory_of(one) for one in family(pid)]
                self.peak[at] = max(self.peak[at], sum(every for every, _ in found))
                self.own[at] = max(self.own[at], sum(own for _, own in found))


def family(pid: int) -> Iterator[int]:
    """A process and all that it has started."""
    yield pid
    for threads in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            started = threads.read_text().split()
        except OSError:
            continue
        for child in started:
            yield from family(int(child))


def memory_of(pid: int) -> tuple[float, float]:
    """Megabytes of a process, with the pages of files and without; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0, 0.0
    every, own = re.search(r"VmRSS:\s+(\d+)", text), re.search(r"RssAnon:\s+(\d+)", text)
    return (int(every[1]) / 1024 if every else 0.0), (int(own[1]) / 1024 if own else 0.0)


def processor_seconds(pids: Sequence[int]) -> float:
    """Processor time of processes and of those that they have started and that have ended."""
    ticks = 0
    for pid in pids:
        ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass
class Taken:
    """What two trainings differ by, per tree, and how long the one with a single tree took."""

    result: Any
    setup: float
    per_tree: float
    processor: float
    traffic: float
    sent: float


def twice(train: Callable[[int, str], tuple[Any, float]], pids: Sequence[int], trees: int) -> Taken:
    """Train with one tree and with all; ``train`` gives a result and the bytes that it counted itself."""
    train(1, "little")  # loads what is only loaded once
    rows = []
    for count in (1, trees):
        gc.collect()
        before = np.array([time.perf_counter(), processor_seconds(pids), loopback_bytes(), 0.0])
        result, sent = train(count, "train")
        rows.append(np.array([time.perf_counter(), processor_seconds(pids), loopback_bytes(), sent]) - before)
    per_tree, processor, traffic, more = (rows[1] - rows[0]) / (trees - 1)
    return Taken(result, float(rows[0][0]), float(per_tree), float(processor), traffic / 1e6, more / 1e6)


def ours(folder: Path, workers: int, given: argparse.Namespace, valid: RankingData) -> Found:
    """gradrank on a Dask cluster."""
    with dask_cluster(workers) as client, Watch(client) as watch:

        def train(count: int, name: str) -> tuple[Any, float]:
            learner = LambdaMART("NDCG", measure="NDCG@10", n_estimators=count, num_leaves=given.leaves,
                                 learning_rate=given.rate, subsample=1.0, n_jobs=1)  # fmt: skip
            used = fit_on_workers(learner, client, str(folder / name), {})
            return learner, sum(used["sent"])

        taken = twice(train, watch.pids, given.trees)
    learner = taken.result
    singles = [TreeEnsemble(step, valid.feature_names) for step in learner.trees_]
    curve = staged(lambda number: singles[number].grouped_scores(valid), valid, given.trees)
    digest = model_digest(learner.ranker_.to_dict())
    return Found.of(taken, watch, curve, digest)


def frames(folder: Path) -> Any:
    """A folder as a Dask dataframe, a partition per file, so that no query is cut."""
    import dask.dataframe as dd
    import pandas as pd

    files = sorted(map(str, folder.iterdir()))
    # XGBoost asks for the columns where Dask cannot look them up any more.
    frame = dd.from_map(pd.read_parquet, files, meta=pd.read_parquet(files[0]).iloc[:0])
    features = [name for name in frame.columns if name.startswith("f")]
    return frame, features


def staged(one_tree: Callable[[int], Any], valid: RankingData, trees: int) -> list[float]:
    """Validation NDCG@10 after each tree, from the scores that each tree gives."""
    bound, scores, found = NDCG(10).bind(valid), np.zeros(valid.n_docs), []
    for number in range(trees):
        scores += np.asarray(one_tree(number), dtype=np.float64)
        found.append(float(np.nanmean(bound.values(scores))))
    return found


def lightgbm(folder: Path, workers: int, given: argparse.Namespace, valid: RankingData) -> Found:
    """LightGBM's own Dask ranker, full list as ours."""
    from lightgbm import DaskLGBMRanker

    with dask_cluster(workers) as client, Watch(client) as watch:

        def train(count: int, name: str) -> tuple[Any, float]:
            frame, features = frames(folder / name)
            sizes = frame.map_partitions(
                lambda part: part.groupby("qid", sort=False).size().astype("int64"), meta=(None, "int64")
            )
            made = DaskLGBMRanker(
                client=client, n_estimators=count, num_leaves=given.leaves, learning_rate=given.rate, n_jobs=1,
                tree_learner="data", lambdarank_truncation_level=1_000_000, verbosity=-1,
                machines=",".join(f"127.0.0.1:{port}" for port in free_ports(workers)),
            )  # fmt: skip
            made.fit(frame[features].astype("float32"), frame["label"].astype("float32"), group=sizes)
            return made.booster_, 0.0

        taken = twice(train, watch.pids, given.trees)
    booster = taken.result
    curve = staged(lambda at: booster.predict(valid.X, start_iteration=at, num_iteration=1), valid, given.trees)
    return Found.of(taken, watch, curve)


def xgboost(folder: Path, workers: int, given: argparse.Namespace, valid: RankingData) -> Found:
    """XGBoost's Dask ranker."""
    from xgboost.dask import DaskXGBRanker

    with dask_cluster(workers) as client, Watch(client) as watch:

        def train(count: int, name: str) -> tuple[Any, float]:
            frame, features = frames(folder / name)
            made = DaskXGBRanker(
                n_estimators=count, max_leaves=given.leaves, max_depth=0, grow_policy="lossguide", tree_method="hist",
                learning_rate=given.rate, n_jobs=1, max_bin=255, objective="rank:ndcg",
                allow_group_split=True,  # files hold whole queries: no need to shuffle them
                lambdarank_pair_method="topk", lambdarank_num_pair_per_sample=30,
            )  # fmt: skip
            made.client = client
            made.fit(
                frame[features].astype("float32"), frame["label"].astype("int32"), qid=frame["qid"].astype("int64")
            )
            return made.get_booster(), 0.0

        taken = twice(train, watch.pids, given.trees)
    booster = taken.result
    curve = staged(lambda at: booster.inplace_predict(valid.X, iteration_range=(at, at + 1)), valid, given.trees)
    return Found.of(taken, watch, curve)


def kept(path: Path | None, key: list[Any], measure: Callable[[], Found]) -> Found:
    """A measurement of the file, or one that is made now and added to it."""
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            item = json.loads(line)
            if item["key"] == key:
                return Found(**item["found"])
    found = measure()
    if path is not None:
        with path.open("a") as file:
            print(json.dumps({"key": key, "found": asdict(found)}), file=file)
    return found


# ---------------------------------------------------------------------- what larger clusters need
def predicted_bytes(workers: int, leaves: int, bins: int) -> float:
    """Bytes that all workers send per tree: for each leaf all bins but its own share, 16 bytes each, from each worker.

    The root and the smaller child of each split are exchanged, which makes one exchange per leaf.
    """
    return leaves * 16.0 * bins * (workers - 1)


def fitted(counts: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """Constant and share of ``values`` = constant + share ÷ workers, by least squares."""
    design = np.column_stack([np.ones(len(counts)), 1.0 / np.array(counts)])
    solution = np.linalg.lstsq(design, np.array(values), rcond=None)[0]
    return float(solution[0]), float(solution[1])


def count_bins(data: RankingData) -> int:
    """Bins of all features: one for each value, at most 255."""
    return sum(min(255, len(np.unique(column))) for column in np.asarray(data.X[:50_000]).T)


def extrapolate(found: dict[int, Found], given: argparse.Namespace, bins: int) -> None:
    """The guide's formulas with the constants of this run, checked against it, and for 1,000 times the data."""
    counts = list(found)
    memory = fitted(counts, [max(found[count].peak) for count in counts])
    print("\nformulas against this run: memory of a worker (MB), MB sent per tree by all")
    for count in counts:
        said = memory[0] + memory[1] / count
        sent = predicted_bytes(count, given.leaves, bins) / 1e6
        print(f"  {count} workers: memory {max(found[count].peak):7.0f}, formula {said:7.0f};"
              f"  sent {found[count].sent:8.2f}, formula {sent:8.2f}")  # fmt: skip
    work = found[counts[0]].processor
    print("processor seconds of all workers per tree: "
          + ", ".join(f"{count} workers {found[count].processor:.2f}" for count in counts))  # fmt: skip
    print(f"\n1,000 times the data ({1000 * given.docs / 1e6:,.0f} million documents), workers of 1 thread and of 16")
    for workers in (32, 256):
        share = 1000.0 / workers
        gigabytes = (memory[0] + memory[1] * share) / 1024
        out = predicted_bytes(workers, given.leaves, bins) / workers
        wire = out * 8 / 10e9
        seconds = work * share
        print(f"  {workers} workers: {gigabytes:6.1f} GB each; {out / 1e6:6.1f} MB out of each per tree, {wire:.2f} s "
              f"at 10 Gbit/s; {seconds:7.1f} s of work per tree (16 threads: {seconds / 16:6.1f} s)")  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=480_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--small", action="store_true", help="a quick try: 30,000 documents, 40 features, 5 trees")
    parser.add_argument("--without", nargs="*", default=[], choices=["lightgbm", "xgboost"])
    parser.add_argument("--keep", type=Path, help="a file of JSON lines for what was measured")
    given = parser.parse_args()
    if given.small:
        given.docs, given.features, given.trees, given.workers = 30_000, 40, 5, [1, 2]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # nothing is left running
    warnings.simplefilter("ignore")
    logging.getLogger("distributed").setLevel(logging.ERROR)
    make = partial(make_data, n_docs=DOCS, n_features=given.features, noise=0.3, random_state=1)
    train, valid = make(2 * given.docs // sum(DOCS), part=0), make(given.docs // 5 * 2 // sum(DOCS), part=1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, data in (("train", train), ("little", valid.take_queries(np.arange(4 * FILES)))):
            (folder / name).mkdir()
            cuts = [data.n_queries * part // FILES for part in range(FILES + 1)]
            for part in range(FILES):
                # Query ids of a set must not repeat: they go on from file to file.
                write_data(
                    data.take_queries(np.arange(cuts[part], cuts[part + 1])), folder / name / f"{part:02}.parquet"
                )
        tools: dict[str, Callable[[int], Found]] = {"gradrank": lambda workers: ours(folder, workers, given, valid)}
        if "lightgbm" not in given.without:
            tools["LightGBM"] = lambda workers: lightgbm(folder, workers, given, valid)
        if "xgboost" not in given.without:
            tools["XGBoost"] = lambda workers: xgboost(folder, workers, given, valid)
        every: dict[str, dict[int, Found]] = {name: {} for name in tools}
        titles = ("", "setup s", "s/tree", "CPU s/tree", "to equal s", "NDCG@10", "peak MB", "own MB", "MB/tree")
        head = "".join(f"{title:>11}" for title in titles)
        for workers in given.workers:
            print(
                f"\n{workers} workers, {given.docs:,} × {given.features}, {given.trees} trees of {given.leaves}\n{head}"
            )
            found = {}
            for name, tool in tools.items():
                key = [name, workers, given.docs, given.features, given.leaves, given.trees, given.rate]
                found[name] = every[name][workers] = kept(given.keep, key, partial(tool, workers))
            peer = found.get("LightGBM", found["gradrank"])
            target = peer.curve[-1]
            for name, item in found.items():
                numbers = (item.setup, item.per_tree, item.processor, item.seconds_to(target), item.curve[-1],
                           max(item.peak), max(item.own), item.traffic)  # fmt: skip
                print(f"{name:>11}" + "".join(f"{number:11.4g}" for number in numbers), flush=True)
            mine = found["gradrank"]
            ratios = (mine.per_tree / peer.per_tree, mine.processor / peer.processor,
                      max(mine.peak) / max(peer.peak), max(mine.own) / max(peer.own))  # fmt: skip
            print(
                "gradrank ÷ LightGBM: s/tree {:.2f}, CPU s/tree {:.2f}, peak MB {:.2f}, own MB {:.2f}".format(*ratios)
            )
    own = every["gradrank"]
    print(f"\nthe same model from {given.workers} workers: {len({item.digest for item in own.values()}) == 1}")
    for name, runs in every.items():
        for kind, values in (("peak", [max(item.peak) for item in runs.values()]),
                             ("own", [max(item.own) for item in runs.values()])):  # fmt: skip
            fixed, share = fitted(list(runs), values)
            print(f"{name}: {kind} memory of a worker = {fixed:.0f} MB + {share:.0f} MB ÷ workers")
    extrapolate(own, given, count_bins(train))


if __name__ == "__main__":
    main()
