"""Normalized discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared, cut
from gradrank.measures.parameters import discount_parameter, gain_parameter, parameter
from gradrank.measures.position import PositionMeasure, discounts, graded_gains, ideal_sums, spread


@dataclass(frozen=True, repr=False)
class NDCG(PositionMeasure):
    """Discounted cumulative gain over that of the ideal order (Järvelin & Kekäläinen 2002).

    NDCG@T = (1/Z) Σ_{t≤T} (2^{l(t)} − 1) / log2(1 + t), Z = the same sum over the documents in their ideal order.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    gain
        What a label is worth: ``exp2`` (2^label − 1), ``linear`` (the label), or a list with the gain of each label.
    discount
        Weight of rank r: ``log2`` (1/log2(1 + r)), ``letor`` (1, 1, 1/log2 r), ``ln`` (1/ln(1 + r)) or ``reciprocal``
        (1/r).
    short
        Whether a list shorter than the cut-off is padded with nothing (``pad``) or counts 0 (``zero``).
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [0, 1, 2], qid=[1, 1, 1])
    >>> NDCG().values([3.0, 1.0, 2.0], data).round(4).tolist()
    [0.659]
    """

    gain: str | tuple[float, ...] = gain_parameter()
    discount: str = discount_parameter()
    short: str = parameter("a list shorter than the cut-off is padded with nothing, or counts 0", "pad", "zero")

    name: ClassVar[str] = "NDCG"

    @classmethod
    def of_labels(cls, measure: Measure, gain: str) -> NDCG:
        """NDCG over the labels of another measure: a training target for measures that see few swaps."""
        return cls(label=measure.label, unjudged=measure.unjudged, gain=gain)

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = graded_gains(self.name, labels, self.gain)
        depth = cut(self.cutoff, indptr)
        weight = spread(discounts(self.discount, int(np.diff(indptr).max())), indptr)
        ideal = ideal_sums(gain, weight, depth, indptr, n_jobs)
        empty = ideal <= 0.0
        short = None
        if self.short == "zero" and self.cutoff is not None:
            short = np.diff(indptr) < self.cutoff
        return Prepared(gain, np.where(empty, 1.0, ideal), depth, empty, weight, short)
