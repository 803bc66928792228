"""Compiled kernels: Numba's ``njit`` with a cache that several processes share, and kernels with slots for functions.

Numba's own cache has three faults that bite a tool whose commands run side by side and that is updated now and then:
processes that compile at the same time can pick the same file for different code (and crash when they load it); a
kernel is not compiled anew when a kernel that it calls, in another file, has changed; and a cache that names a class
which is gone cannot be read at all. Here every access is locked, a kernel's cache belongs to the contents of its file
and of the files that it takes kernels and constants from, and a cache that cannot be read is an empty one
(:mod:`gradrank.runtime.kernel_cache`).

What this needs of Numba beyond its documentation stands under ``undocumented``, below and there. Each piece that a
version of Numba does not have is done without: kernels compile and are cached as Numba does it.
"""

from __future__ import annotations

import gc
import hashlib
import re
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba

from gradrank.runtime.first_use import compiling
from gradrank.runtime.kernel_cache import share_cache, with_numbas_cache
from gradrank.runtime.vector_width import PIPELINE, WIDTH

# ---------------------------------------------------------------------- undocumented
# Looked at by tests/unit/runtime/test_numba_internals.py, which says what to do if one of them has changed.
try:
    from numba.core import event
except ImportError:
    event = None
try:
    from numba.core.options import DefaultOptions
except ImportError:
    DefaultOptions = None

NO_REFERENCES, NO_C_ENTRY, NO_PYTHON_ENTRY = "_nrt", "no_cfunc_wrapper", "no_cpython_wrapper"
"""Options of ``njit`` that leave code out: counting references to arrays; the entry points for C and for Python."""
OPTIONS = frozenset(name for name in (NO_REFERENCES, NO_C_ENTRY, NO_PYTHON_ENTRY) if hasattr(DefaultOptions, name))
"""Those of them that this version of Numba knows."""

# ---------------------------------------------------------------------- which sources a kernel is made of
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
def _sources_state(*paths: Path) -> str:
    """Changes whenever a source file does that the kernels of ``paths`` are made of.

    Imports are followed through files with kernels only: other files give a kernel no more than constants.
    """
    found: set[Path] = set()
    waiting = list(paths)
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            if file in paths or b"njit" in _source(file):
                waiting.extend(_imported(file))
    digest = hashlib.sha256()
    # Code with checks of every index is not the code without, nor that with vectors of another width.
    digest.update(repr((numba.config.BOUNDSCHECK, WIDTH if PIPELINE else None)).encode())
    for file in sorted(found):
        digest.update(_source(file))
    return digest.hexdigest()


# ---------------------------------------------------------------------- while Numba compiles
class _Compiling:
    """Says that kernels are compiled, and switches the search for garbage off meanwhile.

    Compiling makes many objects that live long: looking for garbage among them took a tenth of the time. Numba holds
    its lock while it compiles, so that no two threads come here at once.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._was_enabled = False

    def on_start(self, event: Any) -> None:
        """A kernel begins to be compiled."""
        if self._depth == 0:
            compiling()
            self._was_enabled = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """A kernel has been compiled, or has failed to."""
        self._depth -= 1
        if self._depth == 0 and self._was_enabled:
            gc.enable()


if event is not None:

    class _CompilingListener(_Compiling, event.Listener):  # type: ignore[misc]
        """As Numba wants it."""

    event.register("numba:compile", _CompilingListener())


# ---------------------------------------------------------------------- decorators
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
        return _jitted(function, (_file(function),), inner=inner, plain=plain, **options)

    return compile_later


def _jitted(
    function: Any, sources: tuple[Path, ...], *, inner: bool = False, plain: bool = False, **options: Any
) -> Any:
    """A function as a kernel whose code comes from some source files."""
    # Nobody calls kernels from C: without entry points for that they compile sooner.
    wanted = {NO_C_ENTRY: True, NO_PYTHON_ENTRY: inner, **({NO_REFERENCES: False} if plain else {})}
    options |= {name: value for name, value in wanted.items() if name in OPTIONS} | PIPELINE
    if not options.get("cache"):
        return numba.njit(**options)(function)
    state = _sources_state(*sources)
    if numba.config.DISABLE_JIT:
        return numba.njit(**options)(function)
    dispatcher = with_numbas_cache(function, options)
    if not share_cache(dispatcher, state):
        # Numba names the files of its cache after the function, and looks at the date of the function's own file only.
        function.__qualname__ += f"-{state[:16]}"
        dispatcher = with_numbas_cache(function, options)
    return dispatcher


def _file(function: Any) -> Path:
    return Path(getattr(function, "py_func", function).__code__.co_filename)


class Template:
    """A kernel with slots: it calls functions by the names of others, which stand for them until it is filled.

    Numba can hand a kernel to another as an argument, but then does not serve it from its cache. A filled template is
    a kernel of its own instead, compiled for these functions alone, with a cache of its own: the functions stand in
    its code as if they had been written there, and may be inlined. Made by :func:`template`.
    """

    def __init__(self, function: Any, slots: tuple[Callable[..., Any], ...], options: dict[str, Any]) -> None:
        self._function = function
        self._slots = tuple(slot.__name__ for slot in slots)
        self._options = options
        self._filled: dict[tuple[Any, ...], Any] = {}
        self._lock = threading.Lock()
        self.__doc__ = function.__doc__
        missing = [name for name in self._slots if name not in function.__code__.co_names]
        if missing:
            raise TypeError(f"{function.__qualname__} does not call {', '.join(missing)}")

    def using(self, **functions: Callable[..., Any]) -> Any:
        """The kernel with its slots filled; the same functions give the same kernel."""
        if set(functions) != set(self._slots):
            raise TypeError(f"{self._function.__qualname__} has the slots {', '.join(self._slots)}; got {functions}")
        key = tuple(functions[name] for name in self._slots)
        with self._lock:
            if key not in self._filled:
                self._filled[key] = self._fill(key)
            return self._filled[key]

    def _fill(self, functions: tuple[Any, ...]) -> Any:
        original = self._function
        names = [getattr(function, "py_func", function).__qualname__ for function in functions]
        filled = FunctionType(
            original.__code__,
            {**original.__globals__, **dict(zip(self._slots, functions, strict=True))},
            original.__name__,
            original.__defaults__,
        )
        filled.__doc__, filled.__module__ = original.__doc__, original.__module__
        # The name is what Numba names the files of the cache after.
        modules = "\n".join(str(function.__module__) for function in functions)
        digest = hashlib.sha256(modules.encode()).hexdigest()[:8]
        filled.__qualname__ = ".".join([original.__qualname__, *names, digest])
        sources = tuple(dict.fromkeys(_file(function) for function in (original, *functions)))
        options = dict(self._options)
        if not all(source.exists() for source in sources):
            options["cache"] = False  # typed into an interpreter: nobody could tell when it has changed
        return _jitted(filled, sources, **options)


def template(*slots: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], Template]:
    """A kernel that calls some functions, its slots, whose places others take when it is used; options as for njit.

    >>> def change(x):
    ...     '''Stands for what is done to a number.'''
    ...     raise NotImplementedError
    >>> @template(change, nogil=True)
    ... def twice(x):
    ...     return change(change(x))
    >>> @njit()
    ... def square(x):
    ...     return x * x
    >>> twice.using(change=square)(3)
    81
    """

    def make(function: Callable[..., Any]) -> Template:
        return Template(function, slots, options)

    return make
