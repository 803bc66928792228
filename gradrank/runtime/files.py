"""Writing files so that a killed process never leaves half of one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gradrank.errors import DataError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; rename it to ``path`` if the block succeeds.

    The temporary file is removed if the block fails, so ``path`` is either the old file or the
    whole new one.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> (folder / "a.txt").read_text()
    'whole'
    """
    path = Path(path)
    if path.is_dir():
        raise DataError("is a folder, expected a file to write", path=path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=path) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes private files; give the result the permissions an ordinary new file has.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder beside ``path``; rename it to ``path`` if the block succeeds.

    An existing folder at ``path`` is replaced only after the new one is complete.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "data"
    >>> with replacing_folder(target) as temporary:
    ...     _ = (temporary / "a.txt").write_text("whole")
    >>> (target / "a.txt").read_text()
    'whole'
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise DataError("is a file, expected a folder to write", path=path)
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=path) from None
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        if path.exists():
            # A folder cannot be swapped in one step: move the old one aside, then the new one in.
            aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
            path.replace(aside)
            temporary.replace(path)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            temporary.replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
