"""Where compiled kernels are kept: a cache that several processes share, and that never stands in the way.

A cache saves time and nothing else. A folder that cannot be written (an installed package that belongs to somebody
else, a container without a home, a full disk), a file that is empty, cut off or of other code: kernels are compiled
and not kept, or kept anew. What was kept in a folder that can only be read is used all the same.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba

try:
    import fcntl
except ImportError:  # Windows has no such locks; Numba's own behavior remains
    fcntl = None  # type: ignore[assignment]

# ---------------------------------------------------------------------- undocumented
# Looked at by tests/unit/runtime/test_numba_internals.py, which says what to do if one of them has changed.
try:
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, InTreeCacheLocator
except ImportError:
    try:  # the names of older versions
        from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
        from numba.core.caching import _InTreeCacheLocator as InTreeCacheLocator
    except ImportError:
        IndexDataCacheFile = None

_LOCK_NAME = "gradrank.lock"
_SEAL_BYTES = 4


@dataclass
class CacheUse:
    """What became of the kernels that were needed while somebody looked."""

    kept: int = 0
    """Compiled, and written into the cache."""
    loaded: int = 0
    """Found there."""
    folders: set[Path] = field(default_factory=set)
    refused: OSError | None = None
    """Why a kernel could not be written."""

    @property
    def folder(self) -> Path | None:
        """The innermost folder that holds them all."""
        return Path(os.path.commonpath(self.folders)) if self.folders else None


_watching: list[CacheUse] = []


@contextmanager
def cache_use() -> Iterator[CacheUse]:
    """Look at what the cache is used for, in this process.

    >>> with cache_use() as use:
    ...     pass
    >>> use.kept, use.loaded, use.folder
    (0, 0, None)
    """
    use = CacheUse()
    _watching.append(use)
    try:
        yield use
    finally:
        _watching.remove(use)


def _tell(kind: str, folder: str) -> None:
    for use in _watching:
        setattr(use, kind, getattr(use, kind) + 1)
        use.folders.add(Path(folder))


def _tell_refused(error: OSError) -> None:
    for use in _watching:
        use.refused = use.refused or error


if IndexDataCacheFile is not None:

    class SharedCacheFile(IndexDataCacheFile):  # type: ignore[misc]
        """The files of one kernel's cache, read and written by one process at a time."""

        _key: Any = None

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
            self._key = key
            try:
                with self._locked():
                    super().save(key, data)
            except OSError as error:
                _tell_refused(error)
            else:
                _tell("kept", self._cache_path)

        def load(self, key: Any) -> Any:
            found = self._found(key)
            if found is not None:
                _tell("loaded", self._cache_path)
            return found

        def _found(self, key: Any) -> Any:
            self._key = key
            try:
                with self._locked():
                    return super().load(key)
            except OSError:
                # No lock where nothing may be written. Files are replaced whole, and the seal tells whose code it is.
                with suppress(OSError):
                    return super().load(key)
                return None

        def _load_index(self) -> Any:
            # The index names the classes of arguments. Numba reads it before it looks whether it is out of date, and
            # a class may have been renamed since; or the file may be empty or cut off. Unpickling can raise anything.
            try:
                found = super()._load_index()
            except OSError:
                raise
            except Exception:
                return {}
            return found if isinstance(found, dict) else {}

        def _seal(self, content: bytes) -> bytes:
            """What tells damage, and code that belongs to another kernel, state of the sources or signature."""
            owner = repr((self._index_name, self._source_stamp, self._version, self._key)).encode()
            return zlib.crc32(content, zlib.crc32(owner)).to_bytes(_SEAL_BYTES, "little")

        def _save_data(self, name: str, data: Any) -> None:
            content = self._dump(data)
            with self._open_for_write(self._data_path(name)) as file:
                file.write(self._seal(content) + content)

        def _load_data(self, name: str) -> Any:
            with open(self._data_path(name), "rb") as file:
                seal, content = file.read(_SEAL_BYTES), file.read()
            if seal != self._seal(content):
                raise OSError(f"{name} is damaged or of other code")  # as good as not there
            return _unpickled(content)

    class _ReadOnlyLocator(InTreeCacheLocator):  # type: ignore[misc]
        """Beside the source, where we may not write."""

        def ensure_cache_path(self) -> None:
            """Nothing to ensure: what is there is used."""

    class _ReadOnlyImplementation(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (_ReadOnlyLocator,)

    class _ReadOnlyCache(FunctionCache):  # type: ignore[misc]
        _impl_class = _ReadOnlyImplementation


def _unpickled(content: bytes) -> Any:
    import pickle

    try:
        return pickle.loads(content)
    except Exception as error:  # a class that is gone; anything
        raise OSError(str(error)) from None


def with_numbas_cache(function: Any, options: dict[str, Any]) -> Any:
    """A kernel with the cache that Numba gives it; without one where Numba finds no folder that it may write."""
    try:
        return numba.njit(**options)(function)
    except RuntimeError:
        return numba.njit(**options | {"cache": False})(function)


@contextmanager
def _no_file_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _tell_refused(error)


def share_cache(dispatcher: Any, state: str) -> bool:
    """Give a kernel the cache that belongs to a state of the sources; False if Numba has become too different."""
    if IndexDataCacheFile is None:
        return False
    if not isinstance(getattr(getattr(dispatcher, "_cache", None), "_cache_file", None), IndexDataCacheFile):
        try:
            dispatcher._cache = _ReadOnlyCache(dispatcher.py_func)
        except Exception:  # no source to be found beside
            return True
    cache = dispatcher._cache
    kept = cache._cache_file
    if not (hasattr(kept, "_index_name") and hasattr(kept, "_cache_path")):
        return False
    base = kept._index_name.removesuffix(".nbi")
    cache._cache_file = SharedCacheFile(kept._cache_path, base, state)
    # Numba's own guard, of load and save: it lets only errors of Windows pass.
    cache._guard_against_spurious_io_errors = _no_file_errors
    return True
