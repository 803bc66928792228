"""Tasks of a Spark barrier stage, which start the same worker function as every other launcher."""

from __future__ import annotations

import hmac
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from gradrank.cluster.frames import decode, encode, read_frame, write_frame
from gradrank.cluster.launcher import Heard, Launcher, first_cause
from gradrank.cluster.mesh import LostPeer, watch_over
from gradrank.cluster.worker import POLL_SECONDS, Job, Surroundings, failure_of, reported, worker_name
from gradrank.errors import ClusterError, GradrankError, TrainingError

_CONNECT_SECONDS = 20
_BEAT_SECONDS = 5.0
_EXECUTORS_SECONDS = 60.0
WORKER_SILENCE_SECONDS = 35.0
"""A task that gives no sign of life for so long is taken for hung, or for cut off."""


class SparkTasks(Launcher):
    """The tasks of a barrier stage: all run at the same time, or none.

    Parameters
    ----------
    session
        A ``SparkSession``.
    workers
        How many tasks; as many as the session runs at once (``defaultParallelism`` ÷ ``spark.task.cpus``) unless given.
    """

    def __init__(self, session: Any, workers: int | None = None) -> None:
        self._context = session.sparkContext
        # A task may have several cores to itself: then fewer run at once.
        self._threads = int(self._context.getConf().get("spark.task.cpus", "1"))
        slots = max(1, _cores(self._context) // self._threads)
        self._workers = int(slots if workers is None else workers)
        if self._workers < 1:
            raise TrainingError(f"workers is {workers!r}, expected a whole number of 1 or more")

    @property
    def size(self) -> int:
        """See Launcher.size."""
        return self._workers

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """See Launcher.call: in a task."""
        (found,) = self._context.parallelize([0], 1).map(lambda _: _called(function, arguments)).collect()
        failed = failure_of(found)
        if failed is not None:
            raise failed
        return found["value"]

    def run(self, job: Job, heard: Heard) -> list[dict[str, Any]]:
        """See Launcher.run."""
        driver = _Driver(self._context.getConf().get("spark.driver.host", "127.0.0.1"), job.token)
        fields, address = {**vars(job), "threads": job.threads or self._threads}, driver.address
        group = f"gradrank-{job.token[:12]}"
        outcome: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def stage() -> None:
            try:
                self._context.setJobGroup(group, "gradrank", interruptOnCancel=True)
                tasks = self._context.parallelize(range(job.size), job.size).barrier()
                outcome.put(tasks.mapPartitions(lambda _: _task(fields, address)).collect())
            except Exception as error:
                outcome.put(error)

        thread = threading.Thread(target=stage, daemon=True)
        try:
            thread.start()
            found = _wait(outcome, driver, heard)
        finally:
            driver.ask("abort")
            self._context.cancelJobGroup(group)
            thread.join(_CONNECT_SECONDS)
            driver.close()
        if isinstance(found, Exception):
            reason = str(getattr(found, "java_exception", found)).splitlines()[0]
            raise ClusterError(f"Spark has ended the stage: {reason}") from None
        results = [decode(item) for item in found]
        failed = [error for error in map(failure_of, results) if error is not None]
        if failed:
            raise first_cause(failed)
        return results


def _cores(context: Any) -> int:
    """Cores of all executors; those that were asked for by number may still be on their way."""
    settings = context.getConf()
    wanted = int(settings.get("spark.executor.instances", "0")) * int(settings.get("spark.executor.cores", "1"))
    ends = time.monotonic() + _EXECUTORS_SECONDS
    while context.defaultParallelism < wanted and time.monotonic() < ends:
        time.sleep(POLL_SECONDS)
    return int(context.defaultParallelism)


def _wait(outcome: queue.SimpleQueue[Any], driver: _Driver, heard: Heard) -> Any:
    while True:
        try:
            message = driver.messages.get(timeout=POLL_SECONDS)
        except queue.Empty:
            message = None
        if heard({} if message is None else message) == "stop":
            driver.ask("stop")
        if message is None and not outcome.empty():
            return outcome.get()
        driver.check_alive()


class _Driver:
    """Where tasks report to: each keeps a connection, so that both sides notice when the other is gone."""

    def __init__(self, host: str, token: str) -> None:
        self._token = token
        self._wish: str | None = None
        self._links: list[Any] = []
        self._met: set[int] = set()
        self._lost: int | None = None
        self._alive: dict[str, float] = {}
        self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._listener = socket.create_server((socket.gethostbyname(host), 0))
        self.address = self._listener.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    def ask(self, wish: str) -> None:
        """Tell all tasks what to do."""
        if self._wish not in (wish, "abort"):
            self._wish = wish
            for stream in list(self._links):
                _send(stream, wish)

    def check_alive(self) -> None:
        """Raise if a task gives no sign of life."""
        for name, since in list(self._alive.items()):
            if time.monotonic() - since > WORKER_SILENCE_SECONDS:
                told = f"gave no sign of life for {WORKER_SILENCE_SECONDS:.0f} s: it is stopped or cut off"
                raise ClusterError(f"{name} {told}")

    def close(self) -> None:
        """Hang up."""
        self._listener.close()
        for stream in self._links:
            stream.close()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._listen, args=(link,), daemon=True).start()

    def _listen(self, link: socket.socket) -> None:
        with link, link.makefile("rwb") as stream:
            try:
                token, rank, name = read_frame(stream) or ("", 0, "")
                if not hmac.compare_digest(str(token).encode(), self._token.encode()):
                    return
                if rank in self._met:
                    write_frame(stream, self._lost if self._lost is not None else rank)
                    read_frame(stream)
                    return
                self._met.add(rank)
                watch_over(link)
                write_frame(stream, None)
                self._links.append(stream)
                if self._wish is not None:
                    _send(stream, self._wish)
                while (message := read_frame(stream)) is not None and "over" not in message:
                    self._alive[name] = time.monotonic()
                    if "alive" not in message:
                        self.messages.put(message)
                self._alive.pop(name, None)
                if message is None and self._lost is None:
                    self._lost = int(rank)
            except (OSError, ValueError):
                return


