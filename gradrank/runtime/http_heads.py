"""Connections that do not send the head of a request in time, or one without end, are closed.

uvicorn waits for ever: a few hundred connections that send half a head, or nothing, would take all that a process may
have. And it keeps what httptools, the faster of its two parsers, finds in heads and in what may follow a body in
pieces, however much that is. The body itself is the application's to limit.
"""

from __future__ import annotations

import asyncio
from typing import Any

# As the slower parser, h11, has it.
_LONGEST_HEAD = 1 << 16


def protocol_with_deadline(seconds: float, *, most_connections: int | None = None) -> type[asyncio.Protocol]:
    """uvicorn's protocol, for ``uvicorn.Config(http=…)``, with a deadline for heads.

    Parameters
    ----------
    seconds
        How long a client may take from the opening of a connection, or from the first byte of a later request, to the
        end of the request's head.
    most_connections
        How many connections may be open. Beyond, a new one takes the place of the one that has waited longest without
        a request, so that those who only keep connections open keep nobody out.
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
            self._deadline = self.loop.call_later(seconds, transport.close)
            waiting[self] = None
            if most_connections is not None and len(self.connections) - len(closing) > most_connections:
                longest = next(iter(waiting))
                del waiting[longest]
                closing.add(longest)
                longest.transport.close()

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
            if self in self.connections and self not in closing:
                waiting[self] = None

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            waiting.pop(self, None)
            closing.discard(self)
            super().connection_lost(exc)

        def _forget(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return DeadlineProtocol
