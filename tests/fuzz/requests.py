"""Changed requests to a service: every answer is JSON of a known status, and the service goes on answering."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pyarrow

from gradrank.errors import DataError
from gradrank.serve.app import App
from gradrank.serve.settings import Limits, MissingFeatures
from tests.fuzz.mutations import changed, changed_json, either
from tests.fuzz.targets import Target
from tests.support.rankers import NAMES, example_rankers
from tests.support.services import call, make_app

STATUSES = {200, 202, 400, 404, 405, 408, 409, 413, 415, 422}
_JSON, _NPY, _ARROW = "application/json", "application/x-npy", "application/vnd.apache.arrow.stream"


@cache
def app() -> App:
    """A service with a model of trees over a category and a linear one, and a log."""
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


@cache
def npy_bytes() -> bytes:
    """A batch as NumPy saves it."""
    file = io.BytesIO()
    np.save(file, np.arange(12.0).reshape(4, 3))
    return file.getvalue()


@cache
def arrow_bytes() -> bytes:
    """A batch as an Arrow stream, with names of documents."""
    table = pyarrow.table({name: [1.0, 2.0, None] for name in NAMES} | {"docid": ["a", "b", "c"]})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


@cache
def json_bodies() -> dict[str, bytes]:
    """Requests of JSON: lists, objects, all fields."""
    rows = [[1.5, -2e-3, 3], [0, None, 7], [1e10, 0.25, -0.0]]
    named = [dict(zip(NAMES, row, strict=True)) for row in rows]
    facts = {"qid": "q1", "ids": ["a", "b", "c"], "k": 2, "model": "linear", "key": "user", "id": "list-1"}
    values = {"lists": {"documents": rows}, "objects": {"documents": named}, "whole": {"documents": named, **facts}}
    return {name: json.dumps(value).encode() for name, value in values.items()}


def ask(body: bytes, path: str, kind: str) -> None:
    """Send one request, and a plain one after it."""
    answer = call(app(), "POST", path, body, content_type=kind)
    assert answer.status in STATUSES, f"{answer.status}: {answer.body[:200]!r}"
    value = answer.json
    after = call(app(), "POST", "/v1/rank", b'{"documents": [[1, 2, 3]]}', content_type=_JSON)
    assert after.status == 200
    if answer.status >= 400:
        assert list(value) == ["error"]
        assert 0 < len(value["error"]) < 600
        raise DataError(value["error"])


def targets() -> list[Target]:
    """One for every form of request."""
    click = json.dumps({"id": "list-1", "docid": "a"}).encode()
    both = either(changed, changed_json)
    return [
        Target("requests/json", json_bodies, lambda body, _: ask(body, "/v1/rank", _JSON), both),
        Target("requests/npy", lambda: {"npy": npy_bytes()}, lambda body, _: ask(body, "/v1/rank", _NPY)),
        Target("requests/arrow", lambda: {"arrow": arrow_bytes()}, lambda body, _: ask(body, "/v1/rank", _ARROW)),
        Target("requests/click", lambda: {"click": click}, lambda body, _: ask(body, "/v1/click", _JSON), both),
    ]
