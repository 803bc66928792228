"""A small Dask cluster of this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def dask_client(workers: int = 2) -> Iterator[Any]:
    """A client of a cluster whose workers are processes with one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as found,
    ):  # fmt: skip
        found.wait_for_workers(workers, timeout=60)
        yield found
