"""Small blocks, so that small data has many of them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    streaming = "gradrank.data.streaming"
    monkeypatch.setattr(f"{streaming}.pieces._PIECE_BYTES", 700)
    monkeypatch.setattr(f"{streaming}.letor_source._PART_BYTES", 300)
    monkeypatch.setattr(f"{streaming}.table_source._MOST_ROWS", 7)
    monkeypatch.setattr(f"{streaming}.queries._RUNS_AT_ONCE", 5)
    monkeypatch.setattr(f"{streaming}.to_binary._ROWS_AT_ONCE", 3)
    monkeypatch.setattr(f"{streaming}.sources._BLOCK_BYTES", 200)
