"""Bodies of requests as they arrive, within limits of size, memory and time.

A client may send its body as slowly as it likes, and may never end it. What it holds meanwhile is what it has sent, not
a place among those who are worked for. Small bodies cost next to nothing; of large ones only so many are held at once
as memory is meant for, and the others are not read on until one of these is done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from gradrank.serve.request_error import RequestError

SMALL_BYTES = 1 << 16
"""What the server reads of a connection before anybody asks for it: up to there a body needs no room."""


class Body:
    """One body; ``release`` ends what it holds, whatever became of it.

    Parameters
    ----------
    stream
        Its parts as they come.
    most
        Bytes beyond which it is refused.
    room
        Counts the large bodies that memory has room for.
    """

    def __init__(self, stream: AsyncIterator[bytes], most: int, room: asyncio.Semaphore) -> None:
        self._stream = stream
        self._most = most
        self._room = room
        self._has_room = False

    async def arrived(self, seconds: float, ends: float) -> bytes:
        """The whole body; a time (of ``time.monotonic``) after which it is refused, told as seconds."""
        waits_for_room = False
        parts, size = [], 0
        try:
            async with asyncio.timeout(ends - time.monotonic()):
                async for part in self._stream:
                    size += len(part)
                    if size > self._most:
                        raise RequestError(f"the body is of more than {self._most:,} bytes", 413, "bytes")
                    if size > SMALL_BYTES and not self._has_room:
                        waits_for_room = True
                        await self._room.acquire()
                        self._has_room, waits_for_room = True, False
                    if part:
                        parts.append(part)
        except TimeoutError:
            if waits_for_room:
                raise RequestError("the server is too busy to answer in time", 503, "busy") from None
            raise RequestError(f"the request's body did not arrive within {seconds:g} seconds", 408, "slow") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def release(self) -> None:
        """Give back the room of a large body."""
        if self._has_room:
            self._has_room = False
            self._room.release()
