"""Normalized weighted preferences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Prepared
from gradrank.measures.position import ideal_sums
from gradrank.measures.preferences import lower_counts
from gradrank.measures.wpref import WPref


@dataclass(frozen=True, repr=False)
class NWPref(WPref):
    """Normalized weighted preferences: wpref over that of the ideal order.

    After Carterette & Bennett (2008), whose normalized form Niu et al. (2012) cite as nwppref:
    nwpref@k = wpref@k / (wpref@k of the order by label), which is the largest value: no document can have more lower
    ones below it than there are. That the divisor is the ideal order's value, and not the weight of the pairs that this
    order has in reach, is our choice: it does not depend on the scores. The discount is DCG's, as for :class:`WPref`.

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
    >>> NWPref().values([3.0, 2.0, 1.0], data).tolist(), NWPref(1).values([2.0, 3.0, 1.0], data).tolist()
    ([1.0], [0.5])
    """

    name: ClassVar[str] = "NWPref"

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        plain = super().prepare(labels, indptr, n_jobs)
        ideal = ideal_sums(lower_counts(plain.gain, indptr, n_jobs), plain.weight, plain.depth, indptr, n_jobs)
        return replace(plain, norm=np.where(plain.empty, 1.0, ideal))
