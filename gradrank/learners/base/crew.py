"""The seam for several processes that train one model together.

λ's are local to a query, so each process keeps its own queries; what must be shared are sums: of leaves, of measures.
A process that trains alone is a crew of one, for which a sum is what it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import mean_value


class Crew:
    """The processes that train one model together; this one stands for a process on its own.

    >>> ALONE.sum(np.array([1.0, 2.0])).tolist(), ALONE.mean(np.array([0.5, np.nan]))
    ([1.0, 2.0], 0.5)
    """

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise sum over all processes."""
        return values

    def mean(self, values: NDArray[np.float64]) -> float:
        """Mean over the queries of all processes that have a value; NaN if none has."""
        return mean_value(values)

    def tree_settings(self) -> dict[str, object]:
        """LightGBM's parameters that make the processes grow one tree together."""
        return {}


ALONE = Crew()
"""A process that trains by itself."""
