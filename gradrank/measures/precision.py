"""Precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared, cut, query_sums, relevant
from gradrank.measures.ndcg import NDCG
from gradrank.measures.parameters import parameter, rel_parameter
from gradrank.measures.position import PositionMeasure


@dataclass(frozen=True, repr=False)
class Precision(PositionMeasure):
    """Share of relevant documents among the first k.

    P@k = (1/k) Σ_{t≤k} rel(t); a list shorter than k is padded with non-relevant documents unless ``per=list``.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    rel
        Smallest label that counts as relevant.
    per
        Divide by the ``cutoff``, or by the length of the ``list`` if that is shorter.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], qid=[1, 1, 1])
    >>> Precision(2).values([3.0, 2.0, 1.0], data).tolist()
    [0.5]
    """

    rel: float = rel_parameter()
    per: str = parameter("divide by the cut-off, or by the list's length if that is shorter", "cutoff", "list")

    name: ClassVar[str] = "P"
    aliases: ClassVar[tuple[str, ...]] = ("Precision",)

    def training_target(self) -> Measure:
        """NDCG: it sees swaps across the cut-off alone, whatever the grades."""
        return NDCG.of_labels(self, "linear") if self.rel > 0 else super().training_target()

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = relevant(labels, self.rel)
        depth = cut(self.cutoff, indptr)
        norm = np.full(len(depth), float(self.cutoff)) if self.cutoff and self.per == "cutoff" else depth.astype(float)
        return Prepared(gain, norm, depth, query_sums(gain, indptr) == 0, np.ones(len(gain)))
