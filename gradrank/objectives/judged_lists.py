"""The judged documents of each query in the order of their labels: what listwise objectives see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ObjectiveError
from gradrank.objectives.kernels.listwise_kernel import subset_chances, weighted_chances
from gradrank.ranking import random_numbers

LONGEST_EXACT = 12
"""Most documents of a list whose orders are all summed over: n documents have 2^n subsets."""


@dataclass(frozen=True, eq=False)
class Lists:
    """Queries with two or more different labels; others say nothing about the order of their documents."""

    query: NDArray[np.int64]
    """The query of each list, by its place in the data."""
    indptr: NDArray[np.int64]
    rows: NDArray[np.int64]
    """Rows of the data, by descending label in each list."""
    labels: NDArray[np.float64]
    weight: NDArray[np.float64]
    """One number per list: the query's weight."""
    document_weight: NDArray[np.float64] | None
    """One number per row; None = all count alike."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Documents of each list."""
        return np.diff(self.indptr)

    @property
    def document_weights(self) -> NDArray[np.float64]:
        """One number per row, 1 where the data has none."""
        return np.ones(len(self.rows)) if self.document_weight is None else self.document_weight

    def weighted(self, truth: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Distributions and weights of lists for which −Σ w_i·truth_i·log p_i is a cross-entropy again."""
        if self.document_weight is None or not len(truth):
            return truth, self.weight
        own = truth * self.document_weight
        mean = np.add.reduceat(own, self.indptr[:-1])
        return own / np.repeat(np.where(mean > 0, mean, 1.0), self.sizes), self.weight * mean


def label_lists(data: RankingData, label: str | None, random_state: int) -> Lists:
    """The lists of a label source; documents with equal labels stand in a seeded random order.

    >>> data = RankingData.from_arrays([[0.0]] * 5, [0, 2, float("nan"), 1, 1], qid=[1, 1, 1, 2, 2])
    >>> lists = label_lists(data, None, 0)
    >>> lists.rows.tolist(), lists.labels.tolist()
    ([1, 0], [2.0, 0.0])
    """
    labels = data.label(label).astype(np.float64)
    query = np.repeat(np.arange(data.n_queries), data.sizes)
    shuffle = random_numbers(data.indptr, random_state, data.keys)
    spread = np.fmax.reduceat(labels, data.indptr[:-1]) > np.fmin.reduceat(labels, data.indptr[:-1])
    kept = np.flatnonzero(~np.isnan(labels) & np.repeat(spread, data.sizes))
    rows = kept[np.lexsort((shuffle[kept], -labels[kept], query[kept]))]
    numbers = np.flatnonzero(spread)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(query[rows], minlength=data.n_queries)[numbers])))
    weight = np.ones(len(numbers)) if data.weight is None else data.weight[numbers].astype(np.float64)
    own = None if data.document_weight is None else data.document_weight[rows].astype(np.float64)
    return Lists(numbers, indptr.astype(np.int64), rows, labels[rows], weight, own)


def subset_tables(
    labels: NDArray[np.float64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The chances p(S) of every list, one table for all lists that have the same labels; and where each list's begins.

    With weights of documents, those of ``weighted_chances``, one table for all lists with the same labels and weights.

    >>> subset_tables(np.array([1.0, 0.0]), np.array([0]), np.array([2]))[0].round(4).tolist()
    [1.0, 0.2689, 0.7311, 1.0]
    """
    found: dict[bytes, int] = {}
    tables: list[NDArray[np.float64]] = []
    begins = np.zeros(len(starts), dtype=np.int64)
    length = 0
    for number, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        # The model of the labels does not change when all of them are shifted.
        own = labels[start : start + size] - labels[start]
        own_weights = None if weights is None else weights[start : start + size]
        key = own.tobytes() if own_weights is None else own.tobytes() + own_weights.tobytes()
        if key not in found:
            table = np.empty(1 << size)
            subset_chances(own, table)
            if own_weights is not None:
                weighted_chances(own, own_weights, table)
            found[key] = length
            tables.append(table)
            length += len(table)
        begins[number] = found[key]
    return np.concatenate(tables) if tables else np.empty(0), begins


def check_whole(kind: str, name: str, value: object, low: int, high: int | None = None) -> None:
    """Refuse what is not a whole number in the range."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        upper = "or more" if high is None else f"to {high}"
        raise ObjectiveError(f"{kind}: {name} is {value!r}, expected a whole number of {low} {upper}")


def check_label(kind: str, label: object) -> None:
    """Refuse what cannot be the name of a label source."""
    if label is not None and (not isinstance(label, str) or not label.isidentifier()):
        raise ObjectiveError(f"{kind}: label is {label!r}, expected the name of a label source")
