"""ERR over the position labels of a top-k truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.measures.base import IntArray, Measure, Prepared
from gradrank.measures.err import ERR
from gradrank.measures.kappa_ndcg import KappaNDCG, check_position_labels


@dataclass(frozen=True, repr=False)
class KappaERR(ERR):
    """ERR over position labels, the top grade being the query's largest label (Niu et al. 2012, eq. 3).

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    top
        The top grade: a number, or ``query`` for the query's largest label.
    label, convention, ties, empty, unjudged, precision
        See :class:`Measure`.

    >>> from gradrank.data import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, [1, 0], qid=[1, 1])
    >>> KappaERR().values([2.0, 1.0], data).tolist()
    [0.5]
    """

    name: ClassVar[str] = "KappaERR"

    def training_target(self) -> Measure:
        """κ-NDCG, over the same labels."""
        return KappaNDCG(label=self.label, unjudged=self.unjudged)

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        check_position_labels(self.name, labels)
        return super().prepare(labels, indptr, n_jobs)
