"""Files that together are one data set, and how they are dealt out to the workers."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gradrank.data.formats.binary import MANIFEST
from gradrank.data.formats.compressed import without_compression_suffix
from gradrank.data.formats.file_formats import FORMATS
from gradrank.errors import DataError, MissingExtraError

Shard = list[Any]
"""Number, path, part and number of parts: plain values, since they travel."""
_SUFFIXES = tuple(suffix for form in FORMATS for suffix in form.suffixes)


def list_shards(pattern: str) -> list[tuple[str, int]]:
    """The files of a data set, in order of their names, with their sizes in bytes.

    Parameters
    ----------
    pattern
        A file; a folder of data files, also one partitioned into folders; a pattern such as ``part-*.parquet``; or any
        of them at an address such as ``s3://bucket/train``. Names that begin with ``.`` or ``_`` are left out.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "b.txt").write_text("x"), (folder / "a.txt").write_text("xy"), (folder / "_done").write_text("")
    >>> [(Path(path).name, size) for path, size in list_shards(str(folder))]
    [('a.txt', 2), ('b.txt', 1)]
    """
    if "://" in pattern:
        return _remote(pattern)
    path = Path(pattern)
    if path.exists():
        found = _inside(path) if path.is_dir() else [path]
    else:
        found = [item for name in sorted(glob.glob(pattern, recursive=True)) for item in _match(Path(name))]
    if not found:
        raise DataError("there is no such file" if not path.is_dir() else "holds no data file", path=pattern)
    return [(str(item), _size(item)) for item in found]


def deal(shards: Sequence[tuple[str, int]], workers: int) -> list[list[Shard]]:
    """The shards of each worker: about equally many bytes; if there are fewer files than workers, parts of each file.

    >>> deal([("a", 5), ("b", 1), ("c", 3)], 2)
    [[[0, 'a', 0, 1]], [[1, 'b', 0, 1], [2, 'c', 0, 1]]]
    >>> deal([("a", 5)], 2)
    [[[0, 'a', 0, 2]], [[0, 'a', 1, 2]]]
    """
    if len(shards) < workers:
        return [[[number, path, part, workers] for number, (path, _) in enumerate(shards)] for part in range(workers)]
    given: list[list[Shard]] = [[] for _ in range(workers)]
    load = [0] * workers
    for number in sorted(range(len(shards)), key=lambda item: -shards[item][1]):
        # By number of files where sizes tell nothing, so that nobody is left without one.
        least = min(range(workers), key=lambda rank: (load[rank], len(given[rank]), rank))
        given[least].append([number, shards[number][0], 0, 1])
        load[least] += max(1, shards[number][1])
    return [sorted(own) for own in given]


@contextmanager
def fetched(path: str, folder: Path) -> Iterator[Path]:
    """A shard as a local file, which is removed afterwards if it had to be fetched."""
    if "://" not in path:
        yield Path(path)
        return
    system, place = _file_system(path)
    local = folder / Path(place).name
    try:
        with system.open_input_stream(place) as source, open(local, "wb") as target:
            while block := source.read(1 << 24):
                target.write(block)
    except OSError as error:
        raise DataError(f"cannot be read: {error}", path=path) from None
    try:
        yield local
    finally:
        local.unlink()


def _is_data(path: Path) -> bool:
    if path.name.startswith((".", "_")):
        return False
    return without_compression_suffix(path).suffix.lower() in _SUFFIXES


def _inside(path: Path) -> list[Path]:
    """The data files of a folder and its folders; our own form is a folder that counts as a file."""
    if (path / MANIFEST).exists():
        return [path]
    found: list[Path] = []
    for item in sorted(path.iterdir()):
        if item.name.startswith((".", "_")):
            continue
        if item.is_dir():
            found += _inside(item)
        elif _is_data(item):
            found.append(item)
    return found


def _match(path: Path) -> list[Path]:
    if path.is_dir():
        return _inside(path)
    return [] if path.name.startswith((".", "_")) else [path]


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(item.stat().st_size for item in path.iterdir())
    return path.stat().st_size


# ---------------------------------------------------------------------- at an address
def _file_system(address: str) -> tuple[Any, str]:
    try:
        from pyarrow import fs
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    try:
        system, place = fs.FileSystem.from_uri(address)
    except (OSError, ValueError) as error:
        raise DataError(f"is no address that can be read: {error}", path=address) from None
    return system, place


def _remote(address: str) -> list[tuple[str, int]]:
    from fnmatch import fnmatchcase

    parts = urlsplit(address)
    # The part before the first * is a folder that can be listed.
    star = next((at for at, letter in enumerate(address) if letter in "*?["), None)
    base = address if star is None else address[:star].rpartition("/")[0]
    system, place = _file_system(base)
    from pyarrow import fs

    try:
        info = system.get_file_info(place)
        if info.type == fs.FileType.File:
            entries = [info]
        else:
            entries = [item for item in system.get_file_info(fs.FileSelector(place, recursive=True)) if item.is_file]
    except OSError as error:
        raise DataError(f"cannot be listed: {error}", path=address) from None
    wanted = None if star is None else place + address[len(base) :]
    found = sorted(
        (item.path, item.size or 0)
        for item in entries
        if (wanted is None or fnmatchcase(item.path, wanted)) and (wanted is not None or _is_data(Path(item.path)))
    )
    if not found:
        raise DataError("there is no such file", path=address)
    start = f"{parts.scheme}://"
    return [(f"{start}{path}", size) for path, size in found]
