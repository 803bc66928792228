"""Labels as levels: numbers 0, 1, … of the distinct labels of a query, and its documents grouped by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.runtime.kernels import njit

UNJUDGED = -1


def label_levels(labels: NDArray[np.float32], indptr: NDArray[np.int64]) -> NDArray[np.int32]:
    """Labels as numbers 0, 1, … of the distinct values in their query; UNJUDGED for unjudged documents.

    >>> label_levels(np.array([5, 0, 5, np.nan, 7], dtype=np.float32), np.array([0, 4, 5])).tolist()
    [1, 0, 1, -1, 0]
    """
    query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((labels, query))
    sorted_labels, sorted_query = labels[order], query[order]
    new_query = np.concatenate(([True], sorted_query[1:] != sorted_query[:-1]))
    rises = np.concatenate(([False], sorted_labels[1:] != sorted_labels[:-1])) & ~new_query
    steps = np.cumsum(rises)
    first = np.maximum.accumulate(np.where(new_query, np.arange(len(order)), 0))
    level = np.empty(len(labels), dtype=np.int32)
    level[order] = steps - steps[first]
    level[np.isnan(labels)] = UNJUDGED
    return level


def pair_counts(level: NDArray[np.int32], indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of pairs of different labels of each query.

    >>> pair_counts(np.array([0, 1, 1, 2], dtype=np.int32), np.array([0, 4])).tolist()
    [5]
    """
    counts = np.zeros(len(indptr) - 1, dtype=np.int64)
    _count_pairs(level, indptr, counts)
    return counts


@njit(cache=True, nogil=True)
def _count_pairs(level, indptr, counts):  # type: ignore[no-untyped-def]
    for q in range(len(indptr) - 1):
        n = indptr[q + 1] - indptr[q]
        same = np.zeros(n, np.int64)
        judged = 0
        for i in range(indptr[q], indptr[q + 1]):
            if level[i] >= 0:
                counts[q] += judged - same[level[i]]
                same[level[i]] += 1
                judged += 1


@njit(cache=True, nogil=True, inner=True)
def top_level(n, level):  # type: ignore[no-untyped-def]
    """The highest level of a list, 0 if nothing is judged."""
    top = 0
    for i in range(n):
        top = max(top, level[i])
    return top


@njit(cache=True, nogil=True, inner=True)
def group_by_level(n, order, scores, level, top, rows, standing, first):  # type: ignore[no-untyped-def]
    """Rows and scores of each level in the given order; those of level k are at first[k] … first[k + 1]."""
    for k in range(top + 2):
        first[k] = 0
    for i in range(n):
        if level[i] >= 0:
            first[level[i] + 1] += 1
    for k in range(top + 1):
        first[k + 1] += first[k]
    for place in range(n):
        i = order[place]
        if level[i] >= 0:
            at = first[level[i]]
            rows[at] = i
            standing[at] = scores[i]
            first[level[i]] += 1
    for k in range(top + 1, 0, -1):
        first[k] = first[k - 1]
    first[0] = 0
