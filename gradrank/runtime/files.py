"""Writing files so that a killed process never leaves half of one.

A file or folder is written under a hidden name beside its own and takes its place in one step. Links are followed: what
they point to is replaced, they stay. Devices, pipes and sockets are written into. What a killed process left behind
is removed when the same file is written next: the hidden file of a living one is locked.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gradrank.errors import DataError
from gradrank.runtime.leftovers import lock_while_written, remove_leftovers
from gradrank.runtime.renaming import exchange

NOT_WRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})
"""Errors of a disk that is full, read-only or broken: no fault of whoever writes."""
_NEW, _OLD = ".tmp", ".old"


def is_special(path: str | Path) -> bool:
    """Whether a path is a device, a pipe or a socket, or a name of one: what is written there is not kept as a file.

    >>> is_special("/dev/null"), is_special("model.json")
    (True, False)
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    # What a process calls its own output may be a file, which others have open and append to.
    own = Path(os.path.abspath(path)).is_relative_to("/dev") or Path(os.path.abspath(path)).is_relative_to("/proc")
    return not stat.S_ISDIR(status.st_mode) and (own or not stat.S_ISREG(status.st_mode))


def open_to_others(path: Path) -> None:
    """Give a temporary file or folder, which is made private, the permissions that an ordinary new one has."""
    path.chmod((0o777 if path.is_dir() else 0o666) & ~_umask())


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; rename it to ``path`` if the block succeeds.

    The temporary file is removed if the block fails, so ``path`` is either the old file or the
    whole new one. A disk that is full is a DataError, whoever finds it.

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
    special = is_special(path)
    target = path if special else _linked(path)
    try:
        folder = tempfile.gettempdir() if special else target.parent
        if not special:
            remove_leftovers(target, _NEW)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=_NEW, dir=folder)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=path) from None
    temporary = Path(name)
    try:
        lock_while_written(handle)
        with _disk_errors(path):
            yield temporary
            if special:
                _pour(temporary, path)
                return
            open_to_others(temporary)
        try:
            temporary.replace(target)
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", path=path) from None
    finally:
        os.close(handle)
        with suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder beside ``path``; rename it to ``path`` if the block succeeds.

    An existing folder at ``path`` changes places with the new one when that is complete, in one step where the system
    can do that (Linux). Elsewhere there is a moment without either; :func:`recover_folder` brings the old one back if
    the process is killed then.

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
    target = _linked(path)
    recover_folder(target)
    with temporary_folder(target, said=path) as temporary:
        with _disk_errors(path):
            yield temporary
            open_to_others(temporary)
        try:
            if not target.exists():
                temporary.replace(target)
            elif exchange(temporary, target):
                return  # what is temporary now is the old folder
            else:
                aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_OLD, dir=target.parent))
                target.replace(aside)
                temporary.replace(target)
                shutil.rmtree(aside, ignore_errors=True)
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", path=path) from None


def recover_folder(path: str | Path) -> bool:
    """Bring back the folder that a killed process had moved aside to make room; whether there was one.

    >>> recover_folder("no-such-folder")
    False
    """
    path = Path(path)
    if path.exists():
        remove_leftovers(path, _OLD)
        return False
    with suppress(OSError):
        whole = [folder for folder in path.parent.glob(f".{_literal(path.name)}.*{_OLD}") if any(folder.iterdir())]
        if len(whole) == 1:
            whole[0].replace(path)
            return True
    return False


@contextmanager
def temporary_folder(path: str | Path, *, said: Path | None = None) -> Iterator[Path]:
    """A hidden folder beside a file or folder that is to be written, removed in the end whatever happens."""
    path = Path(path)
    special = is_special(path)
    try:
        if not special:
            remove_leftovers(path, _NEW)
        folder = tempfile.gettempdir() if special else path.parent
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=_NEW, dir=folder))
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=said or path) from None
    handle = None
    try:
        with suppress(OSError):  # Windows opens no folders
            handle = os.open(temporary, os.O_RDONLY)
            lock_while_written(handle)
        yield temporary
    finally:
        if handle is not None:
            os.close(handle)
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for files that nobody is to see, among the system's temporary ones; gone in the end.

    >>> with scratch_folder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    with tempfile.TemporaryDirectory(prefix="gradrank-") as folder:
        try:
            yield Path(folder)
        except OSError as error:
            if error.errno not in NOT_WRITTEN:
                raise
            said = f"cannot be written: {error.strerror}; TMPDIR names another folder for temporary files"
            raise DataError(said, path=tempfile.gettempdir()) from None


def made_folder(path: Path) -> Path:
    """The folder of a path, made with those above it if it is not there.

    >>> made_folder(Path("/dev/null/new"))
    Traceback (most recent call last):
        ...
    gradrank.errors.DataError: /dev/null/new: cannot be made into a folder: Not a directory
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be made into a folder: {error.strerror}", path=path) from None
    return path


def not_written(error: OSError, path: str | Path) -> DataError:
    """The error that says that a file could not be written.

    >>> print(not_written(OSError(28, "No space left on device"), "a.txt"))
    a.txt: cannot be written: No space left on device
    """
    return DataError(f"cannot be written: {error.strerror or error}", path=path)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in NOT_WRITTEN:
            raise not_written(error, path) from None
        raise


def _linked(path: Path) -> Path:
    """What a link points to, there or not; a path that is no link as it is."""
    if not path.is_symlink():
        return path
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise DataError("is a link that leads to itself", path=path) from None


def _literal(name: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def _pour(source: Path, target: Path) -> None:
    """Write a file's content into a device, pipe or socket."""
    try:
        with source.open("rb") as content, open(os.open(target, os.O_WRONLY), "wb") as stream:
            shutil.copyfileobj(content, stream)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise not_written(error, target) from None
