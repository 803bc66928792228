"""Workers of a Dask cluster that train models of a portfolio, each one at a time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from gradrank.cluster.dask_turns import LOOK_SECONDS, DaskTurns
from gradrank.data.ranking_data import RankingData
from gradrank.errors import GradrankError
from gradrank.runtime.files import replacing
from gradrank.selection.crossfit import Task, fit_fold
from gradrank.selection.kept import keep


class DaskTeam:
    """The workers that a Dask client sees when it is made, in the place of :class:`Processes`.

    The data goes to each worker once; tasks and models go as JSON. A worker that is lost is not asked again.

    Parameters
    ----------
    pool
        The data that they all have.
    client
        A ``distributed.Client``.
    """

    def __init__(self, pool: RankingData, client: Any) -> None:
        self._pool, self._client = pool, client
        self._turns = DaskTurns(client)
        self._name = f"gradrank-{uuid4().hex[:12]}"
        self.waiting = ThreadPoolExecutor(len(self._turns.addresses), thread_name_prefix="gradrank-waiting")
        """Threads of this process that wait for answers: one for each worker."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """See Processes.folder."""
        assert self._temporary is not None
        return Path(self._temporary.name)

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory(prefix="gradrank-")
        (self._data,) = self._client.scatter([self._pool], workers=self._turns.addresses, broadcast=True, hash=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self.waiting.shutdown()
        assert self._temporary is not None
        self._temporary.cleanup()

    def stop(self) -> None:
        """Let whatever they do end after the step at work."""
        from distributed import Event

        if self._client.status == "running":
            Event(self._name, client=self._client).set()

    def ordered(self, order: Mapping[str, Any], what: str) -> dict[str, Any]:
        """See Processes.ordered. If a worker is lost over it, another one gets the order, but not a third."""

        def told(_address: str) -> tuple[Any, ...]:
            # Clocks of machines differ: what is left goes along, not when it ends.
            left = order["until"] - time.time()
            return self._data, {"task": order["task"], "run": order["run"], "seconds": left, "stop": self._name}

        answer = self._turns.call(what, train_there, told)
        if answer["error"] is None:
            with replacing(order["path"]) as path:
                path.write_text(answer["model"], encoding="utf-8")
        return {"error": answer["error"]}


def train_there(pool: RankingData, order: Mapping[str, Any]) -> dict[str, Any]:
    """What Dask runs on a worker: one training, whose model is the answer."""
    from distributed import Event, get_client, get_worker

    threads, stopped = get_worker().state.nthreads, Event(order["stop"], client=get_client())
    ends = _Ends(time.monotonic() + order["seconds"], stopped.is_set)
    try:
        fitted = fit_fold(Task.from_dict(order["task"]), pool, ends=ends, n_jobs=threads)
    except GradrankError as error:
        return {"error": str(error)}
    with tempfile.TemporaryDirectory(prefix="gradrank-") as folder:
        path = Path(folder) / "model.json"
        keep(fitted, order["run"], path)
        return {"error": None, "model": path.read_text(encoding="utf-8")}


class _Ends:
    """Whether a training is to end: its time is over, or the client wants it; asked after each step."""

    def __init__(self, deadline: float, stopped: Callable[[], bool]) -> None:
        self._deadline, self._stopped, self._looked = deadline, stopped, time.monotonic()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now >= self._deadline:
            return True
        if now - self._looked < LOOK_SECONDS:
            return False
        self._looked = now
        return self._stopped()
