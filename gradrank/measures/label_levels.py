"""The distinct labels of each query as levels 0, 1, 2, …, and counts of documents by level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import FloatArray, IntArray
from gradrank.ranking import order_list
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks


@njit(cache=True, nogil=True, plain=True)
def count_up(tree, level, amount):  # type: ignore[no-untyped-def]
    """Fenwick tree: count one more document of a level (levels from 0)."""
    at = level + 1
    while at < len(tree):
        tree[at] += amount
        at += at & -at


@njit(cache=True, nogil=True, plain=True)
def count_below(tree, level):  # type: ignore[no-untyped-def]
    """Fenwick tree: number of documents of lower levels."""
    total = 0.0
    at = level
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


@njit(cache=True, nogil=True)
def _levels(first, end, indptr, labels, level, pairs, all_pairs):  # type: ignore[no-untyped-def]
    """Number the distinct labels of each query from 0 (unjudged = −1); count pairs of different labels."""
    longest = 1
    for q in range(first, end):
        longest = max(longest, indptr[q + 1] - indptr[q])
    judged = np.empty(longest)
    counts = np.empty(longest)
    order = np.empty(longest, np.int64)
    number = np.empty(longest, np.int64)
    for q in range(first, end):
        start = indptr[q]
        stop = indptr[q + 1]
        n = 0
        for row in range(start, stop):
            if not np.isnan(labels[row]):
                judged[n] = labels[row]
                n += 1
        order_list(judged[:n], order)
        distinct = 0
        counts[0] = 0.0
        for r in range(n - 1, -1, -1):
            if r < n - 1 and judged[order[r]] != judged[order[r + 1]]:
                distinct += 1
                counts[distinct] = 0.0
            counts[distinct] += 1.0
            number[order[r]] = distinct
        n = 0
        for row in range(start, stop):
            if np.isnan(labels[row]):
                level[row] = -1.0
            else:
                level[row] = number[n]
                n += 1
        total = n * (n - 1) / 2.0
        all_pairs[q] = total
        for at in range(distinct + 1):
            total -= counts[at] * (counts[at] - 1.0) / 2.0
        pairs[q] = total


def label_levels(
    labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The level of each document (unjudged = −1); for each query the pairs of different levels, and all judged pairs.

    >>> level, pairs, _ = label_levels(np.array([4, 0, 4, np.nan], dtype=np.float32), np.array([0, 4]), 1)
    >>> level.tolist(), pairs.tolist()
    ([1.0, 0.0, 1.0, -1.0], [2.0])
    """
    level = np.empty(len(labels))
    pairs = np.empty(len(indptr) - 1)
    all_pairs = np.empty(len(indptr) - 1)

    def work(first: int, end: int) -> None:
        _levels(first, end, indptr, labels, level, pairs, all_pairs)

    for_query_blocks(work, indptr, n_jobs)
    return level, pairs, all_pairs
