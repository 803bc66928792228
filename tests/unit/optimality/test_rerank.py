"""Ranking step by step gives the orders that sorting each step gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.optimality.rerank import rank_steps, tie_ends
from gradrank.ranking import rank


def reranked(sizes: list[int], scores: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    steps, n_docs = scores.shape
    order = np.empty(scores.size, dtype=np.int64)
    tied = rank_steps(indptr, scores, start, order)
    lists = np.append((np.arange(steps)[:, None] * n_docs + indptr[:-1]).ravel(), scores.size)
    ends = np.empty(scores.size, dtype=np.int64)
    tie_ends(lists, scores.reshape(-1), order, ends)
    return order.reshape(steps, n_docs), ends.reshape(steps, n_docs), tied


def check(sizes: list[int], scores: np.ndarray, start: np.ndarray) -> None:
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    order, ends, tied = reranked(sizes, scores, start)
    any_tied = False
    for step, row in enumerate(scores):
        expected = rank(row, indptr, ties="average")
        shift = step * row.size
        np.testing.assert_array_equal(order[step] - shift, expected.order)
        if len(expected.tie_end):
            any_tied = True
            np.testing.assert_array_equal(ends[step] - shift, expected.tie_end)
        else:
            np.testing.assert_array_equal(ends[step] - shift, np.arange(1, row.size + 1))
    assert tied == any_tied


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(1, 4), st.booleans(), st.integers(0, 2**32))
def test_any_scores_from_any_start(sizes: list[int], steps: int, coarse: bool, random_state: int) -> None:
    rng = np.random.default_rng(random_state)
    n_docs = sum(sizes)
    scores = rng.integers(-2, 3, (steps, n_docs)).astype(float) if coarse else rng.normal(size=(steps, n_docs))
    firsts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    start = np.concatenate([first + rng.permutation(size) for first, size in zip(firsts, sizes, strict=True)])
    check(sizes, scores, start)


@pytest.mark.parametrize("size", [200, 700])
def test_long_lists_turned_around_are_sorted_anew(size: int) -> None:
    falling = np.arange(size, 0, -1.0)
    check([size, 3], np.stack([np.append(falling, [1, 2, 3]), np.append(-falling, [3, 2, 1])]), np.arange(size + 3))
