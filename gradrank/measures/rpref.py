"""Recall of preferences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Prepared, cut
from gradrank.measures.label_levels import label_levels
from gradrank.measures.parameters import parameter
from gradrank.measures.position import ideal_sums
from gradrank.measures.preferences import PreferenceMeasure, lower_counts


@dataclass(frozen=True, repr=False)
class RPref(PreferenceMeasure):
    """Recall of preferences: share of all judged pairs that the first k ranks order correctly.

    Carterette & Bennett (2008), Evaluation measures for preference judgments:
    rpref@k = #{(i, j): l_i > l_j, r_i < r_j, r_i ≤ k} / #{(i, j): l_i > l_j}. A pair is judged if both documents are
    and their labels differ. ``over=ideal`` divides by what the ideal order reaches at k instead, so that it has 1.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    over
        Divide by all judged ``pairs``, or by the number that the ``ideal`` order gets right.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`; unjudged documents keep their ranks and are in no pair.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 2, 0], qid=[1, 1, 1])
    >>> RPref(1).values([3.0, 2.0, 1.0], data).round(4).tolist()
    [0.3333]
    >>> RPref(1, over="ideal").values([3.0, 2.0, 1.0], data).tolist()
    [0.5]
    """

    over: str = parameter(
        "divide by all judged pairs, or by those of the ideal order", "pairs", "ideal", default="pairs"
    )

    name: ClassVar[str] = "RPref"

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        level, pairs, _ = label_levels(labels, indptr, n_jobs)
        depth = cut(self.cutoff, indptr)
        weight = np.ones(len(level))
        norm = pairs
        if self.over == "ideal":
            norm = ideal_sums(lower_counts(level, indptr, n_jobs), weight, depth, indptr, n_jobs)
        empty = pairs == 0.0
        return Prepared(level, np.where(empty, 1.0, norm), depth, empty, weight)
