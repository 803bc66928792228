"""Connections that send no head of a request in time, or one without end, or do not read answers, are closed.

uvicorn waits for ever: a few hundred connections that send half a head, or nothing, would take all that a process may
have. And it keeps what httptools, the faster of its two parsers, finds in heads and in what may follow a body in
pieces, however much that is. The body itself is the application's to limit. Answers that a client never reads would
stay in memory for as long as it keeps its connection open: a transport that is closed waits until they are gone.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any

# As the slower parser, h11, has it.
_LONGEST_HEAD = 1 << 16
UNREAD_SECONDS = 120.0
"""How long a client may take nothing of an answer. The system takes from us in large pieces: with less time, one at the
end of a slow line would be taken for one who does not read."""
# On closing, what was not read is thrown away.
_NO_LINGER = struct.pack("ii", 1, 0)


class UnreadAnswers:
    """Ends a connection whose client takes nothing of what was written for it.

    Parameters
    ----------
    loop
        Where time passes.
    transport
        The connection.
    seconds
        How long nothing may be taken.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, seconds: float) -> None:
        self._loop, self._transport, self._seconds = loop, transport, seconds
        self._due: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Something was written or taken: time begins anew."""
        self.forget()
        size = self._transport.get_write_buffer_size()
        if size:
            self._due = self._loop.call_later(self._seconds, self._decide, size)

    def forget(self) -> None:
        """Nothing more is looked at."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def end(self) -> None:
        """Close the connection; what has not been read is lost."""
        if self._transport.get_write_buffer_size() == 0:
            self._transport.close()
            return
        with suppress(OSError):  # else the system itself would go on trying to deliver what it has taken
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._transport.abort()

    def _decide(self, before: int) -> None:
        if self._transport.get_write_buffer_size() >= before:
            self.end()
        else:
            self.look()


def protocol_with_deadline(
    seconds: float, *, most_connections: int | None = None, unread_seconds: float = UNREAD_SECONDS
) -> type[asyncio.Protocol]:
    """uvicorn's protocol, for ``uvicorn.Config(http=…)``, with a deadline for heads.

    Parameters
    ----------
    seconds
        How long a client may take from the opening of a connection, or from the first byte of a later request, to the
        end of the request's head.
    most_connections
        How many connections may be open. Beyond, a new one takes the place of the one that has waited longest without
        a request, so that those who only keep connections open keep nobody out.
    unread_seconds
        How long a client may take nothing of an answer.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    waiting: dict[DeadlineProtocol, None] = {}
    by_callbacks = hasattr(AutoHTTPProtocol, "on_message_complete")  # httptools; h11 limits heads by itself
    closing: set[DeadlineProtocol] = set()

    class DeadlineProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """One connection."""

        _deadline: asyncio.TimerHandle | None = None
        _since_body = 0
        """Bytes that came since the last piece of a body or the end of a request."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._unread = UnreadAnswers(self.loop, transport, unread_seconds)
            self._deadline = self.loop.call_later(seconds, transport.close)
            waiting[self] = None
            if most_connections is not None and len(self.connections) - len(closing) > most_connections:
                longest = next(iter(waiting))
                del waiting[longest]
                closing.add(longest)
                longest._unread.end()

        def data_received(self, data: bytes) -> None:
            self._since_body += len(data)
            super().data_received(data)
            answering = self.cycle is not None and not self.cycle.response_complete
            if by_callbacks and self._since_body > _LONGEST_HEAD and not self.transport.is_closing():
                if answering:
                    self.transport.close()
                else:
                    self.send_400_response("The head of the request is too long.")
            if answering:
                self._forget()
                waiting.pop(self, None)
            elif self._deadline is None and not self.transport.is_closing():
                self._deadline = self.loop.call_later(seconds, self.transport.close)

        def on_body(self, body: bytes) -> None:
            self._since_body = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._since_body = 0
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._unread.look()
            if self in self.connections and self not in closing:
                waiting[self] = None

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unread.look()

        def resume_writing(self) -> None:
            super().resume_writing()
            self._unread.look()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            self._unread.forget()
            waiting.pop(self, None)
            closing.discard(self)
            super().connection_lost(exc)

        def _forget(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return DeadlineProtocol
