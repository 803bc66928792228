"""Ranking data cut into parts, sent and joined again."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradrank import RankingData, make_data
from gradrank.cluster.frames import decode, encode
from gradrank.cluster.travel import joined, pack, unpack


@given(st.lists(st.integers(0, 12), max_size=4), st.booleans())
def test_parts_that_travelled_are_the_whole_again(cuts: list[int], with_ids: bool) -> None:
    whole = make_data(12, n_docs=4, n_features=3, random_state=1).with_weight(np.arange(12.0))
    whole = replace(whole, docid=None).with_document_weight(np.arange(whole.n_docs) + 0.5)
    if with_ids:
        names = [f"é{row}" for row in range(whole.n_docs)]
        ids = np.repeat(list(whole.qid), whole.sizes)
        whole = RankingData.from_arrays(
            whole.X, dict(whole.labels), qid=ids, docid=names, weight=whole.weight,
            document_weight=whole.document_weight,
        )  # fmt: skip
    edges = [0, *sorted(set(cuts) - {0, 12}), 12]
    parts = [unpack(decode(encode(pack(whole.take_queries(np.arange(first, end)))))) for first, end in pairwise(edges)]
    again = joined(parts)
    assert again is not None
    assert parts == []
    for name in ("X", "indptr", "weight", "document_weight"):
        assert np.array_equal(getattr(again, name), getattr(whole, name))
    assert {name: column.tolist() for name, column in again.labels.items()} == {
        name: column.tolist() for name, column in whole.labels.items()
    }
    assert (list(again.qid), again.feature_names) == (list(whole.qid), whole.feature_names)
    assert (again.docid is None) is not with_ids
    if again.docid is not None and whole.docid is not None:
        assert list(again.docid) == list(whole.docid)
