"""What errors say of wrong input."""

from __future__ import annotations

import pickle

import pytest

from gradrank.errors import DataError, GradrankError, ModelError


@pytest.mark.parametrize("kind", [DataError, ModelError])
def test_names_from_files_cannot_break_the_line_or_move_the_cursor(kind: type[GradrankError]) -> None:
    error = kind("query a\nb\x1b[2J\u2028 of \udc80 and é…", path="train.csv")  # type: ignore[call-arg]
    assert str(error) == r"train.csv: query a\nb\x1b[2J\u2028 of \udc80 and é…"
    assert str(pickle.loads(pickle.dumps(error))).endswith(r"query a\nb\x1b[2J\u2028 of \udc80 and é…")


@pytest.mark.parametrize("kind", [DataError, ModelError])
def test_a_name_of_a_megabyte_is_shortened_in_the_middle(kind: type[GradrankError]) -> None:
    said = str(kind(f"query {'x' * 1_000_000} comes twice", path="train.csv"))  # type: ignore[call-arg]
    assert said.startswith("train.csv: query xxx")
    assert said.endswith("xxx comes twice")
    assert len(said) < 2000
