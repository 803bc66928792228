"""Servers that stop when they are told to."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stopped_by_signals(server: Any, *, reloads: bool = False) -> Iterator[None]:
    """Signals stop the server, also before it has begun and when it sends itself the one again that has ended it.

    Having stopped as asked is no failure, so that the process ends with 0. A server that ``reloads`` something when
    SIGHUP comes is not ended by one that comes too early.
    """

    def stop(*_: Any) -> None:
        server.should_exit = True

    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        if reloads and hasattr(signal, "SIGHUP"):
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
