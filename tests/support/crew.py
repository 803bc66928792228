"""Crews of real processes for tests: data in shards, tasks for them to do, and a look at what is left running."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from gradrank import RankingData
from gradrank.cluster.child import Member
from gradrank.data.formats.registry import write_data


def write_shards(data: RankingData, folder: Path, cuts: Sequence[int], ending: str) -> Path:
    """Cut data into files of whole queries; a cut that is there twice makes an empty LETOR file."""
    folder.mkdir()
    edges = [0, *cuts, data.n_queries]
    for number, (first, end) in enumerate(pairwise(edges)):
        path = folder / f"part-{number}{ending}"
        if first == end:
            path.write_text("")
        else:
            write_data(data.take_queries(np.arange(first, end)), path)
    return folder


def crew_processes() -> list[psutil.Process]:
    """The members of crews that this process has started, directly or by others."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "gradrank.cluster.child" in process.cmdline():
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def wait_until(condition: Any, seconds: float = 60.0) -> None:
    """Wait for something to happen, looking often; it must."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.02)


@contextmanager
def memory_group(limit: int) -> Iterator[Path | None]:
    """A control group whose processes the kernel kills if they take more bytes; None where none can be made."""
    group = Path("/sys/fs/cgroup/memory") / f"gradrank-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit))
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


# ---------------------------------------------------------------------- tasks
def add_ranks(member: Member) -> dict[str, Any]:
    """The sum of all ranks, by way of the connections."""
    member.tell({"hello": member.rank})
    return {"sum": sum(member.mesh.gather_values(member.rank + member.arguments["more"]))}


def run_out_of_memory(member: Member) -> dict[str, Any]:
    """The second process asks for more memory than there is."""
    if member.rank == 1:
        np.ones(1 << 50)
    member.mesh.gather(b"")
    return {}


def outgrow_a_group(member: Member) -> dict[str, Any]:
    """The second process enters a control group, and writes to more memory than that allows."""
    if member.rank == 1:
        (Path(member.arguments["group"]) / "cgroup.procs").write_text(str(os.getpid()))
        np.ones(member.arguments["bytes"], dtype=np.uint8)
    member.mesh.gather(b"")
    return {}


def wait_for_ever(member: Member) -> dict[str, Any]:
    """Nobody ever ends: each exchange is followed by another."""
    member.tell({"waiting": True})
    while True:
        member.mesh.gather(b"")
        time.sleep(0.01)
