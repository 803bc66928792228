"""A service inside the test's process, and requests to it without a network."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradrank.serve.api_keys import ApiKeys
from gradrank.serve.app import App
from gradrank.serve.line_log import LineLog
from gradrank.serve.service import Service
from gradrank.serve.settings import Settings, parse_sources

JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """Status, headers and body of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON; NaN and Infinity are none."""

        def refuse(name: str) -> Any:
            raise AssertionError(f"the answer holds {name}")

        return json.loads(self.body, parse_constant=refuse)


def make_app(
    *models: str, log: Path | None = None, keys: ApiKeys | None = None, access: Path | None = None, **settings: Any
) -> App:
    """An application that serves models given as NAME=FILE."""
    service = Service(Settings(parse_sources(models), **settings), None if log is None else LineLog(log))
    return App(service, keys=keys, access_log=None if access is None else LineLog(access))


async def ask(app: App, method: str, path: str, body: bytes = b"", query: str = "", **headers: str) -> Answer:
    """One request; ``content_type`` and the like become headers."""
    sent = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": sent,
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
        "scheme": "http",
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
    }
    parts = [body[:100], body[100:]]
    messages: list[Any] = []

    async def receive() -> Any:
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Any) -> None:
        messages.append(message)

    await app(scope, receive, send)
    found = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return Answer(messages[0]["status"], found, b"".join(message.get("body", b"") for message in messages[1:]))


def call(app: App, method: str, path: str, body: bytes = b"", query: str = "", **headers: str) -> Answer:
    """One request from a test that is no coroutine."""
    return asyncio.run(ask(app, method, path, body, query, **headers))


def post(app: App, path: str, value: Any, **headers: str) -> Answer:
    """One request of JSON."""
    return call(app, "POST", path, json.dumps(value).encode(), content_type=JSON, **headers)


def metric(app: App, line: str) -> float:
    """The value of a metric, given with its labels as Prometheus has them; 0 if it is not there."""
    for found in call(app, "GET", "/metrics").body.decode().splitlines():
        name, _, value = found.rpartition(" ")
        if name == line:
            return float(value)
    return 0.0
