"""Requests that nobody would send: every answer is JSON of a known status, and the next request is answered."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow
from hypothesis import given
from hypothesis import strategies as st

from gradrank.serve.app import App
from gradrank.serve.settings import Limits, MissingFeatures
from tests.support.rankers import NAMES, example_rankers
from tests.support.services import Answer, call, make_app

KINDS = st.sampled_from(["application/json", "application/x-npy", "application/vnd.apache.arrow.stream", "text/html"])
STATUSES = {200, 202, 400, 404, 405, 408, 409, 413, 415, 422}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner),
    max_leaves=12,
)
FIELDS = st.dictionaries(
    st.sampled_from(["documents", "ids", "qid", "k", "model", "key", "id", "x"]), VALUES, min_size=1
)


@cache
def app() -> App:
    folder = Path(mkdtemp())
    example_rankers()["trees"].save(folder / "trees.json")
    example_rankers()["linear"].save(folder / "linear.json")
    return make_app(
        f"trees={folder / 'trees.json'}",
        f"linear={folder / 'linear.json'}",
        log=folder / "log.jsonl",
        limits=Limits(documents=50, bytes=20_000),
        missing_features=MissingFeatures.missing,
    )


def checked(answer: Answer) -> Any:
    assert answer.status in STATUSES, answer.body
    value = answer.json
    if answer.status >= 400:
        assert list(value) == ["error"]
        assert 0 < len(value["error"]) < 600
    after = call(app(), "POST", "/v1/rank", b'{"documents": [[1, 2, 3]]}', content_type="application/json")
    assert after.status == 200
    return value


@given(body=st.binary(max_size=300), kind=KINDS, path=st.sampled_from(["/v1/rank", "/v1/click", "/\x00"]))
def test_any_bytes(body: bytes, kind: str, path: str) -> None:
    checked(call(app(), "POST", path, body, content_type=kind))


@given(value=FIELDS | VALUES, path=st.sampled_from(["/v1/rank", "/v1/click"]))
def test_any_json(value: Any, path: str) -> None:
    checked(call(app(), "POST", path, json.dumps(value).encode(), content_type="application/json"))


@given(
    rows=st.lists(st.lists(st.floats() | st.none() | st.integers() | st.text(max_size=3), max_size=4), max_size=4),
    named=st.booleans(),
    model=st.sampled_from(["trees", "linear", "linear@1", "trees@9"]),
)
def test_any_documents(rows: list[list[Any]], named: bool, model: str) -> None:
    documents: Any = [dict(zip(NAMES, row, strict=False)) for row in rows] if named else rows
    body = json.dumps({"documents": documents, "model": model}).encode()
    value = checked(call(app(), "POST", "/v1/rank", body, content_type="application/json"))
    if "scores" in value:
        assert len(value["scores"]) == len(rows)
        assert sorted(value["order"]) == list(range(len(rows)))


def npy_bytes() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(12.0).reshape(4, 3))
    return file.getvalue()


def arrow_bytes() -> bytes:
    table = pyarrow.table({name: [1.0, 2.0, None] for name in NAMES} | {"docid": ["a", "b", "c"]})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


@given(
    which=st.booleans(),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 2000) | st.none(),
)
def test_spoilt_batches(which: bool, changes: list[tuple[int, int]], cut: int | None) -> None:
    body = bytearray(npy_bytes() if which else arrow_bytes())
    for place, byte in changes:
        body[place % len(body)] = byte
    kind = "application/x-npy" if which else "application/vnd.apache.arrow.stream"
    value = checked(call(app(), "POST", "/v1/rank", bytes(body)[:cut], content_type=kind))
    if "scores" in value and not changes:
        assert len(value["scores"]) == (4 if which else 3)


@given(
    st.dictionaries(st.sampled_from(["k", "qid", "model", "key", "id", "ids", "z"]), st.text(max_size=10), max_size=3)
)
def test_any_address(pairs: dict[str, str]) -> None:
    from urllib.parse import urlencode

    query = urlencode(pairs, errors="replace")
    checked(call(app(), "POST", "/v1/rank", npy_bytes(), query, content_type="application/x-npy"))
