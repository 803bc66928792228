"""Sockets to serve on."""

from __future__ import annotations

import asyncio
import socket

import pytest

from gradrank.errors import DataError
from gradrank.runtime.listening import listening


def test_answers_are_sent_at_once() -> None:
    """Without TCP_NODELAY a small answer waits for the acknowledgment of the one before, some 40 ms."""
    found = []

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = writer.get_extra_info("socket")
        found.append(link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async def serve() -> None:
        with listening("127.0.0.1", 0) as listener:
            server = await asyncio.start_server(answer, sock=listener)
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            assert await reader.read() == b""
            writer.close()
            server.close()

    asyncio.run(serve())
    assert found == [1]


def test_a_port_that_is_taken_is_said() -> None:
    with listening("127.0.0.1", 0) as listener, pytest.raises(DataError, match=r"cannot listen on 127\.0\.0\.1, port"):
        listening("127.0.0.1", listener.getsockname()[1])
