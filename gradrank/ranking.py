"""From scores to an order: the only place where ties are broken.

Tools disagree silently about tied scores, and tree models tie often. Each policy is named here:

========== =====================================================================================
file       tied documents keep the order of the file (LightGBM, XGBoost, RankLib, LETOR scripts)
average    tied documents stay tied; a measure takes its expectation over all their orders
pessimistic the less relevant document first
optimistic the more relevant document first
docid      document ids in descending order (trec_eval, gdeval)
random     a seeded permutation (training)
========== =====================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.arrays import number_array, plain_array
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

Ties = Literal["file", "average", "pessimistic", "optimistic", "docid"]
TIE_POLICIES: tuple[str, ...] = get_args(Ties)

_NO_TIES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Documents of each query from best to worst."""

    order: NDArray[np.int64]
    """``order[indptr[q] + r]`` is the row of the document of query ``q`` at 0-based rank ``r``."""
    tie_end: NDArray[np.int64]
    """For each place of ``order`` the end of its group of tied documents; empty if nothing is tied."""
    retrieved: NDArray[np.int64]
    """Number of documents of each query that were retrieved (score above −inf)."""


# Up to this length, counting how many scores are higher beats sorting: the loop has no branches and vectorizes.
# Longer lists are merged from runs of it.
_COUNTING_LENGTH = 256


class OrderScratch(NamedTuple):
    """Scratch arrays of order_list_with.

    Kernels get their scratch arrays from Python: code that makes arrays is slow to compile.
    """

    rough: NDArray[np.float32]
    above: NDArray[np.int32]
    taken: NDArray[np.int32]
    merged: NDArray[np.int64]


def order_scratch(longest: int) -> OrderScratch:
    """The scratch arrays for lists up to a length."""
    return OrderScratch(
        np.empty(_COUNTING_LENGTH, np.float32),
        np.empty(_COUNTING_LENGTH, np.int32),
        np.empty(_COUNTING_LENGTH, np.int32),
        np.empty(longest, np.int64),
    )


def longest_list(indptr: NDArray[np.int64], first: int, end: int) -> int:
    """Length of the longest of the lists first…end."""
    return int(np.diff(indptr[first : end + 1]).max(initial=1))


@njit(cache=True, nogil=True, plain=True, inner=True)
def order_list_with(scores, n, order, scratch):  # type: ignore[no-untyped-def]
    """As order_list for the first ``n`` scores, with scratch arrays of order_scratch."""
    rough = scratch.rough
    count = scratch.above
    taken = scratch.taken
    merged = scratch.merged
    for start in range(0, n, _COUNTING_LENGTH):
        # The place of a score in a run is the number of higher ones.
        stop = start + _COUNTING_LENGTH
        if stop > n:
            stop = n
        length = stop - start
        for i in range(length):
            rough[i] = scores[start + i]
            count[i] = 0
            taken[i] = 0
        for j in range(length):
            other = rough[j]
            for i in range(length):
                count[i] += rough[i] < other
        for i in range(length):
            place = count[i]
            order[start + place + taken[place]] = start + i
            taken[place] += 1
        # Single precision was enough to count with, not to tell neighbors apart: let those sink into place.
        for i in range(start + 1, stop):
            row = order[i]
            score = scores[row]
            at = i
            while at > start and scores[order[at - 1]] < score:
                order[at] = order[at - 1]
                at -= 1
            order[at] = row
    width = _COUNTING_LENGTH
    while width < n:
        for start in range(0, n - width, 2 * width):
            middle = start + width
            stop = middle + width
            if stop > n:
                stop = n
            for at in range(start, middle):
                merged[at] = order[at]
            left = start
            right = middle
            place = start
            while left < middle:
                if right < stop and scores[order[right]] > scores[merged[left]]:
                    order[place] = order[right]
                    right += 1
                else:
                    order[place] = merged[left]
                    left += 1
                place += 1
        width *= 2


@njit(cache=True, nogil=True)
def order_list(scores, order):  # type: ignore[no-untyped-def]
    """Stable descending order of one list of any length, for kernels; ``order`` may be longer than the list."""
    rough = np.empty(_COUNTING_LENGTH, np.float32)
    count = np.empty(_COUNTING_LENGTH, np.int32)
    taken = np.empty(_COUNTING_LENGTH, np.int32)
    n = len(scores)
    order_list_with(scores, n, order, OrderScratch(rough, count, taken, np.empty(n, np.int64)))


