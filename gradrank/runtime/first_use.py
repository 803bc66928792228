"""Word that kernels are being compiled: it takes seconds, and otherwise looks as if nothing happened.

Kernels ask nobody; whoever wants to be told says so here, without having to load the compiler.
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
    """A kernel is being compiled."""
    while _waiting:
        _waiting.pop()()
