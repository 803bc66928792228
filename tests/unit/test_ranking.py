"""Orders and ties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.ranking import check_scores, order_of_list, order_within_queries, rank, rank_from

INDPTR = np.array([0, 4])


@pytest.mark.kernel
def test_ties_by_each_policy() -> None:
    scores = np.array([1.0, 2.0, 1.0, 1.0])
    labels = np.array([1, 0, 2, np.nan], dtype=np.float32)
    docid = Strings.of(["b", "z", "a", "c"])
    orders = {
        policy: rank(scores, INDPTR, ties=policy, labels=labels, docid=docid).order.tolist()  # type: ignore[arg-type]
        for policy in ("file", "pessimistic", "optimistic", "docid")
    }
    assert orders == {
        "file": [1, 0, 2, 3],
        "pessimistic": [1, 3, 0, 2],
        "optimistic": [1, 2, 0, 3],
        "docid": [1, 3, 0, 2],
    }


@pytest.mark.kernel
def test_average_keeps_groups() -> None:
    ranking = rank(np.array([1.0, 2.0, 1.0, 0.0]), INDPTR, ties="average")
    assert ranking.order.tolist() == [1, 0, 2, 3]
    assert ranking.tie_end.tolist() == [1, 3, 3, 4]
    assert rank(np.array([1.0, 2.0, 3.0, 0.0]), INDPTR, ties="average").tie_end.size == 0


def test_document_ids_compare_as_code_points() -> None:
    docid = Strings.of(["é", "z", "Z", "ab"])
    assert rank(np.zeros(4), INDPTR, ties="docid", docid=docid).order.tolist() == [0, 1, 3, 2]


def test_document_ids_are_needed_only_for_ties() -> None:
    assert rank(np.array([4.0, 3.0, 2.0, 1.0]), INDPTR, ties="docid").order.tolist() == [0, 1, 2, 3]
    with pytest.raises(DataError, match="breaks ties by document id, but the data has no document ids"):
        rank(np.zeros(4), INDPTR, ties="docid")
    # Documents that were not retrieved have no rank, hence no tie to break.
    unretrieved = rank(np.array([1.0, -np.inf, -np.inf, -np.inf]), INDPTR, ties="docid")
    assert unretrieved.retrieved.tolist() == [1]


@pytest.mark.kernel
@given(st.lists(st.lists(st.integers(-2, 2), min_size=1, max_size=8), min_size=1, max_size=5), st.integers(0, 99))
def test_order_is_a_stable_sort_of_each_query(queries: list[list[int]], random_state: int) -> None:
    scores = np.array([score for query in queries for score in query], dtype=float)
    indptr = np.concatenate(([0], np.cumsum([len(query) for query in queries])))
    order = rank(scores, indptr, ties="file").order
    priority = np.random.default_rng(random_state).permutation(len(scores)).astype(float)
    shuffled = rank_from(scores, indptr, order_within_queries(priority, indptr)).order
    for start, end in itertools.pairwise(indptr):
        rows = range(start, end)
        assert order[start:end].tolist() == sorted(rows, key=lambda row: -scores[row])
        assert shuffled[start:end].tolist() == sorted(rows, key=lambda row: (-scores[row], priority[row]))


@pytest.mark.checked
@pytest.mark.parametrize("length", [1, 2, 255, 256, 257, 1000])
@pytest.mark.parametrize("kind", ["spread", "nearly equal", "few values", "huge", "infinite"])
def test_long_and_nearly_tied_lists(length: int, kind: str) -> None:
    rng = np.random.default_rng(length)
    scores = {
        "spread": rng.normal(size=length),
        # Equal in single precision, different in double.
        "nearly equal": 1.7e9 + rng.permutation(length) * 1e-3,
        "few values": rng.integers(0, 3, length).astype(float),
        "huge": rng.normal(size=length) * 1e300,
        "infinite": rng.choice([np.inf, -np.inf, 0.0, -0.0, 1.0], length),
    }[kind]
    indptr = np.array([0, length, 2 * length])
    twice = np.concatenate((scores, scores[::-1]))
    order = rank(twice, indptr, ties="file").order
    for query in range(2):
        part = slice(indptr[query], indptr[query + 1])
        expected = np.argsort(-twice[part], kind="stable") + indptr[query]
        np.testing.assert_array_equal(order[part], expected)
    before = np.concatenate((rng.permutation(length), length + rng.permutation(length)))
    turned = rank_from(twice, indptr, before).order
    for query in range(2):
        rows = before[indptr[query] : indptr[query + 1]]
        np.testing.assert_array_equal(
            turned[indptr[query] : indptr[query + 1]], rows[np.argsort(-twice[rows], kind="stable")]
        )


def test_scores_are_checked() -> None:
    with pytest.raises(DataError, match="score of document 2 is NaN"):
        check_scores(np.array([0.0, np.nan]), 2)
    with pytest.raises(DataError, match="one number for each of 3 documents"):
        check_scores(np.zeros(2), 3)
    with pytest.raises(DataError, match="not a number"):
        check_scores(np.array(["a"]), 1)
    with pytest.raises(DataError, match="scores hold values under a mask"):
        check_scores(np.ma.masked_array([1.0, 2.0], mask=[False, True]), 2)
    with pytest.raises(DataError, match="scores hold values of type datetime64"):
        check_scores(np.array(["2026-01-01"], dtype="M8[D]"), 1)
    assert check_scores(np.array([1, 2], dtype=np.int32), 2).dtype == np.float64


@pytest.mark.checked
@pytest.mark.parametrize("length", [255, 256, 257, 511, 512, 513, 768, 2000])
@pytest.mark.parametrize("levels", [3, 10**9])
def test_lists_of_any_length_are_sorted_stably(length: int, levels: int) -> None:
    scores = np.random.default_rng(length).integers(0, levels, length) / 7.0
    order = rank(scores, np.array([0, length]), ties="file").order
    np.testing.assert_array_equal(order, np.argsort(-scores, kind="stable"))


@given(st.lists(st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1e-300, 2.0, 7.0]), min_size=1, max_size=80))
def test_one_list_is_ordered_as_many_are(values: list[float]) -> None:
    scores = np.array(values)
    assert order_of_list(scores).tolist() == rank(scores, np.array([0, len(scores)]), n_jobs=1).order.tolist()
