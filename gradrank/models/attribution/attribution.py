"""Differences of scores, divided among the features.

Whatever the kind of ranker, the shares of a pair of documents add up to the difference of their scores. A document
against the mean of all documents has the mean of its shares against each of them, which add up to its score minus the
mean score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError

Reference: TypeAlias = Literal["training", "other"]
"""What a feature that is left out counts as: as in the training documents on average, or as in the other document."""
Rows: TypeAlias = NDArray[np.int64]

# Pairs worked on at once when one document is set against all: 16 MB of numbers for 100 features.
_NUMBERS_PER_BLOCK = 1 << 21


class Attribution(ABC):
    """Shares of the features in the differences of scores between documents.

    Parameters
    ----------
    n_docs, n_features
        How many documents there are, and features.
    ways
        What is calculated, a sentence for each way of it.
    """

    def __init__(self, n_docs: int, n_features: int, ways: Sequence[str]) -> None:
        self.n_docs = n_docs
        self.n_features = n_features
        self.ways = tuple(dict.fromkeys(ways))

    @abstractmethod
    def between(self, first: Rows, second: Rows) -> NDArray[np.float64]:
        """Each feature's share in score(first) − score(second), pairs × features, for documents given by number."""

    def against_all(self, document: int) -> NDArray[np.float64]:
        """Each feature's share in a document's score minus the mean score of all documents."""
        total = np.zeros(self.n_features)
        step = max(1, _NUMBERS_PER_BLOCK // max(1, self.n_features))
        for start in range(0, self.n_docs, step):
            others = np.arange(start, min(start + step, self.n_docs))
            total += self.between(np.full(len(others), document), others).sum(axis=0)
        return total / self.n_docs


class ByDocument(Attribution):
    """Shares of each score itself, which are subtracted: what all additive rankers have.

    >>> shares = ByDocument(np.array([[1.0, 2.0], [0.5, 4.0]]), ["weights"])
    >>> shares.between(np.array([0]), np.array([1])).tolist(), shares.against_all(0).tolist()
    ([[0.5, -2.0]], [0.25, -1.0])
    """

    def __init__(self, shares: NDArray[np.float64], ways: Sequence[str]) -> None:
        super().__init__(len(shares), shares.shape[1], ways)
        self._shares = shares

    def between(self, first: Rows, second: Rows) -> NDArray[np.float64]:
        """See Attribution.between."""
        return np.asarray(self._shares[first] - self._shares[second])

    def against_all(self, document: int) -> NDArray[np.float64]:
        """See Attribution.against_all."""
        return np.asarray(self._shares[document] - self._shares.mean(axis=0))


class ByPair(Attribution):
    """Shares that a function of two documents finds."""

    def __init__(
        self,
        n_docs: int,
        n_features: int,
        shares: Callable[[Rows, Rows], NDArray[np.float64]],
        ways: Sequence[str],
    ) -> None:
        super().__init__(n_docs, n_features, ways)
        self._shares = shares

    def between(self, first: Rows, second: Rows) -> NDArray[np.float64]:
        """See Attribution.between."""
        return self._shares(first, second)


class Weighted(Attribution):
    """Attributions added up with weights, the features of each being some of the sum's.

    >>> part = ByDocument(np.array([[1.0], [3.0]]), ["feature"])
    >>> Weighted([(2.0, part, [1])], 2, 2).between(np.array([1]), np.array([0])).tolist()
    [[0.0, 4.0]]
    """

    def __init__(self, parts: Sequence[tuple[float, Attribution, Sequence[int]]], n_docs: int, n_features: int) -> None:
        super().__init__(n_docs, n_features, [way for _, part, _ in parts for way in part.ways])
        self._parts = parts

    def between(self, first: Rows, second: Rows) -> NDArray[np.float64]:
        """See Attribution.between."""
        total = np.zeros((len(first), self.n_features))
        for weight, part, columns in self._parts:
            total[:, list(columns)] += weight * part.between(first, second)
        return total

    def against_all(self, document: int) -> NDArray[np.float64]:
        """See Attribution.against_all."""
        total = np.zeros(self.n_features)
        for weight, part, columns in self._parts:
            total[list(columns)] += weight * part.against_all(document)
        return total


def only_other(reference: Reference | None, what: str) -> None:
    """Refuse the training documents as reference where nothing is known of them."""
    if reference == "training":
        raise ModelError(
            f"{what} knows nothing of its training documents: what is left out can only be as in the other"
        )
