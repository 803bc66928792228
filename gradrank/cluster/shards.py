"""Files that together are one data set, and how they are dealt out to the workers."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradrank.cluster.addresses import fetch, is_data, list_address
from gradrank.data.formats.binary_layout import MANIFEST
from gradrank.errors import DataError

Shard = list[Any]
"""Number, path, part and number of parts: plain values, since they travel."""


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
        return list_address(pattern)
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
    local = fetch(path, folder)
    try:
        yield local
    finally:
        if local.is_dir():
            shutil.rmtree(local)
        else:
            local.unlink()


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
        elif is_data(item):
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
