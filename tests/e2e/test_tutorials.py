"""Tutorials of the guides, run from top to bottom as a reader would."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
_BLOCK = re.compile(r"^<!-- run -->\n```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(page: str) -> dict[str, Any]:
    """Run all blocks of a page in the working folder; the names that its Python has left."""
    names: dict[str, Any] = {}
    blocks = _BLOCK.findall((GUIDES / page).read_text(encoding="utf-8"))
    assert blocks
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, page, "exec"), names)
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "gradrank"
            result = run(*arguments)
            assert result.exit_code == 0, result.output
    return names


def test_two_models_are_compared_online(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names: dict[str, Any] = {}
    try:
        names = follow("online-comparison.md")
    finally:
        if "server" in names:
            names["server"].stderr.close()
    found = names["found"]
    assert names["server"].returncode == 0
    assert found.models == ("old@1", "new@1")
    assert found.lists == names["data"].n_queries
    # The new model is much better by the labels that the made-up users follow.
    assert found.winner == "new@1"
    assert "new@1 wins" in capsys.readouterr().out
    assert len(Path("clicks.tsv").read_text().splitlines()) > 300
    assert len(Path("access.jsonl").read_text().splitlines()) >= found.lists
