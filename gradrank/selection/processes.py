"""Processes that train side by side: each has all data as a memory map, and does what one line orders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from gradrank.data.formats.binary import open_binary, write_binary
from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.runtime.threads import thread_count

# Bytes of features that all processes together may hold, each its own copy of the training queries.
_MOST_BYTES = 1 << 31
# Below this many documents, or seconds, starting processes costs more than they save.
_FEWEST_DOCS = 10_000
_LEAST_SECONDS = 30.0
_PATIENCE_AT_END = 10.0


def processes_for(pool: RankingData, budget: float, n_jobs: int | None = None) -> int:
    """How many processes pay: one for each core, if the data is neither tiny nor so large that copies fill the memory.

    Parameters
    ----------
    pool
        The data that each of them trains on.
    budget
        Seconds for everything.
    n_jobs
        Cores to use; all by default.

    >>> processes_for(RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1]), 600.0, n_jobs=8)
    1
    """
    cores = thread_count(n_jobs)
    # LightGBM's bins and the copy of the left-out queries come on top of the features.
    each = 2 * pool.X.nbytes
    if pool.n_docs < _FEWEST_DOCS or budget < _LEAST_SECONDS or each * 2 > _MOST_BYTES:
        return 1
    return max(1, min(cores, _MOST_BYTES // max(each, 1)))


class Processes:
    """Several processes that wait for orders.

    Parameters
    ----------
    pool
        The data that they all have.
    count
        How many there are.
    module
        What they run, as ``python -m module DATA``: its ``main`` calls :func:`work_through`.
    n_jobs
        Threads of all processes together.
    """

    def __init__(self, pool: RankingData, count: int, module: str, *, n_jobs: int | None = None) -> None:
        self._pool = pool
        self._count = count
        self._module = module
        self.threads = max(1, thread_count(n_jobs) // count)
        """Threads of each process."""
        self.waiting = ThreadPoolExecutor(count, thread_name_prefix="gradrank-waiting")
        """Threads of this process that wait for answers: one for each of the others."""
        self._free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        self._all: list[subprocess.Popen[str]] = []
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._closing = False

    @property
    def folder(self) -> Path:
        """A folder for what they hand over, gone at the end."""
        assert self._temporary is not None
        return Path(self._temporary.name)

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory(prefix="gradrank-")
        write_binary(self._pool, self.folder / "pool.gradrank")
        for _ in range(self._count):
            self._start()
        return self

    def _start(self) -> None:
        environment = {"OMP_WAIT_POLICY": "passive", **os.environ, "OMP_NUM_THREADS": str(self.threads)}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        # Apart from the terminal: Ctrl-C is for this process, which then tells the others.
        process = subprocess.Popen(
            [sys.executable, "-m", self._module, str(self.folder / "pool.gradrank")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
            env=environment, start_new_session=True,
        )  # fmt: skip
        self._all.append(process)
        self._free.put(process)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing = True
        self.stop()
        for process in self._all:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
        if kind is not None:
            for process in self._all:
                process.kill()
        for process in self._all:
            try:
                process.wait(_PATIENCE_AT_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
        # What they left in the folder is taken over before it goes.
        self.waiting.shutdown()
        assert self._temporary is not None
        self._temporary.cleanup()

    def stop(self) -> None:
        """Let whatever they do end after the step at work."""
        (self.folder / "stop").touch()

    def ordered(self, order: Mapping[str, Any], what: str) -> dict[str, Any]:
        """The answer to an order, from the first process that is free; called in a thread that may wait.

        A process that ends instead of answering raises TrainingError, and another takes its place.
        """
        process = self._free.get()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({**order, "n_jobs": self.threads, "stop": str(self.folder / "stop")}) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):
            answer = ""
        if not answer:
            code = None if self._closing else process.wait()
            if not self._closing:
                self._start()
            raise TrainingError(
                f"{what}: the process that trains it ended with code {code}; if memory is short, "
                "fewer processes need less"
            )
        self._free.put(process)
        found: dict[str, Any] = json.loads(answer)
        return found


Work = Callable[[Mapping[str, Any], RankingData, Callable[[], bool]], dict[str, Any]]
"""Does what an order says with the data; asks after each step whether to end now."""


def work_through(work: Work, ended: Callable[[Mapping[str, Any]], bool]) -> None:
    """What such a process does: work until there is nothing left to read, or nobody left to read the answers.

    Parameters
    ----------
    work
        What is done.
    ended
        Tells whether an order's time is over.
    """
    # Answers go where standard output was; whatever a library prints must not come between them.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    pool, parent = open_binary(Path(sys.argv[1])), os.getppid()
    for line in sys.stdin:
        order = json.loads(line)
        stop = Path(order["stop"])

        def ends(order: Mapping[str, Any] = order, stop: Path = stop) -> bool:
            return ended(order) or stop.exists() or os.getppid() != parent

        answers.write(json.dumps(work(order, pool, ends)) + "\n")
        answers.flush()
