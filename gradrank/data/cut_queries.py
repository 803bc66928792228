"""Whether queries of the training data come again, with other documents, in data that judges what was learned.

Rows that are divided without regard to queries — scikit-learn's ``cv=3`` and ``train_test_split`` do so — leave a part
of a query on either side. What was learned from one part is then measured on the other, and the value of a part is not
that of the list: mostly higher, as there is less to order, or lower where parts have nothing relevant. Nothing else
tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings

# Data sets whose queries are mere numbers each begin at 0 or 1; a few queries may have been dropped since.
_FILLED = 0.9


@dataclass(frozen=True, eq=False)
class SeenQueries:
    """The ids of the queries that were learned from, and how many documents each had."""

    qid: Strings
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, data: RankingData) -> SeenQueries:
        """What is to be remembered of training data."""
        return cls(data.qid, data.sizes)

    def cut_in(self, data: RankingData) -> int:
        """How many queries of other data are likely to be parts of queries that were learned from.

        Those with the same id, if not all of them have as many documents as before: then they are the training data
        itself, or queries of it. Nor do numbers tell anything that both begin at 0 or 1 and leave hardly any out.

        Parameters
        ----------
        data
            The other data.

        Examples
        --------
        >>> seen = SeenQueries.of(RankingData.from_arrays(np.zeros((5, 1)), qid=["a", "a", "a", "b", "b"]))
        >>> seen.cut_in(RankingData.from_arrays(np.zeros((2, 1)), qid=["a", "c"]))
        1
        >>> seen.cut_in(RankingData.from_arrays(np.zeros((2, 1)), qid=["b", "b"]))
        0
        """
        place = {name: number for number, name in enumerate(data.qid)}
        shared = [(number, place[name]) for number, name in enumerate(self.qid) if name in place]
        if not shared:
            return 0
        before, now = np.array(shared).T
        if np.array_equal(self.sizes[before], data.sizes[now]) or (_count_up(self.qid) and _count_up(place)):
            return 0
        return len(shared)


def _count_up(names: Iterable[str]) -> bool:
    """Whether ids are the numbers from 0 or 1 on, but for a few.

    >>> _count_up(["2", "0", "1"]), _count_up(["1", "2"]), _count_up(["17", "18"]), _count_up(["a"])
    (True, True, False, False)
    """
    listed = list(names)
    if not all(name.isdecimal() and len(name) <= 18 for name in listed):
        return False
    return len(listed) >= _FILLED * max(map(int, listed))
