"""Texts of queries and documents, for people to read beside the numbers; no ranker ever sees them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradrank.data.formats.compressed import read_bytes, without_compression_suffix
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError

_ID_KEYS = ("id", "_id", "qid", "query_id", "docid", "doc_id", "document_id", "docno")
_TEXT_KEYS = ("title", "text", "query", "body", "contents")
_LONGEST_SHOWN = 40


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts by id.

    Parameters
    ----------
    queries
        Text of each query, by its id.
    documents
        Text of each document, by its id.
    rows
        Texts of the documents in the order of the data's rows as given, instead of by id.

    >>> data = RankingData.from_arrays([[1.0], [2.0]], qid=[7, 7], docid=["a", "b"])
    >>> texts = Texts({"7": "red shoes"}, {"b": "Red shoes, size 41"})
    >>> texts.query("7"), texts.document(data, 0), texts.document(data, 1)
    ('red shoes', None, 'Red shoes, size 41')
    """

    queries: Mapping[str, str] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[str | None] | None = None

    def query(self, qid: str) -> str | None:
        """The text of a query, if it is known."""
        return self.queries.get(qid)

    def document(self, data: RankingData, row: int) -> str | None:
        """The text of a document of the data, given by its row there, if it is known."""
        if self.rows is not None:
            if len(self.rows) != data.n_docs:
                raise DataError(f"there are {len(self.rows)} texts of documents for {data.n_docs} documents")
            return self.rows[row if data.rows is None else int(data.rows[row])] or None
        return None if data.docid is None else self.documents.get(data.docid[row])


def read_texts(path: str | Path, what: str = "text") -> dict[str, str]:
    """Words by id, from a file of two columns or of JSON lines; may be compressed.

    Parameters
    ----------
    path
        ``.tsv`` or ``.txt``: an id, a tab, the text. ``.csv``: the same with commas. ``.jsonl``: objects with an id
        (``id``, ``_id``, ``qid``, ``docid`` …) and a text (``title`` and ``text``, ``query``, ``body`` …).
    what
        What stands beside the ids, for messages and as a further key of JSON lines.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "queries.tsv"
    >>> _ = path.write_text("7\\tred shoes\\n8\\tblue\\n", encoding="utf-8")
    >>> read_texts(path)
    {'7': 'red shoes', '8': 'blue'}
    """
    path = Path(path)
    try:
        text = read_bytes(path).tobytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text", path=path) from None
    suffix = without_compression_suffix(path).suffix.lower()
    found: dict[str, str] = {}
    if suffix == ".csv":
        import csv

        rows = enumerate(csv.reader(text.splitlines()), 1)
        parsed = ((number, _two(row, "comma", what, path, number)) for number, row in rows if row)
    elif suffix in (".jsonl", ".json", ".ndjson"):
        lines = enumerate(text.split("\n"), 1)
        parsed = ((number, _of_object(line, what, path, number)) for number, line in lines if line.strip())
    else:
        lines = enumerate(text.split("\n"), 1)
        parsed = (
            (number, _two(line.rstrip("\r").split("\t", 1), "tab", what, path, number))
            for number, line in lines
            if line.strip()
        )
    for number, (name, words) in parsed:
        if name in found and found[name] != words:
            raise DataError(f"id {name[:_LONGEST_SHOWN]!r} has another {what} further up", path=path, line=number)
        found[name] = words
    if not found:
        raise DataError(f"is empty, expected an id and a {what} in each line", path=path)
    return found


def _two(row: list[str], separator: str, what: str, path: Path, number: int) -> tuple[str, str]:
    if len(row) < 2:
        shown = "".join(row)[:_LONGEST_SHOWN]
        raise DataError(f"found {shown!r}, expected an id, a {separator} and a {what}", path=path, line=number)
    return row[0].strip(), row[1].strip()


def _of_object(line: str, what: str, path: Path, number: int) -> tuple[str, str]:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise DataError("is not a line of JSON", path=path, line=number) from None
    if not isinstance(value, dict):
        raise DataError(f"holds a {type(value).__name__}, expected an object", path=path, line=number)
    name = next((value[key] for key in _ID_KEYS if isinstance(value.get(key), str | int)), None)
    words = [str(value[key]) for key in (*_TEXT_KEYS, what) if isinstance(value.get(key), str | int | float)]
    if name is None or not words:
        expected = f"one of {', '.join(_ID_KEYS)} and one of {', '.join(dict.fromkeys((*_TEXT_KEYS, what)))}"
        raise DataError(f"expected {expected}, found {', '.join(map(str, value))[:80]}", path=path, line=number)
    return str(name), " – ".join(dict.fromkeys(word for word in words if word))
