"""Connections between processes, here between threads: exchanges, strangers, and peers that are gone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gradrank.cluster import mesh as mesh_module
from gradrank.cluster.mesh import LostPeer, Mesh

TOKEN = "of this crew"


def connected(size: int, do: Callable[[Mesh], Any], *, stranger: bool = False) -> list[Any]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(size)]
    addresses = [listener.getsockname()[:2] for listener in listeners]

    def run(rank: int) -> Any:
        mesh = Mesh(rank, [f"worker {number + 1}" for number in range(size)])
        try:
            mesh.connect(listeners[rank], addresses, TOKEN)
            return do(mesh)
        except LostPeer as error:
            return error
        finally:
            mesh.close()

    if stranger:
        # Knocks before anybody else, with a secret that is not the crew's.
        link = socket.create_connection(addresses[0])
        link.sendall(b"guess".ljust(64, b"\0") + (1).to_bytes(4, "little"))
    with ThreadPoolExecutor(size) as threads:
        found = list(threads.map(run, range(size)))
    for listener in listeners:
        listener.close()
    if stranger:
        assert link.recv(1) == b""  # hung up
        link.close()
    return found


@pytest.mark.parametrize("size", [1, 2, 5])
def test_each_gets_what_the_others_gave_to_it(size: int) -> None:
    rng = np.random.default_rng(0)
    # From nothing to more than a socket's buffer holds.
    lengths = rng.permutation(size * size).reshape(size, size) * 400_000 // size
    parts = [[rng.bytes(int(length)) for length in row] for row in lengths]

    def do(mesh: Mesh) -> list[bytes]:
        return [bytes(part) for part in mesh.exchange(parts[mesh.rank])]

    for rank, received in enumerate(connected(size, do)):
        assert received == [parts[giver][rank] for giver in range(size)]


def test_a_stranger_is_turned_away() -> None:
    assert connected(2, lambda mesh: mesh.gather_values(mesh.rank), stranger=True) == [[0, 1], [0, 1]]


def test_a_peer_that_ends_is_named_at_once() -> None:
    def do(mesh: Mesh) -> Any:
        if mesh.rank == 1:
            return "gone"
        return mesh.gather_values("here")

    first, second, third = connected(3, do)
    assert second == "gone"
    for error in (first, third):
        assert isinstance(error, LostPeer)
    # The one who ended first is named by at least one of them; the other may have lost that one.
    assert any("worker 2 was lost" in str(error) for error in (first, third))


def test_a_closed_connection_shows_though_there_is_something_to_read() -> None:
    def do(mesh: Mesh) -> Any:
        if mesh.rank == 1:
            mesh._links[0].send(b"unread")
            return None
        while not mesh.has_lost():
            pass
        return mesh._links[1].recv(6)

    assert connected(2, do) == [b"unread", None]


def test_processes_that_are_not_at_the_same_exchange_notice() -> None:
    def do(mesh: Mesh) -> Any:
        if mesh.rank == 0:
            mesh._turn += 1  # as if it had missed one
        return mesh.gather_values(None)

    assert all("exchange" in str(error) or "lost" in str(error) for error in connected(2, do))


def test_a_port_that_nobody_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_module, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()[:2]
    with socket.create_server(("127.0.0.1", 0)) as own:
        mesh = Mesh(1, ["worker 1", "worker 2"])
        with pytest.raises(LostPeer, match=f"worker 2 cannot reach worker 1 at 127.0.0.1, port {address[1]}"):
            mesh.connect(own, [address, own.getsockname()[:2]], TOKEN)


def test_a_process_that_never_comes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_module, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as own:
        mesh = Mesh(0, ["worker 1", "worker 2"])
        with pytest.raises(LostPeer, match="worker 2 did not connect to worker 1"):
            mesh.connect(own, [own.getsockname()[:2], ("127.0.0.1", 1)], TOKEN)


def test_threads_are_gone_afterwards() -> None:
    before = threading.active_count()
    connected(3, lambda mesh: mesh.gather_values(mesh.rank))
    assert threading.active_count() == before
