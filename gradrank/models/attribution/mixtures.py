"""Shapley values between two documents for a ranker of which only scores are known: mixtures of the two are scored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.models.attribution.attribution import Attribution, Rows
from gradrank.models.features import Matrix

# Up to so many features that differ, all subsets are scored.
_MOST_EXACT = 10
# Orders of the features that are tried otherwise, each forwards and backwards.
_ORDERS = 32
_ROWS_PER_BLOCK = 1 << 14

Scorer = Callable[[Any], NDArray[np.float64]]


class OfMixtures(Attribution):
    """Shapley values of v(S) = score with the first document's values for S and the second's for the others.

    Exact over all subsets where at most 10 features differ; otherwise the mean over 32 random orders of the features
    and their reverses, in which each feature in turn takes the first document's value. Shares add up to the difference
    either way.

    >>> product = OfMixtures(np.array([[2.0, 3.0], [0.0, 1.0]]), lambda X: X[:, 0] * X[:, 1])
    >>> product.between(np.array([0]), np.array([1])).tolist()
    [[4.0, 2.0]]
    """

    def __init__(self, X: Matrix, score: Scorer) -> None:
        way = (
            "scores of mixtures: Shapley values between the two documents, where a feature that is left out has the "
            f"other document's value; over all subsets for up to {_MOST_EXACT} features that differ, over "
            f"{2 * _ORDERS} random orders of more"
        )
        super().__init__(len(X), X.shape[1], [way])
        self._X, self._score = X, score

    def between(self, first: Rows, second: Rows) -> NDArray[np.float64]:
        """See Attribution.between."""
        return np.array(
            [self._pair(int(a), int(b), _ORDERS) for a, b in zip(first, second, strict=True)], dtype=np.float64
        ).reshape(len(first), self.n_features)

    def against_all(self, document: int) -> NDArray[np.float64]:
        """See Attribution.against_all; each of many documents has fewer orders."""
        orders = max(1, _ORDERS // self.n_docs)
        return np.asarray(np.mean([self._pair(document, other, orders) for other in range(self.n_docs)], axis=0))

    def _pair(self, first: int, second: int, orders: int) -> NDArray[np.float64]:
        a, b = self._X[first], self._X[second]
        differ = np.flatnonzero((a != b) & ~(np.isnan(a) & np.isnan(b)))
        shares = np.zeros(self.n_features)
        if len(differ):
            exact = len(differ) <= _MOST_EXACT
            found = self._exact(a, b, differ) if exact else self._sampled(a, b, differ, orders, (first, second))
            shares[differ] = found
        return shares

    def _exact(self, a: NDArray[Any], b: NDArray[Any], differ: Rows) -> NDArray[np.float64]:
        n = len(differ)
        inside = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1 == 1
        values = self._scored(a, b, differ, inside)
        size = inside.sum(axis=1)
        # 1 / (n · C(n − 1, s)): the chance that S is what stands before the feature in a random order.
        chance = np.array([1.0 / n])
        for s in range(1, n):
            chance = np.append(chance, chance[-1] * s / (n - s))
        shares = np.empty(n)
        for place in range(n):
            without = np.flatnonzero(~inside[:, place])
            shares[place] = (chance[size[without]] * (values[without | (1 << place)] - values[without])).sum()
        return shares

    def _sampled(
        self, a: NDArray[Any], b: NDArray[Any], differ: Rows, orders: int, seed: tuple[int, int]
    ) -> NDArray[np.float64]:
        rng = np.random.default_rng(seed)
        n = len(differ)
        total = np.zeros(n)
        for _ in range(orders):
            order = rng.permutation(n)
            for way in (order, order[::-1]):
                inside = np.zeros((n + 1, n), dtype=bool)
                inside[:, way] = np.arange(n + 1)[:, None] > np.arange(n)
                total[way] += np.diff(self._scored(a, b, differ, inside))
        return total / (2 * orders)

    def _scored(self, a: NDArray[Any], b: NDArray[Any], differ: Rows, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        found = []
        for start in range(0, len(inside), _ROWS_PER_BLOCK):
            part = inside[start : start + _ROWS_PER_BLOCK]
            rows = np.repeat(b[None], len(part), axis=0)
            rows[:, differ] = np.where(part, a[differ], b[differ])
            found.append(self._score(rows))
        return np.concatenate(found)
