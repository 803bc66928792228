"""What a Dask worker runs for a crew: the worker function, with signs of life in both directions by the scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from gradrank.cluster.mesh import LostPeer
from gradrank.cluster.worker import Job, Surroundings, reported
from gradrank.errors import ClusterError

LOOK_SECONDS = 2.0
"""Each side gives a sign of life, or looks for one, so often."""
SILENCE_SECONDS = 20.0
"""A client or scheduler that gives no sign of life for so long is gone."""
_MEETING_SECONDS = 60
_BEAT_SECONDS = 5.0
_ANSWER_SECONDS = 25.0


class SchedulerSilentError(ClusterError):
    """The scheduler does not answer; whether it hangs or is gone, the state of the connection tells."""


def answered(ask: Callable[..., Any], *arguments: Any, seconds: float = _ANSWER_SECONDS, **options: Any) -> Any:
    """What the scheduler answers to a question; one that hangs would be waited for without an end."""
    try:
        return ask(*arguments, callback_timeout=seconds, **options)
    except TimeoutError:
        raise SchedulerSilentError(f"the Dask scheduler has not answered for {seconds:.0f} s") from None


def dask_task(job: dict[str, Any], rank: int, name: str) -> dict[str, Any]:
    """What Dask runs on each worker."""
    from distributed import Queue, Variable, get_client, get_worker, secede

    worker, client = get_worker(), get_client()
    # Two crews on the same workers would else wait for each other's threads.
    secede()
    said, meeting = Queue(f"{name}-said", client=client), Queue(f"{name}-meet", client=client)
    wish, everywhere = Variable(f"{name}-wish", client=client), Variable(f"{name}-all", client=client)
    made = Job(**job)
    threads = made.threads or worker.state.nthreads

    asked = _Asked(wish, lambda: answered(said.put, {"alive": rank}))

    def exchange(value: dict[str, Any]) -> list[dict[str, Any]]:
        answered(meeting.put, [rank, value])
        came: dict[int, Any] = {}
        ends = time.monotonic() + _MEETING_SECONDS
        while time.monotonic() < ends:
            if asked() == "abort":
                raise LostPeer("the work was ended before all workers had started")
            try:
                if rank == 0:
                    while len(came) < made.size:
                        came |= [meeting.get(timeout=1, callback_timeout=_ANSWER_SECONDS)]
                    answered(everywhere.set, [came[number] for number in range(made.size)])
                return list(everywhere.get(timeout=1, callback_timeout=_ANSWER_SECONDS))
            except TimeoutError:
                continue
        raise LostPeer(f"not all {made.size} workers have started within {_MEETING_SECONDS} s")

    host = urlsplit(worker.address).hostname or "127.0.0.1"
    if worker.address.startswith("inproc"):
        host = "127.0.0.1"
    around = Surroundings(host, exchange, lambda message: answered(said.put, message), asked)
    return reported(Job(**{**job, "threads": threads}), rank, around)


class _Asked:
    """What the client wants, looked up now and then; if it gives no sign of life, the work ends.

    Signs of life of this worker go the other way, every few seconds.
    """

    def __init__(self, wish: Any, tell_alive: Callable[[], None]) -> None:
        self._wish = wish
        self._tell_alive = tell_alive
        self._told = -_BEAT_SECONDS
        self._looked = 0.0
        self._beat = -1
        self._heard = time.monotonic()
        self._wanted: str | None = None

    def __call__(self) -> str | None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS / 2:
            return self._wanted
        self._looked = now
        try:
            if now - self._told >= _BEAT_SECONDS:
                self._tell_alive()
                self._told = now
            beat, self._wanted = self._wish.get(timeout=5, callback_timeout=SILENCE_SECONDS)
            if beat != self._beat:
                self._beat, self._heard = beat, time.monotonic()
        except (OSError, RuntimeError, AttributeError, ValueError, ClusterError):
            # Whoever cannot be asked may be back in a moment.
            pass
        if time.monotonic() - self._heard > SILENCE_SECONDS:
            raise ClusterError(f"neither client nor scheduler gave a sign of life for {SILENCE_SECONDS:.0f} s")
        return self._wanted
