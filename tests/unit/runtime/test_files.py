"""A failed write leaves the old file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradrank.errors import DataError
from gradrank.runtime.files import replacing, replacing_folder


def test_failure_keeps_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_folder_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "data"
    for content in ("one", "two"):
        with replacing_folder(target) as temporary:
            (temporary / content).write_text(content)
    assert [path.name for path in target.iterdir()] == ["two"]

    def fail() -> None:
        with replacing_folder(target) as temporary:
            (temporary / "three").write_text("half")
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert [path.name for path in target.iterdir()] == ["two"]


def test_wrong_targets_are_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"), replacing(tmp_path / "no" / "a.txt"):
        pass
    with pytest.raises(DataError, match="is a folder"), replacing(tmp_path):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is a file"), replacing_folder(tmp_path / "file"):
        pass


def test_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
