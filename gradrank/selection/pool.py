"""The queries that a search learns from: those of training and validation data, unless the latter stay apart."""

from __future__ import annotations

from dataclasses import replace

from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import concatenate
from gradrank.errors import DataError
from gradrank.learners.base.estimator import aligned


def pooled(train: RankingData, valid: RankingData | None, apart: bool) -> tuple[RankingData, RankingData | None]:
    """The data to learn from, and the data that stays apart.

    >>> from gradrank.data.artificial import make_splits
    >>> sets = make_splits(10, n_docs=4, n_features=3)
    >>> sizes = [pooled(sets["train"], sets["vali"], apart)[0].n_queries for apart in (False, True)]
    >>> sizes[0] - sizes[1] == sets["vali"].n_queries
    True
    """
    if valid is None:
        if apart:
            raise DataError("validation data is to stay apart, and there is none")
        return train, None
    valid = aligned(valid, train, "the validation data")
    return (train, valid) if apart else (together(train, valid), None)


def together(train: RankingData, valid: RankingData) -> RankingData:
    """Both sets as one, the training queries first; document ids only if both have them."""
    sets = [train, valid]
    if (train.docid is None) != (valid.docid is None):
        sets = [replace(data, docid=None) for data in sets]
    try:
        return concatenate(sets)
    except DataError as error:
        raise DataError(f"training and validation data do not go together: {error}") from None
