"""Arrow and Parquet files that say what is not so: refused before anybody reads outside of memory."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gradrank.data.formats.arrow import read_arrow, write_arrow
from gradrank.data.formats.parquet import read_parquet
from gradrank.data.ranking_data import RankingData
from gradrank.data.roles import Columns, resolve_roles
from gradrank.data.streaming.table_source import ArrowSource, ParquetSource
from gradrank.data.tables import Beside, assemble, recorded_roles
from gradrank.errors import DataError


def by_blocks(path: Path) -> list[object]:
    return list(ArrowSource(path, Columns()).rows())


def stream(docid: pa.Array) -> bytes:
    table = pa.table({"qid": [1, 1, 2], "label": [0.0, 1.0, 2.0], "x": [1.0, 2.0, 3.0], "docid": docid})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("read", [read_arrow, by_blocks], ids=["whole", "blocks"])
@pytest.mark.parametrize(
    ("docid", "true", "false"),
    [
        (pa.array(["ab", "cd", "ef"]), struct.pack("<4i", 0, 2, 4, 6), struct.pack("<4i", 0, 2, 4, 1 << 30)),
        (pa.array(["ab", "cd", "ef"]), struct.pack("<4i", 0, 2, 4, 6), struct.pack("<4i", 0, -(1 << 30), 4, 6)),
        (
            pa.DictionaryArray.from_arrays(pa.array([2, 0, 1], pa.int32()), pa.array(["a", "b", "c"])),
            struct.pack("<3i", 2, 0, 1),
            struct.pack("<3i", 2, 0, 1 << 28),
        ),
    ],
    ids=["beyond the end", "before the start", "no such category"],
)
def test_offsets_and_categories_that_do_not_exist(
    read: Callable[[Path], object], docid: pa.Array, true: bytes, false: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.arrow"
    content = stream(docid)
    assert content.count(true) == 1
    path.write_bytes(content)
    read(path)
    path.write_bytes(content.replace(true, false))
    with pytest.raises(DataError, match=r"a\.arrow: cannot be read as Arrow"):
        read(path)


@pytest.mark.parametrize(
    "roles",
    ["[" * 50_000, "[1]", '{"labels": {"a": [1]}}', '{"labels": {}, "qid": {}}', '{"labels": {}, "features": [[1]]}'],
)
def test_recorded_roles_of_other_types_are_none(roles: str, tmp_path: Path) -> None:
    assert recorded_roles(pa.schema([], metadata={b"gradrank": roles.encode()})) is None
    path = tmp_path / "a.arrow"
    write_arrow(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    with pa.ipc.open_file(path) as file:
        table = file.read_all()
        known = recorded_roles(table.schema)
    assert known is not None
    assert json.dumps(known["labels"]) == '{"label": "label"}'


def test_fewer_rows_than_were_promised() -> None:
    named = pa.table({"qid": [1, 1], "label": [0.0, 1.0]})
    roles = resolve_roles(["qid", "label", "x"], Columns())

    def blocks() -> object:
        yield [pa.array(np.arange(1.0))]

    with pytest.raises(DataError, match="says that it has 3 rows, but its columns have 2"):
        assemble(named, 3, roles, blocks, True, None, Beside())  # type: ignore[arg-type]
    with pytest.raises(DataError, match="its features have 1 rows, expected 2"):
        assemble(named, 2, roles, blocks, True, None, Beside())  # type: ignore[arg-type]


def footer_with(rows: int, table: pa.Table, path: Path) -> bytes:
    """A Parquet file whose footer gives the whole file another number of rows than its group of rows has."""
    pq.write_table(table, path)
    content = path.read_bytes()
    for at in reversed(range(len(content) - 8)):
        if content[at] == 2 * table.num_rows:  # such a number is written doubled
            path.write_bytes(content[:at] + bytes([2 * rows]) + content[at + 1 :])
            try:
                found = pq.read_metadata(path)
            except (pa.ArrowException, OSError):
                continue
            if found.num_rows == rows and found.row_group(0).num_rows == table.num_rows:
                return path.read_bytes()
    raise AssertionError("no byte is the number of rows")


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize(
    "read", [read_parquet, lambda path: list(ParquetSource(path, Columns()).rows())], ids=["whole", "blocks"]
)
def test_a_parquet_file_that_miscounts_its_rows(rows: int, read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(footer_with(rows, pa.table({"qid": [1, 1, 2], "label": [0.0, 1.0, 2.0], "x": [1, 2, 3]}), path))
    with pytest.raises(DataError, match=rf"a\.parquet: says that it has {rows} rows, but its columns have 3"):
        read(path)
