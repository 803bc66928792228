"""Recipes whose trainings run on the workers of a real Dask cluster of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from gradrank.cluster import dask_turns
from gradrank.errors import TrainingError
from gradrank.evaluation.tables import to_json
from gradrank.experiments import recipe, run
from gradrank.experiments.on_workers import on_workers
from gradrank.learners.algorithms import algorithm
from tests.support.commands import error_of
from tests.support.commands import run as command
from tests.support.dask_cluster import dask_client

pytest.importorskip("distributed")
pytest.importorskip("torch")
# What Dask and Tornado warn of when workers are killed is not ours.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with dask_client() as found:
        yield found


def test_results_are_those_of_this_process_though_a_worker_is_lost(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales = {
        "niu-5": replace(recipe("niu-5").tiny, rankers=("RankSVM", "FocusedSVM"), truths=("graded",)),
        "wu-fig2": recipe("wu-fig2").tiny,
        # Its adapted rankers have a base, which goes along.
        "wu-5": recipe("wu-5").tiny,
    }
    here = {name: to_json(run(name, scale=scale).to_dict()) for name, scale in scales.items()}
    said: list[str] = []
    assert to_json(run("niu-5", scale=scales["niu-5"], client=client, say=said.append).to_dict()) == here["niu-5"]
    assert not [text for text in said if "kept" in text]

    # A worker that is gone before it has its data is not waited for.
    with monkeypatch.context() as changed:
        changed.setattr(dask_turns, "workers_of", lambda client: ["tcp://127.0.0.1:9", *sorted(client.nthreads())])
        assert to_json(run("wu-fig2", scale=scales["wu-fig2"], client=client).to_dict()) == here["wu-fig2"]

    address = client.scheduler.address
    options = ["--scale", "tiny", "--out", tmp_path, "--format", "json", "-q", "--scheduler", address]
    found = command("experiment", "run", "wu-fig2", *options)
    assert found.exit_code == 0, found.stderr
    assert len(list((tmp_path / "trainings").iterdir())) == 2
    wrong = error_of(command("experiment", "run", "wu-fig2", *options, "--jobs", 2))
    assert wrong == "--scheduler and --jobs are both given, expected one of them"
    kept: list[str] = []
    run("wu-fig2", scale=replace(scales["wu-fig2"], n_jobs=1), client=client, out=tmp_path, say=kept.append)
    assert "2 of 2 trainings are kept from before" in kept

    # What a training cannot do is told as it is, and costs no worker.
    with pytest.raises(TrainingError, match="nonesuch"):
        list(on_workers(algorithm, [("nonesuch",)], client))
    other: list[str] = []
    run("donmez-fig6", scale="tiny", client=client, say=other.append)
    assert "donmez-fig6 has no trainings for workers: it runs here" in other

    (process,) = client.run(lambda: __import__("os").getpid(), workers=[sorted(client.nthreads())[0]]).values()
    killed = []

    def kill(text: str) -> None:
        if " of " in text and not killed:
            killed.append(text)
            psutil.Process(process).kill()

    assert to_json(run("wu-5", scale=scales["wu-5"], client=client, say=kill).to_dict()) == here["wu-5"]
    assert killed


def test_workers_with_other_code_are_refused(client: Any) -> None:
    def change() -> None:
        from gradrank.experiments import on_workers as module

        module.code_version = lambda: "other"

    client.wait_for_workers(1, timeout=60)
    client.run(change)
    with pytest.raises(TrainingError, match="has another version of gradrank, which trains otherwise"):
        run("wu-fig2", scale="tiny", client=client)
