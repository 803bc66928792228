"""A failed write leaves the old file."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from gradrank.errors import DataError
from gradrank.runtime.files import recover_folder, replacing, replacing_folder


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


def test_links_are_followed_and_stay(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    for name in ("there.txt", "not-yet.txt"):
        (tmp_path / name).symlink_to(tmp_path / "real" / name)
    (tmp_path / "real" / "there.txt").write_text("old")
    for name in ("there.txt", "not-yet.txt"):
        with replacing(tmp_path / name) as temporary:
            temporary.write_text("new")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "real" / name).read_text() == "new"
    (tmp_path / "data").symlink_to(tmp_path / "real")
    with replacing_folder(tmp_path / "data") as folder:
        (folder / "a").write_text("a")
    assert (tmp_path / "data").is_symlink()
    assert [file.name for file in (tmp_path / "real").iterdir()] == ["a"]
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(DataError, match="leads to itself"), replacing(tmp_path / "loop"):
        pass


def test_devices_and_pipes_are_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    with replacing(pipe) as temporary:
        temporary.write_text("through")
    reader.join()
    assert found == ["through"]
    assert pipe.is_fifo()
    (tmp_path / "nothing").symlink_to("/dev/null")
    for path in (Path("/dev/null"), tmp_path / "nothing"):
        with replacing(path) as temporary:
            temporary.write_text("gone")
    assert Path("/dev/null").is_char_device()
    assert (tmp_path / "nothing").is_symlink()
    with pytest.raises(DataError, match=r"/dev/full: cannot be written: No space left"), replacing("/dev/full") as file:
        file.write_text("more")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nothing", "pipe"]


def test_a_full_disk_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def fill(target: Path) -> None:
        with replacing(target):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DataError, match=r"a: cannot be written: No space left on device"):
        fill(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    def old(name: str) -> Path:
        path = tmp_path / name
        path.touch()
        os.utime(path, (0, 0))
        return path

    dead, folder = old(".a.txt.abcd_123.tmp"), tmp_path / ".a.txt.abcd_456.tmp"
    folder.mkdir()
    (folder / "part").touch()
    os.utime(folder, (0, 0))
    others = [old(name) for name in (".a.txt.mine.tmp", "a.txt.abcd_123.tmp", ".b.txt.abcd_123.tmp", ".a.txt.abcd_123")]
    young = tmp_path / ".a.txt.young_12.tmp"
    young.touch()
    with replacing(tmp_path / "a.txt") as living:
        os.utime(living, (0, 0))
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("inner")
        assert living.exists()
        living.write_text("outer")
    assert (tmp_path / "a.txt").read_text() == "outer"
    assert not dead.exists()
    assert not folder.exists()
    assert young.exists()
    assert all(path.exists() for path in others)


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_stands_under_its_name_at_every_moment(
    can_exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "data"
    target.mkdir()
    (target / "old").touch()
    if not can_exchange:
        monkeypatch.setattr("gradrank.runtime.files.exchange", lambda _one, _other: False)
    seen: list[bool] = []
    before = shutil.rmtree
    monkeypatch.setattr(
        shutil, "rmtree", lambda *given, **more: (seen.append((target / "new").exists()), before(*given, **more))
    )
    with replacing_folder(target) as temporary:
        (temporary / "new").touch()
    assert seen[0]
    assert [path.name for path in target.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_folder_that_was_moved_aside_comes_back(tmp_path: Path) -> None:
    target, aside = tmp_path / "data", tmp_path / ".data.abcd_123.old"
    aside.mkdir()
    (aside / "a").touch()
    assert recover_folder(target)
    assert [path.name for path in target.iterdir()] == ["a"]
    assert not recover_folder(target)
