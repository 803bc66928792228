"""Tells who wants to know that kernels are being compiled, which takes seconds in which nothing seems to happen.

Whoever wants to be told says so here, without having to load the compiler.
"""

from __future__ import annotations

from collections.abc import Callable

_waiting: list[Callable[[], None]] = []


def on_compiling(tell: Callable[[], None]) -> None:
    """Call ``tell`` once, when a kernel is compiled.

    >>> told = []
    >>> on_compiling(lambda: told.append("compiling"))
    >>> compiling(), compiling(), told
    (None, None, ['compiling'])
    """
    _waiting.append(tell)


def compiling() -> None:
    """Tell everybody who asked that a kernel is being compiled."""
    while _waiting:
        _waiting.pop()()
