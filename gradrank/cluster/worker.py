"""The one function that every launcher starts on each worker: it runs a member of the crew and watches over it."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradrank import errors
from gradrank.cluster.frames import read_frame, write_frame
from gradrank.cluster.mesh import LostPeer
from gradrank.errors import ClusterError

POLL_SECONDS = 0.1
_START_SECONDS = 40.0
_LAST_LINES = 2000
_EXIT_SECONDS = 5.0

Exchange = Callable[[dict[str, Any]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Job:
    """A piece of work for a crew, as plain values: it travels to the workers.

    ``task`` names a function, ``module:function``, that gets a :class:`~gradrank.cluster.child.Member` in each process.
    ``shares`` has for each process what is its own, such as its files.
    """

    task: str
    arguments: Mapping[str, Any]
    shares: list[Any]
    token: str
    threads: int | None = None
    """Threads of each process."""
    ports: list[int] | None = None
    """First and last port that processes may listen on; any free one if None."""

    @property
    def size(self) -> int:
        """Number of processes."""
        return len(self.shares)


@dataclass
class Surroundings:
    """What a launcher gives the worker function."""

    host: str
    """The address at which the others reach this worker."""
    exchange: Exchange
    """Gives a small value to all workers and gets theirs, by rank; called once."""
    tell: Callable[[dict[str, Any]], None]
    """Passes a message of the first worker on to the one who asked."""
    asked: Callable[[], str | None] = field(default=lambda: None)
    """Whether the work is to be stopped: None, ``stop`` (keep what there is) or ``abort``; may raise ClusterError."""
    listen_on: str | None = None
    """The address to listen on, if not ``host``."""


def worker_name(rank: int, size: int, host: str) -> str:
    """What a worker is called in errors.

    >>> worker_name(0, 3, "10.0.0.7")
    'worker 1 of 3 (10.0.0.7)'
    """
    return f"worker {rank + 1} of {size} ({host})"


def work(job: Job, rank: int, around: Surroundings) -> dict[str, Any]:
    """Do one worker's part of a job in a process of its own, which does not outlive this call.

    Parameters
    ----------
    job
        The work.
    rank
        Number of this worker, from 0.
    around
        How to meet the others.
    """
    own = worker_name(rank, job.size, around.host)
    with tempfile.TemporaryDirectory(prefix="gradrank-") as folder, open(Path(folder) / "stderr", "w+b") as stderr:
        child = subprocess.Popen(
            [sys.executable, "-m", "gradrank.cluster.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=_environment(job.threads),
            # A group of its own: a signal for the group of this process does not reach it.
            process_group=0,
        )
        try:
            return _supervise(job, rank, around, child, own, folder, stderr)
        finally:
            _end(child)


def reported(job: Job, rank: int, around: Surroundings) -> dict[str, Any]:
    """As :func:`work`, but an error is part of what is given back: engines would log it at length and try again."""
    try:
        return work(job, rank, around)
    except errors.GradrankError as error:
        return {"failed": str(error), "kind": type(error).__name__}


def failure_of(result: Mapping[str, Any]) -> Exception | None:
    """The error that :func:`reported` gave back, if it did.

    >>> failure_of({"failed": "worker 2 of 3 (a) was killed", "kind": "ClusterError"})
    ClusterError('worker 2 of 3 (a) was killed')
    """
    if "failed" not in result:
        return None
    if result["kind"] == "LostPeer":
        return LostPeer(result["failed"])
    found: Exception = getattr(errors, result["kind"], ClusterError)(result["failed"])
    return found


def _supervise(
    job: Job, rank: int, around: Surroundings, child: subprocess.Popen[bytes], own: str, folder: str, stderr: Any
) -> dict[str, Any]:
    assert child.stdin is not None
    assert child.stdout is not None
    came: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(child.stdout, came), daemon=True).start()
    first = {
        "rank": rank, "host": around.listen_on or around.host, "ports": job.ports, "token": job.token,
        "threads": job.threads, "task": job.task, "arguments": dict(job.arguments), "share": job.shares[rank],
        "folder": folder,
    }  # fmt: skip
    try:
        write_frame(child.stdin, first)
        opened = _next(came, around, own, time.monotonic() + _START_SECONDS, child, stderr)
        here = {"host": around.host, "port": opened["port"], "pid": child.pid}
        everywhere = around.exchange(here)
        names = [worker_name(number, job.size, item["host"]) for number, item in enumerate(everywhere)]
        addresses = [[item["host"], item["port"]] for item in everywhere]
        write_frame(child.stdin, {"addresses": addresses, "names": names})
        if rank == 0:
            around.tell({"workers": everywhere})
    except BrokenPipeError:
        raise _death(child, own, stderr) from None
    stopping = False
    while True:
        message = _next(came, around, own, None, child, stderr)
        if message == "stop":
            if not stopping:
                stopping = True
                write_frame(child.stdin, {"stop": True})
        elif "told" in message:
            around.tell(message["told"])
        else:
            return dict(message)


def _next(
    came: queue.SimpleQueue[Any], around: Surroundings, own: str, ends: float | None, child: Any, stderr: Any
) -> Any:
    """The next message of the process; ``stop`` if the work is to end early."""
    while True:
        try:
            message = came.get(timeout=POLL_SECONDS)
        except queue.Empty:
            wish = around.asked()
            if wish == "abort":
                raise ClusterError(f"{own} was told to end") from None
            if wish == "stop":
                return "stop"
            if ends is not None and time.monotonic() > ends:
                raise ClusterError(f"{own} did not start within {_START_SECONDS:.0f} s") from None
            continue
        if message is None:
            raise _death(child, own, stderr)
        if "error" in message:
            raise revived(message, own)
        return message


def _read(stream: Any, came: queue.SimpleQueue[Any]) -> None:
    try:
        while (message := read_frame(stream)) is not None:
            came.put(message)
    except ValueError:  # the pipe was closed on this side
        pass
    came.put(None)


def revived(message: Mapping[str, Any], own: str) -> Exception:
    """The error that a process has told."""
    kind, text = message["kind"], str(message["error"])
    if kind == "LostPeer":
        return LostPeer(text)
    if kind == "Fault":
        return ClusterError(f"{text}\n{message['traceback']}")
    found = getattr(errors, kind, ClusterError)
    if kind in ("DataError", "TrainingError", "MeasureError", "ObjectiveError") and not text.startswith("worker "):
        text = f"{own}: {text}"
    error: Exception = found(text) if found is not errors.MissingExtraError else ClusterError(f"{own}: {text}")
    return error


def _death(child: subprocess.Popen[bytes], own: str, stderr: Any) -> ClusterError:
    try:
        code = child.wait(_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        return ClusterError(f"{own} closed its connection")
    stderr.seek(0)
    last = stderr.read()[-_LAST_LINES:].decode(errors="replace").strip()
    if code == -signal.SIGKILL:
        return ClusterError(f"{own} was killed (signal 9); if nobody did so, its machine ran out of memory")
    if code < 0:
        return ClusterError(f"{own} was ended by signal {-code}" + (f": {last}" if last else ""))
    return ClusterError(f"{own} ended with code {code}" + (f": {last}" if last else ""))


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            try:
                stream.close()
            except BrokenPipeError:
                continue


def _environment(threads: int | None) -> dict[str, str]:
    # Threads that wait for each other by spinning cost a busy machine many times what they save.
    found = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    if threads is not None:
        found["OMP_NUM_THREADS"] = str(threads)
    return found
