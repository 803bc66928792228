"""Calling a function many times, in several processes at once or on the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any


def side_by_side(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], jobs: int, client: Any = None
) -> Iterator[tuple[int, Any]]:
    """The number and the result of each call as it is done, with up to ``jobs`` processes; in order with one.

    With a Dask client its workers are called instead.

    >>> dict(side_by_side(pow, [(2, 3), (2, 4)], 1))
    {0: 8, 1: 16}
    """
    if client is not None and calls:
        from gradrank.experiments.on_workers import on_workers

        yield from on_workers(function, calls, client)
        return
    if jobs <= 1 or len(calls) < 2:
        for number, arguments in enumerate(calls):
            yield number, function(*arguments)
        return
    # New processes, not copies of this one: threads of this one would be lost in a copy.
    with ProcessPoolExecutor(min(jobs, len(calls)), mp_context=get_context("spawn"), initializer=_quiet) as pool:
        futures = {pool.submit(function, *arguments): number for number, arguments in enumerate(calls)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _quiet() -> None:
    # LightGBM's threads wait for each other by spinning, which costs a busy machine many times what it saves.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
