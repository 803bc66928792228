"""NDCG over click labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import MeasureError
from gradrank.measures.base import IntArray, Prepared, cut
from gradrank.measures.parameters import discount_parameter, parameter
from gradrank.measures.position import PositionMeasure, discounts, ideal_sums, spread


@dataclass(frozen=True, repr=False)
class CNDCG(PositionMeasure):
    """NDCG over click labels in 0…1, stretched to the range of the grades (Svore et al. 2011, eq. 9).

    CNDCG@T = (1/N) Σ_{t≤T} (2^{4·c(t)} − 1) / log2(1 + t), N = the same sum in the ideal order, 4 = top grade of the
    primary labels. Reads the label source ``clicks`` unless another is named.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    top
        Top grade of the primary labels, to which a click label of 1 is stretched.
    discount
        Weight of rank r: ``log2`` (1/log2(1 + r)), ``letor`` (1, 1, 1/log2 r), ``ln`` (1/ln(1 + r)) or ``reciprocal``
        (1/r).
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, {"label": [0, 0], "clicks": [0.0, 0.5]}, qid=[1, 1])
    >>> CNDCG().values([1.0, 2.0], data).tolist()
    [1.0]
    """

    top: float = parameter("top grade of the primary labels, to which a click label of 1 is stretched", low=0.0)
    discount: str = discount_parameter()

    name: ClassVar[str] = "CNDCG"
    default_source: ClassVar[str | None] = "clicks"

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        clicks = np.nan_to_num(labels.astype(np.float64))
        if clicks.min(initial=0.0) < 0.0 or clicks.max(initial=0.0) > 1.0:
            bad = clicks[(clicks < 0.0) | (clicks > 1.0)][0]
            raise MeasureError(f"CNDCG: click label is {bad:g}, expected a rate in 0…1")
        gain = np.exp2(self.top * clicks) - 1.0
        depth = cut(self.cutoff, indptr)
        weight = spread(discounts(self.discount, int(np.diff(indptr).max())), indptr)
        ideal = ideal_sums(gain, weight, depth, indptr, n_jobs)
        empty = ideal <= 0.0
        return Prepared(gain, np.where(empty, 1.0, ideal), depth, empty, weight)
