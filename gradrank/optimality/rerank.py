"""Ranking the same documents many times while their scores change little from one time to the next."""

from __future__ import annotations

import numpy as np

from gradrank.ranking import order_list
from gradrank.runtime.kernels import njit

# A drift that moves documents further than this many places on average is sorted anew.
_MOVES_PER_DOCUMENT = 12


@njit(cache=True, nogil=True)
def rank_steps(indptr, scores, start_order, order):  # type: ignore[no-untyped-def]
    """Orders of all queries of a block under each row of ``scores``, as if every row were a block of its own.

    ``scores`` is steps × documents, ``start_order`` a descending order near that of the first row. Step by step the
    order of the step before is put right by insertion, which costs little more than the documents that change places.
    Tied documents stand in the order of their rows. Entries of ``order`` count documents through all steps: document i
    of step k is k · documents + i. Returns whether any documents are tied.
    """
    n_steps, n_docs = scores.shape
    longest = 1
    for q in range(len(indptr) - 1):
        longest = max(longest, indptr[q + 1] - indptr[q])
    standing = np.empty(longest, np.int64)
    key = np.empty(longest, np.float64)
    tied = False
    for q in range(len(indptr) - 1):
        start = indptr[q]
        n = indptr[q + 1] - start
        for r in range(n):
            standing[r] = start_order[start + r]
        for step in range(n_steps):
            own = scores[step]
            moves = _MOVES_PER_DOCUMENT * n
            key[0] = own[standing[0]]
            for r in range(1, n):
                row = standing[r]
                score = own[row]
                at = r
                while at > 0 and (key[at - 1] < score or (key[at - 1] == score and standing[at - 1] > row)):
                    key[at] = key[at - 1]
                    standing[at] = standing[at - 1]
                    at -= 1
                key[at] = score
                standing[at] = row
                moves -= r - at
                if moves < 0:
                    break
            if moves < 0:
                order_list(own[start : start + n], standing)
                for r in range(n):
                    standing[r] += start
                    key[r] = own[standing[r]]
            shift = step * n_docs
            for r in range(n):
                order[shift + start + r] = shift + standing[r]
            for r in range(1, n):
                tied |= key[r] == key[r - 1]
    return tied


@njit(cache=True, nogil=True)
def tie_ends(indptr, scores, order, tie_end):  # type: ignore[no-untyped-def]
    """For each place of ``order`` the end of its group of documents with equal scores; ``indptr`` are all lists."""
    for q in range(len(indptr) - 1):
        group_end = indptr[q + 1]
        for place in range(indptr[q + 1] - 1, indptr[q] - 1, -1):
            if place + 1 < indptr[q + 1] and scores[order[place]] != scores[order[place + 1]]:
                group_end = place + 1
            tie_end[place] = group_end
