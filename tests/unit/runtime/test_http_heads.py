"""Heads that do not come: the connection is closed, and others are answered meanwhile."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvicorn

from gradrank.runtime.http_heads import protocol_with_deadline
from gradrank.runtime.listening import listening

SECONDS = 0.5
REQUEST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive())["body"]
    while len(body) < 3:
        body += (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port() -> Iterator[int]:
    with listening("127.0.0.1", 0) as listener:
        config = uvicorn.Config(echo, http=protocol_with_deadline(SECONDS), lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def answer(connection: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\r\n\r\nabc"):
        piece = connection.recv(4096)
        assert piece, found
        found += piece
    return found


def test_half_a_head_ends_the_connection_and_nobody_elses(port: int) -> None:
    silent, halfway, whole = (socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(3))
    with silent, halfway, whole:
        halfway.sendall(REQUEST[:-2])
        whole.sendall(REQUEST + b"ab")
        # Closed by the server, not by the time-out of this socket.
        assert silent.recv(100) == b""
        assert halfway.recv(100) == b""
        # The head came in time; the body may come later than the deadline.
        whole.sendall(b"c")
        assert answer(whole).startswith(b"HTTP/1.1 200")
        # The connection stays open, and the next head has a deadline of its own.
        whole.sendall(REQUEST + b"abc")
        assert answer(whole).startswith(b"HTTP/1.1 200")
        whole.sendall(REQUEST[:10])
        assert whole.recv(100) == b""


def test_connections_that_wait_make_room_for_others() -> None:
    with listening("127.0.0.1", 0) as listener:
        # Far from the deadline: only the limit closes here.
        protocol = protocol_with_deadline(600, most_connections=20)
        config = uvicorn.Config(echo, http=protocol, lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        address = ("127.0.0.1", listener.getsockname()[1])
        halves = [socket.create_connection(address, timeout=30) for _ in range(300)]
        try:
            for half in halves[:-20]:
                # Closed with what it had sent unread, or not.
                with suppress(ConnectionResetError):
                    assert half.recv(100) == b""
            with socket.create_connection(address, timeout=30) as whole:
                whole.sendall(REQUEST + b"abc")
                assert answer(whole).startswith(b"HTTP/1.1 200")
        finally:
            for half in halves:
                half.close()
            server.should_exit = True
            thread.join()
