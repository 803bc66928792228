"""Numba's ``njit`` with a cache of compiled kernels that several processes can share.

Numba's own cache has two faults that bite a tool whose commands run side by side: processes that compile at the same
time can pick the same file for different code (and crash when they load it), and a kernel is not compiled anew when a
kernel that it calls, in another file, has changed. Here every access is locked, and a kernel's cache belongs to the
contents of its file and of the files that it takes kernels and constants from.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.caching import IndexDataCacheFile

from gradrank.runtime.first_use import compiling

try:
    import fcntl
except ImportError:  # Windows has no such locks; Numba's own behavior remains
    fcntl = None  # type: ignore[assignment]

_LOCK_NAME = "gradrank.lock"
_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(rb"^from (gradrank[\w.]*) import", re.MULTILINE)


@cache
def _source(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Files of this package that a source file imports from."""
    modules = [name.decode().split(".") for name in _IMPORT.findall(_source(path))]
    files = (_PACKAGE.joinpath(*parts[1:]).with_suffix(".py") for parts in modules if len(parts) > 1)
    return tuple(file for file in files if file.exists())


@cache
def _sources_state(path: Path) -> str:
    """Changes whenever a source file does that the kernels of ``path`` are made of.

    Imports are followed through files with kernels only: other files give a kernel no more than constants.
    """
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            if file == path or b"njit" in _source(file):
                waiting.extend(_imported(file))
    digest = hashlib.sha256()
    for file in sorted(found):
        digest.update(_source(file))
    return digest.hexdigest()


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


class _Compiling(event.Listener):  # type: ignore[misc]
    """Says that kernels are compiled, and switches the search for garbage off meanwhile.

    Compiling makes many objects that live long: looking for garbage among them took a tenth of the time. Numba holds
    its lock while it compiles, so that no two threads come here at once.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._was_enabled = False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            compiling()
            self._was_enabled = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0 and self._was_enabled:
            gc.enable()


event.register("numba:compile", _Compiling())


def njit(*, inner: bool = False, plain: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` with keyword options; with ``cache=True`` the cache can be shared by processes.

    Two promises let a kernel compile sooner: an ``inner`` one is called by other kernels only; a ``plain`` one, with
    all that it calls, makes no arrays and returns none.

    >>> @njit(cache=False, nogil=True)
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        if plain:
            options["_nrt"] = False  # no code that counts references to arrays
        # Nobody calls kernels from C: without entry points for that they compile sooner.
        dispatcher = numba.njit(no_cfunc_wrapper=True, no_cpython_wrapper=inner, **options)(function)
        kept = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if isinstance(kept, IndexDataCacheFile):
            base = kept._index_name.removesuffix(".nbi")
            stamp = _sources_state(Path(function.__code__.co_filename))
            dispatcher._cache._cache_file = _SharedCacheFile(kept._cache_path, base, stamp)
        return dispatcher

    return compile_later
