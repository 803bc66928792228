"""Requests as they come: JSON, a NumPy array or an Arrow stream become a checked request with a matrix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gradrank.serve.json_numbers import plain_documents
from gradrank.serve.request_error import RequestError, shown

JSON, NPY, ARROW = "application/json", "application/x-npy", "application/vnd.apache.arrow.stream"
_FIELDS = ("documents", "ids", "qid", "k", "model", "key", "id")
_LONGEST_TEXT = 200


@dataclass(frozen=True, eq=False)
class RankRequest:
    """One query with its documents, before a model is chosen."""

    documents: Documents
    ids: tuple[str, ...] | None = None
    """The documents' own names."""
    qid: str | None = None
    k: int | None = None
    model: str | None = None
    key: str | None = None
    """The user or session, for a stable choice of the model."""
    id: str | None = None
    """Name of this list in the log."""


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents as they were sent: a matrix, or feature values by name."""

    count: int
    matrix: NDArray[Any] | None = None
    """Rows × columns; the columns are those of ``names``, or the model's own in order."""
    names: tuple[str, ...] | None = None
    by_name: Sequence[Mapping[str, Any]] | None = None
    rows: Sequence[Sequence[Any]] | None = None
    """Lists that hold something else than numbers, such as names of categories."""
    coded: bool = False
    """Whether categorical features are given as the model's codes, as batches have them, and not as their values."""


# ---------------------------------------------------------------------- JSON
def parse_json_request(body: bytes, most_documents: int) -> RankRequest:
    """A request of JSON; everything that is wrong with it is a :class:`RequestError`.

    >>> request = parse_json_request(b'{"documents": [[1, 2.5], [null, 3]], "qid": 7, "k": 1}', 100)
    >>> request.documents.matrix.tolist(), request.qid, request.k
    ([[1.0, 2.5], [nan, 3.0]], '7', 1)
    """
    plain = plain_documents(body, most_documents)
    try:
        value = parse_json(body if plain is None else plain.rest)
    except RequestError:
        plain, value = None, parse_json(body)  # says where in the body itself it is wrong
    if not isinstance(value, dict):
        raise RequestError(f"the request is {_kind(value)}, expected an object with 'documents'")
    unknown = [name for name in value if name not in _FIELDS]
    if unknown:
        raise RequestError(f"the request has a field {shown(unknown[0])}, expected only {', '.join(_FIELDS)}")
    if plain is None:
        documents = _documents(value.get("documents"), most_documents)
    else:
        documents = Documents(len(plain.matrix), matrix=plain.matrix, names=plain.names)
    return checked_request(documents, value)


def parse_json(body: bytes) -> Any:
    """JSON as the standard has it: no NaN or Infinity, no name twice, bounded depth, text that is Unicode.

    >>> parse_json(b"[NaN]")
    Traceback (most recent call last):
        ...
    gradrank.serve.request_error.RequestError: the body holds NaN, which is no JSON; a missing value is null
    """
    try:
        return json.loads(body, parse_constant=_no_constant, object_pairs_hook=_once)
    except RecursionError:
        raise RequestError("the body is nested too deep") from None
    except UnicodeDecodeError:
        raise RequestError("the body is not UTF-8 text") from None
    except ValueError as error:
        reason = (
            str(error).partition(" (char")[0] if isinstance(error, json.JSONDecodeError) else "a number is too long"
        )
        raise RequestError(f"the body is not JSON: {reason[:_LONGEST_TEXT]}") from None


def _no_constant(name: str) -> NoReturn:
    raise RequestError(f"the body holds {name}, which is no JSON; a missing value is null")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two values of a feature nobody knows which is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise RequestError(f"the body names {shown(twice)} twice in one object")
    return found


def _documents(value: Any, most: int) -> Documents:
    if not isinstance(value, list) or not value:
        raise RequestError(f"'documents' is {_kind(value)}, expected a list of at least one document")
    check_count(len(value), most)
    kinds = set(map(type, value))
    if kinds == {dict}:
        return Documents(len(value), by_name=value)
    if kinds != {list}:
        odd = next(item for item in value if type(item) is not type(value[0]) or not isinstance(item, list | dict))
        raise RequestError(f"'documents' holds {_kind(odd)}, expected either lists or objects of numbers throughout")
    widths = set(map(len, value))
    if len(widths) > 1:
        raise RequestError(f"documents have {min(widths)} to {max(widths)} values, expected as many in each")
    types: set[type] = set()
    for row in value:
        types.update(map(type, row))
    if types <= {float, int, type(None)}:
        return Documents(len(value), matrix=number_matrix(value))
    return Documents(len(value), rows=value)


