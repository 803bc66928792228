"""The seam for several processes that train one model together.

λ's are local to a query, so each process keeps its own queries; what must be shared are sums: of leaves, of measures.
A process that trains alone is a crew of one, for which a sum is what it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.fingerprint import data_fingerprint
from gradrank.measures.base import mean_value


class Crew:
    """The processes that train one model together; this one stands for a process on its own.

    >>> ALONE.sum(np.array([1.0, 2.0])).tolist(), ALONE.mean(np.array([0.5, np.nan]))
    ([1.0, 2.0], 0.5)
    """

    rank: int = 0
    """Number of this process, from 0."""
    size: int = 1
    """How many processes there are."""
    shared: bool = False
    """Whether trees are grown and random draws made so that they do not depend on where queries are kept."""

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise sum over all processes."""
        return values

    def sum_shares(self, shares: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Sum over all processes of this process's share: each gives what it has of everybody's."""
        return shares[self.rank]

    def mean(self, values: NDArray[np.float64]) -> float:
        """Mean over the queries of all processes that have a value; NaN if none has."""
        return mean_value(values)

    def total(self, values: NDArray[Any]) -> float:
        """Sum of the numbers of all processes."""
        return float(values.sum())

    def gather(self, value: Any) -> list[Any]:
        """A plain value or array of each process, for all of them."""
        return [value]

    def leveled(self, values: NDArray[np.float32], count: int) -> NDArray[np.float32]:
        """Numbers whose sums over ``count`` documents of all processes come out the same in any order."""
        return values

    def fingerprint(self, data: RankingData) -> str:
        """Tells data sets apart."""
        return data_fingerprint(data)

    # ------------------------------------------------------------------ made of these
    def count(self, number: int) -> int:
        """Sum of a whole number over all processes."""
        return sum(self.gather(int(number)))

    def any(self, flag: bool) -> bool:
        """Whether it is so in any process."""
        return any(self.gather(bool(flag)))


ALONE = Crew()
"""A process that trains by itself."""
