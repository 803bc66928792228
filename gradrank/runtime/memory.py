"""How much memory there is, and whether an array lies in it or in a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def memory_limit() -> int | None:
    """Bytes of memory that this process may use: of the machine, its container and its own limits; None if unknown.

    >>> limit = memory_limit()
    >>> limit is None or limit > 0
    True
    """
    limits = [_physical_memory(), *map(_number_in, _group_files()), *_process_limits()]
    known = [limit for limit in limits if limit is not None and limit > 0]
    return min(known, default=None)


def is_mapped(matrix: NDArray[Any]) -> bool:
    """Whether an array lies in a file and is read from there as needed.

    >>> is_mapped(np.zeros((2, 2)))
    False
    """
    owner: Any = matrix
    while isinstance(owner, np.ndarray):
        if isinstance(owner, np.memmap):
            return True
        owner = owner.base
    return False


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _group_files() -> list[Path]:
    """Where Linux tells the limits of the control groups of this process; a container sees its own as the top."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return []
    files = []
    for _, controllers, group in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        kind = {"": (_GROUPS, "memory.max"), "memory": (_GROUPS / "memory", "memory.limit_in_bytes")}.get(controllers)
        if kind is not None:
            folder = kind[0] / group.lstrip("/")
            files += [place / kind[1] for place in (folder, *folder.parents) if place.is_relative_to(kind[0])]
    return files


def _number_in(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # not there, or "max"
        return None


def _process_limits() -> list[int]:
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return []
    found = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    return [limit for limit in found if limit != resource.RLIM_INFINITY]
