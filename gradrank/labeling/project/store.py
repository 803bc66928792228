"""The file of a labeling project: one SQLite database, safe against crashes and against many writers.

Every write is one transaction that takes the write lock at its start (``BEGIN IMMEDIATE``): a transaction that
reads first and then wants to write would fail at once when another has written in between. The log is synced to
disk before a transaction ends (WAL, ``synchronous=FULL``), so what was acknowledged survives a crash.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path

from gradrank.errors import DataError, ProjectUnavailableError
from gradrank.labeling.project.migrations import migrate
from gradrank.runtime.files import replacing

APPLICATION_ID = 0x67724C62
SCHEMA_VERSION = 1
_BUSY_SECONDS = 30.0
_MAGIC = b"SQLite format 3\0"
# Tables whose rows can no longer be changed, STRICT: 3.37.
_OLDEST_SQLITE = (3, 37)
_UNAVAILABLE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
)


class Store:
    """An open project; may be used by many threads at once.

    ``clock`` gives the time in seconds; tests replace it. A writer waits ``busy_seconds`` for the others before it is
    told that the project is not available. A project of an older version is brought up to date when it is opened, and
    kept beside it as it was, as ``NAME.form-1`` and so on, unless ``keep_older`` is False.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "project.db"
    >>> with create_project(path, title="Passages") as store:
    ...     store.setting("title")
    'Passages'
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Callable[[], float] = time.time,
        busy_seconds: float = _BUSY_SECONDS,
        keep_older: bool = True,
    ) -> None:
        self.path = project_file(path)
        self.clock = clock
        self.busy_seconds = busy_seconds
        self._keep_older = keep_older
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        # Threads of this process queue here; SQLite's own waiting sleeps in steps of many milliseconds.
        self._writer = threading.RLock()
        if not self.path.is_file():
            reason = "is a folder, expected a project" if self.path.is_dir() else "there is no such project"
            raise DataError(f"{reason}; 'gradrank label init' makes one", path=self.path)
        self._check_header()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; the store can be used again and then opens new ones."""
        with self._guard:
            for connection in self._open:
                connection.close()
            self._open.clear()
            self._local = threading.local()

    # ------------------------------------------------------------------ reading and writing
    def read(self) -> sqlite3.Connection:
        """The calling thread's connection, for single statements that read."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = _connect(self.path, self.busy_seconds)
            self._local.connection = connection
            with self._guard:
                self._open.append(connection)
        return connection

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Several statements that read one and the same state."""
        connection = self.read()
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("ROLLBACK")

    @contextmanager
    def write(self, *, synced: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from its start; an error takes everything back.

        Without ``synced`` it survives a crash of the process but perhaps not one of the machine; that is enough for
        when a page was shown, and saves half of all waiting for the disk.
        """
        if not self._writer.acquire(timeout=self.busy_seconds):
            raise ProjectUnavailableError("cannot be written: others are writing", path=self.path)
        try:
            connection = self.read()
            with unavailable(self.path):
                connection.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE")
            try:
                with unavailable(self.path):
                    yield connection
                    connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        finally:
            self._writer.release()

    # ------------------------------------------------------------------ small things
    def setting(self, name: str, default: str = "") -> str:
        """A setting of the project, such as its title or its guidelines."""
        row = self.read().execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
        return default if row is None else str(row[0])

    def set_setting(self, name: str, value: str) -> None:
        """Change a setting; the old value stays in the audit."""
        with self.write() as connection:
            old = connection.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
            connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))
            if old is not None:
                note(connection, self.clock(), "setting", f"{name}: {old[0]!r} became {value!r}")

    def check(self) -> None:
        """Look for damage in the whole file."""
        try:
            # Some findings are several lines; one is enough to know.
            found = [_words(row[0]) for row in self.read().execute("PRAGMA integrity_check(5)")]
            if found == ["ok"]:
                # To SQLite a column by another name is a column.
                lost = sorted(_columns_wanted() - _columns(self.read()))
                found = [f"there is no column {column} in {table}" for table, column in lost][:5]
            if not found:
                found = [
                    f"row {row[1]} of {row[0]} names a {row[2]} that is not there"
                    for row in self.read().execute("PRAGMA foreign_key_check")
                ][:5]
        except sqlite3.DatabaseError as error:
            found = [_words(error)]
        except UnicodeDecodeError:
            found = ["its tables cannot be read"]
        if found:
            raise DataError(
                f"is damaged ({'; '.join(found)}); 'gradrank label restore' brings back a backup", path=self.path
            )

    def _check_header(self) -> None:
        # Looked at as bytes: connecting would already change another program's database.
        try:
            with self.path.open("rb") as file:
                head = file.read(100)
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", path=self.path) from None
        if not head.startswith(_MAGIC) or head[68:72] != APPLICATION_ID.to_bytes(4, "big"):
            raise DataError("is not a labeling project", path=self.path)
        try:
            version = self.read().execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError as error:
            self.close()
            raise DataError(f"cannot be read as a labeling project: {_words(error)}", path=self.path) from None
        except UnicodeDecodeError:  # SQLite's own words about damage have damaged bytes in them
            self.close()
            raise DataError("cannot be read as a labeling project: its tables are damaged", path=self.path) from None
        if not 1 <= version <= SCHEMA_VERSION:
            self.close()
            raise DataError(
                f"was made by another version of gradrank (form {version}, this one reads forms 1 to {SCHEMA_VERSION})",
                path=self.path,
            )
        if version < SCHEMA_VERSION:
            try:
                self._migrate(version)
            except BaseException:
                self.close()
                raise

    def _migrate(self, version: int) -> None:
        """Bring the project of an older version up to date."""
        aside = self.path.with_name(f"{self.path.name}.form-{version}")
        if self._keep_older and not aside.exists():
            with replacing(aside) as temporary, closing(sqlite3.connect(temporary)) as copy, unavailable(aside):
                self.read().backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            aside.chmod(0o600)
        with unavailable(self.path):
            migrate(self.read(), SCHEMA_VERSION)


