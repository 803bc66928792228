"""Training on workers of a real Dask cluster of this machine."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from gradrank import LambdaMART, RankingData, make_splits
from gradrank.cluster import dask as dask_launcher
from gradrank.errors import ClusterError, DataError
from gradrank.learners.trees.crew_training import model_digest
from tests.support.commands import error_of, run
from tests.support.crew import crew_processes, wait_until, write_shards

pytest.importorskip("distributed")
# What Dask and Tornado warn of when workers are killed is not ours.
pytestmark = pytest.mark.filterwarnings("ignore")

QUICK: dict[str, Any] = {"n_estimators": 6, "num_leaves": 6, "learning_rate": 0.3, "n_jobs": 1}
SLOW: dict[str, Any] = {**QUICK, "n_estimators": 100_000}


@pytest.fixture(scope="module")
def data() -> dict[str, RankingData]:
    return make_splits(40, n_docs=12, n_features=5, random_state=3)


@pytest.fixture(scope="module")
def folder(data: dict[str, RankingData], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shards")
    for name in ("train", "vali"):
        write_shards(data[name], root / name, [3, 19], ".parquet")
    return root


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A scheduler and two workers, each a process of its own as by hand."""
    from distributed import Client

    place = tmp_path_factory.mktemp("dask")
    found = place / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": place}
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", found, "--no-dashboard"], **quiet
    )
    workers = [
        subprocess.Popen(
            [*dask, "worker", "--scheduler-file", found, "--nthreads", "1", "--no-nanny", "--no-dashboard",
             "--name", name, "--host", "127.0.0.1"], **quiet)
        for name in ("one", "two", "three")
    ]  # fmt: skip
    try:
        wait_until(found.exists)
        with Client(scheduler_file=str(found), set_as_default=False, timeout=30) as client:
            client.wait_for_workers(3, timeout=60)
            yield client, scheduler, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def local(folder: Path) -> str:
    """The model of two processes of this machine."""
    learner = LambdaMART("NDCG@5", **QUICK).fit(client=2, train=folder / "train", valid=folder / "vali")
    return model_digest(learner.ranker_.to_dict())


def kill_once(process: Any) -> Any:
    def kill(step: Any) -> None:
        if step.number == 3:
            process().kill()

    return kill


# The tests go on in this order: each takes something away from the cluster.
def test_the_model_is_that_of_local_processes(
    data: dict[str, RankingData], folder: Path, local: str, cluster: Any
) -> None:
    client, _, _ = cluster
    steps: list[int] = []
    learner = LambdaMART("NDCG@5", **QUICK, callbacks=(lambda step: steps.append(step.number),))
    learner.fit(client=client, train=f"{folder}/train/part-*.parquet", valid=folder / "vali")
    assert model_digest(learner.ranker_.to_dict()) == local
    assert steps == [1, 2, 3, 4, 5, 6]

    import dask.dataframe as dd

    # Partitions of equally many rows cut queries in two.
    frame = dd.from_pandas(data["train"].to_frame(), npartitions=7, sort=False)
    framed = LambdaMART("NDCG@5", **QUICK)
    with pytest.raises(DataError, match=r"stands in \S+partition-000000.parquet and in \S+partition-000001.parquet"):
        framed.fit(client=client, train=frame)
    framed.fit(client=client, train=frame, valid=folder / "vali", shuffle=True)
    assert model_digest(framed.ranker_.to_dict()) == local
    assert error_of(run("train", "--train", "nothing.txt", "--scheduler", client.scheduler.address, "-q", "-o",
                        folder / "x.json")) == "nothing.txt: there is no such file"  # fmt: skip


def test_two_trainings_at_the_same_time_do_not_meet(folder: Path, local: str, cluster: Any) -> None:
    client, _, _ = cluster
    both_have_begun = threading.Barrier(2)

    def meet(step: Any) -> None:
        if step.number == 1:
            both_have_begun.wait(60)

    def train(_: int) -> str:
        learner = LambdaMART("NDCG@5", **QUICK, callbacks=(meet,))
        learner.fit(client=client, train=folder / "train", valid=folder / "vali")
        return model_digest(learner.ranker_.to_dict())

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(train, range(2))) == [local, local]


def test_a_killed_member_and_a_killed_worker_are_named(folder: Path, cluster: Any) -> None:
    client, _, workers = cluster
    learner = LambdaMART(**SLOW, callbacks=(kill_once(lambda: crew_processes()[0]),))
    with pytest.raises(ClusterError, match=r"worker [123] of 3 \(127.0.0.1\) was killed \(signal 9\)"):
        learner.fit(client=client, train=folder / "train")
    assert crew_processes() == []
    learner.set_params(callbacks=(kill_once(lambda: workers[0]),))
    with pytest.raises(ClusterError, match=r"worker [123] of 3 \(tcp://127.0.0.1:\d+\) is gone"):
        learner.fit(client=client, train=folder / "train")
    wait_until(lambda: crew_processes() == [])


def test_a_worker_that_is_stopped_is_named(folder: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _, workers = cluster
    monkeypatch.setattr(dask_launcher, "WORKER_SILENCE_SECONDS", 8.0)  # instead of most of a minute
    stopped = psutil.Process(workers[1].pid)

    def freeze(step: Any) -> None:
        if step.number == 3:
            stopped.suspend()

    try:
        with pytest.raises(
            ClusterError, match=r"worker [12] of 2 \(tcp://127.0.0.1:\d+\) gave no sign of life for 8 s"
        ):
            LambdaMART(**SLOW, callbacks=(freeze,)).fit(client=client, train=folder / "train")
        # Its member ends with the others, though nobody can end it.
        wait_until(lambda: all(item.status() == psutil.STATUS_ZOMBIE for item in crew_processes()))
    finally:
        stopped.resume()
    wait_until(lambda: crew_processes() == [])


def test_without_its_scheduler_everything_ends(folder: Path, cluster: Any) -> None:
    client, scheduler, _ = cluster
    learner = LambdaMART(**SLOW, callbacks=(kill_once(lambda: scheduler),))
    with pytest.raises(ClusterError, match="the Dask scheduler is gone"):
        learner.fit(client=client, train=folder / "train")
    wait_until(lambda: crew_processes() == [])
