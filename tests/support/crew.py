"""Crews of real processes for tests: data in shards, tasks for them to do, and a look at what is left running."""

from __future__ import annotations

import time
from collections.abc import Sequence
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


def wait_for_ever(member: Member) -> dict[str, Any]:
    """Nobody ever ends: each exchange is followed by another."""
    member.tell({"waiting": True})
    while True:
        member.mesh.gather(b"")
        time.sleep(0.01)
