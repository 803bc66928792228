"""Connections between the processes of a crew, each with each, and the two exchanges that everything else is made of.

A peer that is lost is noticed in seconds: by the closed connection if its process ended, by TCP's own probes if its
machine or the network is gone. A process that computes for long is not mistaken for a lost one, since the probes are
answered by its machine's kernel.
"""

from __future__ import annotations

import hmac
import select
import selectors
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

from gradrank.cluster.frames import decode, encode
from gradrank.errors import ClusterError

CONNECT_SECONDS = 20.0
"""So long may it take until all processes are connected."""
SILENCE_SECONDS = 30
"""A machine that does not answer for so long is lost."""

Address = tuple[str, int]
_HELLO = struct.Struct("<64sI")
_HEAD = struct.Struct("<IQ")
_CHUNK = 1 << 20


class LostPeer(ClusterError):
    """Another process of the crew is gone: the cause is told there, if anybody is left to tell it."""


class Mesh:
    """The connections of one process of a crew to all others.

    Parameters
    ----------
    rank
        Number of this process, from 0.
    names
        What each process is called in errors.
    """

    def __init__(self, rank: int, names: Sequence[str]) -> None:
        self.rank = rank
        self.names = tuple(names)
        self.size = len(names)
        self.sent = 0
        """Bytes sent to other processes so far."""
        self._links: dict[int, socket.socket] = {}
        self._turn = 0

    # ------------------------------------------------------------------ connecting
    def connect(self, listener: socket.socket, addresses: Sequence[Address], token: str) -> None:
        """Connect to the processes before this one, and let those after it connect.

        Parameters
        ----------
        listener
            The socket that this process listens on.
        addresses
            Where each process listens.
        token
            A secret of the crew: connections without it are turned away.
        """
        ends = time.monotonic() + CONNECT_SECONDS
        secret = token.encode()[:64].ljust(64, b"\0")
        for peer in range(self.rank):
            link = self._dial(peer, addresses[peer], ends)
            link.sendall(_HELLO.pack(secret, self.rank))
            self._links[peer] = link
        missing = set(range(self.rank + 1, self.size))
        while missing:
            listener.settimeout(max(0.01, ends - time.monotonic()))
            try:
                link, _ = listener.accept()
            except TimeoutError:
                peer = min(missing)
                raise LostPeer(f"{self.names[peer]} did not connect to {self.names[self.rank]} within "
                               f"{CONNECT_SECONDS:.0f} s: is the port {addresses[self.rank][1]} of "
                               f"{addresses[self.rank][0]} open to it?") from None  # fmt: skip
            peer = self._welcome(link, secret, ends)
            if peer in missing:
                missing.remove(peer)
                self._links[peer] = link
            else:
                link.close()
        for link in self._links.values():
            watch_over(link)
            link.setblocking(False)

    def _dial(self, peer: int, address: Address, ends: float) -> socket.socket:
        while True:
            try:
                return socket.create_connection(address, timeout=max(0.01, ends - time.monotonic()))
            except OSError as error:
                if time.monotonic() + 0.2 > ends or isinstance(error, TimeoutError):
                    raise LostPeer(
                        f"{self.names[self.rank]} cannot reach {self.names[peer]} at {address[0]}, port {address[1]}: "
                        f"{error.strerror or error}"
                    ) from None
                time.sleep(0.1)

    def _welcome(self, link: socket.socket, secret: bytes, ends: float) -> int:
        """The rank of a process that connects; −1 if it is none of this crew."""
        try:
            link.settimeout(max(0.01, min(5.0, ends - time.monotonic())))
            hello = b""
            while len(hello) < _HELLO.size:
                part = link.recv(_HELLO.size - len(hello))
                if not part:
                    return -1
                hello += part
        except OSError:
            return -1
        told, rank = _HELLO.unpack(hello)
        return int(rank) if hmac.compare_digest(told, secret) else -1

    def has_lost(self) -> bool:
        """Whether another process has closed its connection, though what it sent before may still be unread."""
        poll = select.poll()
        for link in list(self._links.values()):
            poll.register(link, select.POLLRDHUP)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close all connections."""
        for link in self._links.values():
            link.close()
        self._links = {}

    # ------------------------------------------------------------------ exchanges
    def exchange(self, parts: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
        """Give each process its part; what each gave to this one. All processes must take part."""
        received: list[bytes | memoryview] = [b""] * self.size
        received[self.rank] = parts[self.rank]
        if self.size == 1:
            return received
        self._turn += 1
        with selectors.DefaultSelector() as selector:
            flows = {}
            for peer, link in self._links.items():
                flows[peer] = _Flow(self._turn, parts[peer])
                self.sent += len(parts[peer]) + _HEAD.size
                selector.register(link, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
            left = len(flows)
            while left:
                for key, events in selector.select():
                    flow = flows[key.data]
                    try:
                        if events & selectors.EVENT_WRITE and flow.send(key.fileobj):
                            selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
                        if events & selectors.EVENT_READ and flow.receive(key.fileobj):
                            received[key.data] = flow.content
                        if flow.done:
                            selector.unregister(key.fileobj)
                            left -= 1
                    except (OSError, EOFError) as error:
                        raise LostPeer(
                            f"{self.names[key.data]} was lost: {error.args[-1] if error.args else error}"
                        ) from None
        return received

    def gather(self, content: bytes | memoryview) -> list[bytes | memoryview]:
        """What each process has, for all of them."""
        return self.exchange([content] * self.size)

    def gather_values(self, value: Any) -> list[Any]:
        """The same for plain values and arrays."""
        return [decode(content) for content in self.gather(encode(value))]

    def exchange_values(self, values: Sequence[Any]) -> list[Any]:
        """As :meth:`exchange`, for plain values and arrays."""
        parts = [b"" if rank == self.rank else encode(value) for rank, value in enumerate(values)]
        came = self.exchange(parts)
        return [values[rank] if rank == self.rank else decode(content) for rank, content in enumerate(came)]


class _Flow:
    """One exchange with one peer: what is left to send, and what has come."""

    def __init__(self, turn: int, content: bytes | memoryview) -> None:
        self._turn = turn
        self._out = [memoryview(_HEAD.pack(turn, len(content))), memoryview(content).cast("B")]
        self._head = bytearray()
        self._buffer: bytearray | None = None
        self._at = 0
        self._whole = False

    @property
    def done(self) -> bool:
        return self._whole and not self._out

    @property
    def content(self) -> memoryview:
        assert self._buffer is not None
        return memoryview(self._buffer)

    def send(self, link: Any) -> bool:
        """Send what goes; whether all is sent."""
        while self._out:
            try:
                sent = link.send(self._out[0][:_CHUNK]) if len(self._out[0]) else 0
            except BlockingIOError:
                return False
            self._out[0] = self._out[0][sent:]
            if not len(self._out[0]):
                self._out.pop(0)
        return True

    def receive(self, link: Any) -> bool:
        """Take what is there; whether all has come."""
        if self._whole:
            return True
        try:
            if self._buffer is None:
                part = link.recv(_HEAD.size - len(self._head))
                if not part:
                    raise EOFError("its process has ended")
                self._head += part
                if len(self._head) < _HEAD.size:
                    return False
                turn, length = _HEAD.unpack(self._head)
                if turn != self._turn:
                    raise EOFError(f"it is at exchange {turn}, this process at {self._turn}")
                self._buffer = bytearray(length)
            while self._at < len(self._buffer):
                got = link.recv_into(memoryview(self._buffer)[self._at :], min(_CHUNK, len(self._buffer) - self._at))
                if not got:
                    raise EOFError("its process has ended")
                self._at += got
        except BlockingIOError:
            return False
        self._whole = True
        return True


def watch_over(link: socket.socket) -> None:
    """Let TCP find out by itself if the other machine is gone."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Not every system has names for these.
    for name, value in (
        ("TCP_KEEPIDLE", SILENCE_SECONDS // 3),
        ("TCP_KEEPINTVL", SILENCE_SECONDS // 6),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", SILENCE_SECONDS * 1000),
    ):
        if hasattr(socket, name):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
