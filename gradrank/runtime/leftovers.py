"""Hidden files that killed processes left: told from those that are being written by a lock."""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nobody knows whether a file is still being written, and all are left
    fcntl = None  # type: ignore[assignment]

_SECONDS_UNLOCKED = 60.0
"""A file that was just made has no lock for a moment."""


def lock_while_written(handle: int) -> None:
    """Mark an open file or folder as being written, until it is closed or the process has ended."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_leftovers(path: Path, suffix: str) -> None:
    """Remove the hidden files and folders beside ``path`` that were to become it and that nobody writes any more.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model.json"
    >>> left = path.with_name(".model.json.abcd1234.tmp")
    >>> left.touch()
    >>> os.utime(left, (0, 0))
    >>> remove_leftovers(path, ".tmp")
    >>> left.exists()
    False
    """
    if fcntl is None:
        return
    # As tempfile makes them: nothing else is touched.
    made = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}{re.escape(suffix)}")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if made.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_unlocked(Path(entry.path))


def _remove_unlocked(left: Path) -> None:
    status = left.lstat()
    if time.time() - status.st_mtime < _SECONDS_UNLOCKED or status.st_uid != os.geteuid():
        return
    handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()
    finally:
        os.close(handle)
