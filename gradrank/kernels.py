"""Numba's ``njit`` with a cache of compiled kernels that several processes can share.

Numba's own cache has two faults that bite a tool whose commands run side by side: processes that compile at the same
time can pick the same file for different code (and crash when they load it), and a kernel is not compiled anew when a
kernel that it calls, in another file, has changed. Here every access is locked, and the cache belongs to the state of
all of gradrank's source files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile

try:
    import fcntl
except ImportError:  # Windows has no such locks; Numba's own behaviour remains
    fcntl = None  # type: ignore[assignment]

_LOCK_NAME = "gradrank.lock"


@cache
def _source_state() -> tuple[float, int]:
    """Changes whenever any source file of the package does: latest time of change and total size."""
    facts = [path.stat() for path in Path(__file__).parent.rglob("*.py")]
    return max(fact.st_mtime for fact in facts), sum(fact.st_size for fact in facts)


class _SharedCacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one kernel's cache, read and written by one process at a time."""

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if fcntl is None:
            yield
            return
        os.makedirs(self._cache_path, exist_ok=True)
        with open(os.path.join(self._cache_path, _LOCK_NAME), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield  # closing the file frees the lock

    def save(self, key: Any, data: Any) -> None:
        with self._locked():
            super().save(key, data)

    def load(self, key: Any) -> Any:
        try:
            with self._locked():
                return super().load(key)
        except PermissionError:  # a cache that others wrote and we may only read is not used
            return None


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` with keyword options; with ``cache=True`` the cache can be shared by processes.

    >>> @njit(cache=False, nogil=True)
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        kept = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if isinstance(kept, IndexDataCacheFile):
            base = kept._index_name.removesuffix(".nbi")
            stamp = (kept._source_stamp, _source_state())
            dispatcher._cache._cache_file = _SharedCacheFile(kept._cache_path, base, stamp)
        return dispatcher

    return compile_later
