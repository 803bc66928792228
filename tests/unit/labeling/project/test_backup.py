"""Copies and the way back."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from gradrank.errors import DataError
from gradrank.labeling.project.access import Access
from gradrank.labeling.project.backup import backup, backup_folder, in_use, restore
from gradrank.labeling.project.store import Store, create_project


def test_a_copy_holds_what_was_there(project: Store, tmp_path: Path) -> None:
    copy = backup(project, tmp_path / "copy.db")
    with Store(copy) as other:
        assert other.read().execute("SELECT count(*) FROM assignment").fetchone() == (2,)
    assert copy.stat().st_mode & 0o777 == 0o600
    # One file, nothing beside it.
    assert list(tmp_path.glob("copy.db*")) == [copy]


def test_old_copies_are_removed(project: Store) -> None:
    now = [0.0]
    project.clock = lambda: now[0]
    copies = []
    for hour in range(5):
        now[0] = 3600.0 * hour
        copies.append(backup(project, keep=3))
    assert sorted(backup_folder(project.path).iterdir()) == copies[2:]


def test_a_copy_made_while_others_write_is_whole(project: Store, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            with project.write() as connection:
                for part in ("a", "b"):
                    connection.execute("INSERT INTO setting VALUES (?, '')", (f"{part} {number}",))
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        copies = [backup(project, tmp_path / f"copy{number}.db") for number in range(3)]
    finally:
        stop.set()
        thread.join()
    for copy in copies:
        with Store(copy) as other:
            other.check()
            counts = [
                other.read().execute("SELECT count(*) FROM setting WHERE name LIKE ?", (f"{part} %",)).fetchone()
                for part in ("a", "b")
            ]
        assert counts[0] == counts[1]


def test_restoring_brings_the_copy_back_and_keeps_the_other(project: Store, tmp_path: Path) -> None:
    copy = backup(project, tmp_path / "copy.db")
    before = copy.read_bytes()
    project.set_setting("title", "Later")
    project.close()
    aside = restore(copy, project.path).aside
    assert aside is not None
    assert copy.read_bytes() == before
    with Store(project.path) as back, Store(aside) as replaced:
        assert (back.setting("title"), replaced.setting("title")) == ("Test", "Later")


def test_a_damaged_project_can_be_replaced_but_not_replace(project: Store, tmp_path: Path) -> None:
    copy = backup(project, tmp_path / "copy.db")
    project.close()
    project.path.write_bytes(b"rubbish")
    with pytest.raises(DataError, match=r"project0\.db: (is not|cannot be read as) a labeling project"):
        restore(project.path, tmp_path / "another.db")
    assert not (tmp_path / "another.db").exists()
    assert project.path.read_bytes() == b"rubbish"
    restore(copy, project.path)
    with Store(project.path) as back:
        assert back.setting("title") == "Test"


def test_a_project_in_use_is_not_replaced(project: Store, tmp_path: Path) -> None:
    copy = backup(project, tmp_path / "copy.db")
    with in_use(project.path), pytest.raises(DataError, match="is being served"):
        restore(copy, project.path)
    restore(copy, project.path)


def test_a_refused_copy_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_bytes(b"rubbish")
    with pytest.raises(DataError, match="labeling project"):
        restore(tmp_path / "copy.db", tmp_path / "new.db")
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]


def test_a_project_stands_under_its_name_at_every_moment(
    project: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = backup(project, tmp_path / "copy.db")
    project.set_setting("title", "Later")
    log = project.path.with_name(project.path.name + "-wal")
    left = log.read_bytes()
    project.close()
    log.write_bytes(left)  # as a killed process leaves it
    seen: list[str] = []
    before = Path.replace

    def look(self: Path, target: Path) -> Path:
        with Store(project.path) as standing:
            seen.append(standing.setting("title"))
        return before(self, target)

    monkeypatch.setattr(Path, "replace", look)
    aside = restore(copy, project.path).aside
    assert seen == ["Later"]
    assert aside is not None
    with Store(aside) as replaced:
        assert replaced.setting("title") == "Later"


def test_a_project_that_could_not_be_made_does_not_stand_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gradrank.labeling.project.store.SCHEMA_VERSION", "no number; SELECT no_such_function()")
        with pytest.raises(sqlite3.OperationalError):
            create_project(path)
    assert list(tmp_path.iterdir()) == []
    create_project(path).close()


def test_restoring_revives_no_link(project: Store, tmp_path: Path) -> None:
    access = Access(project)
    ended, kept = access.invite("Ada"), access.invite("Ben")
    session = access.enter(kept)
    copy = backup(project, tmp_path / "copy.db")
    renewed = access.invite("Ada", renew=True)
    later = access.invite("Carl")
    project.close()
    assert restore(copy, project.path).links_kept
    with Store(project.path) as back:
        access = Access(back)
        assert access.welcome(ended) is None
        assert access.visitor(session) is None
        assert [access.welcome(token) for token in (renewed, kept, later)] == ["Ada", "Ben", "Carl"]
        access.invite("Dora")
        assert access.welcome(later) == "Carl"


def test_all_links_are_new_if_the_ended_ones_are_not_known(project: Store, tmp_path: Path) -> None:
    token = Access(project).invite("Ada")
    copy = backup(project, tmp_path / "copy.db")
    project.close()
    project.path.write_bytes(b"rubbish")
    assert not restore(copy, project.path).links_kept
    with Store(project.path) as back:
        assert Access(back).welcome(token) is None
        assert Access(back).welcome(Access(back).invite("Ada")) == "Ada"


def test_a_new_copy_stays_when_the_clock_went_back(project: Store) -> None:
    now = [1e9]
    project.clock = lambda: now[0]
    later = []
    for _ in range(3):
        now[0] += 3600
        later.append(backup(project, keep=3))
    now[0] = 5e8
    copies = []
    for _ in range(4):
        now[0] += 3600
        copies.append(backup(project, keep=3))
        assert copies[-1].exists()
    assert sorted(backup_folder(project.path).iterdir()) == [*copies[1:], *later]


def test_a_link_to_a_project_is_the_project(project: Store, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(project.path)
    with in_use(project.path), pytest.raises(DataError, match="is being served"), in_use(link):
        pass
    with Store(link) as linked:
        assert Access(linked).owner_token() == Access(project).owner_token()
        assert backup(linked).parent == backup_folder(project.path)
    assert list(link.parent.iterdir()) == [link]
