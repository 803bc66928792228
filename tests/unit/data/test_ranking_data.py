"""The door: everything wrong is refused here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData, Strings
from gradrank.errors import DataError


@given(st.lists(st.sampled_from(["a", "b", "c", "10", "9"]), min_size=1, max_size=30))
def test_regrouping_is_stable_and_invertible(qids: list[str]) -> None:
    rows = np.arange(len(qids), dtype=float)
    data = RankingData.from_arrays(rows[:, None], rows, qid=qids, docid=[f"d{i}" for i in range(len(qids))])
    seen = list(dict.fromkeys(qids))
    expected = [row for name in seen for row in range(len(qids)) if qids[row] == name]
    assert data.X[:, 0].tolist() == expected
    assert data.label().tolist() == expected
    assert data.docid is not None
    assert data.docid.to_list() == [f"d{row}" for row in expected]
    assert data.qid.to_list() == seen
    assert data.sizes.tolist() == [qids.count(name) for name in seen]
    assert data.in_input_order(data.X[:, 0]).tolist() == rows.tolist()
    assert data.from_input_order(rows).tolist() == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [1.0, 2.0]}, "X has 1 dimensions"),
        ({"X": [["a"], ["b"]]}, "expected numbers"),
        ({"X": np.empty((0, 1)), "y": []}, "no documents"),
        ({"X": [[1.0], [np.inf]]}, "feature 1 of document 2 is infinite"),
        ({"X": [[1.0], [1e39]]}, "feature 1 of document 2 is infinite"),
        ({"y": [1]}, r"label 'label' has shape \(1,\)"),
        ({"y": ["x", "y"]}, "not a number"),
        ({"y": [1, np.inf]}, "label 'label' of document 2 is infinite"),
        ({"qid": [1]}, "qid has shape"),
        ({"qid": [1.0, np.nan]}, "qid of document 2 is missing"),
        ({"qid": None}, "by qid .* or by group"),
        ({"group": [2]}, "one of the two"),
        ({"qid": None, "group": [1]}, "add up to 1, but there are 2 documents"),
        ({"qid": None, "group": [2, 0]}, "group size 2 is 0"),
        ({"qid": None, "group": [1.5, 0.5]}, "group size 1 is 1.5"),
        ({"weight": [1, 2, 3]}, "one number for each of 2 queries"),
        ({"weight": [1, -1]}, "weight of query 2 is -1.0"),
        ({"docid": ["a"]}, "1 document ids for 2 documents"),
        ({"feature_names": ["a", "b"]}, "2 feature names for 1 features"),
        # Sums that wrap around to the number of documents: kernels would go where the boundaries tell them.
        ({"qid": None, "group": np.array([2**63, 2**63, 2], dtype=np.uint64)}, "group size 1 is 9223372036854775808"),
        ({"qid": None, "group": [2**62] * 4 + [2]}, "group size 1 is 4611686018427387904"),
        ({"qid": None, "group": [np.inf, 2]}, "group size 1 is inf"),
        ({"qid": None, "group": np.array([2], dtype="m8[s]")}, "not a list of whole numbers"),
        ({"qid": None, "group": np.array([2 + 0j])}, "not a list of whole numbers"),
        # Two ids that are one number.
        ({"qid": [1e19, 2e19]}, r"qid of document 1 is 1e\+19; float64 holds"),
        ({"qid": [1.0, 2.0**53 + 1]}, "qid of document 2 is 9007199254740992; float64 holds"),
        ({"qid": [-1, 2**63 + 1]}, r"qid of document 2 is 9.22\d*e\+18; float64 holds"),
        ({"qid": np.array([2**24 + 1, 1], dtype=np.float32)}, "qid of document 1 is .*; float32 holds"),
        ({"qid": np.array(["2026-01-01", "NaT"], dtype="M8[D]")}, "qid of document 2 is missing"),
        ({"qid": ["a", ""]}, "qid of document 2 is empty"),
        ({"qid": np.array(["", "a"], dtype=object)}, "qid of document 1 is empty"),
        # What NumPy would quietly take for other numbers.
        ({"qid": np.ma.masked_array([1, 2], mask=[0, 1])}, "qid holds values under a mask"),
        ({"weight": np.ma.masked_array([1, 2], mask=[0, 1])}, "weight holds values under a mask"),
        ({"document_weight": np.ma.masked_array([1, 2], mask=[0, 1])}, "document_weight holds values under a mask"),
        ({"X": np.array([["2026-01-01"], ["NaT"]], dtype="M8[D]")}, r"X holds values of type datetime64\[D\]"),
        ({"X": np.array([[1], [2]], dtype="m8[s]")}, r"X holds values of type timedelta64\[s\]"),
        ({"X": np.zeros((2, 1), dtype=[("a", "f4")])}, "X holds values of type .*, expected numbers"),
        ({"y": np.array(["2026-01-01"] * 2, dtype="M8[D]")}, r"'label' holds values of type datetime64\[D\]"),
        ({"y": [1j, 2]}, "label 'label' holds values of type complex128"),
        ({"X": [[1.0], [2.0, 3.0]]}, "X holds rows of different lengths, expected the same for all"),
        ({"y": [[1], [2, 3]]}, "label 'label' holds rows of different lengths"),
        ({"weight": ["a", "b"]}, "weight holds something that is not a number"),
        ({"document_weight": ["a", "b"]}, "document_weight holds something that is not a number"),
    ],
)
def test_wrong_arrays(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"X": [[1.0], [2.0]], "y": [0, 1], "qid": [1, 2], **change}
    features, labels = arguments.pop("X"), arguments.pop("y")
    with pytest.raises(DataError, match=message):
        RankingData.from_arrays(features, labels, **arguments)


def test_a_mask_over_nothing_is_no_mask() -> None:
    X = np.ma.masked_array([[1.0], [2.0]], mask=False)
    assert RankingData.from_arrays(X, qid=[1, 2]).X.tolist() == [[1.0], [2.0]]


def test_whole_numbers_of_any_size_are_ids() -> None:
    for qid in (np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64), [2**64, 2**64 + 1], [-(2**63), 2**63 - 1]):
        assert RankingData.from_arrays(np.zeros((2, 1)), qid=qid).qid.to_list() == [str(id) for id in qid]


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([2], "query number 2 is given, expected one from 0 to 1"),
        ([0, -1], "query number -1 is given"),
        ([0.5], "queries are float64"),
        ([True], "expected whole numbers from 0, or 2 Booleans"),
        ([[0]], "of shape"),
    ],
)
def test_queries_that_are_not_there(queries: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        RankingData.from_arrays(np.zeros((2, 1)), qid=[1, 2]).take_queries(queries)


@pytest.mark.parametrize("name", ["y", "label", "qid", "docid", "document_weight"])
def test_columns_whose_index_has_the_rows_in_another_order_are_refused(name: str) -> None:
    frame = pd.DataFrame({"bm25": [1.0, 2.0, 3.0]}, index=[7, 8, 9])
    column = pd.Series([1, 2, 3], index=[7, 8, 9])
    given: dict[str, Any] = {"qid": column, **({"y": {name: column}} if name == "label" else {name: column})}
    assert RankingData.from_arrays(frame, **given).n_docs == 3
    turned = column[::-1]
    given |= {"y": {name: turned}} if name == "label" else {name: turned}
    with pytest.raises(DataError, match=f"{name} has the rows of X in another order"):
        RankingData.from_arrays(frame, **given)


def test_split_query_can_be_refused() -> None:
    with pytest.raises(DataError, match="rows of query a are not consecutive: it comes again at row 3"):
        RankingData.from_arrays(np.zeros((3, 1)), qid=["a", "b", "a"], regroup=False)


def test_numbers_and_their_floats_name_the_same_query() -> None:
    assert RankingData.from_arrays(np.zeros((2, 1)), qid=np.array([1.0, 2.0])).qid.to_list() == ["1", "2"]


def test_what_is_masked_is_missing() -> None:
    features = np.ma.masked_array([[7, 8], [9, 10]], mask=[[True, False], [False, False]])
    data = RankingData.from_arrays(features, np.ma.masked_array([1.0, 2.0], mask=[False, True]), qid=[5, 5])
    assert np.array_equal(data.X, [[np.nan, 8], [9, 10]], equal_nan=True)
    assert np.array_equal(data.label(), [1, np.nan], equal_nan=True)


def test_take_queries_takes_everything_along() -> None:
    data = RankingData.from_arrays(
        np.arange(5.0)[:, None],
        {"label": [0, 1, 2, 3, 4], "clicks": [0, 0.1, 0.2, 0.3, np.nan]},
        qid=["a", "a", "b", "c", "c"],
        docid="vwxyz",
        weight=[1, 2, 3],
    )
    part = data.take_queries([2, 0])
    assert part.qid.to_list() == ["c", "a"]
    assert part.X[:, 0].tolist() == [3, 4, 0, 1]
    assert part.label().tolist() == [3, 4, 0, 1]
    assert np.isnan(part.label("clicks")[1])
    assert part.docid is not None
    assert part.docid.to_list() == ["y", "z", "v", "w"]
    assert part.weight is not None
    assert part.weight.tolist() == [3, 1]
    assert data.take_queries(np.array([False, True, False])).qid.to_list() == ["b"]


def test_unknown_label_source() -> None:
    data = RankingData.from_arrays(np.zeros((1, 1)), [0], qid=[1])
    with pytest.raises(DataError, match="no label source 'clicks'; this data has 'label'"):
        data.label("clicks")
    with pytest.raises(DataError, match="has no labels"):
        RankingData.from_arrays(np.zeros((1, 1)), qid=[1]).label()


@given(st.lists(st.text(max_size=5), max_size=10), st.data())
def test_strings_behave_like_a_list(values: list[str], data: st.DataObject) -> None:
    values = [value.encode(errors="backslashreplace").decode() for value in values]
    column = Strings.of(values)
    assert column.to_list() == values
    assert len(column) == len(values)
    if values:
        rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=8))
        assert column[np.array(rows, dtype=np.int64)].to_list() == [values[row] for row in rows]
        assert column[-1] == values[-1]
        assert column[1:] == Strings.of(values[1:])
