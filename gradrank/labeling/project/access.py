"""Access to a project: invitation links for assessors and owner, and sessions on the server.

Links are made from a secret in a file beside the project, so neither the project nor its backups hold anything
that opens the door. A link works on every device until a new one is made. Sessions are random; the project keeps
only their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gradrank.errors import DataError
from gradrank.labeling.project.store import Store, note, project_file

SESSION_SECONDS = 30 * 24 * 3600.0
OWNER_SECONDS = 12 * 3600.0
_OWNER = 0


@dataclass(frozen=True)
class Visitor:
    """Who a session belongs to."""

    assessor: int | None
    """None is the owner."""
    name: str
    csrf: str
    """What every form of this session must carry."""

    @property
    def is_owner(self) -> bool:
        """Whether it is the owner of the project."""
        return self.assessor is None


class Access:
    """Invitations and sessions of a project.

    >>> import tempfile
    >>> from gradrank.labeling.project.store import create_project
    >>> store = create_project(Path(tempfile.mkdtemp()) / "project.db")
    >>> access = Access(store)
    >>> token = access.invite("Ada")
    >>> visitor = access.visitor(access.enter(token))
    >>> visitor.name, visitor.is_owner, access.enter("1-guess")
    ('Ada', False, None)
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._secret = load_secret(store.path)

    @property
    def cookie(self) -> str:
        """Name of the cookie: browsers share cookies between ports, so each project has its own."""
        return f"gradrank_{self._sign('cookie')[:8].replace('-', '0').replace('_', '0')}"

    # ------------------------------------------------------------------ invitations
    def invite(self, name: str, *, renew: bool = False) -> str:
        """The invitation of an assessor, who is made if there is none of that name.

        ``renew`` makes a new one; the old link and all sessions end.
        """
        name = " ".join(name.split())
        if not name or len(name) > 100 or not name.isprintable():
            raise DataError(f"name of an assessor is {name!r}, expected 1 to 100 letters")
        with self.store.write() as connection:
            made = connection.execute("INSERT OR IGNORE INTO assessor (name) VALUES (?)", (name,)).rowcount
            if renew and not made:
                connection.execute("UPDATE assessor SET edition = edition + 1 WHERE name = ?", (name,))
            number, edition = connection.execute("SELECT id, edition FROM assessor WHERE name = ?", (name,)).fetchone()
            if made or renew:
                note(connection, self.store.clock(), "invite", f"{name}, link {edition}")
        return self.token(number, edition)

    def token(self, assessor: int, edition: int) -> str:
        """The invitation of an assessor by number."""
        return f"{assessor}-{self._sign(f'invite {assessor} {edition}')}"

    def owner_token(self) -> str:
        """The owner's way in."""
        return self.token(_OWNER, 1)

    def welcome(self, token: str) -> str | None:
        """The name of whom a token invites; None if it invites nobody."""
        found = self._invited(token)
        return None if found is None else found[1]

    # ------------------------------------------------------------------ sessions
    def enter(self, token: str) -> str | None:
        """Begin a session by invitation; gives the value of its cookie, or None."""
        found = self._invited(token)
        if found is None:
            return None
        number, _name, edition = found
        value = secrets.token_urlsafe(32)
        now = self.store.clock()
        seconds = OWNER_SECONDS if number == _OWNER else SESSION_SECONDS
        with self.store.write() as connection:
            connection.execute("DELETE FROM session WHERE ends_at < ?", (now,))
            connection.execute(
                "INSERT INTO session VALUES (?, ?, ?, ?, ?)",
                (_hash(value), None if number == _OWNER else number, edition, now, now + seconds),
            )
        return value

    def visitor(self, value: str | None) -> Visitor | None:
        """Whose session a cookie is; None if it is none or has ended."""
        if not value:
            return None
        row = (
            self.store.read()
            .execute(
                "SELECT s.assessor, u.name FROM session s LEFT JOIN assessor u ON u.id = s.assessor "
                "WHERE s.hash = ? AND s.ends_at > ? AND (s.assessor IS NULL OR s.edition = u.edition)",
                (_hash(value), self.store.clock()),
            )
            .fetchone()
        )
        if row is None:
            return None
        return Visitor(row[0], row[1] or "owner", self._sign(f"csrf {_hash(value)}"))

    def leave(self, value: str) -> None:
        """End a session."""
        with self.store.write() as connection:
            connection.execute("DELETE FROM session WHERE hash = ?", (_hash(value),))

    # ------------------------------------------------------------------ inside
    def _invited(self, token: str) -> tuple[int, str, int] | None:
        head, dash, _ = token.partition("-")
        if not dash or not head.isascii() or not head.isdigit() or len(head) > 9:
            return None
        number, name, edition = int(head), "owner", 1
        if number != _OWNER:
            row = self.store.read().execute("SELECT name, edition FROM assessor WHERE id = ?", (number,)).fetchone()
            if row is None:
                return None
            name, edition = row
        expected = self.token(number, edition)
        return (number, name, edition) if hmac.compare_digest(token.encode(), expected.encode()) else None

    def _sign(self, text: str) -> str:
        digest = hmac.digest(self._secret, text.encode(), "sha256")
        return base64.urlsafe_b64encode(digest[:24]).decode()


def served_address(store: Store) -> str:
    """Where the project is served, or was last; the server's default if it never was."""
    return store.setting("address", "http://127.0.0.1:8765")


def remember_address(store: Store, address: str) -> None:
    """Keep where the project is served, for the links that other processes show."""
    with store.write() as connection:
        connection.execute("INSERT OR REPLACE INTO setting VALUES ('address', ?)", (address,))


def secret_path(project: str | Path) -> Path:
    """The file of a project's secret."""
    path = project_file(project)
    return path.with_name(f"{path.name}.secret")


def load_secret(project: str | Path) -> bytes:
    """The secret of a project; made on first use, readable for its owner only."""
    path = secret_path(project)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        pass
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=path) from None
    else:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
    try:
        secret = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None
    if len(secret) < 32:
        raise DataError("is too short for a secret; remove it, and new links are made", path=path)
    return secret


class RateLimit:
    """Refuses a source that failed too often of late.

    >>> limit = RateLimit(most=2, seconds=60, clock=lambda: 0.0)
    >>> limit.failed("10.0.0.1"); limit.failed("10.0.0.1")
    >>> limit.blocked("10.0.0.1"), limit.blocked("10.0.0.2")
    (True, False)
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._failures: dict[str, list[float]] = {}

    def failed(self, source: str) -> None:
        """Count a failure."""
        if len(self._failures) > 10_000:
            # Somebody has many addresses: forget who failed long ago, so that memory stays bounded.
            self._failures = {name: times for name, times in self._failures.items() if self._recent(times)}
            if len(self._failures) > 10_000:
                self._failures.clear()
        self._failures.setdefault(source, []).append(self._clock())

    def blocked(self, source: str) -> bool:
        """Whether the source must wait."""
        times = self._recent(self._failures.get(source, []))
        if source in self._failures:
            self._failures[source] = times
        return len(times) >= self._most

    def _recent(self, times: list[float]) -> list[float]:
        now = self._clock()
        return [at for at in times if now - at < self._seconds]


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()
