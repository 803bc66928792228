"""Weights of documents go along wherever data goes, or are refused: they are never lost without a word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradrank.data.formats.registry import read_data
from tests.support.commands import error_of, run

ROWS = "qid,label,x,document_weight\na,1,0.5,2\nb,0,4,1\na,0,0.25,3\nb,1,3,0.5\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(ROWS, encoding="utf-8")


def test_conversion_keeps_them() -> None:
    assert run("convert", "data.csv", "data.gradrank").exit_code == 0
    weights = read_data("data.gradrank").document_weight
    assert weights is not None
    # The queries are brought together, and the weights with them.
    np.testing.assert_array_equal(weights, [2.0, 3.0, 1.0, 0.5])


def test_workers_want_them_in_all_files_or_in_none() -> None:
    Path("more").mkdir()
    Path("more/1.csv").write_text(ROWS, encoding="utf-8")
    Path("more/2.csv").write_text("qid,label,x\nc,1,0.5\nc,0,4\n", encoding="utf-8")
    result = run("train", "--train", "more", "--workers", 1, "--trees", 1, "-o", "model.json", "--quiet")
    assert "2.csv: has no document weights, unlike" in error_of(result)
    assert not Path("model.json").exists()
