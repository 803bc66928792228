"""The launcher for what users have: a Dask client, a Spark session, a number of processes."""

from __future__ import annotations

from typing import Any

from gradrank.cluster.launcher import Launcher
from gradrank.errors import TrainingError


def as_launcher(workers: Any) -> Launcher:
    """The launcher for a number of processes, a Dask client, a Spark session, or itself.

    Parameters
    ----------
    workers
        What the user has.

    >>> as_launcher(2).size
    2
    """
    if isinstance(workers, Launcher):
        return workers
    if isinstance(workers, int):
        from gradrank.cluster.local import LocalProcesses

        return LocalProcesses(workers)
    package = type(workers).__module__.partition(".")[0]
    if package == "distributed":
        from gradrank.cluster.dask import DaskWorkers

        return DaskWorkers(workers)
    if package == "pyspark":
        from gradrank.cluster.spark import SparkTasks

        return SparkTasks(workers)
    raise TrainingError(
        f"workers are a {type(workers).__name__}, expected a Dask client, a Spark session or a number of processes"
    )
