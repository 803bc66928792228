"""One table, four forms."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest

from gradrank.errors import DataError
from gradrank.evaluation.tables import Column, Table, to_json

TABLE = Table(
    (
        Column("system"),
        Column("NDCG@10", "mean"),
        Column("difference", "signed"),
        Column("relative", "percent"),
        Column("95 % interval", "interval"),
        Column("p", "p"),
        Column("wins/losses", "counts"),
    ),
    (
        ("a|b, [red]c", (0.123456789, 0.01), -0.00006, -0.015, (-0.2, 0.1), 0.00004, (12345, 7)),
        ("alone", (0.5, math.nan), math.nan, math.nan, (math.nan, math.nan), math.nan, (0, 1)),
    ),
    title="against x",
)


def test_markdown() -> None:
    assert TABLE.to_markdown().splitlines() == [
        "**against x**",
        "",
        "| system | NDCG@10 | difference | relative | 95 % interval | p | wins/losses |",
        "|---|--:|--:|--:|--:|--:|--:|",
        "| a\\|b, [red]c | 0.1235 ± 0.0100 | -0.0001 | -1.5% | -0.2000 … +0.1000 | <0.0001 | 12,345/7 |",
        "| alone | 0.5000 | – | – | – | – | 0/1 |",
    ]


def test_csv_keeps_full_precision_and_leaves_missing_values_empty() -> None:
    rows = list(csv.reader(io.StringIO(TABLE.to_csv())))
    assert rows == [
        [
            "system",
            "NDCG@10",
            "NDCG@10 ±",
            "difference",
            "relative",
            "95 % interval low",
            "95 % interval high",
            "p",
            "wins",
            "losses",
        ],
        ["a|b, [red]c", "0.123456789", "0.01", "-6e-05", "-0.015", "-0.2", "0.1", "4e-05", "12345", "7"],
        ["alone", "0.5", "", "", "", "", "", "", "0", "1"],
    ]


def test_json_is_strict() -> None:
    records = json.loads(TABLE.to_json(), parse_constant=pytest.fail)
    assert records[0]["95 % interval low"] == -0.2
    assert records[1]["p"] is None
    assert records[1]["wins"] == 0


def test_json_takes_numpy_numbers_and_infinity() -> None:
    given = {"a": np.float32(0.5), "b": (np.int64(3), np.inf), "c": {1: "é"}}
    assert json.loads(to_json(given)) == {"a": 0.5, "b": [3, None], "c": {"1": "é"}}


def test_terminal_table_shows_cells_literally() -> None:
    from rich.console import Console

    console = Console(width=200, file=io.StringIO(), color_system=None)
    console.print(TABLE.to_rich())
    shown = console.file.getvalue()
    assert "[red]c" in shown
    assert "0.1235 ± 0.0100" in shown
    assert shown.splitlines()[0].strip() == "against x"


def test_file_is_the_text(tmp_path) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == TABLE.to_csv()
    with pytest.raises(DataError, match="cannot be written"):
        TABLE.write_csv(tmp_path / "missing" / "t.csv")
