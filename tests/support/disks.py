"""Disks that cannot take more, and folders that cannot be written."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_CAPABILITY_VERSION = 0x20080522
_OVERRIDE_PERMISSIONS = 1 << 1


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process can grow beyond a size: writing fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder and all below it can be read by this thread, and not written."""
    inside = [folder, *folder.rglob("*")]
    modes = {path: path.stat().st_mode for path in inside}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        with _bound_by_permissions():
            yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@contextmanager
def _bound_by_permissions() -> Iterator[None]:
    """Permissions hold for this thread even if the user is root, who may otherwise write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may write everywhere")
    library = ctypes.CDLL(None, use_errno=True)
    # Version and thread (0 = this one); then effective, permitted and inheritable, first those of the numbers below 32.
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()

    def change(effective: int) -> None:
        sets[0] = effective
        if library.capset(head, sets) != 0:
            raise OSError(ctypes.get_errno(), "capset")

    if library.capget(head, sets) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    before = sets[0]
    change(before & ~_OVERRIDE_PERMISSIONS)
    try:
        yield
    finally:
        change(before)
