"""Workers of a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

from gradrank.cluster.dask_task import LOOK_SECONDS, SchedulerSilentError, answered, dask_task
from gradrank.cluster.launcher import GRACE_SECONDS, Heard, Launcher, first_cause
from gradrank.cluster.mesh import LostPeer
from gradrank.cluster.worker import Job, failure_of, worker_name
from gradrank.errors import ClusterError, MissingExtraError, TrainingError

WORKER_SILENCE_SECONDS = 35.0
"""A worker that gives no sign of life for so long is taken for hung, or for cut off."""


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
        """See Launcher.call: on the first worker that is still there."""
        there = self._there()
        address = next((item for item in self.addresses if item in there), None)
        if address is None:
            raise ClusterError("the Dask cluster has lost all workers that it had")
        future = self.client.submit(function, *arguments, workers=[address], pure=False)
        while True:
            try:
                return future.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                # Work for a worker that is gone would wait for ever.
                if address not in self._there():
                    raise ClusterError(f"the worker at {address} is gone") from None

    def _there(self) -> Collection[str]:
        """Addresses of the workers that the scheduler knows now."""
        found: Collection[str] = answered(self.client.nthreads)
        return found

    def run(self, job: Job, heard: Heard) -> list[dict[str, Any]]:
        """See Launcher.run."""
        from distributed import Queue, Variable

        name = f"gradrank-{job.token[:12]}"
        wish = Variable(f"{name}-wish", client=self.client)
        said = Queue(f"{name}-said", client=self.client)
        wish.set([0, None])
        futures = [
            self.client.submit(
                dask_task, vars(job), rank, name, key=f"{name}-{rank}", workers=[address], allow_other_workers=False,
                pure=False, retries=0,
            )
            for rank, address in enumerate(self.addresses)
        ]  # fmt: skip
        watch = _Watch(self, job, futures, wish)
        try:
            return watch.outcome(said, heard)
        except (OSError, RuntimeError) as error:
            known = isinstance(error, ClusterError) and not isinstance(error, SchedulerSilentError)
            if known or self.client.status == "running":
                raise
            # A question that was on its way when the scheduler ended is waited for in vain.
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
        self._alive: dict[int, float] = {}
        self._first_sign: float | None = None
        self._lost: dict[int, BaseException] = {}
        self._results: dict[int, dict[str, Any]] = {}

    def outcome(self, said: Any, heard: Heard) -> list[dict[str, Any]]:
        """Wait for all workers; after the first error only for a while."""
        ends: float | None = None
        while not all(self._over(rank) for rank in range(len(self._futures))):
            if self._client.status not in ("running", "connecting"):
                raise ClusterError("the Dask scheduler is gone")
            self._hear(said, heard)
            if not self._failures():
                self._ask(heard({}))
            elif ends is None:
                # Those who are lost cannot say more; of the others one may know better what happened.
                ends = time.monotonic() + (LOOK_SECONDS if self._lost else GRACE_SECONDS)
            elif time.monotonic() > ends + GRACE_SECONDS:
                break
            elif time.monotonic() > ends:
                self._ask("abort")
            self._live()
            time.sleep(0.05)
        self._hear(said, heard)
        failed = self._failures()
        if failed:
            raise first_cause(failed)
        return [self._result(rank) for rank in range(len(self._futures))]

    def _hear(self, said: Any, heard: Heard) -> None:
        for message in answered(said.get, timeout=1, batch=True):
            if "alive" in message:
                self._alive[message["alive"]] = time.monotonic()
                self._first_sign = self._first_sign or time.monotonic()
            else:
                self._ask(heard(message))

    def end(self) -> None:
        """Let every worker end, and forget the run."""
        if self._client.status != "running":
            return
        try:
            self._asked = "abort"
            answered(self._wish.set, [self._beat + 1, "abort"], seconds=5.0)
            ends = time.monotonic() + GRACE_SECONDS
            while time.monotonic() < ends and not all(self._over(rank) for rank in range(len(self._futures))):
                time.sleep(0.05)
            self._client.cancel(self._futures)
            self._wish.delete()
        except (OSError, ClusterError):
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
            try:
                self._results[rank] = self._futures[rank].result(timeout=WORKER_SILENCE_SECONDS)
            except TimeoutError:
                raise ClusterError(f"{self._name(rank)} has a result, but does not give it") from None
        return self._results[rank]

    def _name(self, rank: int) -> str:
        return worker_name(rank, self._job.size, self._workers.addresses[rank])

    def _ask(self, wish: str | None) -> None:
        if wish is not None and self._asked != "abort" and wish != self._asked:
            self._asked = wish
            answered(self._wish.set, [self._beat, wish])

    def _live(self) -> None:
        """Now and then: a sign of life for the workers, and a look at who is still there."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = now = time.monotonic()
        self._beat += 1
        answered(self._wish.set, [self._beat, self._asked])
        there = self._workers._there()
        for rank, address in enumerate(self._workers.addresses):
            if self._futures[rank].done():
                continue
            # One that waits for its turn is not silent, unless the others have begun without it.
            since = self._alive.get(rank, self._first_sign or now)
            if address not in there:
                what = "is gone: it was killed, ran out of memory, or its machine cannot be reached"
            elif now - since > WORKER_SILENCE_SECONDS:
                what = f"gave no sign of life for {WORKER_SILENCE_SECONDS:.0f} s: it is stopped, busy or cut off"
            else:
                continue
            self._lost.setdefault(rank, ClusterError(f"{self._name(rank)} {what}"))
