"""NDCG over the position labels of a top-k truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import MeasureError
from gradrank.measures.base import IntArray, Prepared
from gradrank.measures.ndcg import NDCG


def check_position_labels(measure: str, labels: NDArray[np.float32]) -> None:
    """Position labels are whole numbers: k for the first of the top k, …, 1 for the last, 0 for the rest."""
    given = labels[~np.isnan(labels)]
    wrong = given[(given < 0) | (given != np.floor(given))]
    if len(wrong):
        raise MeasureError(
            f"{measure}: label is {wrong[0]:g}, expected a position label (k…1 for the ordered top k, 0 for the rest)"
        )


@dataclass(frozen=True, repr=False)
class KappaNDCG(NDCG):
    """NDCG over position labels: k, k−1, …, 1 for the ordered top k, 0 for the rest (Niu et al. 2012, eq. 2).

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
    >>> data = RankingData.from_arrays([[0.0]] * 3, [2, 1, 0], qid=[1, 1, 1])
    >>> KappaNDCG(10).values([3.0, 2.0, 1.0], data).tolist()
    [1.0]
    """

    name: ClassVar[str] = "KappaNDCG"

    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """See Measure.prepare."""
        check_position_labels(self.name, labels)
        return super().prepare(labels, indptr, n_jobs)
