"""The project's file: safe to make, to damage, to kill."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gradrank.errors import DataError
from gradrank.labeling.project import migrations, store
from gradrank.labeling.project.backup import backup, restore
from gradrank.labeling.project.store import Store, create_project


def test_only_its_owner_may_read_a_project(tmp_path: Path) -> None:
    create_project(tmp_path / "p.db").close()
    assert (tmp_path / "p.db").stat().st_mode & 0o777 == 0o600


def test_a_project_is_not_made_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.db").write_text("mine")
    with pytest.raises(DataError, match="already there"):
        create_project(tmp_path / "p.db")
    assert (tmp_path / "p.db").read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to be looked at" * 99])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.db").write_bytes(content)
    with pytest.raises(DataError, match=r"p\.db: (is not a labeling project|cannot be read)"):
        Store(tmp_path / "p.db")


def test_another_programs_database_is_left_as_it_was(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "p.db") as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = (tmp_path / "p.db").read_bytes()
    with pytest.raises(DataError, match="is not a labeling project"):
        Store(tmp_path / "p.db")
    assert (tmp_path / "p.db").read_bytes() == before


def test_a_missing_project_is_not_made_by_opening_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such project"):
        Store(tmp_path / "p.db")
    assert not (tmp_path / "p.db").exists()


def test_a_project_of_another_version_is_refused(tmp_path: Path) -> None:
    create_project(tmp_path / "p.db").close()
    with sqlite3.connect(tmp_path / "p.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DataError, match="form 99"):
        Store(tmp_path / "p.db")


NEXT = store.SCHEMA_VERSION + 1


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of gradrank whose projects have one more column."""
    monkeypatch.setattr(store, "SCHEMA_VERSION", NEXT)
    step = ["ALTER TABLE query ADD COLUMN market TEXT NOT NULL DEFAULT 'all'"]
    monkeypatch.setitem(migrations.STEPS, NEXT - 1, step)


def form_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_there_is_a_step_from_every_older_form() -> None:
    assert sorted(migrations.STEPS) == list(range(1, store.SCHEMA_VERSION))


def test_older_projects_are_brought_up_to_date_and_a_copy_is_kept(project: Store, request: Any) -> None:
    work = project.read().execute("SELECT id, name, text FROM query").fetchall()
    project.close()
    request.getfixturevalue("next_version")
    with Store(project.path) as newer:
        assert newer.read().execute("SELECT id, name, text, market FROM query").fetchall() == [
            (*row, "all") for row in work
        ]
        newer.check()
    copy = project.path.with_name(f"{project.path.name}.form-{NEXT - 1}")
    assert (form_of(project.path), form_of(copy)) == (NEXT, NEXT - 1)
    assert copy.stat().st_mode & 0o077 == 0
    with Store(project.path) as again:  # only once
        assert again.read().execute("SELECT count(*) FROM query WHERE market = 'all'").fetchone() == (len(work),)


def test_a_step_that_fails_leaves_the_project_as_it_was(project: Store, monkeypatch: Any) -> None:
    project.close()
    monkeypatch.setattr(store, "SCHEMA_VERSION", NEXT)
    broken = ["ALTER TABLE query ADD COLUMN market TEXT", "ALTER TABLE no_such_table ADD COLUMN x TEXT"]
    monkeypatch.setitem(migrations.STEPS, NEXT - 1, broken)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        Store(project.path)
    monkeypatch.undo()
    with Store(project.path) as same:
        assert "market" not in [row[1] for row in same.read().execute("PRAGMA table_info(query)")]


def test_processes_that_open_an_older_project_at_once_migrate_it_once(project: Store, next_version: None) -> None:
    connections = [sqlite3.connect(project.path, isolation_level=None) for _ in range(2)]
    for connection in connections:
        migrations.migrate(connection, NEXT)
        connection.close()
    assert form_of(project.path) == NEXT