def number_matrix(rows: Sequence[Sequence[Any]]) -> NDArray[np.float64]:
    """Rows of numbers and None as float64, None as NaN; numbers that float64 cannot hold are an error."""
    try:
        matrix = np.array(rows, dtype=np.float64)
    except OverflowError:
        raise RequestError("a feature is a whole number beyond what float64 can hold") from None
    if np.isinf(matrix).any():
        row, column = np.argwhere(np.isinf(matrix))[0]
        raise RequestError(f"feature {column + 1} of document {row + 1} is a number beyond what float64 can hold")
    return matrix


def check_count(count: int, most: int) -> None:
    """Refuse too many documents."""
    if count > most:
        raise RequestError(f"the request has {count:,} documents, expected at most {most:,}", 413, "documents")


# ---------------------------------------------------------------------- everything but the documents
def checked_request(documents: Documents, fields: Mapping[str, Any], ids: Sequence[Any] | None = None) -> RankRequest:
    """A request of documents and the other fields, each checked."""
    given = fields.get("ids") if ids is None else ids
    return RankRequest(
        documents,
        ids=None if given is None else _ids(given, documents.count),
        qid=_text(fields, "qid"),
        k=_k(fields.get("k")),
        model=_text(fields, "model"),
        key=_text(fields, "key"),
        id=_text(fields, "id"),
    )


def query_fields(pairs: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a request whose body is a batch: its query string."""
    unknown = [name for name in pairs if name not in _FIELDS or name in ("documents", "ids")]
    if unknown:
        allowed = ", ".join(name for name in _FIELDS if name not in ("documents", "ids"))
        raise RequestError(f"the address has a field {shown(unknown[0])}, expected only {allowed}")
    fields: dict[str, Any] = dict(pairs)
    if "k" in fields:
        text = fields["k"]
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise RequestError(f"'k' is {shown(text)}, expected a whole number of 1 or more")
        fields["k"] = int(text)
    return fields


def _ids(value: Any, count: int) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) != count:
        found = f"a list of {len(value):,}" if isinstance(value, list) else _kind(value)
        raise RequestError(f"'ids' is {found}, expected a list of one id for each of the {count:,} documents")
    ids = tuple([_identifier(item, "ids") for item in value])
    if len(set(ids)) < count:
        twice = Counter(ids).most_common(1)[0][0]
        raise RequestError(f"'ids' names {shown(twice)} twice")
    return ids


def _identifier(value: Any, field: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
        return str(value)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT:
        raise RequestError(
            f"{field!r} holds {shown(value)}, expected text of 1 to {_LONGEST_TEXT} characters or a whole number"
        )
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise RequestError(f"{field!r} holds half a character, expected Unicode text")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return None if value is None else _identifier(value, name)


def _k(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RequestError(f"'k' is {shown(value)}, expected a whole number of 1 or more")
    return value


def _kind(value: Any) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    if isinstance(value, list) and not value:
        return "an empty list"
    return names.get(type(value), "a number")


# ---------------------------------------------------------------------- clicks
@dataclass(frozen=True)
class ClickRequest:
    """Clicks on a list that was shown."""

    id: str
    docids: tuple[str, ...] = field(default_factory=tuple)


def parse_click_request(body: bytes, most_documents: int) -> ClickRequest:
    """A request that tells clicks.

    >>> parse_click_request(b'{"id": "i1", "docid": "b"}', 10)
    ClickRequest(id='i1', docids=('b',))
    """
    value = parse_json(body)
    if not isinstance(value, dict) or not {"id"} < set(value) or not set(value) <= {"id", "docid", "docids"}:
        raise RequestError("the request is not an object with 'id' and either 'docid' or 'docids'")
    clicked = value.get("docids", [value.get("docid")])
    if ("docid" in value and "docids" in value) or not isinstance(clicked, list) or not clicked:
        raise RequestError("the request has not either a 'docid' or a list 'docids' of at least one")
    check_count(len(clicked), most_documents)
    return ClickRequest(_identifier(value["id"], "id"), tuple(_identifier(item, "docid") for item in clicked))


Parser = Callable[[bytes, Mapping[str, str], int], RankRequest]


def parser_of(content_type: str) -> Parser:
    """What reads bodies of a content type."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == JSON:
        return lambda body, pairs, most: _json_with_address(body, pairs, most)
    from gradrank.serve import batches

    if kind in (NPY, "application/x-numpy"):
        return batches.parse_npy_request
    if kind == ARROW:
        return batches.parse_arrow_request
    raise RequestError(
        f"the content type is {shown(content_type)}, expected {JSON}, {NPY} or {ARROW}", 415, "content type"
    )


def _json_with_address(body: bytes, pairs: Mapping[str, str], most: int) -> RankRequest:
    if pairs:
        raise RequestError(f"the address has a field {shown(next(iter(pairs)))}; with JSON all fields are in the body")
    return parse_json_request(body, most)