def _send(stream: Any, value: Any) -> None:
    try:
        write_frame(stream, value)
    except (OSError, ValueError):
        return


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> dict[str, Any]:
    try:
        return {"value": function(*arguments)}
    except GradrankError as error:
        return {"failed": str(error), "kind": type(error).__name__}


def _task(fields: dict[str, Any], driver: tuple[str, int]) -> Iterator[bytes]:
    """What Spark runs in each task."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    job, rank = Job(**fields), context.partitionId()
    hosts = [info.address.rpartition(":")[0] or info.address for info in context.getTaskInfos()]
    with (
        socket.create_connection((driver[0], driver[1]), timeout=_CONNECT_SECONDS) as link,
        link.makefile("rwb") as stream,
    ):
        link.settimeout(None)
        watch_over(link)
        write_frame(stream, [job.token, rank, worker_name(rank, job.size, hosts[rank])])
        lost = read_frame(stream)
        if lost is not None:
            # Spark has started the stage again, but training goes on from a checkpoint only.
            name = worker_name(lost, job.size, hosts[lost])
            told = f"{name} was lost: it was killed, ran out of memory, or its machine cannot be reached"
            yield encode({"failed": told, "kind": "ClusterError"})
            return
        wish, talk, met = _Wish(stream), _Talk(stream), False

        def exchange(value: dict[str, Any]) -> list[dict[str, Any]]:
            nonlocal met
            met = True
            found = [json.loads(item) for item in context.allGather(json.dumps(value))]
            for failed in (item for item in found if "failed" in item):
                raise LostPeer(failed["failed"])
            return found

        result = reported(job, rank, Surroundings(hosts[rank], exchange, talk.tell, wish, "0.0.0.0"))
        if not met:
            # The others wait for this task, by Spark's settings for a year.
            context.allGather(json.dumps({"failed": result["failed"]}))
        talk.end({"over": rank})
        yield encode(result)
        link.shutdown(socket.SHUT_RDWR)


class _Talk:
    """Messages to the driver, and signs of life between them."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._over = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message."""
        with self._lock:
            write_frame(self._stream, message)

    def end(self, message: dict[str, Any]) -> None:
        """Send the last message."""
        self._over.set()
        self.tell(message)

    def _beat(self) -> None:
        with suppress(OSError, ValueError):  # the driver is gone
            while True:
                self.tell({"alive": True})
                if self._over.wait(_BEAT_SECONDS):
                    return


class _Wish:
    """What the driver wants."""

    def __init__(self, stream: Any) -> None:
        self._wanted: str | None = None
        self._gone = False
        threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def _listen(self, stream: Any) -> None:
        try:
            while (message := read_frame(stream)) is not None:
                self._wanted = message
        except (OSError, ValueError):
            pass
        self._gone = True

    def __call__(self) -> str | None:
        if self._gone:
            raise LostPeer("the Spark driver is gone")
        return self._wanted
