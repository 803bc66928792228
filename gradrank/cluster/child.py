"""The process that does the work of one member of a crew; its worker starts it and can end it at any time.

It reads its job from standard input and writes messages to what was standard output. When its standard input ends, the
worker is gone, and so is this process: nothing is left running.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from gradrank.cluster.frames import read_frame, write_frame
from gradrank.cluster.mesh import LostPeer, Mesh
from gradrank.errors import DataError, GradrankError

_LOST = 3


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


def failure(error: BaseException, name: str) -> dict[str, Any]:
    """An error as a message; those that the user caused keep their class, others bring their traceback."""
    if isinstance(error, MemoryError):
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
    messages = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # LightGBM prints there
    lock = threading.Lock()

    def said(message: Any) -> None:
        with lock:
            write_frame(messages, message)

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
    mesh = Mesh(job["rank"], begin["names"])
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
