"""Workers of a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from gradrank.cluster.launcher import GRACE_SECONDS, Heard, Launcher, first_cause
from gradrank.cluster.mesh import LostPeer
from gradrank.cluster.worker import Job, Surroundings, failure_of, reported, worker_name
from gradrank.errors import ClusterError, MissingExtraError, TrainingError

_MEETING_SECONDS = 60
_LOOK_SECONDS = 2.0
SILENCE_SECONDS = 20.0
"""A client or scheduler that gives no sign of life for so long is gone."""


def connected(address: str) -> Any:
    """A Dask client for the scheduler at an address.

    Parameters
    ----------
    address
        Such as ``tcp://host:8786``.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("distributed", "cluster") from None
    try:
        return Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(f"there is no Dask scheduler at {address}: {error}") from None


class DaskWorkers(Launcher):
    """All workers that a Dask client sees when it is made, one process on each.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.addresses = sorted(client.nthreads())
        if not self.addresses:
            raise TrainingError("the Dask cluster has no workers")

    @property
    def size(self) -> int:
        """See Launcher.size."""
        return len(self.addresses)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """See Launcher.call: on the first worker."""
        return self.client.submit(function, *arguments, workers=[self.addresses[0]], pure=False).result()

    def run(self, job: Job, heard: Heard) -> list[dict[str, Any]]:
        """See Launcher.run."""
        from distributed import Queue, Variable

        name = f"gradrank-{job.token[:12]}"
        wish = Variable(f"{name}-wish", client=self.client)
        said = Queue(f"{name}-said", client=self.client)
        wish.set([0, None])
        futures = [
            self.client.submit(
                _task, vars(job), rank, name, key=f"{name}-{rank}", workers=[address], allow_other_workers=False,
                pure=False, retries=0,
            )
            for rank, address in enumerate(self.addresses)
        ]  # fmt: skip
        watch = _Watch(self, job, futures, wish)
        try:
            return watch.outcome(said, heard)
        except (OSError, TimeoutError, RuntimeError) as error:
            if isinstance(error, ClusterError) or self.client.status == "running":
                raise
            raise ClusterError(f"the Dask scheduler is gone: {error}") from None
        finally:
            watch.end()


class _Watch:
    """The client's side of a run: gives signs of life, passes messages on, and finds out who has failed."""

    def __init__(self, workers: DaskWorkers, job: Job, futures: list[Any], wish: Any) -> None:
        self._workers = workers
        self._client = workers.client
        self._job = job
        self._futures = futures
        self._wish = wish
        self._asked: str | None = None
        self._beat = 0
        self._looked = time.monotonic()
        self._lost: dict[int, BaseException] = {}
        self._results: dict[int, dict[str, Any]] = {}

    def outcome(self, said: Any, heard: Heard) -> list[dict[str, Any]]:
        """Wait for all workers; after the first error only for a while."""
        ends: float | None = None
        while not all(self._over(rank) for rank in range(len(self._futures))):
            if self._client.status not in ("running", "connecting"):
                raise ClusterError("the Dask scheduler is gone")
            for message in said.get(timeout=1, batch=True):
                self._ask(heard(message))
            if not self._failures():
                self._ask(heard({}))
            elif ends is None:
                ends = time.monotonic() + GRACE_SECONDS
            elif time.monotonic() > ends + GRACE_SECONDS:
                break
            elif time.monotonic() > ends:
                self._ask("abort")
            self._live()
            time.sleep(0.05)
        for message in said.get(timeout=1, batch=True):
            heard(message)
        failed = self._failures()
        if failed:
            raise first_cause(failed)
        return [self._result(rank) for rank in range(len(self._futures))]

    def end(self) -> None:
        """Let every worker end, and forget the run."""
        if self._client.status != "running":
            return
        try:
            self._asked = "abort"
            self._wish.set([self._beat + 1, "abort"], timeout="5 s")
            ends = time.monotonic() + GRACE_SECONDS
            while time.monotonic() < ends and not all(self._over(rank) for rank in range(len(self._futures))):
                time.sleep(0.05)
            self._client.cancel(self._futures)
            self._wish.delete()
        except (OSError, TimeoutError):
            return

    def _over(self, rank: int) -> bool:
        return rank in self._lost or self._futures[rank].done()

    def _failures(self) -> list[BaseException]:
        found = list(self._lost.values())
        for rank, future in enumerate(self._futures):
            if rank in self._lost or not future.done():
                continue
            if future.status == "finished":
                failed = failure_of(self._result(rank))
                found += [failed] if failed is not None else []
            elif future.status == "error":
                found.append(future.exception())
            else:
                found.append(LostPeer(f"{self._name(rank)} was lost"))
        return found

    def _result(self, rank: int) -> dict[str, Any]:
        if rank not in self._results:
            self._results[rank] = self._futures[rank].result()
        return self._results[rank]

    def _name(self, rank: int) -> str:
        return worker_name(rank, self._job.size, self._workers.addresses[rank])

    def _ask(self, wish: str | None) -> None:
        if wish is not None and self._asked != "abort" and wish != self._asked:
            self._asked = wish
            self._wish.set([self._beat, wish])

    def _live(self) -> None:
        """Now and then: a sign of life for the workers, and a look at who is still there."""
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        self._beat += 1
        self._wish.set([self._beat, self._asked], timeout="10 s")
        there = self._client.nthreads()
        for rank, address in enumerate(self._workers.addresses):
            if address not in there and not self._futures[rank].done():
                self._lost.setdefault(rank, ClusterError(
                    f"{self._name(rank)} is gone: it was killed, ran out of memory, or its machine cannot be reached"
                ))  # fmt: skip


