"""How often two label sources order a pair of documents in the same way."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.runtime.kernels import njit


def pair_agreement(
    data: RankingData, first: str | ArrayLike | None = None, second: str | ArrayLike = "clicks"
) -> float:
    """Share of the pairs of a query that two label sources order alike, among those that both of them order.

    Pairs that one of the two leaves tied, or of which a document has no label, do not count; NaN if there are no
    others.

    Parameters
    ----------
    data
        Queries and labels.
    first, second
        Names of label sources (None = the primary one), or one number per document.

    Examples
    --------
    >>> labels = {"label": [2, 1, 0], "clicks": [0.9, 0.1, 0.3]}
    >>> data = RankingData.from_arrays([[0.0]] * 3, labels, qid=[1, 1, 1])
    >>> round(pair_agreement(data), 3)
    0.667
    """
    columns = [
        data.label(source) if source is None or isinstance(source, str) else np.asarray(source)
        for source in (first, second)
    ]
    for column in columns:
        if column.shape != (data.n_docs,):
            raise DataError(
                f"labels have shape {column.shape}, expected one number for each of {data.n_docs} documents"
            )
    alike, ordered = agreeing_pairs(data.indptr, columns[0].astype(np.float64), columns[1].astype(np.float64))
    return alike / ordered if ordered else float("nan")


@njit(cache=True, nogil=True)
def agreeing_pairs(
    indptr: NDArray[np.int64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[int, int]:
    """Pairs ordered alike, and pairs that both order."""
    alike = 0
    ordered = 0
    for query in range(len(indptr) - 1):
        for i in range(indptr[query], indptr[query + 1]):
            for j in range(indptr[query], i):
                # Comparisons with NaN are false, so that pairs without a label are not ordered.
                one = int(first[i] > first[j]) - int(first[i] < first[j])
                two = int(second[i] > second[j]) - int(second[i] < second[j])
                if one != 0 and two != 0:
                    ordered += 1
                    alike += one == two
    return alike, ordered
