"""The description that is served, against what the handlers really take and give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gradrank.models.linear import LinearRanker
from gradrank.serve.api_keys import ApiKeys
from gradrank.serve.app import App
from tests.support.services import call, make_app, post

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], where: str = "$") -> list[str]:
    """What of a value is not as a schema says (the part of JSON Schema that the description uses)."""
    known = {"type", "description", "required", "properties", "additionalProperties", "items", "minItems", "maxItems",
             "minimum", "pattern", "oneOf", "format", "$ref"}  # fmt: skip
    assert set(schema) <= known, schema
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return faults(value, target, root, where)
    if "oneOf" in schema:
        fitting = [option for option in schema["oneOf"] if not faults(value, option, root, where)]
        return [] if len(fitting) == 1 else [f"{where}: {len(fitting)} of oneOf"]
    kinds = schema.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, TYPES[kind]) and (kind == "boolean") == isinstance(value, bool) for kind in kinds):
        return [f"{where}: {value!r} is no {kinds}"]
    found = []
    if isinstance(value, dict):
        found += [f"{where}: lacks {name}" for name in schema.get("required", ()) if name not in value]
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            found += [f"{where}: has {name}"] if inner is False else faults(item, inner, root, f"{where}.{name}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{where}: {len(value)} items")
        for number, item in enumerate(value):
            found += faults(item, schema.get("items", {}), root, f"{where}[{number}]")
    if isinstance(value, int | float) and not isinstance(value, bool) and value < schema.get("minimum", value):
        found.append(f"{where}: below the minimum")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{where}: not of the pattern")
    return found


@pytest.fixture
def app(tmp_path: Path) -> App:
    for name, weight in (("old", 1.0), ("new", -1.0)):
        LinearRanker([weight, 0.5], feature_names=["a", "b"]).save(tmp_path / f"{name}.json")
    return make_app(
        f"old={tmp_path / 'old.json'}",
        f"new={tmp_path / 'new.json'}",
        log=tmp_path / "log.jsonl",
        interleave=("old", "new"),
    )


ROWS = [[1, 2.5], [None, 3]]
RIGHT: list[tuple[str, str, Any]] = [
    ("POST", "/v1/rank", {"documents": ROWS, "model": "old"}),
    ("POST", "/v1/rank", {"documents": [{"a": 1, "b": 2, "c": 3}], "model": "old@1", "k": 1, "key": "u", "id": "i"}),
    ("POST", "/v1/rank", {"documents": ROWS, "ids": ["x", 2], "qid": 7}),
    ("POST", "/v1/click", {"id": "i", "docid": 2}),
    ("POST", "/v1/click", {"id": "i", "docids": ["x", "y"]}),
    ("GET", "/v1/models", None),
    ("GET", "/healthz", None),
    ("GET", "/readyz", None),
    ("GET", "/openapi.json", None),
]
WRONG: list[tuple[str, Any]] = [
    ("/v1/rank", {"documents": [[1]], "model": "old"}),
    ("/v1/rank", {"documents": ROWS, "model": "nobody"}),
    ("/v1/rank", {"documents": [{"a": 1}], "model": "old"}),
    ("/v1/rank", {"documents": ROWS, "more": 1}),
    ("/v1/rank", {"documents": "x"}),
    ("/v1/rank", {"documents": [[1, 2]] * 10_001}),
    ("/v1/click", {"id": "i"}),
]


def described(app: App, **headers: str) -> Any:
    return call(app, "GET", "/openapi.json", **headers).json


@pytest.mark.parametrize(("method", "path", "value"), RIGHT)
def test_requests_and_answers_are_as_described(app: App, method: str, path: str, value: Any) -> None:
    document = described(app)
    operation = document["paths"][path][method.lower()]
    if value is not None:
        assert faults(value, operation["requestBody"]["content"]["application/json"]["schema"], document) == []
    answer = call(app, method, path) if value is None else post(app, path, value)
    (content,) = operation["responses"][str(answer.status)]["content"].items()
    assert answer.status < 300
    assert answer.headers["content-type"] == content[0]
    assert faults(answer.json, content[1]["schema"], document) == []


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_refusals_are_as_described(app: App, path: str, value: Any) -> None:
    document = described(app)
    answer = post(app, path, value)
    assert answer.status >= 400
    schema = document["paths"][path]["post"]["responses"][str(answer.status)]["content"]["application/json"]["schema"]
    assert faults(answer.json, schema, document) == []


def test_every_route_is_described_and_every_reference_leads_somewhere(app: App) -> None:
    document = described(app)
    routes = {(route.path, method) for route in app._app.routes for method in route.methods - {"HEAD"}}
    assert routes == {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    references = set(re.findall(r"'\$ref': '#/components/schemas/(\w+)'", repr(document)))
    assert references == set(document["components"]["schemas"])


def test_every_way_to_show_a_key_that_is_described_works(tmp_path: Path) -> None:
    LinearRanker([1.0, 0.5], feature_names=["a", "b"]).save(tmp_path / "m.json")
    closed = make_app(f"m={tmp_path / 'm.json'}", keys=ApiKeys(["k" * 20]))
    ways = described(closed, authorization="Bearer " + "k" * 20)["components"]["securitySchemes"]
    headers = {"http": ("authorization", "Bearer " + "k" * 20), "apiKey": ("x-api-key", "k" * 20)}
    assert sorted(way["type"] for way in ways.values()) == sorted(headers)
    for way in ways.values():
        name, value = headers[way["type"]]
        assert way.get("name", name).lower() == name
        assert call(closed, "GET", "/v1/models", **{name.replace("-", "_"): value}).status == 200
    assert call(closed, "GET", "/v1/models").status == 401


def test_the_checker_of_this_file_finds_faults() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "additionalProperties": False,
        "properties": {"a": {"type": "integer"}},
    }
    assert [len(faults(value, schema, {})) for value in ({"a": 1}, {}, {"a": "x"}, {"a": 1, "b": 2}, [])] == [
        0,
        1,
        1,
        1,
        1,
    ]
