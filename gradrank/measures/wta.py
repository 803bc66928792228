"""Winner takes all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared, cut, query_sums, relevant
from gradrank.measures.ndcg import NDCG
from gradrank.measures.parameters import parameter, rel_parameter
from gradrank.measures.position import PositionMeasure, highest, spread


@dataclass(frozen=True, repr=False)
class WTA(PositionMeasure):
    """Winner takes all: 1 if the first document is relevant (or has the query's top label), else 0.

    Parameters
    ----------
    rel
        Smallest label that counts as relevant.
    target
        Whether the winner must be ``relevant``, or have the query's ``top`` label.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, [1, 2], qid=[1, 1])
    >>> WTA().values([2.0, 1.0], data).tolist(), WTA(target="top").values([2.0, 1.0], data).tolist()
    ([1.0], [0.0])
    """

    rel: float = rel_parameter()
    target: str = parameter("the winner must be relevant, or have the query's top label", "relevant", "top")

    name: ClassVar[str] = "WTA"
    takes_cutoff: ClassVar[bool] = False

    def training_target(self) -> Measure:
        """NDCG: it sees swaps with the first document alone."""
        return NDCG.of_labels(self, "linear") if self.rel > 0 else super().training_target()

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = relevant(labels, self.rel)
        if self.target == "top":
            known = np.where(np.isnan(labels), -np.inf, labels)
            gain *= known == np.repeat(highest(known, indptr), np.diff(indptr))
        table = np.zeros(int(np.diff(indptr).max()))
        table[0] = 1.0
        norm = np.ones(len(indptr) - 1)
        return Prepared(gain, norm, cut(1, indptr), query_sums(gain, indptr) == 0, spread(table, indptr))