def project_file(path: str | Path) -> Path:
    """The file that a link leads to: beside it lie the lock, the secret and the backups of a project."""
    path = Path(path)
    return path.resolve() if path.is_symlink() else path


def create_project(path: str | Path, *, title: str = "", guidelines: str = "") -> Store:
    """Make an empty project and open it; a file that is already there is an error.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "project.db"
    >>> create_project(path).close()
    >>> create_project(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gradrank.errors.DataError: ...project.db: is already there
    """
    path = Path(path)
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise DataError(f"SQLite is {sqlite3.sqlite_version}, labeling needs 3.37 or later")
    try:
        # Only the owner of the file may read it; made here so that it never exists with other rights.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise DataError("is already there", path=path) from None
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=path) from None
    try:
        _fill(path, {"title": title or path.stem, "guidelines": guidelines})
        return Store(path)
    except BaseException:
        # Half a project would stand in the way of the next attempt.
        for ending in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        raise


def _schema() -> str:
    return resources.files("gradrank.labeling.project").joinpath("schema.sql").read_text(encoding="utf-8")


def _columns(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Tables with their columns, by name."""
    sql = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type = 'table'"
    return set(connection.execute(sql).fetchall())


@cache
def _columns_wanted() -> set[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_schema())
        return _columns(connection)


def _fill(path: Path, settings: dict[str, str]) -> None:
    schema = _schema()
    connection = _connect(path, _BUSY_SECONDS)
    try:
        with unavailable(path):
            connection.executescript(
                f"BEGIN IMMEDIATE; {schema}; PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT"
            )
            connection.executemany("INSERT INTO setting VALUES (?, ?)", settings.items())
            # Into the file itself while there is room: closing would not tell that there is none.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


@contextmanager
def unavailable(path: Path) -> Iterator[None]:
    """Turn what SQLite raises for a file that is locked and a disk that is full, read-only or broken into our error."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _UNAVAILABLE:
            raise
        raise ProjectUnavailableError(f"cannot be written: {error}", path=path) from None


def _words(said: object) -> str:
    """What SQLite says as one short line: of a damaged file it quotes names, which may hold anything."""
    text = " ".join(str(said).split())
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]


def note(connection: sqlite3.Connection, at: float, action: str, detail: str) -> None:
    """Add a line to the audit: what the owner did."""
    connection.execute("INSERT INTO audit (at, action, detail) VALUES (?, ?, ?)", (at, action, detail))


def _connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    # isolation_level=None: transactions begin where this module says so, not where the driver guesses.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    # The time to wait comes first: changing to WAL needs a lock too.
    try:
        with unavailable(path):
            connection.execute(f"PRAGMA busy_timeout = {busy_seconds * 1000:.0f}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection
