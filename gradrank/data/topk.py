"""Top-k ground truth: per query an ordered list T of the best k documents above an unordered rest F (Niu et al. 2012).

As a label column it is y = k + 1 − position in T and 0 in F: ordinary labels, so every format holds them (LETOR text
as whole numbers) and every learner and measure takes them; κ-NDCG and κ-ERR are made for them. Unjudged documents (NaN)
stay unjudged.

It comes from graded labels (a random total order that respects the grades), from a total order, from preference
judgments, or from a JSONL file of ordered lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError

TOP_K_LABEL = "topk"
"""Usual name of the label column."""


def top_k_labels(
    labels: NDArray[np.float32], indptr: NDArray[np.int64], k: int, random_state: int = 0
) -> NDArray[np.float32]:
    """Position labels from grades: a random total order that respects the grades, of which the top k are kept.

    A query's order depends on the seed and on the query's place in the data only. Fewer than k judged documents: all
    are in T, with labels k, k−1, …

    >>> top_k_labels(np.array([0, 2, 1, np.nan, 0], dtype=np.float32), np.array([0, 4, 5]), k=2).tolist()
    [0.0, 2.0, 1.0, nan, 2.0]
    """
    _check_k(k)
    random = np.random.default_rng(random_state).random(len(labels))
    query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    # Descending grade, unjudged documents last, equal grades at random.
    order = np.lexsort((random, -labels, query))
    result = np.full(len(labels), np.nan, dtype=np.float32)
    place = np.arange(len(labels)) - np.repeat(indptr[:-1], np.diff(indptr))
    result[order] = np.maximum(k - place, 0)
    result[np.isnan(labels)] = np.nan
    return result


def is_top_k(labels: NDArray[np.float32], indptr: NDArray[np.int64]) -> bool:
    """Whether labels are a top-k truth already: in every query k, k−1, … without gap or repetition, then only zeros.

    The same k for all queries: graded data is not taken for it unless every query has just one relevant document.

    >>> is_top_k(np.array([1, 2, 0, 2], dtype=np.float32), np.array([0, 3, 4]))
    True
    >>> is_top_k(np.array([2, 2, 0], dtype=np.float32), np.array([0, 3]))
    False
    """
    known = ~np.isnan(labels)
    if not known.any():
        return False
    k = labels[known].max()
    query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[known]
    ordered = np.lexsort((-labels[known], query))
    values, query = labels[known][ordered], query[ordered]
    first = np.searchsorted(query, query)
    return bool(k >= 1 and np.array_equal(values, np.maximum(k - (np.arange(len(values)) - first), 0)))


def top_k_truth(data: RankingData, k: int, *, random_state: int = 0, source: str | None = None) -> NDArray[np.float32]:
    """The position labels of a label column: its own if it is a top-k truth of at most k, made from its grades if not.

    >>> data = RankingData.from_arrays([[0.0]] * 3, [2, 0, 1], qid=[1, 1, 1])
    >>> top_k_truth(data, k=5).tolist()
    [2.0, 0.0, 1.0]
    """
    labels = data.label(source)
    if is_top_k(labels, data.indptr) and np.nanmax(labels) <= k:
        return labels
    return top_k_labels(labels, data.indptr, k, random_state)


def with_top_k(
    data: RankingData, k: int, *, random_state: int = 0, source: str | None = None, name: str = TOP_K_LABEL
) -> RankingData:
    """The data with one more label column: the top-k truth of its graded labels.

    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 0, 1], qid=[1, 1, 1])
    >>> with_top_k(data, k=1).label("topk").tolist()
    [0.0, 0.0, 1.0]
    """
    return data.with_label(name, top_k_labels(data.label(source), data.indptr, k, random_state))


def top_k_of_order(data: RankingData, positions: ArrayLike, k: int) -> NDArray[np.float32]:
    """Position labels from a total order: ``positions`` are 1 for a query's best document, then 2, …; NaN = unjudged.

    >>> data = RankingData.from_arrays([[0.0]] * 3, qid=[1, 1, 1])
    >>> top_k_of_order(data, [3, 1, 2], k=2).tolist()
    [0.0, 2.0, 1.0]
    """
    _check_k(k)
    places = np.asarray(positions, dtype=np.float32)
    if places.shape != (data.n_docs,):
        raise DataError(f"there are {places.size} positions for {data.n_docs} documents")
    query = data.query_of_row()
    known = np.flatnonzero(~np.isnan(places))
    order = known[np.lexsort((places[known], query[known]))]
    tied = (places[order][1:] == places[order][:-1]) & (query[order][1:] == query[order][:-1])
    if tied.any():
        at = order[int(np.argmax(tied))]
        raise DataError(f"query {data.qid[int(query[at])]}: position {places[at]:g} is given twice in a total order")
    return top_k_labels(-places, data.indptr, k)


def top_k_of_preferences(
    n_docs: int, preferences: Iterable[tuple[int, int]], k: int, *, random_state: int = 0
) -> NDArray[np.float32]:
    """Position labels of one query from preference judgments (winner, loser) between document numbers.

    Preferences are taken as transitive. A document's place is the number of documents that are above it, directly or
    through others, and not below it as well (judgments that contradict each other in a circle cancel out); then more
    documents below come first, then more wins than losses, then chance (seeded). Documents in no judgment are
    unjudged (NaN).

    >>> top_k_of_preferences(4, [(2, 0), (0, 1)], k=2).tolist()
    [1.0, 0.0, 2.0, nan]
    """
    _check_k(k)
    above = np.zeros((n_docs, n_docs), dtype=bool)
    wins = np.zeros(n_docs)
    seen = np.zeros(n_docs, dtype=bool)
    for winner, loser in preferences:
        if not (0 <= winner < n_docs and 0 <= loser < n_docs) or winner == loser:
            raise DataError(f"a preference names documents {winner} and {loser} of {n_docs}")
        above[winner, loser] = True
        seen[[winner, loser]] = True
        wins[winner] += 1
        wins[loser] -= 1
    for through in range(n_docs):  # Warshall: whoever is above `through` is above all below it
        above[above[:, through]] |= above[through]
    strictly = above & ~above.T
    random = np.random.default_rng(random_state).random(n_docs)
    order = np.lexsort((random, -wins, -strictly.sum(axis=1), strictly.sum(axis=0), ~seen))
    result = np.full(n_docs, np.nan, dtype=np.float32)
    result[order] = np.maximum(k - np.arange(n_docs), 0)
    result[~seen] = np.nan
    return result


def with_preferences(
    data: RankingData,
    preferences: Mapping[str, Sequence[tuple[str, str]]],
    k: int,
    *,
    random_state: int = 0,
    name: str = TOP_K_LABEL,
) -> RankingData:
    """The data with one more label column: the top-k truth of preference judgments between its document ids.

    Documents of queries without judgments are unjudged; judged documents that the data lacks still pass preferences on.

    >>> data = RankingData.from_arrays([[0.0]] * 2, qid=["q", "q"], docid=["a", "b"])
    >>> with_preferences(data, {"q": [("b", "a")]}, k=2).label("topk").tolist()
    [1.0, 2.0]
    """
    ids = document_ids(data)
    labels = np.full(data.n_docs, np.nan, dtype=np.float32)
    for query, qid in enumerate(data.qid):
        pairs = preferences.get(qid)
        if not pairs:
            continue
        start, end = int(data.indptr[query]), int(data.indptr[query + 1])
        number: dict[str, int] = {}
        for document in (*ids[start:end], *(document for pair in pairs for document in pair)):
            number.setdefault(document, len(number))
        # All documents are ordered, then those of the data keep the top k among themselves.
        all_places = top_k_of_preferences(
            len(number),
            [(number[winner], number[loser]) for winner, loser in pairs],
            len(number),
            random_state=random_state,
        )
        inside = np.array([all_places[number[document]] for document in ids[start:end]], dtype=np.float32)
        labels[start:end] = top_k_labels(inside, np.array([0, end - start]), k)
    return data.with_label(name, labels)


def with_truth(data: RankingData, truth: Mapping[str, Mapping[str, float]], *, name: str = TOP_K_LABEL) -> RankingData:
    """The data with one more label column: position labels by query and document id; documents not named are unjudged.

    >>> data = RankingData.from_arrays([[0.0]] * 2, qid=["q", "q"], docid=["a", "b"])
    >>> with_truth(data, {"q": {"b": 1.0}}).label("topk").tolist()
    [nan, 1.0]
    """
    names = document_ids(data)
    labels = np.full(data.n_docs, np.nan, dtype=np.float32)
    for query, qid in enumerate(data.qid):
        of_query = truth.get(qid)
        if of_query:
            for row in range(int(data.indptr[query]), int(data.indptr[query + 1])):
                labels[row] = of_query.get(names[row], np.nan)
    return data.with_label(name, labels)


def document_ids(data: RankingData) -> list[str]:
    """Document ids; without any, numbers from 1 within the query."""
    if data.docid is not None:
        return list(data.docid)
    return [str(row + 1) for size in data.sizes.tolist() for row in range(size)]


def _check_k(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise DataError(f"k is {k!r}, expected a whole number of 1 or more")
