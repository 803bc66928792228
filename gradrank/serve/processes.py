"""One service by several processes: they share the socket, the logs and the counters, and one more looks after them.

Every process loads the models itself, watches their files, and takes the connections that it has time for. The one
that was started passes signals on, starts another process for one that has died, and ends the others with itself.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from gradrank.errors import DataError, GradrankError
from gradrank.runtime.listening import listening
from gradrank.serve.api_keys import ApiKeys
from gradrank.serve.line_log import LineLog
from gradrank.serve.settings import Settings

# prometheus_client looks for it when it is loaded, and keeps its numbers in files there.
_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_LONGEST_PAUSE = 30.0
_STEADY_SECONDS = 60.0
_STOP, _RELOAD = b"s", b"r"


def _silence() -> Callable[[str], None]:
    return lambda text: None


@dataclass(frozen=True)
class Plan:
    """What each process needs to know."""

    settings: Settings
    keys: ApiKeys
    log: Path | None = None
    rotate_bytes: int | None = None
    access_log: Path | None = None
    """One line per request."""
    to_standard_error: bool = True
    """Whether the access log goes to standard error if it has no file."""
    watch_seconds: float = 2.0
    voice: Callable[[], Callable[[str], None]] = _silence
    """Called in each process; gives what is called with notes."""


@dataclass
class _Worker:
    """A process, or the place of one that has died."""

    number: int
    process: SpawnProcess | None = None
    told: Connection | None = None
    """Where the process says that it is ready, or why it cannot be."""
    ready: bool = False
    reload: bool = False
    """Whether to pass on SIGHUP as soon as the process is ready; before, it would end it."""
    started: float = 0.0
    failures: int = 0
    not_before: float = field(default=0.0)


def run_processes(
    plan: Plan,
    count: int,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Serve by ``count`` processes until SIGINT or SIGTERM; requests that have begun are answered first.

    Parameters
    ----------
    plan
        What is served.
    count
        How many processes.
    host, port
        Where to listen; port 0 takes any that is free.
    say
        Called with where the service is, with warnings, and with what became of processes.
    """
    if not hasattr(signal, "SIGHUP"):
        raise DataError("several processes are not offered on this system, expected --processes 1")
    from gradrank.serve.server import say_address, say_who_can_ask

    with listening(host, port) as listener, _metrics_folder() as folder, _signals() as signals:
        say_who_can_ask(host, plan.keys, say)
        group = _Group(plan, listener, folder, say)
        try:
            group.begin(count, signals)
            say_address([source.label for source in plan.settings.sources], host, listener, say)
            group.look_after(signals)
        finally:
            group.end()
        say("stopped")


