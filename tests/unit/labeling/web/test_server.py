"""What the server says and checks before it serves."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from gradrank.errors import DataError
from gradrank.labeling.project.access import Access, served_address
from gradrank.labeling.project.backup import backup_folder, in_use
from gradrank.labeling.project.store import Store, create_project
from gradrank.labeling.web.app import create_app
from gradrank.labeling.web.server import serve, server_config
from gradrank.runtime.listening import listening


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_project(tmp_path / "p.db", title="Test")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Servers that would have run."""
    servers: list[Any] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: servers.append(self))
    return servers


def said(store: Store, **options: Any) -> str:
    lines: list[str] = []
    serve(store, port=0, say=lines.append, **options)
    return "\n".join(lines)


def test_on_this_machine_there_is_nothing_to_warn_of(store: Store, started: list[Any]) -> None:
    text = said(store)
    assert "http://127.0.0.1:" in text
    assert "/join/0-" in text
    assert "WARNING" not in text
    assert len(started) == 1


def test_for_other_machines_there_is(store: Store, started: list[Any]) -> None:
    assert "not encrypted" in said(store, host="0.0.0.0")
    assert "not encrypted" in said(store, host="0.0.0.0", public_url="http://label.example")
    assert "WARNING" not in said(store, host="0.0.0.0", public_url="https://label.example")
    assert "https://label.example/join/0-" in said(store, public_url="https://label.example/")


def test_a_copy_is_made_and_the_project_claimed(store: Store, started: list[Any], monkeypatch: Any) -> None:
    def run(_self: object, sockets: list[Any]) -> None:
        assert len(sockets) == 1
        with pytest.raises(DataError, match="is being served"), in_use(store.path):
            pass

    monkeypatch.setattr(uvicorn.Server, "run", run)
    said(store)
    assert len(list(backup_folder(store.path).glob("*.db"))) == 1
    with in_use(store.path):
        pass


def test_a_damaged_project_is_not_served(store: Store, started: list[Any]) -> None:
    store.read().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    with store.path.open("r+b") as file:
        file.seek(5000)
        file.write(b"\xff" * 20_000)
    with pytest.raises(DataError, match="damaged"):
        said(store)
    assert started == []


def test_links_of_assessors_are_said_and_the_address_is_kept(store: Store, started: list[Any]) -> None:
    token = Access(store).invite("Ada")
    text = said(store)
    assert f"Ada: {served_address(store)}/join/{token}" in text
    said(store, public_url="https://label.example/")
    assert served_address(store) == "https://label.example"


def test_half_a_head_is_not_waited_for(store: Store) -> None:
    with listening("127.0.0.1", 0) as listener:
        server = uvicorn.Server(server_config(create_app(store, backups=False), head_seconds=0.2))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with socket.create_connection(listener.getsockname(), timeout=30) as half:
                half.sendall(b"GET / HTTP/1.1\r\nhost: x")
                assert half.recv(100) == b""
        finally:
            server.should_exit = True
            thread.join()


def test_half_a_form_is_not_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradrank.labeling.web.app.FORM_SECONDS", 0.05)
    with listening("127.0.0.1", 0) as listener:
        server = uvicorn.Server(server_config(create_app(store, backups=False)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with socket.create_connection(listener.getsockname(), timeout=30) as half:
                half.sendall(b"POST /leave HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\ncsrf=")
                assert half.recv(100).startswith(b"HTTP/1.1 408")
        finally:
            server.should_exit = True
            thread.join()
