"""The description of the service that ``/openapi.json`` gives, in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from gradrank.serve.requests import ARROW, JSON, NPY
from gradrank.serve.settings import Limits
from gradrank.version import __version__

_TEXT: dict[str, Any] = {
    "type": ["string", "integer"],
    "description": "Text of 1 to 200 characters, or a whole number.",
}
_ODD_NAMES: dict[str, Any] = {
    "type": "object",
    "required": ["count", "names"],
    "additionalProperties": False,
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "names": {"type": "array", "items": {"type": "string"}, "description": "The first few."},
    },
}


def description(limits: Limits) -> dict[str, Any]:
    """The whole document.

    >>> sorted(description(Limits())["paths"])[:2]
    ['/healthz', '/metrics']
    """
    return {
        "openapi": "3.1.0",
        "info": {"title": "gradrank", "version": __version__, "description": "Ranks the documents of a query."},
        "paths": {
            "/v1/rank": {"post": _rank(limits)},
            "/v1/click": {"post": _click()},
            "/v1/models": {"get": _get("The models that are served.", "Models")},
            "/healthz": {"get": _get("Whether the process lives.", "Status", open_to_all=True)},
            "/readyz": {"get": _get("Whether requests are taken.", "Status", open_to_all=True, errors=("503",))},
            "/metrics": {"get": _plain_get("Counters for Prometheus.", "text/plain", {"type": "string"})},
            "/openapi.json": {"get": _plain_get("This description.", JSON, {"type": "object"})},
        },
        "security": [{}, {"bearer": []}, {"key": []}],
        "components": {
            "schemas": _schemas(limits),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
            },
        },
    }


def _rank(limits: Limits) -> dict[str, Any]:
    fields = ("qid", "k", "model", "key", "id")
    return {
        "summary": "Scores and order of a query's documents.",
        "parameters": [
            {
                "name": "X-Gradrank-Model",
                "in": "header",
                "schema": {"type": "string"},
                "description": "NAME or NAME@VERSION of the model, if the request itself names none.",
            },
            *(
                {
                    "name": name,
                    "in": "query",
                    "schema": _schemas(limits)["RankRequest"]["properties"][name],
                    "description": f"As the field of JSON, for bodies of {NPY} and {ARROW}.",
                }
                for name in fields
            ),
        ],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": {"$ref": "#/components/schemas/RankRequest"}},
                NPY: {"schema": {"type": "string", "format": "binary", "description": "Documents × features."}},
                ARROW: {
                    "schema": {
                        "type": "string",
                        "format": "binary",
                        "description": "Uncompressed IPC stream; columns are features, 'docid' names the documents.",
                    }
                },
            },
        },
        "responses": {"200": _response("The ranking.", "Ranking")}
        | _errors("400", "401", "404", "408", "413", "415", "422", "503"),
    }


def _click() -> dict[str, Any]:
    return {
        "summary": "Tells clicks on a list that was shown.",
        "requestBody": {"required": True, "content": {JSON: {"schema": {"$ref": "#/components/schemas/Click"}}}},
        "responses": {"202": _response("The clicks are in the log.", "Logged")}
        | _errors("400", "401", "408", "409", "413", "415", "503"),
    }


def _get(summary: str, schema: str, *, open_to_all: bool = False, errors: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": summary, "responses": {"200": _response("As asked.", schema)}}
    found["responses"] |= _errors(*errors, *(() if open_to_all else ("401",)))
    return found | ({"security": []} if open_to_all else {})


def _plain_get(summary: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    answer = {"description": "As asked.", "content": {kind: {"schema": schema}}}
    return {"summary": summary, "responses": {"200": answer} | _errors("401")}


def _response(text: str, schema: str) -> dict[str, Any]:
    return {"description": text, "content": {JSON: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}


def _errors(*codes: str) -> dict[str, Any]:
    return {code: _response(_MEANINGS[code], "Error") for code in codes}


_MEANINGS = {
    "400": "The request is not as described.",
    "401": "The key is missing or wrong.",
    "404": "There is no such model.",
    "408": "The body did not arrive in time.",
    "409": "The server keeps no log.",
    "413": "More documents or bytes than allowed.",
    "415": "A body of another kind.",
    "422": "The documents do not fit the model.",
    "503": "Too busy, or stopping; try again.",
}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


def _schemas(limits: Limits) -> dict[str, Any]:
    value = {"type": ["number", "string", "null"], "description": "Text for categorical features only."}
    labels = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}
    return {
        "RankRequest": _object(
            ["documents"],
            documents={
                "type": "array",
                "minItems": 1,
                "maxItems": limits.documents,
                "items": {
                    "oneOf": [
                        {
                            "type": "array",
                            "items": value,
                            "description": "Values in the order of the model's features.",
                        },
                        {"type": "object", "additionalProperties": value, "description": "Values by feature."},
                    ]
                },
            },
            ids={"type": "array", "items": _TEXT, "description": "One for each document."},
            qid={**_TEXT, "description": "The query's id, for the log."},
            k={"type": "integer", "minimum": 1, "description": "Length of the list; all documents unless given."},
            model={**_TEXT, "description": "NAME or NAME@VERSION."},
            key={**_TEXT, "description": "User or session: gets the same model each time."},
            id={**_TEXT, "description": "Name of this list in the log; made up unless given."},
        ),
        "Ranking": _object(
            ["id", "models", "order", "logged"],
            id={"type": "string"},
            models={**labels, "description": "NAME@VERSION of the model; of both if two share the list."},
            order={
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "description": "Places of the documents in the request, from 0, best first; the top k.",
            },
            ids={"type": "array", "items": {"type": "string"}, "description": "The same as ids, if ids were sent."},
            scores={
                "type": "array",
                "items": {"type": "number"},
                "description": "Of all documents in the order of the request; not if two models share the list.",
            },
            logged={"type": "boolean", "description": "Whether the list is in the log, to which clicks are joined."},
            missing_features=_ODD_NAMES,
            unknown_features=_ODD_NAMES,
            new_categories={"type": "integer", "minimum": 1},
        ),
        "Click": _object(["id"], id=_TEXT, docid=_TEXT, docids={"type": "array", "items": _TEXT, "minItems": 1}),
        "Logged": _object(["id", "logged"], id={"type": "string"}, logged={"type": "boolean"}),
        "Models": _object(
            ["models"],
            models={
                "type": "array",
                "items": _object(
                    ["name", "version", "kind", "features", "sha256", "stale"],
                    name={"type": "string"},
                    version={"type": "string"},
                    kind={"type": "string"},
                    features={"type": "array", "items": {"type": "string"}},
                    sha256={"type": "string", "pattern": "^[0-9a-f]{64}$"},
                    stale={"type": ["string", "null"], "description": "Why the newest file was not taken."},
                ),
            },
        ),
        "Status": _object(["status"], status={"type": "string"}),
        "Error": _object(["error"], error={"type": "string", "description": "One sentence."}),
    }
