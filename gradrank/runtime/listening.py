"""Sockets to serve on: this machine's only unless asked otherwise."""

from __future__ import annotations

import ipaddress
import socket

from gradrank.errors import DataError


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def address_of(host: str, listener: socket.socket) -> str:
    """The address that browsers take, with the port that was found."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; an address or port that cannot be had is a DataError."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # asyncio sends small answers at once (TCP_NODELAY) only on sockets that name their protocol; else they wait
        # some 40 ms for the other side's acknowledgment.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise DataError(f"host is {host!r}, which is no address of a machine: {error.strerror}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Now, not when the server starts: a request that comes early waits instead of failing.
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise DataError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
    return listener
