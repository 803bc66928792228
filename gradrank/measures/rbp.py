"""Rank-biased precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Prepared, cut, query_sums, relevant
from gradrank.measures.parameters import parameter, rel_parameter
from gradrank.measures.position import PositionMeasure, spread


@dataclass(frozen=True, repr=False)
class RBP(PositionMeasure):
    """Rank-biased precision: the user goes on to the next rank with probability p (Moffat & Zobel 2008).

    RBP = (1 − p) Σ_t rel(t)·p^{t−1}.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    rel
        Smallest label that counts as relevant.
    p
        Probability of going on to the next rank.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, [1, 1], qid=[1, 1])
    >>> RBP(p=0.5).values([2.0, 1.0], data).tolist()
    [0.75]
    """

    rel: float = rel_parameter()
    p: float = parameter("probability of going on to the next rank", low=0.0, high=1.0)

    name: ClassVar[str] = "RBP"

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        gain = relevant(labels, self.rel)
        table = (1.0 - self.p) * self.p ** np.arange(int(np.diff(indptr).max()), dtype=np.float64)
        norm = np.ones(len(indptr) - 1)
        return Prepared(gain, norm, cut(self.cutoff, indptr), query_sums(gain, indptr) == 0, spread(table, indptr))
