"""Checks before every page: where a request comes from, how large it is, what browsers may do with the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 256 * 1024
_PORTS = {"http": 80, "https": 443}
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

# Documents are written by strangers: even if something slipped through the cleaning, it could do nothing.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not "no-referrer": with it browsers send forms with "Origin: null".
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]


class Guard:
    """Wraps an application: refuses requests from other sites and adds the headers that browsers enforce.

    ``hosts`` are the names under which the server may be reached; empty for any. The check keeps out pages of other
    sites whose name was made to point to this machine. ``public_url`` is the address in the browsers of those who come
    through a proxy: not every proxy passes on the name that it was asked for.
    """

    def __init__(self, app: App, hosts: Iterable[str] = (), public_url: str = "") -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._public_origin = origin_of(public_url) if public_url else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refusal(scope["method"], headers)
        if refused is not None:
            await _plain(send, *refused)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = list(message.get("headers", []))
                names = {name for name, _ in sent}
                sent += [(name, value) for name, value in _HEADERS if name not in names]
                if b"cache-control" not in names:
                    sent.append((b"cache-control", b"no-store"))
                message["headers"] = sent
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: dict[bytes, str]) -> tuple[int, str] | None:
        host = headers.get(b"host", "")
        if self._hosts and hostname(host) not in self._hosts:
            return 421, "This server is not known under that name."
        if method in _SAFE_METHODS:
            return None
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if origin is not None and not self._is_own(origin, host):
            return 403, "This form was sent from another site."
        if origin is None and site not in (None, "same-origin", "none"):
            return 403, "This form was sent from another site."
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return 413, "This is more than the server takes."
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        found = origin_of(origin)
        if found is None:
            return False
        return found == self._public_origin or found == origin_of(f"{found[0]}://{host}")


def origin_of(url: str) -> tuple[str, str, int] | None:
    """Scheme, name and port of an address of the web; None if it is none.

    >>> origin_of("https://Label.example/work") == origin_of("https://label.example:443")
    True
    >>> origin_of("null"), origin_of("http://[::1"), origin_of("http://label.example:x")
    (None, None, None)
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port


def hostname(host: str) -> str:
    """The name in a Host header, without the port.

    >>> hostname("localhost:8000"), hostname("[::1]:80")
    ('localhost', '::1')
    """
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


async def read_form(receive: Receive) -> dict[str, str]:
    """The fields of a form; of a repeated one the last. Raises ``ValueError`` for anything too large or odd."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ValueError("the request has no end")
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            raise ValueError("the form is too large")
        if not message.get("more_body", False):
            break
    fields = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=64, errors="strict")
    return dict(fields)


async def _plain(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})
