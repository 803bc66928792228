"""A portfolio whose members train on the workers of a real Dask cluster of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gradrank import RankingData, auto, load_ranker, make_splits
from gradrank.data.formats.registry import write_data
from gradrank.selection.members import Member
from tests.support.commands import error_of, run
from tests.support.dask_cluster import dask_client

pytest.importorskip("distributed")
# What Dask and Tornado warn of when workers are killed is not ours.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def data() -> dict[str, RankingData]:
    return make_splits(40, n_docs=8, n_features=4, random_state=1)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with dask_client() as found:
        yield found


def test_members_are_those_of_this_process_though_a_worker_is_lost(
    data: dict[str, RankingData], client: Any, tmp_path: Path
) -> None:
    here = auto(data["train"], data["vali"], budget=3600, most=2, processes=1, n_jobs=1)
    there = auto(data["train"], data["vali"], budget=3600, most=2, client=client)
    assert [row.value for row in there.rows] == [row.value for row in here.rows]
    test = data["test"]
    np.testing.assert_array_equal(there.ranker.predict(test), here.ranker.predict(test))

    for name in ("train", "vali"):
        write_data(data[name], tmp_path / f"{name}.txt")
    files = ["--train", tmp_path / "train.txt", "--valid", tmp_path / "vali.txt", "-o", tmp_path / "m.json", "-q"]
    address = client.scheduler.address
    assert run("auto", *files, "--budget", "1h", "--most", 2, "--scheduler", address).exit_code == 0
    np.testing.assert_array_equal(load_ranker(tmp_path / "m.json").predict(test), here.ranker.predict(test))
    wrong = error_of(run("auto", *files, "--scheduler", address, "--processes", 2))
    assert wrong == "--scheduler and --processes are both given, expected one of them"

    (process,) = client.run(lambda: __import__("os").getpid(), workers=[sorted(client.nthreads())[0]]).values()
    killed = []

    def kill(member: Member, fitted: Any, left: float) -> None:
        if not killed:
            killed.append(member.name)
            psutil.Process(process).kill()

    survived = auto(data["train"], data["vali"], budget=3600, most=2, client=client, listener=kill)
    assert killed == ["plain"]
    np.testing.assert_array_equal(survived.ranker.predict(test), here.ranker.predict(test))
