"""Documents mixed of two of a query."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.selection.made_up import with_made_up


def made(random_state: int) -> RankingData:
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, 8, 12)
    X = rng.normal(size=(sizes.sum(), 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    return RankingData.from_arrays(X, group=sizes, weight=rng.uniform(1.0, 2.0, 12))


@given(st.integers(0, 200), st.integers(0, 3))
def test_every_value_is_one_of_the_query_and_real_documents_come_first(random_state: int, copies: int) -> None:
    data = made(random_state)
    more, origin = with_made_up(data, copies, random_state)
    assert more.n_queries == (copies + 1) * data.n_queries == len(set(more.qid))
    np.testing.assert_array_equal(more.X[: data.n_docs], data.X)
    np.testing.assert_array_equal(more.sizes, data.sizes[origin])
    assert data.weight is not None
    np.testing.assert_array_equal(more.weight, data.weight[origin])
    for query in range(more.n_queries):
        own = more.X[more.indptr[query] : more.indptr[query + 1]]
        real = data.X[data.indptr[origin[query]] : data.indptr[origin[query] + 1]]
        for column in range(data.n_features):
            assert set(own[:, column].astype(str)) <= set(real[:, column].astype(str))


def test_documents_are_mixed_by_a_third_and_by_half() -> None:
    rng = np.random.default_rng(0)
    data = RankingData.from_arrays(rng.normal(size=(4000, 8)), group=[40] * 100)
    more, _ = with_made_up(data, 2, 1)
    one, two = (more.X[data.n_docs * copy : data.n_docs * (copy + 1)] != data.X for copy in (1, 2))
    # The other document is the same one once in 40 times.
    np.testing.assert_allclose([one.mean(), two.mean()], np.array([0.3, 0.5]) * 39 / 40, atol=0.01)
    same, _ = with_made_up(data, 2, 1)
    np.testing.assert_array_equal(more.X, same.X)
