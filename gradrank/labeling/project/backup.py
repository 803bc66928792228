"""Backups: copying a project while it is in use, and restoring a copy."""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gradrank.errors import DataError, ProjectUnavailableError
from gradrank.labeling.project.store import Store, project_file
from gradrank.runtime.files import not_written, replacing

try:
    import fcntl
except ImportError:  # Windows: SQLite itself refuses to replace a file that is open
    fcntl = None  # type: ignore[assignment]

KEPT = 48
"""Hourly copies of two days."""
_LEFTOVERS = ("-wal", "-shm")


def backup_folder(project: str | Path) -> Path:
    """Where the copies of a project are kept.

    >>> backup_folder("work/project.db").name
    'project.db.backups'
    """
    path = project_file(project)
    return path.with_name(f"{path.name}.backups")


def backup(store: Store, target: str | Path | None = None, *, keep: int = KEPT) -> Path:
    """Copy a project, also while it is being written; gives the path of the copy.

    Without a target, the copy goes to the folder of backups, named by the time, and the oldest beyond ``keep`` are
    removed. A copy is complete and checked before it gets its name.

    >>> import tempfile
    >>> from gradrank.labeling.project.store import create_project
    >>> with create_project(Path(tempfile.mkdtemp()) / "project.db", title="Passages") as store:
    ...     copy = backup(store)
    >>> with Store(copy) as store:
    ...     store.setting("title")
    'Passages'
    """
    if target is None:
        folder = backup_folder(store.path)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise not_written(error, folder) from None
        moment = datetime.fromtimestamp(store.clock(), UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
        path = folder / f"{moment}.db"
    else:
        folder, path = None, Path(target)
    with replacing(path) as temporary:
        copy = sqlite3.connect(temporary)
        try:
            store.read().backup(copy, pages=1024)
            # One file that can be moved anywhere, not a file with a log beside it.
            copy.execute("PRAGMA journal_mode = DELETE")
            found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        except sqlite3.OperationalError as error:
            raise ProjectUnavailableError(f"cannot be written: {error}", path=path) from None
        finally:
            copy.close()
        if found != "ok":
            raise DataError(f"the copy is damaged: {found}", path=path)
        _sync(temporary)
    path.chmod(0o600)
    if folder is not None:
        # Copies that are named after this one were made before the clock went back: they are not old.
        older = sorted(copy for copy in folder.glob("*Z.db") if copy.name <= path.name)
        for old in older[:-keep]:
            old.unlink()
    return path


@dataclass(frozen=True)
class Restored:
    """What became of a project that a backup has replaced."""

    aside: Path | None
    """Where it was moved; None if there was none."""
    links_kept: bool
    """Whether the links that worked before work still; else all are new."""


def restore(copy: str | Path, project: str | Path) -> Restored:
    """Put a backup in the place of a project.

    A project that is being served is refused. Links that were ended since the copy was made stay ended; so do all
    sessions. If the project of before cannot tell which links those are, all links are new.
    """
    copy, project = Path(copy), project_file(project)
    if not copy.is_file():
        raise DataError("there is no such backup", path=copy)
    aside = None
    with in_use(project), replacing(project) as temporary:
        shutil.copyfile(copy, temporary)
        # The copy of the copy is looked at: opening a backup would change it.
        try:
            with Store(temporary, keep_older=False) as store:
                store.check()
                links_kept = _take_over_links(store, project)
                store.read().execute("PRAGMA journal_mode = DELETE")
        except DataError as error:
            raise DataError(error.message, path=copy) from None
        _sync(temporary)
        if project.exists():
            moment = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
            aside = project.with_name(f"{project.name}.replaced-{moment}")
            _fold_log(project)
            # A second name, not another one: at every moment a project stands under its name.
            _link(project, aside)
            for ending in _LEFTOVERS:
                # Of a project so damaged that its log could not be folded in. The log belongs to the file: beside
                # another one it would be taken for that one's.
                old = project.with_name(project.name + ending)
                if old.exists():
                    old.rename(aside.with_name(aside.name + ending))
    project.chmod(0o600)
    return Restored(aside, links_kept)


def _take_over_links(restored: Store, project: Path) -> bool:
    """Give a restored project the editions of links that the project of before has; tells whether it could."""
    people: list[tuple[int, str, int]] = []
    with suppress(DataError, sqlite3.Error), Store(project) as before:
        people = before.read().execute("SELECT id, name, edition FROM assessor").fetchall()
    with restored.write() as connection:
        connection.execute("DELETE FROM session")
        mine = dict(connection.execute("SELECT id, name FROM assessor").fetchall())
        theirs = {number: name for number, name, _edition in people}
        if theirs and all(theirs.get(number) == name for number, name in mine.items()):
            # Also those who came later: their numbers, and so their links, must not become another's.
            connection.executemany("INSERT OR REPLACE INTO assessor (id, name, edition) VALUES (?, ?, ?)", people)
            return True
        # Far from any that was counted up.
        connection.execute("UPDATE assessor SET edition = ?", (1_000_000 + secrets.randbelow(2**40),))
        return not mine


def _fold_log(project: Path) -> None:
    """Write what stands in a project's log into its file, and remove the log."""
    if not project.with_name(project.name + "-wal").exists():
        return
    try:
        connection = sqlite3.connect(f"{project.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    except sqlite3.Error:
        return
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()  # the last one to close removes the log


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new)
    except OSError:  # a file system without second names
        shutil.copyfile(old, new)
        _sync(new)


@contextmanager
def in_use(project: str | Path) -> Iterator[None]:
    """Claim a project for as long as the block lasts; a second claim is an error."""
    path = project_file(project)
    lock = path.with_name(f"{path.name}.lock")
    try:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=lock) from None
    claimed = False
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError("is being served or restored by another process", path=path) from None
        claimed = True
        yield
    finally:
        if claimed and not path.exists():
            lock.unlink(missing_ok=True)  # there is nothing to be claimed by anybody
        os.close(handle)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
