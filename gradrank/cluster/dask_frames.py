"""A Dask dataframe as the data of workers: each writes its partitions beside itself, and reads them as files."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from typing import Any

from gradrank.cluster.launcher import Launcher
from gradrank.cluster.shards import Shard
from gradrank.cluster.sources import Source
from gradrank.errors import TrainingError


class DaskFrame(Source):
    """A Dask dataframe, whose partitions go from the memory of a worker to files of the same worker, nowhere else.

    Parameters
    ----------
    frame
        The dataframe; its columns are read as those of a Parquet file.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._folder = f"gradrank-{secrets.token_hex(8)}"

    def deal(self, launcher: Launcher) -> list[list[Shard]]:
        """See Source.deal."""
        from gradrank.cluster.dask import DaskWorkers

        if not isinstance(launcher, DaskWorkers):
            raise TrainingError("a Dask dataframe needs a Dask client")
        from dask import delayed

        write = delayed(_write, pure=False)
        parts = [write(part, number, self._folder) for number, part in enumerate(self._frame.to_delayed())]
        futures = launcher.client.compute(parts, workers=launcher.addresses, allow_other_workers=False)
        place = {address: rank for rank, address in enumerate(launcher.addresses)}
        dealt: list[list[Shard]] = [[] for _ in launcher.addresses]
        for number, (address, path) in enumerate(launcher.client.gather(futures)):
            dealt[place[address]].append([number, path, 0, 1])
        return dealt

    def forget(self, launcher: Launcher) -> None:
        """See Source.forget."""
        from gradrank.cluster.dask import DaskWorkers

        assert isinstance(launcher, DaskWorkers)
        launcher.client.run(_remove, self._folder, on_error="ignore")


def _write(frame: Any, number: int, folder: str) -> tuple[str, str]:
    from distributed import get_worker

    address = get_worker().address
    place = os.path.join(tempfile.gettempdir(), folder)
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, f"partition-{number:06}.parquet")
    frame.to_parquet(path, index=False)
    return address, path


def _remove(folder: str) -> None:
    shutil.rmtree(os.path.join(tempfile.gettempdir(), folder), ignore_errors=True)
