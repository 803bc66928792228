"""Heads that do not come: the connection is closed, and others are answered meanwhile."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import uvicorn

from gradrank.runtime.http_heads import UnreadAnswers, protocol_with_deadline
from gradrank.runtime.listening import listening

SECONDS = 0.5
REQUEST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive())["body"]
    while len(body) < 3:
        body += (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(params=["h11", "httptools"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers that uvicorn may find."""
    module = pytest.importorskip(f"uvicorn.protocols.http.{request.param}_impl")
    found = {"h11": "H11Protocol", "httptools": "HttpToolsProtocol"}[request.param]
    monkeypatch.setattr("uvicorn.protocols.http.auto.AutoHTTPProtocol", getattr(module, found))


@contextmanager
def serving(seconds: float, application: Any = echo, **more: Any) -> Iterator[int]:
    with listening("127.0.0.1", 0) as listener:
        protocol = protocol_with_deadline(seconds, **more)
        config = uvicorn.Config(application, http=protocol, lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def port() -> Iterator[int]:
    with serving(SECONDS) as found:
        yield found


@pytest.fixture
def patient_port() -> Iterator[int]:
    """Far from the deadline: only the length of heads closes here."""
    with serving(600) as found:
        yield found


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


GET = b"GET / HTTP/1.1\r\nhost: x\r\n"
PIECES = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"


@pytest.mark.parametrize(
    "start",
    [b"GET /", GET + b"x-long: ", GET, PIECES, PIECES + b"x-long: "],
    ids=["address", "long field", "many fields", "fields after the body", "long field after the body"],
)
def test_a_head_without_end_ends_the_connection(patient_port: int, start: bytes) -> None:
    more = b"x-many: 1\r\n" * 1000 if start.endswith(b"\n") else b"x" * 10_000
    closed = False
    with socket.create_connection(("127.0.0.1", patient_port), timeout=30) as connection:
        try:
            connection.sendall(start)
            for _ in range(10_000):
                connection.sendall(more)
        except ConnectionError:
            closed = True
    assert closed  # within some buffers' length; a server that went on reading would have taken all of it
    with socket.create_connection(("127.0.0.1", patient_port), timeout=30) as whole:
        whole.sendall(REQUEST + b"abc")
        assert answer(whole).startswith(b"HTTP/1.1 200")


def test_many_requests_and_bodies_on_one_connection_are_no_long_head(patient_port: int) -> None:
    count = 2000
    with socket.create_connection(("127.0.0.1", patient_port), timeout=30) as connection:
        for number in range(count):
            # Half of them with a body in pieces: more than a head's bytes by far over the whole connection.
            connection.sendall(PIECES + b"\r\n" if number % 2 else REQUEST + b"abc")
            assert answer(connection).startswith(b"HTTP/1.1 200")
    assert count * len(REQUEST) > 1 << 16


LARGE = 8 << 20  # more than both ends' systems take


async def large_at_once(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LARGE)]})
    await send({"type": "http.response.body", "body": b"x" * LARGE})


async def large_in_pieces(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LARGE)]})
    for at in range(0, LARGE, 1 << 16):
        await send({"type": "http.response.body", "body": b"x" * (1 << 16), "more_body": at + (1 << 16) < LARGE})


def hung_up(connection: socket.socket) -> bool:
    """Whether the other end gives the connection up within a long time, without a byte being read here."""
    watched = select.poll()
    watched.register(connection, 0)  # errors and hanging up are always told
    return bool(watched.poll(30_000))


@pytest.mark.parametrize("application", [large_at_once, large_in_pieces])
def test_who_does_not_read_an_answer_is_let_go(application: Any) -> None:
    with (
        serving(600, application, unread_seconds=SECONDS) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as silent,
        socket.create_connection(("127.0.0.1", port), timeout=30) as reader,
    ):
        for connection in (silent, reader):
            connection.sendall(GET + b"\r\n")
        got = 0
        while got < LARGE:
            piece = reader.recv(1 << 16)
            assert piece
            got += len(piece)
        assert hung_up(silent)


def test_who_does_not_read_makes_room_for_others_at_once() -> None:
    with (
        serving(600, large_at_once, most_connections=1) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as silent,
    ):
        silent.sendall(GET + b"\r\n")
        assert silent.recv(1) == b"H"  # it is being answered
        with socket.create_connection(("127.0.0.1", port), timeout=30):
            assert hung_up(silent)


class Handle:
    """What a clock gives for something that it waits for."""

    def __init__(self, clock: Clock, entry: Any) -> None:
        self.clock, self.entry = clock, entry

    def cancel(self) -> None:
        with suppress(ValueError):  # it has happened
            self.clock.waiting.remove(self.entry)


class Clock:
    """A loop whose time passes when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []

    def call_later(self, seconds: float, action: Any, *arguments: Any) -> Any:
        assert seconds == SECONDS
        entry = [action, arguments]
        self.waiting.append(entry)
        return Handle(self, entry)

    def passes(self) -> None:
        ((action, arguments),) = self.waiting
        self.waiting.clear()
        action(*arguments)


class Connection:
    """A transport with something to be read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ended = ""
        self.socket = socket.socket()

    def get_write_buffer_size(self) -> int:
        return self.size

    def get_extra_info(self, name: str) -> socket.socket:
        assert name == "socket"
        return self.socket

    def abort(self) -> None:
        self.ended = "aborted"

    def close(self) -> None:
        self.ended = "closed"


def test_who_reads_slowly_is_waited_for() -> None:
    clock, connection = Clock(), Connection(1000)
    with connection.socket:
        answers = UnreadAnswers(clock, connection, SECONDS)  # type: ignore[arg-type]
        answers.look()
        for left in (999, 500, 1):
            connection.size = left
            clock.passes()
            assert connection.ended == ""
        clock.passes()
        assert connection.ended == "aborted"


def test_nothing_is_looked_at_when_all_was_read() -> None:
    clock, connection = Clock(), Connection(1000)
    with connection.socket:
        answers = UnreadAnswers(clock, connection, SECONDS)  # type: ignore[arg-type]
        answers.look()
        connection.size = 0
        answers.look()
        assert clock.waiting == []
        answers.end()
        assert connection.ended == "closed"
