"""Clients that send slowly keep nobody from being answered, and memory stays bounded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gradrank.models.linear import LinearRanker
from gradrank.serve.app import App
from gradrank.serve.bodies import SMALL_BYTES
from gradrank.serve.settings import Limits
from tests.support.services import JSON, Answer, ask, make_app

BODY = b'{"documents": [[1, 2], [3, 4]]}'
LARGE = BODY + b" " * SMALL_BYTES
AT_ONCE = 2


@pytest.fixture
def model(tmp_path: Path) -> str:
    LinearRanker([1.0, 0.5], feature_names=["a", "b"]).save(tmp_path / "m.json")
    return f"m={tmp_path / 'm.json'}"


class SlowClient:
    """Sends all but the last byte of a body, and that one when it is told to."""

    def __init__(self, app: App, body: bytes) -> None:
        self._parts = [body[:-1], body[-1:]]
        self._go_on = asyncio.Event()
        self.stalled = asyncio.Event()
        """Set when the server asks for the last byte."""
        self.begun = asyncio.Event()
        self._answer: list[Any] = []
        self.task = asyncio.create_task(self._send(app))

    async def _send(self, app: App) -> int:
        scope = {
            "type": "http", "method": "POST", "path": "/v1/rank", "raw_path": b"", "query_string": b"",
            "headers": [(b"content-type", JSON.encode())], "client": None, "server": None, "scheme": "http",
            "http_version": "1.1", "asgi": {},
        }  # fmt: skip
        await app(scope, self._receive, self._take)
        status: int = self._answer[0]["status"]
        return status

    async def _receive(self) -> Any:
        self.begun.set()
        if len(self._parts) == 1:
            self.stalled.set()
            await self._go_on.wait()
        part = self._parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(self._parts)}

    async def _take(self, message: Any) -> None:
        self._answer.append(message)

    async def status(self) -> int:
        """Send the rest, and wait for the answer."""
        self._go_on.set()
        return await self.task


async def good(app: App) -> Answer:
    return await ask(app, "POST", "/v1/rank", BODY, content_type=JSON)


async def gauge(app: App, name: str) -> float:
    lines = (await ask(app, "GET", "/metrics")).body.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


# In these tests time never ends: what waits for something that does not come would stay for ever.
ENDLESS = 1e6


def test_more_stalled_bodies_than_places_keep_nobody_from_being_answered(model: str) -> None:
    app = make_app(model, limits=Limits(seconds=ENDLESS, at_once=AT_ONCE))

    async def crowd() -> None:
        clients = [SlowClient(app, BODY) for _ in range(5 * AT_ONCE)]
        await asyncio.gather(*(client.stalled.wait() for client in clients))
        assert await gauge(app, "gradrank_requests_waiting") == len(clients)
        assert await gauge(app, "gradrank_requests_in_flight") == 0
        answer = await good(app)
        assert (answer.status, answer.json["scores"]) == (200, [2.0, 5.0])
        assert not any(client.task.done() for client in clients)
        assert [await client.status() for client in clients] == [200] * len(clients)
        assert await gauge(app, "gradrank_requests_waiting") == 0

    asyncio.run(crowd())


def test_of_large_bodies_only_as_many_are_read_as_memory_is_meant_for(model: str) -> None:
    app = make_app(model, limits=Limits(seconds=ENDLESS, at_once=AT_ONCE))

    async def crowd() -> None:
        clients = [SlowClient(app, LARGE) for _ in range(AT_ONCE)]
        await asyncio.gather(*(client.stalled.wait() for client in clients))
        late = SlowClient(app, LARGE)
        await late.begun.wait()
        assert (await good(app)).status == 200  # small ones need no room
        assert not late.stalled.is_set()  # beyond its first part it is not read
        assert await clients[0].status() == 200
        await late.stalled.wait()
        assert [await client.status() for client in (late, clients[1])] == [200, 200]
        # All room was given back.
        again = [SlowClient(app, LARGE) for _ in range(AT_ONCE)]
        await asyncio.gather(*(client.stalled.wait() for client in again))
        assert [await client.status() for client in again] == [200] * AT_ONCE

    asyncio.run(crowd())


def test_more_bodies_than_may_wait_are_turned_away_at_once(model: str) -> None:
    app = make_app(model, limits=Limits(seconds=ENDLESS, at_once=1, waiting=2))

    async def crowd() -> None:
        clients = [SlowClient(app, BODY) for _ in range(3)]
        await asyncio.gather(*(client.stalled.wait() for client in clients))
        answer = await good(app)
        assert (answer.status, answer.json) == (503, {"error": "too many requests are waiting"})
        assert answer.headers["retry-after"] == "1"
        assert (await ask(app, "GET", "/readyz")).status == 503
        assert await clients[0].status() == 200
        assert (await ask(app, "GET", "/readyz")).status == 200
        assert (await good(app)).status == 200
        assert [await client.status() for client in clients[1:]] == [200, 200]

    asyncio.run(crowd())


def test_bodies_that_never_come_end_and_give_back_what_they_held(model: str) -> None:
    app = make_app(model, limits=Limits(seconds=0.05, at_once=1, waiting=9))

    async def crowd() -> None:
        small, large, without_room = (SlowClient(app, body) for body in (BODY, LARGE, LARGE))
        statuses = [await client.task for client in (small, large, without_room)]
        assert statuses == [408, 408, 503]
        assert await gauge(app, "gradrank_requests_waiting") == 0
        answer = await ask(app, "POST", "/v1/rank", LARGE, content_type=JSON)
        assert answer.status == 200

    asyncio.run(crowd())
