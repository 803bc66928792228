"""Folds, shares and joins keep queries whole and lose none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import concatenate, k_folds, letor_folds, letor_rotation, sample_queries, split_queries
from gradrank.errors import DataError


def make(sizes: list[int], prefix: str = "q", **changes: object) -> RankingData:
    n_docs = sum(sizes)
    qid = np.repeat([f"{prefix}{number}" for number in range(len(sizes))], sizes)
    arguments: dict[str, object] = {
        "y": {"label": np.arange(n_docs) % 3, "clicks": np.arange(n_docs)},
        "docid": [f"{prefix}-d{row}" for row in range(n_docs)],
        "weight": np.arange(len(sizes)) + 1.0,
    }
    return RankingData.from_arrays(np.arange(2.0 * n_docs).reshape(-1, 2), qid=qid, **(arguments | changes))


def rows_by_query(data: RankingData) -> dict[str, list[tuple[object, ...]]]:
    """All that belongs to a query, by plain Python."""
    assert data.docid is not None
    assert data.weight is not None
    return {
        data.qid[query]: [
            (data.weight[query], data.docid[row], tuple(data.X[row]), *(column[row] for column in data.labels.values()))
            for row in range(data.indptr[query], data.indptr[query + 1])
        ]
        for query in range(data.n_queries)
    }


sizes_of_queries = st.lists(st.integers(1, 4), min_size=2, max_size=12)


@settings(max_examples=40)
@given(sizes_of_queries, st.data(), st.integers(0, 100))
def test_every_query_is_tested_once_and_trained_on_otherwise(sizes, draw, random_state):
    data = make(sizes)
    k = draw.draw(st.integers(2, len(sizes)))
    whole = rows_by_query(data)
    tested: list[str] = []
    for train, test in k_folds(data, k, random_state):
        assert rows_by_query(train) | rows_by_query(test) == whole
        assert not set(train.qid) & set(test.qid)
        tested += list(test.qid)
        assert len(sizes) // k <= test.n_queries <= -(-len(sizes) // k)
    assert sorted(tested) == sorted(whole)


@settings(max_examples=40)
@given(sizes_of_queries, st.integers(0, 100))
def test_shares_of_one_cover_all_queries_once(sizes, random_state):
    data = make(sizes)
    parts = split_queries(data, [0.5, 0.5], random_state)
    assert sorted(qid for part in parts for qid in part.qid) == sorted(data.qid)
    assert rows_by_query(parts[0]) | rows_by_query(parts[1]) == rows_by_query(data)


def test_sizes_of_shares():
    data = make([1] * 10)
    assert [part.n_queries for part in split_queries(data, [0.6, 0.2, 0.2])] == [6, 2, 2]
    assert [part.n_queries for part in split_queries(data, [0.25, 0.25])] == [2, 3]  # cut at 2.5 and 5, 2.5 to even
    # 0.7 + 0.2 + 0.1 is below 1 in floating point; no query may be lost by it.
    assert sum(part.n_queries for part in split_queries(data, [0.7, 0.2, 0.1])) == 10


def test_seed_decides():
    data = make([1] * 30)
    first, again, other = (list(sample_queries(data, 10, random_state).qid) for random_state in (1, 1, 2))
    assert first == again
    assert first != other
    folds = [[list(test.qid) for _, test in k_folds(data, 3, random_state)] for random_state in (1, 1, 2)]
    assert folds[0] == folds[1]
    assert folds[0] != folds[2]


def test_sample_keeps_order_and_counts():
    data = make([2, 1, 3, 1, 2, 1, 1, 1, 1, 1])
    sample = sample_queries(data, 0.35, random_state=3)
    assert sample.n_queries == 4  # 3.5 rounds to even
    numbers = [int(qid[1:]) for qid in sample.qid]
    assert numbers == sorted(numbers)
    assert sample_queries(data, 10).n_queries == 10
    assert sample_queries(data, 1.0).n_queries == 10
    assert sample_queries(data, 1).n_queries == 1
    assert sample_queries(data, 1e-9).n_queries == 1


def test_letor_rotation_is_the_published_one():
    # LETOR 4.0, table of folds: Fold1 = S1,S2,S3 | S4 | S5; … Fold5 = S5,S1,S2 | S3 | S4.
    published = [("123", "4", "5"), ("234", "5", "1"), ("345", "1", "2"), ("451", "2", "3"), ("512", "3", "4")]
    assert [
        ("".join(str(part + 1) for part in train), str(valid + 1), str(test + 1))
        for train, valid, test in letor_rotation()
    ] == published


def test_letor_folds_join_the_parts():
    parts = [make([2, 1], prefix=f"S{number}-") for number in range(1, 6)]
    folds = list(letor_folds(parts))
    assert len(folds) == 5
    train, valid, test = folds[3]
    assert rows_by_query(train) == rows_by_query(parts[3]) | rows_by_query(parts[4]) | rows_by_query(parts[0])
    assert valid is parts[1]
    assert test is parts[2]


@settings(max_examples=40)
@given(sizes_of_queries, st.data())
def test_join_undoes_cut(sizes, draw):
    data = make(sizes)
    cut = draw.draw(st.integers(1, len(sizes) - 1))
    joined = concatenate([data.take_queries(np.arange(cut)), data.take_queries(np.arange(cut, len(sizes)))])
    assert rows_by_query(joined) == rows_by_query(data)
    assert list(joined.qid) == list(data.qid)
    assert joined.indptr.tolist() == data.indptr.tolist()
    assert joined.label_names == data.label_names
    assert joined.feature_names == data.feature_names


def test_join_without_ids_and_weights():
    parts = [make([2], prefix=prefix, docid=None, weight=None) for prefix in "ab"]
    joined = concatenate(parts)
    assert joined.docid is None
    assert joined.weight is None
    assert list(joined.qid) == ["a0", "b0"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature_names": ["f1", "x"]}, "part 2 has the feature 'x' where the first part has 'f2'"),
        ({"y": [0, 1]}, r"part 2 has the labels \['label'\], the first part has \['clicks', 'label'\]"),
        ({"docid": None}, "the first part has document ids, part 2 has none"),
        ({"weight": None}, "the first part has weights, part 2 has none"),
    ],
)
def test_parts_that_do_not_fit(changes, message):
    with pytest.raises(DataError, match=message):
        concatenate([make([2]), make([2], prefix="other", **changes)])


def test_join_refuses_other_faults():
    with pytest.raises(DataError, match="query q0 of part 2 is in an earlier part too"):
        concatenate([make([2]), make([1])])
    with pytest.raises(DataError, match="nothing to join"):
        concatenate([])
    narrow = RankingData.from_arrays([[1.0]], [0], qid=["x"])
    wide = RankingData.from_arrays([[1.0, 2.0]], [0], qid=["y"])
    with pytest.raises(DataError, match="part 2 has 2 features, the first part has 1"):
        concatenate([narrow, wide])


@pytest.mark.parametrize("k", [0, 1, 4])
def test_wrong_k(k):
    with pytest.raises(DataError, match=f"k is {k}, expected 2 to 3"):
        k_folds(make([1, 1, 1]), k)


@pytest.mark.parametrize("fractions", [[], [0.0, 1.0], [-0.5, 0.5], [0.8, 0.3], [float("nan")]])
def test_wrong_fractions(fractions):
    with pytest.raises(DataError, match="expected numbers above 0 that add up to at most 1"):
        split_queries(make([1, 1, 1]), fractions)


def test_fraction_of_no_query():
    with pytest.raises(DataError, match=r"a fraction of 0.01 of 3 queries is no query at all"):
        split_queries(make([1, 1, 1]), [0.99, 0.01])


@pytest.mark.parametrize("amount", [0, 4, -1, 0.0, 1.5, float("nan")])
def test_wrong_amount(amount):
    with pytest.raises(DataError, match="amount is"):
        sample_queries(make([1, 1, 1]), amount)


def test_too_few_parts():
    with pytest.raises(DataError, match="there are 2 parts, expected 3 or more"):
        letor_folds([make([1]), make([1], prefix="r")])
