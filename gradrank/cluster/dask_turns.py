"""Calls on the workers of a Dask cluster, one at a time on each; what a lost worker had goes to another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any

from gradrank.errors import ClusterError, TrainingError

LOOK_SECONDS = 2.0
"""How often one who waits looks whether a worker is still there."""


def workers_of(client: Any) -> list[str]:
    """Addresses of the workers that a Dask client sees."""
    found = sorted(client.nthreads())
    if not found:
        raise TrainingError("the Dask cluster has no workers")
    return found


class DaskTurns:
    """The workers that a Dask client sees when it is made; threads of this process call functions on them.

    A worker that is lost is not asked again.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.addresses = workers_of(client)
        self._free: SimpleQueue[str] = SimpleQueue()
        for address in self.addresses:
            self._free.put(address)
        self._lost = 0
        self._stopped = Event()

    def call(self, what: str, function: Callable[..., Any], arguments: Callable[[str], Sequence[Any]]) -> Any:
        """What a function gives on the next worker that is free.

        If a worker is lost over it, another one gets the call, but not a third. Whatever the function raises counts as
        a loss: what is to be told must be returned.

        Parameters
        ----------
        what
            the call as messages name it
        function
            what Dask runs
        arguments
            gives the arguments for the worker at an address, once for each that is asked
        """
        for last in (False, True):
            address = self._next()
            try:
                answer = self._answer(address, function, arguments(address))
            except Exception as error:
                self._lost += 1
                if last or self._stopped.is_set():
                    raise TrainingError(f"{what}: the Dask worker at {address} is lost: {error}") from None
                continue
            self._free.put(address)
            break
        return answer

    def stop(self) -> None:
        """Wait for no answer any more."""
        self._stopped.set()

    def _next(self) -> str:
        while True:
            try:
                return self._free.get(timeout=LOOK_SECONDS)
            except Empty:
                if self._stopped.is_set():
                    raise ClusterError("nobody waits for the Dask workers any more") from None
                if self._lost == len(self.addresses):
                    raise ClusterError("the Dask cluster has lost all workers that it had") from None

    def _answer(self, address: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        future = self._client.submit(
            function, *arguments, workers=[address], allow_other_workers=False, pure=False, retries=0
        )
        while True:
            try:
                return future.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                # Work for a worker that is gone would wait for ever.
                if self._client.status != "running":
                    raise ClusterError("the Dask scheduler is gone") from None
                if address not in self._client.nthreads():
                    raise ClusterError("it is gone") from None
                if self._stopped.is_set():
                    future.cancel()
                    raise ClusterError("nobody waits for it any more") from None
