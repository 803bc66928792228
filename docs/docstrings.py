"""Docstrings as Markdown, for the reference pages: doctests become code, Sphinx roles become plain code.

Compiled kernels are left out: they are loops over arrays behind the functions that people call.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|data|mod|attr):`~?(?:[\w.]*\.)?(\w+)`")
_DOCTEST = re.compile(r"(?:^[ ]*>>> .*\n?(?:^[ ]*\S.*\n?)*)+", re.MULTILINE)
_TABLE = re.compile(r"^=+ +=+\n(?:.*\n)+?=+ +=+$", re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring as Markdown.

    >>> print(as_markdown("Add :class:`~a.Thing`.\\n\\n>>> 1 + 1\\n2"))
    Add `Thing`.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    text = _ROLE.sub(r"`\1`", text)
    text = _DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
    return _TABLE.sub(lambda found: f"```text\n{found[0]}\n```", text).rstrip()


class Markdown(griffe.Extension):
    """Rewrites every docstring; drops compiled kernels, and methods that only point to the base class."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every object that was found."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_members(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called when all members of a module or class are known."""
        for name, member in list(obj.members.items()):
            if isinstance(member, griffe.Function) and (_is_kernel(member) or _points_elsewhere(member)):
                obj.del_member(name)


def _is_kernel(function: griffe.Function) -> bool:
    return any(word in str(decorator.value) for decorator in function.decorators for word in ("njit", "template"))


def _points_elsewhere(function: griffe.Function) -> bool:
    return function.docstring is not None and function.docstring.value.startswith("See ")
