"""What the server says and checks before it serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import uvicorn

from gradrank.errors import DataError
from gradrank.labeling.project.backup import backup_folder, in_use
from gradrank.labeling.project.store import Store, create_project
from gradrank.labeling.web.server import serve


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
