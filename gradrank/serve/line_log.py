"""JSON lines appended to a file so that a kill, a full disk or a rotation never spoils what is there."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gradrank.errors import DataError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def now() -> str:
    """The time as logs have it.

    >>> now().endswith("Z")
    True
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class LineLog:
    """A file that grows by whole lines, each written at once; several processes may write to it.

    A line that another program's rotation would lose goes to the new file: the name is looked at before each line.
    Above ``rotate_bytes`` the file is renamed to ``NAME.TIME`` by itself; nothing is ever deleted.

    Parameters
    ----------
    path
        The file to append to; made if it is not there.
    rotate_bytes
        Size above which the file is renamed and a new one begun; None = never.
    """

    def __init__(self, path: str | Path, rotate_bytes: int | None = None) -> None:
        self.path = Path(path)
        self._rotate_bytes = rotate_bytes
        self._lock = threading.Lock()
        self._file = -1
        self._fresh = False
        try:
            self._hold()
            self._release()
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", path=path) from None

    def write(self, event: dict[str, Any]) -> bool:
        """Append one line; whether it could be written."""
        line = (json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")
        with self._lock:
            try:
                self._hold()
                try:
                    written = os.write(self._file, line)
                    if written < len(line):
                        # The disk is full: what is there of the line must not become the start of the next one.
                        os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                        return False
                finally:
                    self._release()
            except OSError:
                return False
        return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _hold(self) -> None:
        """Lock the file that the name means now; a new one if it was renamed, removed, or is large enough."""
        while True:
            if self._file < 0:
                self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
                self._fresh = True
            _lock(self._file, True)
            held = os.fstat(self._file)
            named = None
            with suppress(FileNotFoundError):
                named = os.stat(self.path)
            same = named is not None and (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
            large = self._rotate_bytes is not None and held.st_size >= self._rotate_bytes
            if same and not large:
                break
            if same:
                os.rename(self.path, self._aside())
            os.close(self._file)  # and so unlocked
            self._file = -1
        if self._fresh:
            # A process that was killed in the middle of a line has left it without an end.
            if held.st_size:
                with open(self.path, "rb") as file:
                    file.seek(held.st_size - 1)
                    if file.read(1) != b"\n":
                        os.write(self._file, b"\n")
            self._fresh = False

    def _release(self) -> None:
        _lock(self._file, False)

    def _aside(self) -> Path:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        number = 0
        while True:
            path = self.path.with_name(f"{self.path.name}.{stamp}-{number:03d}")
            if not path.exists():
                return path
            number += 1


def _lock(file: int, held: bool) -> None:
    """Keep other processes out, or let them in; where there are no locks, there is one process."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX if held else fcntl.LOCK_UN)
