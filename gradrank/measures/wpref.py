"""Weighted preferences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Prepared, cut
from gradrank.measures.label_levels import label_levels
from gradrank.measures.parameters import discount_parameter
from gradrank.measures.position import discounts, spread
from gradrank.measures.preferences import PreferenceMeasure


@dataclass(frozen=True, repr=False)
class WPref(PreferenceMeasure):
    """Weighted preferences: correctly ordered pairs, each weighted by its upper document's rank.

    After Carterette & Bennett (2008), Evaluation measures for preference judgments:
    wpref@k = Σ D(r_i) over the pairs with l_i > l_j, r_i < r_j and r_i ≤ k, D(r) = 1/log2(1 + r): DCG with pairs in the
    place of gains. Two choices are ours: the discount, which is DCG's (a public script for the same authors' test
    collection has 1/(1 + log2 r)), and that every preference is of one degree.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    discount
        Weight of rank r: ``log2`` (1/log2(1 + r)), ``letor`` (1, 1, 1/log2 r), ``ln`` (1/ln(1 + r)) or ``reciprocal``
        (1/r).
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`; unjudged documents keep their ranks and are in no pair.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [2, 1, 0], qid=[1, 1, 1])
    >>> WPref().values([3.0, 2.0, 1.0], data).round(4).tolist()
    [2.6309]
    """

    discount: str = discount_parameter()

    name: ClassVar[str] = "WPref"

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        level, pairs, _ = label_levels(labels, indptr, n_jobs)
        weight = spread(discounts(self.discount, int(np.diff(indptr).max(initial=0))), indptr)
        return Prepared(level, np.ones(len(pairs)), cut(self.cutoff, indptr), pairs == 0.0, weight)