@njit(cache=True, nogil=True, plain=True)
def _rank_kernel(  # type: ignore[no-untyped-def]
    first, end, indptr, scores, before, order, tie_end, retrieved, tied, local, standing, scratch
):  # fmt: skip
    for q in range(first, end):
        start = indptr[q]
        stop = indptr[q + 1]
        n = stop - start
        for r in range(n):
            standing[r] = scores[before[start + r]] if len(before) else scores[start + r]
        order_list_with(standing, n, local, scratch)
        for r in range(n):
            order[start + r] = before[start + local[r]] if len(before) else start + local[r]
        found = n
        while found > 0 and scores[order[start + found - 1]] == -np.inf:
            found -= 1
        retrieved[q] = found
        any_tied = 0
        group_end = stop
        for place in range(stop - 1, start - 1, -1):
            if place + 1 < stop and scores[order[place]] != scores[order[place + 1]]:
                group_end = place + 1
            tie_end[place] = group_end
            # Documents that were not retrieved are all at −inf; that is no tie to break.
            if group_end - place > 1 and place - start < found:
                any_tied = 1
        tied[q] = any_tied


def in_data_order(scores: ArrayLike, data: RankingData) -> NDArray[Any]:
    """Scores as users give them, brought to the order in which the data has its documents.

    They stand in the order in which the rows were given, as ``predict`` has them. A column of the data itself, such as
    ``data.X[:, 3]`` or ``data.label()``, which shares its memory, is in the data's order already.

    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], qid=["a", "b", "a"])
    >>> in_data_order([1.0, 2.0, 3.0], data).tolist(), in_data_order(data.X[:, 0], data).tolist()
    ([1.0, 3.0, 2.0], [1.0, 3.0, 2.0])
    """
    values = plain_array(scores, "scores")
    if data.rows is None or values.shape != (data.n_docs,):
        return values
    # Rows that were brought together are a copy of what was given: nobody else's arrays lie in its memory.
    own = any(np.may_share_memory(values, column) for column in (data.X, *data.labels.values()))
    return values if own else data.from_input_order(values)


def check_scores(scores: ArrayLike, n_docs: int) -> NDArray[np.float64]:
    """Scores as float64, one per document; NaN is refused, −inf means "not retrieved"."""
    checked = np.ascontiguousarray(number_array(scores, "scores", np.float64))
    if checked.shape != (n_docs,):
        raise DataError(f"scores have shape {checked.shape}, expected one number for each of {n_docs} documents")
    if np.isnan(checked).any():
        raise DataError(f"score of document {int(np.flatnonzero(np.isnan(checked))[0]) + 1} is NaN")
    return checked


def rank(
    scores: NDArray[np.float64],
    indptr: NDArray[np.int64],
    *,
    ties: Ties = "average",
    labels: NDArray[np.float32] | None = None,
    docid: Strings | None = None,
    n_jobs: int | None = None,
) -> Ranking:
    """Rank the documents of every query by descending score.

    Parameters
    ----------
    scores
        One score per document.
    indptr
        Query q has the documents ``indptr[q]``…``indptr[q + 1]``.
    ties
        What happens to documents with equal scores; see the head of this module.
    labels
        For the policies ``pessimistic`` and ``optimistic``; unjudged counts as the lowest.
    docid
        For the policy ``docid``, as soon as two documents are tied.
    n_jobs
        Number of threads; None = one per core.

    >>> ranking = rank(np.array([0.5, 2.0, 0.5]), np.array([0, 3]), ties="average")
    >>> ranking.order.tolist(), ranking.tie_end.tolist()
    ([1, 0, 2], [1, 3, 3])
    """
    before = np.empty(0, dtype=np.int64)
    if ties in ("pessimistic", "optimistic"):
        if labels is None:
            raise DataError(f"ties={ties} needs labels")
        relevance = np.where(np.isnan(labels), -np.inf, labels.astype(np.float64))
        before = order_within_queries(relevance if ties == "pessimistic" else -relevance, indptr)
    ranking, tied = _ranked(scores, indptr, before, n_jobs)
    if ties == "average":
        return ranking
    if ties == "docid" and tied:
        if docid is None:
            raise DataError(
                "documents are tied and this convention breaks ties by document id, but the data has no document ids"
            )
        _break_by_docid(ranking, scores, docid)
    return Ranking(ranking.order, _NO_TIES, ranking.retrieved)


