"""Blocks of queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.runtime.threads import for_query_blocks, query_blocks, thread_count


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 9))
def test_blocks_cover_every_query_once(sizes: list[int], blocks: int) -> None:
    spans = query_blocks(np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))), blocks)
    assert [q for first, end in spans for q in range(first, end)] == list(range(len(sizes)))
    assert len(spans) <= blocks


def test_errors_of_a_block_reach_the_caller() -> None:
    def work(first: int, end: int) -> None:
        if end == 20_000:
            raise RuntimeError("in a thread")

    with pytest.raises(RuntimeError, match="in a thread"):
        for_query_blocks(work, np.arange(20_001), n_jobs=2)


def test_thread_count_is_checked() -> None:
    with pytest.raises(ValueError, match="n_jobs is 0"):
        thread_count(0)
    assert thread_count() >= 1
