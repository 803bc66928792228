"""Texts of queries and documents from files and columns."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from gradrank import RankingData, Texts, read_texts
from gradrank.data.formats.text_columns import column_names, read_text_columns
from gradrank.errors import DataError


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", "7\tred, shoes\n\n8\tblue\tor green\r\n"),
        ("t.txt", "\ufeff7\tred, shoes\n8\tblue\tor green"),
        ("t.csv", '7,"red, shoes"\n8,blue\tor green\n'),
        ("t.jsonl", '{"_id": "7", "text": "red, shoes"}\n{"qid": 8, "query": "blue\\tor green", "more": []}\n'),
    ],
)
def test_files_of_ids_and_texts(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    assert read_texts(tmp_path / name) == {"7": "red, shoes", "8": "blue\tor green"}
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(content.encode()))
    assert read_texts(packed) == {"7": "red, shoes", "8": "blue\tor green"}


def test_title_and_text_of_a_document(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"_id": "d1", "title": "Shoes", "text": "Red ones."}\n{"docid": "d2", "title": "", "text": "x"}\n')
    assert read_texts(path) == {"d1": "Shoes – Red ones.", "d2": "x"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.tsv", "7\tred\n8 blue\n", r"t\.tsv:2: found '8 blue', expected an id, a tab and a text"),
        ("t.tsv", "7\tred\n7\tblue\n", r"t\.tsv:2: id '7' has another text"),
        ("t.tsv", "\n", r"t\.tsv: is empty"),
        ("t.jsonl", '{"id": "7", "text": "a"}\nnothing\n', r"t\.jsonl:2: is not a line of JSON"),
        ("t.jsonl", "[1]\n", r"t\.jsonl:1: holds a list, expected an object"),
        ("t.jsonl", '{"id": "7", "words": "a"}\n', r"t\.jsonl:1: expected one of id, .*found id, words"),
        ("t.jsonl", "[" * 100_000 + "\n", r"t\.jsonl:1: is not a line of JSON"),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_texts(tmp_path / name)
    (tmp_path / "bytes.tsv").write_bytes(b"7\t\xff\n")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_texts(tmp_path / "bytes.tsv")


def test_texts_by_row_follow_rows_that_were_brought_together() -> None:
    data = RankingData.from_arrays([[1.0], [2.0], [3.0]], qid=["a", "b", "a"])
    texts = Texts(rows=["first", "second", None])
    assert [texts.document(data, row) for row in range(3)] == ["first", None, "second"]
    with pytest.raises(DataError, match="2 texts of documents for 3"):
        Texts(rows=["a", "b"]).document(data, 0)


def test_columns_of_every_table_form(tmp_path: Path) -> None:
    table = pa.table({"qid": [7, 7, 8], "market": ["NA", None, "a,b"], "size": [1.0, 2.5, None]})
    (tmp_path / "t.csv").write_text('qid,market,size\n7,NA,1\n7,,2.5\n8,"a,b",\n')
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "t.arrow")
    expected = {"market": ["NA", None, "a,b"], "size": ["1", "2.5", None]}
    for form in ("csv", "parquet", "arrow"):
        path = tmp_path / f"t.{form}"
        assert column_names(path, form) == ["qid", "market", "size"]
        assert read_text_columns(path, form, ["market", "size"]) == expected
    (tmp_path / "t.txt").write_text("1 qid:1 1:2\n")
    assert column_names(tmp_path / "t.txt", "letor") == []
