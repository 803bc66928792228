"""Recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared, cut, query_sums, relevant
from gradrank.measures.ndcg import NDCG
from gradrank.measures.parameters import rel_parameter
from gradrank.measures.position import PositionMeasure


@dataclass(frozen=True, repr=False)
class Recall(PositionMeasure):
    """Share of the query's relevant documents that are among the first k.

    Recall@k = (1/R) Σ_{t≤k} rel(t), R = number of relevant documents.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    rel
        Smallest label that counts as relevant.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], qid=[1, 1, 1])
    >>> Recall(2).values([3.0, 2.0, 1.0], data).tolist()
    [0.5]
    """

    rel: float = rel_parameter()

    name: ClassVar[str] = "Recall"
    aliases: ClassVar[tuple[str, ...]] = ("R",)

    def training_target(self) -> Measure:
        """NDCG: it sees swaps across the cut-off alone, whatever the grades."""
        return NDCG.of_labels(self, "linear") if self.rel > 0 else super().training_target()

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = relevant(labels, self.rel)
        found = query_sums(gain, indptr)
        return Prepared(gain, np.maximum(found, 1.0), cut(self.cutoff, indptr), found == 0, np.ones(len(gain)))
