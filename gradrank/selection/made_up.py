"""Documents that might have been: features of two documents of a query, mixed.

A model can be asked about any document. Where there are few real ones, its answers for made-up ones tell what it would
say of documents to come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings

# Shares of the features that come from the other document, in turn: near to a real document, and half way between two.
_SHARES = (0.3, 0.5)


def with_made_up(data: RankingData, copies: int, random_state: int = 0) -> tuple[RankingData, NDArray[np.int64]]:
    """The queries, and copies of them in which each document has some features of another one of its query.

    Parameters
    ----------
    data
        Real documents.
    copies
        How many copies of each query there are to be.
    random_state
        Seed of who lends what.

    Returns
    -------
    The data, real queries first, without labels; and the number of the real query that each query is made of.

    Examples
    --------
    >>> data = RankingData.from_arrays([[1.0, 2.0], [3.0, 4.0]], qid=["a", "a"])
    >>> more, origin = with_made_up(data, 2)
    >>> more.n_queries, origin.tolist(), sorted(set(more.X[:, 0].tolist()))
    (3, [0, 0, 0], [1.0, 3.0])
    """
    rng = np.random.default_rng(random_state)
    query = data.query_of_row()
    blocks = [np.asarray(data.X)]
    for number in range(copies):
        other = data.indptr[query] + (rng.random(data.n_docs) * data.sizes[query]).astype(np.int64)
        lent = rng.random(data.X.shape, dtype=np.float32) < _SHARES[number % len(_SHARES)]
        blocks.append(np.where(lent, blocks[0][other], blocks[0]))
    origin = np.tile(np.arange(data.n_queries), copies + 1)
    names = data.qid.to_list()
    return RankingData(
        X=np.concatenate(blocks),
        indptr=np.concatenate(([0], np.cumsum(data.sizes[origin]))),
        labels={},
        qid=Strings.of(name if not copy else f"{name}, made up {copy}" for copy in range(copies + 1) for name in names),
        weight=None if data.weight is None else data.weight[origin],
        document_weight=None if data.document_weight is None else np.tile(data.document_weight, copies + 1),
        feature_names=data.feature_names,
    ), origin
