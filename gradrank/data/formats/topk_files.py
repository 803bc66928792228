"""Files of top-k truths and of preference judgments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data.formats.compressed import open_for_writing, read_bytes
from gradrank.data.ranking_data import RankingData
from gradrank.data.topk import document_ids, is_top_k
from gradrank.errors import DataError
from gradrank.runtime.json_text import parse_json

# Labels are in single precision: above it k and k − 1 are one number.
_MOST = 1 << 24


def write_top_k(data: RankingData, path: str | Path, *, source: str | None = None) -> None:
    """Write a top-k truth as JSON lines: ``{"query": …, "k": …, "top": [best, …], "rest": […]}``, documents by id.

    Without document ids, documents are numbered from 1 within their query.

    >>> import tempfile
    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 2, 1], qid=["q"] * 3, docid=["a", "b", "c"])
    >>> path = Path(tempfile.mkdtemp()) / "truth.jsonl"
    >>> write_top_k(data, path)
    >>> print(path.read_text(), end="")
    {"query": "q", "k": 2, "top": ["b", "c"], "rest": ["a"]}
    """
    labels = data.label(source)
    if not is_top_k(labels, data.indptr):
        raise DataError("these labels are no top-k truth (k, k−1, … without repetition, then 0): see top_k_labels")
    k = int(np.nanmax(labels))
    ids = document_ids(data)
    with open_for_writing(path) as file:
        for query, qid in enumerate(data.qid):
            start, end = int(data.indptr[query]), int(data.indptr[query + 1])
            own = labels[start:end]
            names = ids[start:end]
            order = np.argsort(-own, kind="stable")
            top = [names[row] for row in order if own[row] > 0]
            rest = [names[row] for row in range(end - start) if own[row] == 0]
            line = {"query": qid, "k": k, "top": top, "rest": rest}
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())


def read_top_k(path: str | Path) -> dict[str, dict[str, float]]:
    """Position labels by query and document from JSON lines as :func:`write_top_k` has them; no ``rest`` is fine."""
    found: dict[str, dict[str, float]] = {}
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        query, k, top, rest = _truth_line(line, path, number)
        if query in found:
            raise DataError(f"query {query!r} comes twice", path=path, line=number)
        labels = {document: float(k - place) for place, document in enumerate(top)}
        for document in rest:
            if document in labels:
                raise DataError(f"document {document!r} of query {query!r} comes twice", path=path, line=number)
            labels[document] = 0.0
        if len(labels) != len(top) + len(rest):
            raise DataError(f"a document of query {query!r} comes twice in its top", path=path, line=number)
        found[query] = labels
    return found


def read_preferences(path: str | Path) -> dict[str, list[tuple[str, str]]]:
    """Preference judgments of each query as (winner, loser), from lines ``query a b winner``; ``tie`` is no pair.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "judgments.txt"
    >>> _ = path.write_text("q1 a b b\\nq1 a c tie\\n")
    >>> read_preferences(path)
    {'q1': [('b', 'a')]}
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for number, line in enumerate(_lines(path), start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 4:
            raise DataError(
                f"found {len(words)} words, expected query document document winner", path=path, line=number
            )
        query, a, b, winner = words
        if winner not in (a, b, "tie") or a == b:
            raise DataError(f"the winner is {winner!r}, expected {a!r}, {b!r} or tie", path=path, line=number)
        pairs = found.setdefault(query, [])
        if winner != "tie":
            pairs.append((a, b) if winner == a else (b, a))
    return found


def _truth_line(line: str, path: str | Path, number: int) -> tuple[str, int, list[str], list[str]]:
    try:
        value: Any = parse_json(line)
        query, top, rest = str(value["query"]), value["top"], value.get("rest", [])
        k = value.get("k", len(top))
        fits = isinstance(top, list) and isinstance(rest, list) and type(k) is int and k >= len(top)
    except (ValueError, KeyError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise DataError('expected {"query": …, "k": …, "top": […], "rest": […]}', path=path, line=number)
    if k > _MOST:
        raise DataError(f"k is above {_MOST}, the most that labels can tell places apart for", path=path, line=number)
    return query, k, [str(document) for document in top], [str(document) for document in rest]


def _lines(path: str | Path) -> list[str]:
    try:
        return read_bytes(path).tobytes().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text", path=path) from None
