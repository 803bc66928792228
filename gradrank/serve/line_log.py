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


def now() -> str:
    """The time as logs have it.

    >>> now().endswith("Z")
    True
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class LineLog:
    """A file that grows by whole lines, each written at once.

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
        try:
            self._open()
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", path=path) from None

    def write(self, event: dict[str, Any]) -> bool:
        """Append one line; whether it could be written."""
        line = (json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")
        with self._lock:
            try:
                self._follow()
                written = os.write(self._file, line)
                if written < len(line):
                    # The disk is full: what is there of the line must not become the start of the next one.
                    os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                    return False
            except OSError:
                return False
        return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _open(self) -> None:
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        # A process that was killed in the middle of a line has left it without an end.
        size = os.fstat(self._file).st_size
        if size:
            with open(self.path, "rb") as file:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    os.write(self._file, b"\n")

    def _follow(self) -> None:
        """Go on in a new file if this one was renamed, removed, or is large enough."""
        held = os.fstat(self._file) if self._file >= 0 else None
        named = None
        with suppress(FileNotFoundError):
            named = os.stat(self.path)
        same = held is not None and named is not None and (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
        if same and named is not None and self._rotate_bytes is not None and named.st_size >= self._rotate_bytes:
            aside = self._aside()
            os.rename(self.path, aside)
            same = False
        if not same:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
            self._open()

    def _aside(self) -> Path:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        number = 0
        while True:
            path = self.path.with_name(f"{self.path.name}.{stamp}-{number:03d}")
            if not path.exists():
                return path
            number += 1
