"""Where the data of workers comes from: files that they can read, or a Dask dataframe that they hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike, fspath
from typing import Any

from gradrank.cluster.launcher import Launcher
from gradrank.cluster.shards import Shard, deal, list_shards
from gradrank.errors import DataError, TrainingError


class Source(ABC):
    """A data set that workers can read."""

    @abstractmethod
    def deal(self, launcher: Launcher) -> list[list[Shard]]:
        """The shards of each worker."""

    def forget(self, launcher: Launcher) -> None:  # noqa: B027 - most have nothing to remove
        """Remove what was made for the workers."""


class Files(Source):
    """Files, by a path, a folder, a pattern or an address; or several of them.

    Parameters
    ----------
    patterns
        Where they are, as workers see it.
    """

    def __init__(self, patterns: list[str]) -> None:
        self._patterns = patterns

    def deal(self, launcher: Launcher) -> list[list[Shard]]:
        """See Source.deal; files are listed where the workers are."""
        found: list[tuple[str, int]] = []
        for pattern in self._patterns:
            found += [(str(path), int(size)) for path, size in launcher.call(list_shards, pattern)]
        twice = {path for at, (path, _) in enumerate(found) if path in {other for other, _ in found[:at]}}
        if twice:
            raise DataError("is given twice", path=min(twice))
        return deal(found, launcher.size)


def as_source(given: Any) -> Source:
    """What was given as training or validation data.

    Parameters
    ----------
    given
        A path, folder, pattern or address; a list of them; or a Dask dataframe.
    """
    if isinstance(given, str | PathLike):
        return Files([fspath(given)])
    if isinstance(given, list | tuple) and given and all(isinstance(item, str | PathLike) for item in given):
        return Files([fspath(item) for item in given])
    if hasattr(given, "to_delayed") and hasattr(given, "columns"):
        from gradrank.cluster.dask_frames import DaskFrame

        return DaskFrame(given)
    raise TrainingError(
        f"data for workers is a {type(given).__name__}, expected a path, a pattern such as 'part-*.parquet', or a Dask "
        "dataframe: workers read their data themselves"
    )
