"""Running a kernel over blocks of queries on several threads.

Kernels are compiled with ``nogil=True`` and called from plain Python threads. This keeps compilation
short, lets any thread of a server or a Dask worker call us at the same time (Numba's default
work-queue threading layer aborts the process then), and survives ``fork``. Each block writes only
its own queries' output, so results do not depend on the number of threads.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

# Several blocks per thread even out queries of unequal cost; below this many documents a thread costs more than it
# saves.
_BLOCKS_PER_THREAD = 2
_MIN_DOCUMENTS_PER_BLOCK = 4096


def thread_count(n_jobs: int | None = None) -> int:
    """Number of threads to use: the given number; with None or −1 every core this process may run on.

    >>> thread_count(3)
    3
    """
    if n_jobs is not None and n_jobs != -1:
        if n_jobs < 1:
            raise ValueError(f"n_jobs is {n_jobs}, expected 1 or more, or -1 for all cores")
        return n_jobs
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def query_blocks(indptr: NDArray[np.int64], blocks: int) -> list[tuple[int, int]]:
    """Cut the queries into at most ``blocks`` runs of about equally many documents.

    >>> query_blocks(np.array([0, 10, 20, 30, 40]), 2)
    [(0, 2), (2, 4)]
    """
    n_queries = len(indptr) - 1
    if n_queries <= 0:
        return []
    cuts = np.searchsorted(indptr, np.linspace(indptr[0], indptr[-1], blocks + 1)[1:-1])
    edges = np.unique(np.concatenate(([0], cuts, [n_queries])))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


@cache
def _pool(n_jobs: int, pid: int) -> ThreadPoolExecutor:
    # Keyed by process: a forked child must not wait on its parent's threads.
    return ThreadPoolExecutor(n_jobs, thread_name_prefix="gradrank")


def for_query_blocks(work: Callable[[int, int], None], indptr: NDArray[np.int64], n_jobs: int | None = None) -> None:
    """Call ``work(first_query, end_query)`` for every block of queries, on several threads.

    Parameters
    ----------
    work
        Must release the GIL in its kernel and write only to its own queries' output.
    indptr
        Query q has the documents ``indptr[q]``…``indptr[q + 1]``.
    n_jobs
        Number of threads; None = one per core.

    >>> seen = np.zeros(4)
    >>> def work(first: int, end: int) -> None:
    ...     seen[first:end] = 1
    >>> for_query_blocks(work, np.array([0, 1, 2, 3, 4]), n_jobs=2)
    >>> seen.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    n_threads = thread_count(n_jobs)
    n_docs = int(indptr[-1] - indptr[0]) if len(indptr) else 0
    blocks = 1
    if n_threads > 1:
        blocks = max(1, min(n_threads * _BLOCKS_PER_THREAD, n_docs // _MIN_DOCUMENTS_PER_BLOCK))
    if blocks == 1:
        if len(indptr) > 1:
            work(0, len(indptr) - 1)
        return
    spans = query_blocks(indptr, blocks)
    futures = [_pool(n_threads, os.getpid()).submit(work, first, end) for first, end in spans]
    for future in futures:
        future.result()