class _Group:
    """The processes of a service."""

    def __init__(self, plan: Plan, listener: socket.socket, folder: Path, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._listener = listener
        self._folder = folder
        self._say = say
        self._workers: list[_Worker] = []
        self._stopping = False

    def begin(self, count: int, signals: Connection) -> None:
        """Start all; the first one alone, so that a bad model is told once."""
        for numbers in (range(1, 2), range(2, count + 1)):
            workers = [_Worker(number) for number in numbers]
            self._workers += workers
            for worker in workers:
                self._start(worker)
            while not self._stopping and not all(worker.ready for worker in workers):
                self._step(signals, may_fail=True)

    def look_after(self, signals: Connection) -> None:
        """Until the signal to stop comes."""
        while not self._stopping:
            self._step(signals)

    def end(self) -> None:
        """Let all answer what has begun, and end."""
        from gradrank.serve.server import GRACE_SECONDS

        living = [worker.process for worker in self._workers if worker.process is not None]
        for process in living:
            _send(process, signal.SIGTERM)
        ends = time.monotonic() + GRACE_SECONDS + 5.0
        for process in living:
            process.join(max(0.0, ends - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _start(self, worker: _Worker) -> None:
        receives, sends = get_context("spawn").Pipe(duplex=False)
        worker.process = get_context("spawn").Process(
            target=_work, args=(self._plan, worker.number, self._listener, str(self._folder), sends), daemon=False
        )
        worker.process.start()
        sends.close()
        worker.told, worker.ready, worker.reload, worker.started = receives, False, False, time.monotonic()

    def _step(self, signals: Connection, *, may_fail: bool = False) -> None:
        """Wait for something to happen, and deal with it."""
        waiting = [worker for worker in self._workers if worker.process is None]
        pauses = [max(0.0, worker.not_before - time.monotonic()) for worker in waiting]
        watched: list[Any] = [signals]
        for worker in self._workers:
            if worker.process is not None:
                watched.append(worker.process.sentinel)
            if worker.told is not None:
                watched.append(worker.told)
        happened = wait(watched, min(pauses, default=None))
        if signals in happened:
            self._signaled(signals.recv_bytes())
        for worker in self._workers:
            if worker.told is not None and worker.told in happened:
                self._heard(worker, may_fail)
            elif worker.process is not None and worker.process.sentinel in happened:
                self._died(worker, may_fail)
            elif worker.process is None and worker.not_before <= time.monotonic() and not self._stopping:
                self._start(worker)

    def _signaled(self, which: bytes) -> None:
        if which == _STOP:
            self._stopping = True
            return
        for worker in self._workers:
            worker.reload = not worker.ready
            if worker.ready and worker.process is not None:
                _send(worker.process, signal.SIGHUP)

    def _heard(self, worker: _Worker, may_fail: bool) -> None:
        assert worker.told is not None
        try:
            failure: str | None = worker.told.recv()
        except (EOFError, OSError):
            failure = None
        else:
            if failure is None:
                worker.ready = True
                if worker.reload and worker.process is not None:
                    _send(worker.process, signal.SIGHUP)
        worker.told.close()
        worker.told = None
        if failure is not None:
            if may_fail:
                raise DataError(failure)
            self._say(f"process {worker.number} cannot start: {failure}")

    def _died(self, worker: _Worker, may_fail: bool) -> None:
        assert worker.process is not None
        process = worker.process
        process.join()
        if worker.told is not None:
            worker.told.close()
        how = _how_it_ended(process.exitcode)
        _forget_live_values(self._folder, process.pid)
        if may_fail and not worker.ready and not self._stopping:
            raise DataError(f"a process of the service {how} before it was ready")
        steady = worker.ready and time.monotonic() - worker.started > _STEADY_SECONDS
        worker.failures = 0 if steady else worker.failures + 1
        # At once after long service; else less and less often.
        pause = 0.0 if steady else min(_LONGEST_PAUSE, 0.5 * 2.0 ** min(worker.failures - 1, 10))
        worker.process, worker.told, worker.ready = None, None, False
        worker.not_before = time.monotonic() + pause
        if not self._stopping:
            self._say(f"WARNING: process {worker.number} {how}; another one takes its place in {pause:g} seconds")


def _send(process: SpawnProcess, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, number)


def _how_it_ended(code: int | None) -> str:
    """
    >>> _how_it_ended(-9), _how_it_ended(3)
    ('was ended by SIGKILL', 'has ended with 3')
    """
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"has ended with {code}"


@contextmanager
def _metrics_folder() -> Iterator[Path]:
    """A folder for the numbers of all processes, which they find by a variable of the environment."""
    before = os.environ.get(_METRICS_FOLDER)
    with tempfile.TemporaryDirectory(prefix="gradrank-serve-") as folder:
        os.environ[_METRICS_FOLDER] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ[_METRICS_FOLDER]
            else:
                os.environ[_METRICS_FOLDER] = before


def _forget_live_values(folder: Path, pid: int | None) -> None:
    """What a dead process was doing counts no more; what it has done still does."""
    for path in folder.glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)


@contextmanager
def _signals() -> Iterator[Connection]:
    """Signals as something to wait for."""
    receives, sends = get_context("spawn").Pipe(duplex=False)

    def passing(what: bytes) -> Callable[..., None]:
        return lambda *_: sends.send_bytes(what)

    before = {
        number: signal.signal(number, passing(what))
        for number, what in ((signal.SIGINT, _STOP), (signal.SIGTERM, _STOP), (signal.SIGHUP, _RELOAD))
    }
    try:
        yield receives
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sends.close()
        receives.close()


# ---------------------------------------------------------------------- in each process
class _OneByOne(socket.socket):
    """A listening socket that gives one connection at a time.

    asyncio takes all connections that wait when it looks; those that come together would all end in one process.
    """

    _given = False

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection, every second time; then the event loop looks what else is to be done."""
        if self._given:
            self._given = False
            raise BlockingIOError
        found = super().accept()
        self._given = True
        return found


def _work(plan: Plan, number: int, listener: socket.socket, folder: str, told: Connection) -> None:
    """The whole life of a process."""
    # A terminal sends it to all; whether to stop is for the one to say that looks after them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    voice = plan.voice()

    def say(text: str) -> None:
        voice(f"process {number}: {text}")

    from gradrank.serve.metrics import Metrics
    from gradrank.serve.server import run_on, standard_error_log
    from gradrank.serve.service import Service

    try:
        log = None if plan.log is None else LineLog(plan.log, plan.rotate_bytes)
        to_error = standard_error_log() if plan.to_standard_error else None
        access = to_error if plan.access_log is None else LineLog(plan.access_log)
        service = Service(plan.settings, log, Metrics(Path(folder)))
    except GradrankError as error:
        told.send(str(error))
        return
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def ready() -> None:
        told.send(None)
        told.close()

    with _OneByOne(listener.family, listener.type, listener.proto, fileno=listener.detach()) as shared:
        run_on(
            shared,
            service,
            keys=plan.keys,
            access_log=access,
            watch_seconds=plan.watch_seconds,
            say=say,
            on_ready=ready,
        )


def _end_with_parent() -> None:
    """When the process that looks after this one is gone, end as if told to stop."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
