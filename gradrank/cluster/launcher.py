"""How a crew is started: whoever has workers runs the worker function on each, and passes messages on."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradrank.cluster.mesh import LostPeer
from gradrank.cluster.worker import Job
from gradrank.errors import ClusterError

Heard = Callable[[dict[str, Any]], str | None]
"""Told each message of the first worker, and None now and then; answers ``stop`` to end the work early."""

GRACE_SECONDS = 15.0
"""After the first error the other workers get so long to end by themselves."""


class Launcher(ABC):
    """Workers, wherever they are."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of workers."""

    @abstractmethod
    def run(self, job: Job, heard: Heard) -> list[dict[str, Any]]:
        """Run a job on all workers; what each gave back, by rank. The first cause is raised if one fails."""

    @abstractmethod
    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of gradrank's where the workers are, and so their files."""


def make_job(
    task: str,
    arguments: Mapping[str, Any],
    shares: Sequence[Any],
    *,
    threads: int | None = None,
    ports: Sequence[int] | None = None,
) -> Job:
    """A job with a secret of its own."""
    return Job(task, arguments, list(shares), secrets.token_hex(16), threads, None if ports is None else list(ports))


def first_cause(found: Sequence[BaseException]) -> BaseException:
    """The error to tell: what a worker found wrong, before that it died, before that others lost it.

    >>> from gradrank.errors import DataError
    >>> first_cause([LostPeer("worker 2 was lost"), DataError("a.txt:2: no number")])
    DataError('a.txt:2: no number')
    """

    def weight(error: BaseException) -> int:
        if isinstance(error, LostPeer):
            return 2
        return 1 if isinstance(error, ClusterError) else 0

    return min(found, key=weight)
