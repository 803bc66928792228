"""Running a service until it is told to stop: socket, signals, reloading."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from gradrank.errors import MissingExtraError
from gradrank.runtime.http_heads import protocol_with_deadline
from gradrank.runtime.listening import address_of, is_loopback, listening
from gradrank.runtime.stopping import stopped_by_signals
from gradrank.serve.api_keys import ApiKeys
from gradrank.serve.app import App
from gradrank.serve.line_log import LineLog
from gradrank.serve.service import Service

GRACE_SECONDS = 30


def run_server(
    service: Service,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    keys: ApiKeys | None = None,
    access_log: LineLog | None = None,
    watch_seconds: float = 2.0,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Serve until SIGINT or SIGTERM; requests that have begun are answered first.

    Parameters
    ----------
    service
        What answers the requests.
    host, port
        Where to listen; port 0 takes any that is free.
    keys
        Who may ask.
    access_log
        Where one line per request goes.
    watch_seconds
        How often model files are looked at; 0 = only when SIGHUP comes.
    say
        Called with where the service is, with warnings, and with what became of reloads.
    """
    keys = keys or ApiKeys(())
    with listening(host, port) as listener:
        say_who_can_ask(host, keys, say)
        labels = [model.label for model in service.table]
        run_on(
            listener,
            service,
            keys=keys,
            access_log=access_log,
            watch_seconds=watch_seconds,
            say=say,
            on_begin=lambda: say_address(labels, host, listener, say),
        )
        say("stopped")


def say_who_can_ask(host: str, keys: ApiKeys, say: Callable[[str], None]) -> None:
    """A clear word if other machines can."""
    if not is_loopback(host):
        open_to_all = "" if len(keys) else " and without a key (--api-keys)"
        say(
            f"WARNING: {host} can be reached by other machines{open_to_all}, and what is sent is not encrypted; "
            "put a proxy with TLS before it"
        )


def say_address(labels: Sequence[str], host: str, listener: socket.socket, say: Callable[[str], None]) -> None:
    """What is served, and where."""
    say(f"{', '.join(labels)}: {address_of(host, listener)}")


def run_on(
    listener: socket.socket,
    service: Service,
    *,
    keys: ApiKeys,
    access_log: LineLog | None,
    watch_seconds: float,
    say: Callable[[str], None],
    on_begin: Callable[[], None] = lambda: None,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve on a socket that listens already, until SIGINT or SIGTERM.

    ``on_begin`` is called when these signals are heeded, ``on_ready`` when SIGHUP is as well.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "serve") from None
    app = App(
        service,
        keys=keys,
        access_log=access_log,
        on_start=lambda started: _reloading(started, watch_seconds, say, on_ready),
    )
    config = uvicorn.Config(
        app,
        http=protocol_with_deadline(service.settings.limits.seconds),
        ws="none",
        log_level="error",  # not a line for everything that is no HTTP: strangers could fill the log
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=75,
        forwarded_allow_ips="127.0.0.1",
    )
    server = uvicorn.Server(config)
    with stopped_by_signals(server, reloads=True):
        on_begin()
        server.run(sockets=[listener])


async def _reloading(app: App, watch_seconds: float, say: Callable[[str], None], on_ready: Callable[[], None]) -> None:
    """Load changed files: when SIGHUP comes, and every few seconds."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    if hasattr(signal, "SIGHUP"):
        with suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread
            loop.add_signal_handler(signal.SIGHUP, asked.set)
    on_ready()
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(watch_seconds or None):
                await asked.wait()
        everything = asked.is_set()
        asked.clear()
        await loop.run_in_executor(None, lambda: reload_models(app.service, say, everything))  # noqa: B023


def reload_models(service: Service, say: Callable[[str], None], all_files: bool = False) -> None:
    """Load model files that have changed; tells log and metrics what became of each."""

    def told(label: str, why: str | None) -> None:
        service.metrics.reloads.labels(label, "loaded" if why is None else "failed").inc()
        say(f"{label} was loaded anew" if why is None else f"{label} stays as it was: {why}")

    service.table.reload(told, all_files=all_files)
    service.metrics.show_models(service.table, service.table.stale)


def standard_error_log() -> LineLog:
    """The access log on standard error."""
    return _StreamLog()


class _StreamLog(LineLog):
    """Lines to standard error."""

    def __init__(self) -> None:
        pass

    def write(self, event: dict[str, Any]) -> bool:
        try:
            sys.stderr.write(json.dumps(event, ensure_ascii=True, separators=(",", ":")) + "\n")
        except (OSError, ValueError):
            return False
        return True

    def close(self) -> None:
        """Nothing to close."""
