"""The kernel that reads plain JSON documents against Python's own parser."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gradrank.serve import json_numbers
from gradrank.serve.json_numbers import plain_documents
from gradrank.serve.request_error import RequestError
from gradrank.serve.requests import parse_json_request

pytestmark = pytest.mark.checked

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(-(10**20), 10**20),
    st.sampled_from([0.0, -0.0, 1e22, 1e-22, 5e-324, 2.0**53 + 2, 123456789012345678]),
    st.none(),
)
SPELLINGS = st.sampled_from(
    ["1", "-1.5", "1E5", "1e+5", "1.25e-3", "0.000001234567890123456", "100000000000000000000000", "null", "0e9", "-0"]
)


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_numbers, "_WORTH_IT", 0)


def same(a: float, b: float | None) -> bool:
    return math.isnan(a) if b is None else a == float(b) and math.copysign(1, a) == math.copysign(1, float(b))


@given(
    rows=st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1)
    ),
    indent=st.sampled_from([None, 1]),
    named=st.booleans(),
)
def test_what_the_kernel_reads_is_what_python_reads(rows: list[list[Any]], indent: int | None, named: bool) -> None:
    documents: Any = rows
    if named:
        names = ['a"b', "été", "x}y", "n"][: len(rows[0])]
        documents = [dict(zip(names, row, strict=True)) for row in rows]
    body = json.dumps({"qid": "7", "documents": documents, "k": 3}, indent=indent, ensure_ascii=False).encode()
    found = plain_documents(body, 10_000)
    if found is None:
        # Python is left what is long or has a brace in its first names.
        assert (
            named
            or any(len(repr(value)) > 18 or abs(value or 0) > 1e15 for row in rows for value in row)
            or any(value and abs(value) < 1e-15 for row in rows for value in row)
        )
        return
    assert json.loads(found.rest) == {"qid": "7", "documents": None, "k": 3}
    assert found.matrix.shape == (len(rows), len(rows[0]))
    assert all(
        same(a, b) for got, row in zip(found.matrix.tolist(), rows, strict=True) for a, b in zip(got, row, strict=True)
    )
    assert found.names == (tuple(documents[0]) if named else None)


@given(texts=st.lists(SPELLINGS, min_size=2, max_size=6))
def test_every_spelling_of_a_number_is_read_or_left_to_python(texts: list[str]) -> None:
    body = ('{"documents":[[' + ",".join(texts) + "]]}").encode()
    found = plain_documents(body, 10)
    if found is not None:
        assert all(
            same(a, b) for a, b in zip(found.matrix[0].tolist(), json.loads(f"[{','.join(texts)}]"), strict=True)
        )


@given(st.binary(max_size=60), st.integers(0, 60))
@example(b'{"documents": [[01]]}', 0)
@example(b'{"documents": [[1.]]}', 0)
@example(b'{"documents": [[.5]]}', 0)
@example(b'{"documents": [[+1]]}', 0)
@example(b'{"documents": [[1e]]}', 0)
@example(b'{"documents": [[1,]]}', 0)
@example(b'{"documents": [[1] [2]]}', 0)
@example(b'{"documents": [[1]], "documents": [[2]]}', 0)
@example(b'{"documents": [{"a": 1}, {"b": 2}]}', 0)
@example(b'{"documents": [{"a": 1, "a": 2}]}', 0)
@example(b'{"documents": [{"a": 1}, {"a": 2, "b": 3}]}', 0)
@example(b'{"documents": [[1, 2], [3]]}', 0)
@example(b'{"documents": [["1"]]}', 0)
@example(b'{"documents": [[true]]}', 0)
@example(b'{"documents": [[1e400]]}', 0)
@example(b'{"documents": [[NaN]]}', 0)
@example(b'{"docu\\u006dents": [[1]]}', 0)
@example(b'{"documents": [[1]]', 0)
@example(b'{"x": "\\', 0)
@example(b'{"x": {"documents": [[1]]}}', 0)
@example(b'\xef\xbb\xbf{"documents": [[1]]}', 0)
def test_a_request_is_answered_alike_with_and_without_the_kernel(noise: bytes, cut: int) -> None:
    whole = b'{"qid": "7", "documents": [[1, 2.5], [null, -3e2]], "k": 1}'
    for body in (noise, whole[:cut] + noise + whole[cut:], whole[:cut] + noise, whole[cut:]):
        with pytest.MonkeyPatch.context() as patch:
            fast = outcome(body)
            patch.setattr(json_numbers, "_WORTH_IT", len(body) + 1)
            assert fast == outcome(body)


def outcome(body: bytes) -> Any:
    try:
        request = parse_json_request(body, 3)
    except RequestError as error:
        return str(error), error.status
    documents = request.documents
    if documents.matrix is not None and documents.names is None:
        values: Any = np.nan_to_num(documents.matrix, nan=1e99).tolist()
    elif documents.matrix is not None:
        values = [dict(zip(documents.names or (), row, strict=True)) for row in documents.matrix.tolist()]
    else:
        values = documents.by_name if documents.by_name is not None else documents.rows
    return repr(values).replace(".0", "") if documents.by_name or documents.names else values, request.qid, request.k


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 17, 40])
def test_objects_whose_bytes_between_values_differ_somewhere(width: int) -> None:
    name = "n" * width
    same = {name: 1.5, "b": 2}
    text = json.dumps({"documents": [same, same]})
    found = plain_documents(text.encode(), 10)
    assert found is not None
    assert found.matrix.tolist() == [[1.5, 2.0], [1.5, 2.0]]
    second = text.index(name, text.index("}"))
    for place in range(second, second + width):
        changed = text[:place] + "m" + text[place + 1 :]
        assert plain_documents(changed.encode(), 10) is None
        assert parse_json_request(changed.encode(), 10).documents.by_name is not None
    # A list that breaks off anywhere is left to Python, which says so.
    for place in range(len(text)):
        with pytest.raises(RequestError):
            parse_json_request(text[:place].encode(), 10)


def test_objects_may_be_spaced_in_any_way_if_all_are_alike() -> None:
    for one, other in (('{"a":1,"b":2}', '{"a":3,"b":4}'), ('{ "a" :1 ,\n"b": 2 }', '{ "a" :3 ,\n"b": 4 }')):
        found = plain_documents(f'{{"documents":[{one},{other}]}}'.encode(), 10)
        assert found is not None
        assert found.matrix.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    mixed = b'{"documents":[{"a":1,"b":2},{"a" : 3, "b" : 4}]}'
    assert parse_json_request(mixed, 10).documents.by_name == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
