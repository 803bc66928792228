"""Discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Prepared, cut
from gradrank.measures.parameters import discount_parameter, gain_parameter
from gradrank.measures.position import PositionMeasure, discounts, graded_gains, highest, spread


@dataclass(frozen=True, repr=False)
class DCG(PositionMeasure):
    """Discounted cumulative gain, not normalized (Järvelin & Kekäläinen 2002).

    DCG@T = Σ_{t≤T} (2^{l(t)} − 1) / log2(1 + t).

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    gain
        What a label is worth: ``exp2`` (2^label − 1), ``linear`` (the label), or a list with the gain of each label.
    discount
        Weight of rank r: ``log2`` (1/log2(1 + r)), ``letor`` (1, 1, 1/log2 r), ``ln`` (1/ln(1 + r)) or ``reciprocal``
        (1/r).
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, [2, 0], qid=[1, 1])
    >>> DCG().values([2.0, 1.0], data).tolist()
    [3.0]
    """

    gain: str | tuple[float, ...] = gain_parameter()
    discount: str = discount_parameter()

    name: ClassVar[str] = "DCG"

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = graded_gains(self.name, labels, self.gain)
        weight = spread(discounts(self.discount, int(np.diff(indptr).max())), indptr)
        norm = np.ones(len(indptr) - 1)
        return Prepared(gain, norm, cut(self.cutoff, indptr), highest(gain, indptr) <= 0.0, weight)
