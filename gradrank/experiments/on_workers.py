"""Calling a function many times on the workers of a Dask cluster."""

from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import fields, is_dataclass, replace
from threading import Lock
from typing import Any

from gradrank.cluster.dask_turns import DaskTurns
from gradrank.data.ranking_data import RankingData
from gradrank.errors import GradrankError, TrainingError
from gradrank.experiments.training_code import code_version


def on_workers(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], client: Any
) -> Iterator[tuple[int, Any]]:
    """The number and the result of each call as it is done, with one call at a time on each worker.

    Data goes to the workers once, whatever number of calls has it, and is forgotten there after the last of them. What
    a lost worker had goes to another one.

    Parameters
    ----------
    function
        of a module that workers can import
    calls
        its arguments
    client
        a ``distributed.Client``; its workers must have the same code, or they would train other models
    """
    import dask

    turns = DaskTurns(client)
    packed = [_packed(arguments) for arguments in calls]
    sent = _Sent(client, [data for _, data in packed])

    def one(number: int) -> Any:
        what, (payload, data) = f"training {number + 1} of {len(calls)}", packed[number]
        answer = turns.call(what, _there, lambda to: (payload, code_version(), function, *sent.futures(to, data)))
        sent.done(data)
        if isinstance(answer, GradrankError):
            raise answer
        return answer

    # Data goes as work does, which Dask would warn of.
    quiet = {"distributed.admin.large-graph-warning-threshold": "1 PB"}
    with (
        dask.config.set(quiet),
        ThreadPoolExecutor(len(turns.addresses), thread_name_prefix="gradrank-waiting") as waiting,
    ):
        futures = {waiting.submit(one, number): number for number in range(len(calls))}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            turns.stop()
            waiting.shutdown(wait=False, cancel_futures=True)
            raise


def _there(payload: bytes, version: str, function: Callable[..., Any], *data: RankingData) -> Any:
    """What Dask runs on a worker: the call; an error that is to be told is given back."""
    from distributed import get_worker

    worker = get_worker()
    if code_version() != version:
        return TrainingError(
            f"the Dask worker at {worker.address} has another version of gradrank, which trains otherwise"
        )
    arguments = _Unpickler(io.BytesIO(payload), data).load()
    try:
        return function(*(_with_threads(item, worker.state.nthreads) for item in arguments))
    except GradrankError as error:
        return error


def _with_threads(item: Any, threads: int) -> Any:
    """A training that leaves its threads open has those of the worker: others may run on its machine."""
    if not is_dataclass(item) or isinstance(item, type) or "parameters" not in {field.name for field in fields(item)}:
        return item
    parameters: Mapping[str, Any] = item.parameters  # type: ignore[attr-defined]
    if parameters.get("n_jobs", threads) is not None:
        return item
    return replace(item, parameters={**parameters, "n_jobs": threads})


class _Sent:
    """Data that workers have, as long as some call needs it.

    Each worker gets it as work of its own: to scatter it would wait for a worker that is lost meanwhile, for ever.
    """

    def __init__(self, client: Any, needs: Sequence[Sequence[RankingData]]) -> None:
        self._client = client
        self._needed = Counter(id(item) for data in needs for item in data)
        self._futures: dict[int, dict[str, Any]] = {}
        self._lock = Lock()

    def futures(self, address: str, data: Sequence[RankingData]) -> list[Any]:
        """The data as the worker at an address has it, or will have it."""
        with self._lock:
            return [self._future(address, item) for item in data]

    def _future(self, address: str, item: RankingData) -> Any:
        there = self._futures.setdefault(id(item), {})
        if address not in there:
            there[address] = self._client.submit(
                _itself, item, workers=[address], allow_other_workers=False, pure=False, retries=0
            )
        return there[address]

    def done(self, data: Sequence[RankingData]) -> None:
        """One call less needs the data."""
        with self._lock:
            for item in data:
                self._needed[id(item)] -= 1
                if not self._needed[id(item)]:
                    self._futures.pop(id(item), None)


def _itself(item: RankingData) -> RankingData:
    return item


# ---------------------------------------------------------------------- arguments without their data
def _packed(arguments: tuple[Any, ...]) -> tuple[bytes, list[RankingData]]:
    """Arguments as bytes, and the data in them, which goes another way."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(arguments)
    return stream.getvalue(), pickler.data


class _Pickler(pickle.Pickler):
    """Leaves data out and numbers it."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.data: list[RankingData] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, item: Any) -> int | None:
        if not isinstance(item, RankingData):
            return None
        if id(item) not in self._numbers:
            self._numbers[id(item)] = len(self.data)
            self.data.append(item)
        return self._numbers[id(item)]


class _Unpickler(pickle.Unpickler):
    """Puts the data back."""

    def __init__(self, stream: io.BytesIO, data: Sequence[RankingData]) -> None:
        super().__init__(stream)
        self._data = data

    def persistent_load(self, number: int) -> RankingData:
        return self._data[number]
