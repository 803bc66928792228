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
    turns = DaskTurns(client)
    packed = [_packed(arguments) for arguments in calls]
    sent = _Sent(client, turns.addresses, [data for _, data in packed])

    def one(number: int) -> Any:
        what, (payload, data) = f"training {number + 1} of {len(calls)}", packed[number]
        answer = turns.call(what, _there, lambda: (payload, code_version(), function, *sent.futures(data)))
        sent.done(data)
        if isinstance(answer, GradrankError):
            raise answer
        return answer

    with ThreadPoolExecutor(len(turns.addresses), thread_name_prefix="gradrank-waiting") as waiting:
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
    """Data that the workers have, as long as some call needs it."""

    def __init__(self, client: Any, addresses: Sequence[str], needs: Sequence[Sequence[RankingData]]) -> None:
        self._client, self._addresses = client, addresses
        self._needed = Counter(id(item) for data in needs for item in data)
        self._futures: dict[int, Any] = {}
        self._lock = Lock()

    def futures(self, data: Sequence[RankingData]) -> list[Any]:
        with self._lock:
            for item in data:
                if id(item) not in self._futures:
                    # All have it: it is not lost with one of them.
                    there = [address for address in self._addresses if address in self._client.nthreads()]
                    (found,) = self._client.scatter([item], workers=there, broadcast=True, hash=False)
                    self._futures[id(item)] = found
            return [self._futures[id(item)] for item in data]

    def done(self, data: Sequence[RankingData]) -> None:
        with self._lock:
            for item in data:
                self._needed[id(item)] -= 1
                if not self._needed[id(item)]:
                    self._futures.pop(id(item), None)


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