def _task(job: dict[str, Any], rank: int, name: str) -> dict[str, Any]:
    """What Dask runs on each worker."""
    from distributed import Queue, Variable, get_client, get_worker, secede

    worker, client = get_worker(), get_client()
    # Two crews on the same workers would else wait for each other's threads.
    secede()
    said, meeting = Queue(f"{name}-said", client=client), Queue(f"{name}-meet", client=client)
    wish, everywhere = Variable(f"{name}-wish", client=client), Variable(f"{name}-all", client=client)
    made = Job(**job)
    threads = made.threads or worker.state.nthreads

    def exchange(value: dict[str, Any]) -> list[dict[str, Any]]:
        meeting.put([rank, value])
        try:
            if rank == 0:
                came = dict(meeting.get(timeout=_MEETING_SECONDS) for _ in range(made.size))
                everywhere.set([came[number] for number in range(made.size)])
            return list(everywhere.get(timeout=_MEETING_SECONDS))
        except TimeoutError:
            raise LostPeer(f"not all {made.size} workers have started within {_MEETING_SECONDS} s") from None

    host = urlsplit(worker.address).hostname or "127.0.0.1"
    if worker.address.startswith("inproc"):
        host = "127.0.0.1"
    around = Surroundings(host, exchange, said.put, _Asked(wish))
    return reported(Job(**{**job, "threads": threads}), rank, around)


class _Asked:
    """What the client wants, looked up now and then; if it gives no sign of life, the work ends."""

    def __init__(self, wish: Any) -> None:
        self._wish = wish
        self._looked = 0.0
        self._beat = -1
        self._heard = time.monotonic()
        self._wanted: str | None = None

    def __call__(self) -> str | None:
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS / 2:
            return self._wanted
        self._looked = now
        try:
            beat, self._wanted = self._wish.get(timeout=5)
            if beat != self._beat:
                self._beat, self._heard = beat, time.monotonic()
        except (OSError, TimeoutError, RuntimeError, AttributeError, ValueError):
            # Whoever cannot be asked may be back in a moment.
            pass
        if time.monotonic() - self._heard > SILENCE_SECONDS:
            raise ClusterError(f"neither client nor scheduler gave a sign of life for {SILENCE_SECONDS:.0f} s")
        return self._wanted
