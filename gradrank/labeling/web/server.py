"""Serving a project in one process, to this machine only unless asked otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from gradrank.errors import DataError, MissingExtraError
from gradrank.labeling.project.access import Access, remember_address
from gradrank.labeling.project.backup import backup, in_use
from gradrank.labeling.project.store import Store
from gradrank.labeling.web.app import create_app
from gradrank.labeling.web.security import App
from gradrank.runtime.http_heads import protocol_with_deadline
from gradrank.runtime.listening import address_of, is_loopback, listening
from gradrank.runtime.log_limit import limited_logs
from gradrank.runtime.stopping import stopped_by_signals

BUSY_SECONDS = 5.0
"""How long a request waits for other writers; then its page is told to send it again."""
HEAD_SECONDS = 10.0
"""How long a client may take to send the head of a request."""
MOST_CONNECTIONS = 400
"""Below the 1,024 files that a process may have open on most systems, of which the project takes some."""
_MOST_LINKS = 50
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def serve(
    store: Store,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    public_url: str = "",
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Serve a project until interrupted. The file is checked and copied before the first request.

    Parameters
    ----------
    store
        the project
    host, port
        where to listen; port 0 takes any that is free
    public_url
        address that assessors use, if a proxy stands before the server
    say
        called with where the pages are, and with warnings
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "labeling") from None
    if public_url and urlsplit(public_url).scheme not in ("http", "https"):
        raise DataError(f"public URL is {public_url!r}, expected one that begins with http:// or https://")
    with in_use(store.path), listening(host, port) as listener:
        store.check()
        backup(store)
        local = is_loopback(host)
        base = public_url.rstrip("/") or address_of(host, listener)
        hosts: tuple[str, ...] = ()
        if public_url:
            hosts = (urlsplit(public_url).hostname or "", *_LOOPBACK_NAMES, host)
        elif local:
            hosts = (*_LOOPBACK_NAMES, host)
        application = create_app(store, base_url=base if public_url or local else "", hosts=hosts)
        server = uvicorn.Server(server_config(application))
        # From before anything is said: who reads it may stop the server at once.
        with limited_logs("uvicorn.error", "asyncio", "gradrank.labeling"), stopped_by_signals(server):
            say(f"{store.setting('title')}: {base}")
            remember_address(store, base)
            say(f"your own page: {base}/join/{Access(store).owner_token()}")
            _say_links(store, base, say)
            if not local and not public_url.startswith("https://"):
                say(
                    f"WARNING: {host} can be reached by other machines, and what they send is not encrypted: whoever "
                    "can listen gets the links. Put a proxy with TLS before it and give its address with --public-url, "
                    "or leave out --host."
                )
            server.run(sockets=[listener])


def server_config(application: App, *, head_seconds: float = HEAD_SECONDS, most: int = MOST_CONNECTIONS) -> Any:
    """How uvicorn serves an application: with a deadline for heads of requests and a limit of connections."""
    import uvicorn

    return uvicorn.Config(
        application,
        http=protocol_with_deadline(head_seconds, most_connections=most),
        # So many are accepted at once, before the limit is looked at.
        backlog=128,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        # Longer than most judgments take, so that a vote need not connect first.
        timeout_keep_alive=75,
        # X-Forwarded-Proto is believed from this machine only, where the proxy is.
        forwarded_allow_ips="127.0.0.1",
    )


def _say_links(store: Store, base: str, say: Callable[[str], None]) -> None:
    access = Access(store)
    people = store.read().execute("SELECT id, name, edition FROM assessor ORDER BY id").fetchall()
    for number, name, edition in people[:_MOST_LINKS]:
        say(f"{name}: {base}/join/{access.token(number, edition)}")
    if len(people) > _MOST_LINKS:
        say(f"… and {len(people) - _MOST_LINKS} more: gradrank label invite {store.path}")
