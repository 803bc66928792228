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
CHILD_SILENCE_SECONDS = 40.0
"""A process that works gives signs of life every few seconds; one that gives none for so long is taken for hung."""
ALIVE = {"alive": True}
"""The sign of life."""
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
    """Whether the work is to be stopped: None, ``stop`` (keep what there is) or ``abort``; may raise ClusterError.

    Called all the time, so that it can also tell the one who asked that this worker is alive."""
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
            return _Supervisor(job, rank, around, child, stderr).result(folder)
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


class _Supervisor:
    """Watches over the process that works: passes its messages on, and finds out if it ends or hangs."""

    def __init__(self, job: Job, rank: int, around: Surroundings, child: subprocess.Popen[bytes], stderr: Any) -> None:
        self._job = job
        self._rank = rank
        self._around = around
        self._child = child
        self._stderr = stderr
        self._own = worker_name(rank, job.size, around.host)
        self._came: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._silent = 0.0
        self._asked_at = 0.0
        self._hears_stop = False

    def result(self, folder: str) -> dict[str, Any]:
        """Give the process its work and wait for what comes of it."""
        child, around, job = self._child, self._around, self._job
        assert child.stdin is not None
        threading.Thread(target=_read, args=(child.stdout, self._came), daemon=True).start()
        first = {
            "rank": self._rank, "host": around.listen_on or around.host, "ports": job.ports, "token": job.token,
            "threads": job.threads, "task": job.task, "arguments": dict(job.arguments),
            "share": job.shares[self._rank], "folder": folder,
        }  # fmt: skip
        try:
            write_frame(child.stdin, first)
            opened = self._next()
            here = {"host": around.host, "port": opened["port"], "pid": child.pid}
            everywhere = around.exchange(here)
            names = [worker_name(number, job.size, item["host"]) for number, item in enumerate(everywhere)]
            addresses = [[item["host"], item["port"]] for item in everywhere]
            write_frame(child.stdin, {"addresses": addresses, "names": names})
            if self._rank == 0:
                around.tell({"workers": everywhere})
        except BrokenPipeError:
            raise _death(child, self._own, self._stderr) from None
        self._hears_stop = True
        while True:
            message = self._next()
            if message == "stop":
                write_frame(child.stdin, {"stop": True})
            elif "told" in message:
                around.tell(message["told"])
            else:
                return dict(message)

    def _next(self) -> Any:
        """The next message of the process; ``stop`` if the work is to end early."""
        while True:
            wish = self._wish()
            if wish == "abort":
                raise ClusterError(f"{self._own} was told to end")
            if wish == "stop" and self._hears_stop:
                self._hears_stop = False
                return "stop"
            try:
                message = self._came.get(timeout=POLL_SECONDS)
            except queue.Empty:
                # Counted by looks instead of a clock: one who was stopped himself, as by Ctrl-Z, has not looked.
                self._silent += POLL_SECONDS
                if self._silent > CHILD_SILENCE_SECONDS:
                    raise ClusterError(f"{self._own} gave no sign of life for {CHILD_SILENCE_SECONDS:.0f} s: its "
                                       "process is stopped, or its machine at a standstill") from None  # fmt: skip
                continue
            self._silent = 0.0
            if message is None:
                raise _death(self._child, self._own, self._stderr)
            if "error" in message:
                raise revived(message, self._own)
            if message != ALIVE:
                return message

    def _wish(self) -> str | None:
        """What the one who asked wants, looked up now and then, also while messages come all the time."""
        now = time.monotonic()
        if now - self._asked_at < POLL_SECONDS:
            return None
        self._asked_at = now
        return self._around.asked()


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
