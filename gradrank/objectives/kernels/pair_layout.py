"""The arrays that kernels over pairs of documents work on.

The documents of each query are laid out by descending gain (within the classes of documents that may be paired), so
that the documents worse than document i are one contiguous run, ``run_end[i]``…``limit[i]``, and loops over them have
no branch. Numbers of documents are places in this layout; those in ``run_end``, ``limit`` and ``shuffle`` count from
the query's first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class PairLayout(NamedTuple):
    """The documents of each query by descending gain, and which of them form pairs."""

    indptr: NDArray[np.int64]
    """Query q has the documents ``indptr[q]``…``indptr[q + 1]``."""
    rows: NDArray[np.int64]
    """Row of the data of each document."""
    run_end: NDArray[np.int64]
    """For each document the first one of lower gain."""
    limit: NDArray[np.int64]
    """For each document the end of those that it may be paired with; 0 for documents that join no pair, which come
    last."""
    shuffle: NDArray[np.int64]
    """The order in which documents with equal scores stand; by chance, as the layout itself is sorted by label."""
    active: NDArray[np.bool_]
    """Queries in which there is something to order."""
    query_weight: NDArray[np.float64]
    """Factor of the λ's of each query."""
    document_weight: NDArray[np.float32]
    """Factor of the pairs in which each document is the better one; empty = no factors."""


class Gains(NamedTuple):
    """What a measure has prepared (see ``Prepared``), with the gains in the order of the layout."""

    gain: NDArray[np.float64]
    weight: NDArray[np.float64]
    norm: NDArray[np.float64]
    depth: NDArray[np.int64]
    option: float
    """A whole number that the measure has prepared, or a parameter of the pairs' weights."""