def test_older_backups_are_restored(project: Store, tmp_path: Path, request: Any) -> None:
    copy = backup(project, tmp_path / "copy.db")
    project.close()
    request.getfixturevalue("next_version")
    restore(copy, tmp_path / "restored.db")
    assert (form_of(tmp_path / "restored.db"), form_of(copy)) == (NEXT, NEXT - 1)
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET verdict = 'b'",
        "DELETE FROM event",
        "UPDATE activity SET at = 0",
        "DELETE FROM activity",
        "UPDATE assignment SET seed = 1",
        "DELETE FROM audit",
    ],
)
def test_what_happened_cannot_be_changed(project: Store, statement: str) -> None:
    with project.write() as connection:
        connection.execute(
            "INSERT INTO event VALUES (1, 1, 'a', 1, 2, 1, NULL, '', 'token', NULL, 0, NULL)",
        )
        connection.execute("INSERT INTO activity (assignment, seq, page, kind, at) VALUES (1, 1, '', 'shown', 0)")
    with pytest.raises(sqlite3.IntegrityError), project.write() as connection:
        connection.execute(statement)


def test_an_error_takes_the_whole_transaction_back(project: Store) -> None:
    def fail() -> None:
        with project.write() as connection:
            connection.execute("INSERT INTO setting VALUES ('half', 'done')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert project.setting("half", "nothing") == "nothing"


def test_damage_is_found(project: Store) -> None:
    project.check()
    project.read().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    project.close()
    size = project.path.stat().st_size
    with project.path.open("r+b") as file:
        file.seek(size // 2)
        file.write(os.urandom(size // 4))
    with pytest.raises(DataError, match="is damaged") as raised:
        project.check()
    assert "\n" not in str(raised.value)


def test_many_threads_write_and_none_is_told_to_come_back(project: Store) -> None:
    errors = []

    def work(number: int) -> None:
        try:
            for step in range(20):
                with project.write() as connection:
                    # Reading first and then writing is what fails without the lock at the start.
                    count = connection.execute("SELECT count(*) FROM setting").fetchone()[0]
                    connection.execute("INSERT INTO setting VALUES (?, ?)", (f"{number} {step}", str(count)))
        except Exception as error:
            errors.append(error)

    before = project.read().execute("SELECT count(*) FROM setting").fetchone()[0]
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = [int(value) for (value,) in project.read().execute("SELECT value FROM setting WHERE name LIKE '% %'")]
    assert errors == []
    assert sorted(counts) == list(range(before, before + 160))


VOTER = """
import secrets, sys
from gradrank.labeling.project.judging import Desk, Vote
from gradrank.labeling.judgments import Verdict
from gradrank.labeling.project.store import Store

desk = Desk(Store(sys.argv[1]))
number = int(sys.argv[2])
while True:
    work = desk.work(number)
    token = secrets.token_urlsafe(16)
    undo = work.state.done or work.seq % 7 == 0
    verdict = Verdict.UNDO if undo else Verdict.TIE if work.seq % 5 == 0 else Verdict.FIRST
    shown = tuple(work.assignment.numbers[name] for name in work.shown)
    desk.vote(number, Vote(work.seq, token, verdict, shown))
    print(work.seq, token, flush=True)
"""


def test_killed_processes_lose_no_acknowledged_vote(project: Store) -> None:
    """Two processes vote on different assignments of one file until they are killed, after a thousand votes."""
    voters = [
        subprocess.Popen(
            [sys.executable, "-c", VOTER, str(project.path), str(number)], stdout=subprocess.PIPE, text=True
        )
        for number in (1, 2)
    ]
    acknowledged: dict[int, list[str]] = {1: [], 2: []}
    for number, voter in enumerate(voters, 1):
        assert voter.stdout is not None
        for line in voter.stdout:
            acknowledged[number].append(line)
            if len(acknowledged[number]) >= 500:
                break
    for number, voter in enumerate(voters, 1):
        voter.send_signal(signal.SIGKILL)
        assert voter.stdout is not None
        # The last line may be cut off: then it was not acknowledged.
        acknowledged[number] += [line for line in voter.stdout if line.endswith("\n")]
        voter.stdout.close()
        voter.wait()
    project.check()
    for number, lines in acknowledged.items():
        rows = project.read().execute("SELECT seq, token FROM event WHERE assignment = ? ORDER BY seq", (number,))
        kept = [f"{seq} {token}\n" for seq, token in rows]
        assert kept[: len(lines)] == lines
        # At most the one vote that was on disk when the process died before it could say so.
        assert len(kept) - len(lines) <= 1
