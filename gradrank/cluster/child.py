"""The process that does the work of one member of a crew; its worker starts it and can end it at any time.

It reads its job from standard input and writes messages to what was standard output. When its standard input ends, the
worker is gone, and so is this process: nothing is left running.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from gradrank.cluster.frames import read_frame, write_frame
from gradrank.cluster.mesh import LostPeer, Mesh
from gradrank.cluster.worker import ALIVE
from gradrank.errors import DataError, GradrankError

_LOST = 3
_BEAT_SECONDS = 2.0


class Member:
    """What a task knows of its process: the connections to the others, and how to be heard by the one who asked.

    Parameters
    ----------
    mesh
        The connections.
    arguments
        What the task is to do; the same for all processes but for what ``shares`` gave to each.
    folder
        Where it may keep files, which are removed at the end.
    """

    def __init__(
        self,
        mesh: Mesh,
        arguments: Mapping[str, Any],
        folder: Path,
        said: Callable[[Any], None],
        threads: int | None = None,
    ) -> None:
        self.mesh = mesh
        self.threads = threads
        """Threads that this process may use; None = one per core."""
        self.arguments = arguments
        self.folder = folder
        self.stop_asked = False
        """Whether the one who asked for the work wants it to end early with what there is."""
        self._said = said

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return self.mesh.rank

    @property
    def name(self) -> str:
        """What this process is called in errors."""
        return self.mesh.names[self.rank]

    def tell(self, message: Mapping[str, Any]) -> None:
        """Tell the one who asked for the work."""
        self._said({"told": dict(message)})

    def abandon(self, error: BaseException) -> NoReturn:
        """End the process where an error cannot be raised: in a call that LightGBM makes."""
        self._said(failure(error, self.name))
        os._exit(_LOST)


class Messages:
    """Messages to the worker by a pipe.

    A worker that is stopped does not read, and this process waits for it; but not if the others have given up: then
    nobody would ever end it.
    """

    def __init__(self, pipe: int) -> None:
        self.mesh: Mesh | None = None
        self._pipe = pipe
        self._lock = threading.Lock()
        os.set_blocking(pipe, False)

    def __call__(self, message: Any) -> None:
        with self._lock:
            write_frame(self, message)

    def write(self, content: bytes) -> None:
        """Write all bytes."""
        left = memoryview(content)
        while left:
            try:
                left = left[os.write(self._pipe, left) :]
            except BlockingIOError:
                _, ready, _ = select.select([], [self._pipe], [], _BEAT_SECONDS)
                if not ready and self.mesh is not None and self.mesh.has_lost():
                    os._exit(_LOST)

    def flush(self) -> None:
        """Nothing is held back."""


def failure(error: BaseException, name: str) -> dict[str, Any]:
    """An error as a message; those that the user caused keep their class, others bring their traceback."""
    # LightGBM says it by text alone.
    if isinstance(error, MemoryError) or "bad_alloc" in str(error):
        return {"error": f"{name} ran out of memory: take more workers or larger machines", "kind": "ClusterError"}
    if isinstance(error, LostPeer):
        return {"error": str(error), "kind": "LostPeer"}
    if isinstance(error, GradrankError):
        kind = "DataError" if isinstance(error, DataError) else type(error).__name__
        return {"error": str(error), "kind": kind}
    told = "".join(traceback.format_exception(error))
    return {"error": f"{name} failed: {error!r}", "kind": "Fault", "traceback": told}


def main() -> None:
    """Do the job that standard input brings."""
    # Ctrl-C in a terminal reaches every process there; who asked for the work decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    said = Messages(os.dup(1))
    os.dup2(2, 1)  # LightGBM prints there
    threading.Thread(target=_beat, args=(said,), daemon=True).start()
    job = read_frame(sys.stdin.buffer)
    if job is None:
        return
    try:
        listener = _listener(job["host"], job.get("ports"))
    except OSError as error:
        said({"error": f"a worker {error}", "kind": "ClusterError"})
        return
    said({"port": listener.getsockname()[1]})
    begin = read_frame(sys.stdin.buffer)
    if begin is None:
        return
    mesh = said.mesh = Mesh(job["rank"], begin["names"])
    member = Member(mesh, {**job["arguments"], "share": job["share"]}, Path(job["folder"]), said, job["threads"])
    threading.Thread(target=_listen_to_worker, args=(member,), daemon=True).start()
    try:
        mesh.connect(listener, [tuple(item) for item in begin["addresses"]], job["token"])
        listener.close()
        module, function = job["task"].split(":")
        result = getattr(import_module(module), function)(member)
        mesh.gather(b"")  # nobody goes before all are done
        said({"result": result, "sent": mesh.sent})
    except BaseException as error:
        said(failure(error, member.name))
    finally:
        mesh.close()
    # Not by way of the interpreter's end, which waits for threads that may hang.
    sys.stderr.flush()
    os._exit(0)


def _beat(said: Callable[[Any], None]) -> None:
    """Give signs of life: threads run beside a long computation, but not in a process that is stopped."""
    with suppress(OSError):  # the worker is gone, which others notice
        while True:
            said(ALIVE)
            time.sleep(_BEAT_SECONDS)


def _listen_to_worker(member: Member) -> None:
    while (message := read_frame(sys.stdin.buffer)) is not None:
        if message.get("stop"):
            member.stop_asked = True
    os._exit(_LOST)


def _listener(host: str, ports: list[int] | None) -> socket.socket:
    """A socket on a free port, of the range if there is one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in range(ports[0], ports[1] + 1) if ports else [0]:
        try:
            listener = socket.socket(family)
            listener.bind((host, port))
        except OSError:
            listener.close()
            continue
        listener.listen(1024)
        return listener
    where = f"ports {ports[0]} to {ports[1]}" if ports else "any port"
    raise OSError(f"cannot listen on {where} of {host}")


if __name__ == "__main__":
    main()
