"""Warnings of gradrank told to somebody instead of Python's standard error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradrank.errors import GradrankWarning


@contextmanager
def warnings_told(say: Callable[[str], None]) -> Iterator[None]:
    """While it lasts, ``say`` is called with the text of each gradrank warning, once per text; others go their way.

    >>> heard = []
    >>> with warnings_told(heard.append):
    ...     for _ in range(2):
    ...         warnings.warn("8 queries are few", GradrankWarning)
    >>> heard
    ['8 queries are few']
    """
    seen: set[str] = set()
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, GradrankWarning):
                usual(message, category, *where, **more)
            elif str(message) not in seen:
                seen.add(str(message))
                say(str(message))

        # First that they are shown at all: another filter may hide them, or make errors of them.
        warnings.simplefilter("always", GradrankWarning)
        warnings.showwarning = show
        yield
