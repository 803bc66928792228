"""Naming what was probably meant by a misspelt word."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# What other packages, and people, call an argument.
_ALSO_CALLED = {
    "qid": ("query", "query_id", "group_id", "groups", "session"),
    "labels": ("y", "target", "targets", "relevance", "grades"),
    "features": ("feature_names", "feature_name", "columns", "feature_columns"),
    "feature_names": ("feature_name", "columns", "names"),
    "ignore": ("drop", "exclude", "ignored"),
    "group": ("sizes", "group_sizes", "groups"),
    "weight": ("sample_weight", "query_weight", "weights"),
    "sample_weight": ("weight", "weights"),
    "y": ("label", "target", "labels"),
    "X": ("data", "features"),
}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence that names the nearest known word, or nothing if none is near.

    >>> did_you_mean("lables", ["labels", "features"])
    "; did you mean 'labels'?"
    >>> did_you_mean("BM25", ["bm25", "length"])
    "; did you mean 'bm25'?"
    >>> did_you_mean("colour", ["labels", "features"])
    ''
    """
    plain = {name.casefold(): name for name in known}
    close = get_close_matches(word.casefold(), list(plain), n=1)
    return f"; did you mean {plain[close[0]]!r}?" if close else ""


def known_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that is called with an unknown keyword name the nearest one it knows.

    >>> @known_keywords
    ... def read(path, *, labels=None): ...
    >>> read("a", lables=1)
    Traceback (most recent call last):
    TypeError: read() has no argument 'lables'; did you mean 'labels'?
    """
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        for word in keywords:
            if word not in known:
                meant = [name for name in known if word in _ALSO_CALLED.get(name, ())]
                hint = f"; did you mean {meant[0]!r}?" if meant else did_you_mean(word, known)
                raise TypeError(f"{function.__name__}() has no argument {word!r}{hint}")
        return function(*args, **keywords)

    return checked
