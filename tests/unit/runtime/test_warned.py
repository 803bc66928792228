"""Warnings told to a listener."""

from __future__ import annotations

import warnings

import pytest

from gradrank.errors import FewQueriesWarning, GradrankWarning
from gradrank.runtime.warned import warnings_told


def test_ours_are_told_once_and_others_go_their_way() -> None:
    heard: list[str] = []
    with warnings_told(heard.append):
        for text in ("a", "b", "a"):
            warnings.warn(text, FewQueriesWarning, stacklevel=1)
        with pytest.warns(DeprecationWarning, match="old"):
            warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert heard == ["a", "b"]
    with pytest.warns(GradrankWarning, match="after"):
        warnings.warn("after", GradrankWarning, stacklevel=1)
    assert heard == ["a", "b"]


def test_a_listener_inside_a_listener() -> None:
    outer: list[str] = []
    inner: list[str] = []
    with warnings_told(outer.append):
        with warnings_told(inner.append):
            warnings.warn("inside", GradrankWarning, stacklevel=1)
        warnings.warn("outside", GradrankWarning, stacklevel=1)
    assert (outer, inner) == (["outside"], ["inside"])
