"""Who trains the models of a portfolio: this process, or several that work side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from gradrank.data.formats.binary import write_binary
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, GradrankError, TrainingError
from gradrank.learners.base.loop import Callback
from gradrank.runtime.threads import thread_count
from gradrank.selection.crossfit import Ends, Fitted, Task, fit_fold
from gradrank.selection.kept import keep, kept, path_of, run_facts

# Bytes of features that all processes together may hold, each its own copy of the training queries.
_MOST_BYTES = 1 << 31
# Below this many documents, or seconds, starting processes costs more than they save.
_FEWEST_DOCS = 10_000
_LEAST_SECONDS = 30.0
_PATIENCE_AT_END = 10.0

Asked = Callable[[], bool]


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


class Team:
    """Trains tasks, each at most once: what the folder of members holds is taken as it is.

    Parameters
    ----------
    pool
        The data that folds are cut from.
    processes
        How many train at the same time; with one, it is this process.
    folder
        Where models are kept; they are gone at the end unless it is given.
    n_jobs
        Threads of all processes together.
    callbacks
        Told of each step, with one process.
    asked
        Tells whether the user wants to stop.
    """

    def __init__(
        self,
        pool: RankingData,
        *,
        processes: int = 1,
        folder: Path | None = None,
        n_jobs: int | None = None,
        callbacks: Sequence[Callback] = (),
        asked: Asked | None = None,
    ) -> None:
        self.pool = pool
        self.processes = processes
        self.folder = folder
        self.stopped = False
        """Whether the user has stopped it: trainings end after the step at work."""
        self._asked = asked
        self._callbacks = callbacks
        self._threads = max(1, thread_count(n_jobs) // processes)
        self._n_jobs = n_jobs
        self._pool_of_threads: ThreadPoolExecutor | None = None
        self._free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        self._workers: list[subprocess.Popen[str]] = []
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._closing = False

    def __enter__(self) -> Self:
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise DataError(f"cannot be made into a folder: {error.strerror}", path=self.folder) from None
        if self.processes > 1:
            self._temporary = tempfile.TemporaryDirectory(prefix="gradrank-auto-")
            data = Path(self._temporary.name) / "pool.gradrank"
            write_binary(self.pool, data)
            environment = {"OMP_WAIT_POLICY": "passive", **os.environ, "OMP_NUM_THREADS": str(self._threads)}
            environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
            for _ in range(self.processes):
                # Apart from the terminal: Ctrl-C is for this process, which then tells the others.
                worker = subprocess.Popen(
                    [sys.executable, "-m", "gradrank.selection.worker", str(data)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
                    env=environment, start_new_session=True,
                )  # fmt: skip
                self._workers.append(worker)
                self._free.put(worker)
            self._pool_of_threads = ThreadPoolExecutor(self.processes, thread_name_prefix="gradrank-auto")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing = True
        if self._temporary is None:
            return
        self._tell_to_stop()
        for worker in self._workers:
            assert worker.stdin is not None
            with suppress(OSError):
                worker.stdin.close()
        if kind is not None:
            for worker in self._workers:
                worker.kill()
        for worker in self._workers:
            try:
                worker.wait(_PATIENCE_AT_END)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()
        if self._pool_of_threads is not None:
            self._pool_of_threads.shutdown()
        self._temporary.cleanup()

    def stop(self) -> None:
        """Let all trainings end after the step at work."""
        self.stopped = True
        self._tell_to_stop()

    def look(self) -> None:
        """Stop if the user has asked for it."""
        if not self.stopped and self._asked is not None and self._asked():
            self.stop()

    def train(self, task: Task, until: float) -> Future[Fitted]:
        """Train a model, or take the kept one; training ends at a time (of ``time.time``) with what it has by then."""
        run = run_facts(task, self.pool)
        if self.folder is not None:
            found = kept(run, path_of(task, self.folder))
            if found is not None:
                done: Future[Fitted] = Future()
                done.set_result(found)
                return done
        if self._pool_of_threads is not None:
            return self._pool_of_threads.submit(self._elsewhere, task, run, until)
        return self._here(task, run, until)

    def _here(self, task: Task, run: dict[str, Any], until: float) -> Future[Fitted]:
        done: Future[Fitted] = Future()
        try:
            fitted = fit_fold(task, self.pool, ends=self._ends(until), n_jobs=self._n_jobs, callbacks=self._callbacks)
        except GradrankError as error:
            done.set_exception(error)
            return done
        if fitted.cut_short and time.time() < until:
            self.stopped = True
        if self.folder is not None and not fitted.cut_short:
            keep(fitted, run, path_of(task, self.folder))
        done.set_result(fitted)
        return done

    def _ends(self, until: float) -> Ends:
        def ends() -> bool:
            self.look()
            return self.stopped or time.time() > until

        return ends

    def _elsewhere(self, task: Task, run: dict[str, Any], until: float) -> Fitted:
        """In the thread that waits for a process."""
        assert self._temporary is not None
        temporary = Path(self._temporary.name)
        path = path_of(task, self.folder or temporary)
        order = {
            "task": task.to_dict(), "run": run, "path": str(path), "until": until, "n_jobs": self._threads,
            "stop": str(temporary / "stop"),
        }  # fmt: skip
        worker = self._free.get()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(json.dumps(order) + "\n")
            worker.stdin.flush()
            answer = worker.stdout.readline()
        except (OSError, ValueError):
            answer = ""
        if not answer:
            code = None if self._closing else worker.wait()
            raise TrainingError(
                f"{task.member.name}: the process that trains it ended with code {code}; if memory is short, "
                "fewer processes need less"
            )
        self._free.put(worker)
        message = json.loads(answer)["error"]
        if message is not None:
            raise TrainingError(message)
        fitted = kept(run, path, whole=False)
        assert fitted is not None
        if fitted.cut_short:
            path.unlink(missing_ok=True)
        return fitted

    def _tell_to_stop(self) -> None:
        if self._temporary is not None:
            (Path(self._temporary.name) / "stop").touch()
