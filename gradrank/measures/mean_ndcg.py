"""NDCG averaged over all cut-offs, as the LETOR scripts print it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Prepared
from gradrank.measures.parameters import discount_parameter, gain_parameter
from gradrank.measures.position import PositionMeasure, discounts, graded_gains, highest, spread
from gradrank.ranking import order_list
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks


@njit(cache=True, nogil=True)
def _mean_weights(first, end, indptr, gain, discount, weight):  # type: ignore[no-untyped-def]
    for q in range(first, end):
        start = indptr[q]
        n = indptr[q + 1] - start
        ideal = np.empty(n, np.int64)
        order_list(gain[start : start + n], ideal)
        ideal_sum = 0.0
        for r in range(n):
            ideal_sum += gain[start + ideal[r]] * discount[start + r]
            weight[start + r] = 1.0 / (n * ideal_sum) if ideal_sum > 0.0 else 0.0
        # Rank r takes part in every cut-off from r on.
        share = 0.0
        for r in range(n - 1, -1, -1):
            share += weight[start + r]
            weight[start + r] = discount[start + r] * share


@dataclass(frozen=True, repr=False)
class MeanNDCG(PositionMeasure):
    """Mean of NDCG@1, NDCG@2, …, NDCG@n over the n documents of the query (LETOR evaluation scripts).

    Σ_k NDCG@k / n is itself a sum over ranks: rank r carries the weight D(r)·Σ_{k≥r} 1/(n·Z_k).

    Parameters
    ----------
    gain
        What a label is worth: ``exp2`` (2^label − 1), ``linear`` (the label), or a list with the gain of each label.
    discount
        Weight of rank r: ``log2`` (1/log2(1 + r)), ``letor`` (1, 1, 1/log2 r), ``ln`` (1/ln(1 + r)) or ``reciprocal``
        (1/r).
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, [0, 1], qid=[1, 1])
    >>> MeanNDCG(convention="letor4").values([2.0, 1.0], data).tolist()
    [0.5]
    """

    gain: str | tuple[float, ...] = gain_parameter()
    discount: str = discount_parameter()

    name: ClassVar[str] = "MeanNDCG"
    takes_cutoff: ClassVar[bool] = False

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = graded_gains(self.name, labels, self.gain)
        sizes = np.diff(indptr)
        discount = spread(discounts(self.discount, int(sizes.max())), indptr)
        weight = np.empty_like(discount)

        def work(first: int, end: int) -> None:
            _mean_weights(first, end, indptr, gain, discount, weight)

        for_query_blocks(work, indptr, n_jobs)
        return Prepared(gain, np.ones(len(sizes)), sizes, highest(gain, indptr) <= 0.0, weight)
