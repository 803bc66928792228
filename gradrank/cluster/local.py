"""Workers on this machine."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gradrank.cluster.launcher import GRACE_SECONDS, Heard, Launcher, first_cause
from gradrank.cluster.mesh import LostPeer
from gradrank.cluster.worker import POLL_SECONDS, Job, Surroundings, work
from gradrank.errors import TrainingError
from gradrank.runtime.threads import thread_count

_HOST = "127.0.0.1"
_MEETING_SECONDS = 60.0


class LocalProcesses(Launcher):
    """So many processes on this machine.

    Parameters
    ----------
    workers
        How many.

    >>> LocalProcesses(3).size
    3
    """

    def __init__(self, workers: int) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise TrainingError(f"workers is {workers!r}, expected a whole number of 1 or more")
        self._workers = workers

    @property
    def size(self) -> int:
        """See Launcher.size."""
        return self._workers

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """See Launcher.call."""
        return function(*arguments)

    def run(self, job: Job, heard: Heard) -> list[dict[str, Any]]:
        """See Launcher.run."""
        if job.threads is None:
            job = replace(job, threads=max(1, thread_count(None) // job.size))
        said: queue.SimpleQueue[tuple[str, int, Any]] = queue.SimpleQueue()
        wish: list[str | None] = [None]
        meeting = threading.Barrier(job.size)
        places: list[Any] = [None] * job.size

        def exchange(rank: int, value: dict[str, Any]) -> list[dict[str, Any]]:
            places[rank] = value
            try:
                meeting.wait(_MEETING_SECONDS)
            except threading.BrokenBarrierError:
                raise LostPeer("another worker did not start") from None
            return places

        def run(rank: int) -> None:
            around = Surroundings(
                _HOST,
                lambda value: exchange(rank, value),
                lambda message: said.put(("told", rank, message)),
                lambda: wish[0],
            )
            try:
                said.put(("done", rank, work(job, rank, around)))
            except BaseException as error:
                meeting.abort()
                said.put(("failed", rank, error))

        threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(job.size)]
        try:
            for thread in threads:
                thread.start()
            return _outcome(job.size, said, wish, heard)
        finally:
            wish[0] = "abort"
            for thread in threads:
                thread.join()


def _outcome(
    size: int, said: queue.SimpleQueue[tuple[str, int, Any]], wish: list[str | None], heard: Heard
) -> list[dict[str, Any]]:
    """Wait for all workers; after the first error only for a while."""
    results: dict[int, dict[str, Any]] = {}
    failed: list[BaseException] = []
    waited = 0.0
    while len(results) + len(failed) < size:
        try:
            kind, rank, what = said.get(timeout=POLL_SECONDS)
        except queue.Empty:
            if failed:
                waited += POLL_SECONDS
                if waited > GRACE_SECONDS:
                    wish[0] = "abort"
            elif heard({}) == "stop" and wish[0] is None:
                wish[0] = "stop"
            continue
        if kind == "told":
            if not failed and heard(what) == "stop" and wish[0] is None:
                wish[0] = "stop"
        elif kind == "done":
            results[rank] = what
        else:
            failed.append(what)
    if failed:
        raise first_cause(failed)
    return [results[rank] for rank in range(size)]
