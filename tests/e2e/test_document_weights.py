"""Weights of documents go along wherever data goes, or are refused: they are never lost without a word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradrank.data.formats.registry import read_data
from gradrank.errors import GradrankError
from gradrank.learners import LambdaMART
from gradrank.learners.trees.remote import check_offered
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


def test_workers_refuse_what_they_cannot_do() -> None:
    result = run("train", "--train", "data.csv", "--workers", 2, "--trees", 1, "-o", "model.json", "--quiet")
    assert "has weights of documents, which are not offered on workers" in error_of(result)
    assert not Path("model.json").exists()
    with pytest.raises(GradrankError, match="positions are not offered on workers"):
        check_offered(LambdaMART(positions="position"))