def order_of_list(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The documents of one query by descending score; tied ones in the order in which they come.

    The order that :func:`rank` gives, without what is prepared for many queries.

    >>> order_of_list(np.array([0.5, 2.0, 0.5])).tolist()
    [1, 0, 2]
    """
    return np.argsort(-scores, kind="stable")


def order_within_queries(key: NDArray[np.float64], indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each query in ascending order of ``key``.

    >>> order_within_queries(np.array([2.0, 1.0, 0.0]), np.array([0, 2, 3])).tolist()
    [1, 0, 2]
    """
    return np.lexsort((key, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))))


def random_numbers(
    indptr: NDArray[np.int64], random_state: int, keys: NDArray[np.uint64] | None = None
) -> NDArray[np.float64]:
    """A random number in 0…1 for each document: by its place in the data, or by its query's key and its place there.

    >>> one = random_numbers(np.array([0, 2, 3]), 7, np.array([5, 9], dtype=np.uint64))
    >>> other = random_numbers(np.array([0, 1, 3]), 7, np.array([9, 5], dtype=np.uint64))
    >>> one[[2, 0, 1]].tolist() == other.tolist()
    True
    """
    if keys is None:
        return np.random.default_rng(random_state).random(int(indptr[-1]))
    sizes = np.diff(indptr)
    place = np.arange(int(indptr[-1])) - np.repeat(indptr[:-1], sizes)
    return keyed_numbers(np.repeat(keys, sizes), random_state, place.astype(np.uint64))


def keyed_numbers(
    keys: NDArray[np.uint64], random_state: int, more: NDArray[np.uint64] | int = 0
) -> NDArray[np.float64]:
    """A random number in 0…1 for each key that depends on the key, the seed and one more number alone.

    >>> one, other, again = keyed_numbers(np.array([5, 6, 5], dtype=np.uint64), 7).tolist()
    >>> one == again, one == other
    (True, False)
    """
    seed = np.uint64(np.random.default_rng(random_state).integers(2**62))
    bits = keys ^ seed
    # SplitMix64 (Steele, Lea, Flood 2014), twice: once for the key, once for the number within it.
    for step in (np.uint64(1), np.asarray(more, dtype=np.uint64) + np.uint64(1)):
        bits = bits + step * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = bits ^ (bits >> np.uint64(31))
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def rank_from(
    scores: NDArray[np.float64],
    indptr: NDArray[np.int64],
    before: NDArray[np.int64],
    *,
    n_jobs: int | None = None,
) -> Ranking:
    """Rank by descending score; tied documents keep the order in which ``before`` names them, query by query.

    With a seeded random permutation of each query this is how training breaks ties: files are often
    sorted by label, so file order would leak the labels.

    >>> rank_from(np.zeros(3), np.array([0, 3]), np.array([1, 2, 0])).order.tolist()
    [1, 2, 0]
    """
    ranking, _ = _ranked(scores, indptr, before, n_jobs)
    return Ranking(ranking.order, _NO_TIES, ranking.retrieved)


def _ranked(
    scores: NDArray[np.float64], indptr: NDArray[np.int64], before: NDArray[np.int64], n_jobs: int | None
) -> tuple[Ranking, bool]:
    n_queries = len(indptr) - 1
    order = np.empty(len(scores), dtype=np.int64)
    tie_end = np.empty(len(scores), dtype=np.int64)
    retrieved = np.empty(n_queries, dtype=np.int64)
    tied = np.empty(n_queries, dtype=np.int64)

    def work(first: int, end: int) -> None:
        longest = longest_list(indptr, first, end)
        _rank_kernel(first, end, indptr, scores, before, order, tie_end, retrieved, tied,
                     np.empty(longest, np.int64), np.empty(longest), order_scratch(longest))  # fmt: skip

    for_query_blocks(work, indptr, n_jobs)
    any_tied = bool(tied.any())
    return Ranking(order, tie_end if any_tied else _NO_TIES, retrieved), any_tied


def _tie_groups(ranking: Ranking) -> Iterator[tuple[int, int]]:
    place = np.arange(len(ranking.tie_end))
    starts = np.flatnonzero(
        (ranking.tie_end - place > 1) & np.concatenate(([True], ranking.tie_end[1:] != ranking.tie_end[:-1]))
    )
    for start in starts.tolist():
        yield start, int(ranking.tie_end[start])


def _break_by_docid(ranking: Ranking, scores: NDArray[np.float64], docid: Strings) -> None:
    for start, end in _tie_groups(ranking):
        rows = ranking.order[start:end]
        if scores[rows[0]] == -np.inf:
            continue
        # UTF-8 bytes sort as code points do, which is what the C and Perl tools compare.
        names = [name.encode() for name in docid[rows]]
        ranking.order[start:end] = rows[sorted(range(len(rows)), key=names.__getitem__, reverse=True)]
