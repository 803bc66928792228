"""Connections that do not send the head of a request in time are closed.

uvicorn waits for ever: a few hundred connections that send half a head, or nothing, would take all that a process may
have. What comes after the head is the application's to limit.
"""

from __future__ import annotations

import asyncio
from typing import Any


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
    closing: set[DeadlineProtocol] = set()

    class DeadlineProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """One connection."""

        _deadline: asyncio.TimerHandle | None = None

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
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()
                waiting.pop(self, None)
            elif self._deadline is None and not self.transport.is_closing():
                self._deadline = self.loop.call_later(seconds, self.transport.close)

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
