"""Ranking data on its way from one process to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings


def pack(data: RankingData) -> dict[str, Any]:
    """Ranking data as plain values and arrays."""
    return {
        "X": np.asarray(data.X),
        "indptr": np.asarray(data.indptr),
        "labels": {name: np.asarray(column) for name, column in data.labels.items()},
        "qid": _packed(data.qid),
        "docid": None if data.docid is None else _packed(data.docid),
        "weight": data.weight,
        "document_weight": data.document_weight,
        "feature_names": list(data.feature_names),
    }


def unpack(parcel: Mapping[str, Any]) -> RankingData:
    """The inverse of :func:`pack`.

    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "b"])
    >>> unpack(pack(data))
    RankingData(2 queries, 2 documents, 1 features, labels: label)
    """
    return RankingData(
        X=parcel["X"],
        indptr=parcel["indptr"],
        labels=dict(parcel["labels"]),
        qid=Strings(*parcel["qid"]),
        docid=None if parcel["docid"] is None else Strings(*parcel["docid"]),
        weight=parcel["weight"],
        document_weight=parcel["document_weight"],
        feature_names=tuple(parcel["feature_names"]),
    )


def joined(parts: list[RankingData]) -> RankingData | None:
    """Parts with the same features and labels as one; None if there are none.

    The list is emptied on the way, so that its features are not held twice.
    """
    if len(parts) < 2:
        return parts.pop() if parts else None
    first = parts[0]
    indptr = np.concatenate(([0], np.cumsum(np.concatenate([part.sizes for part in parts]))))
    labels = {name: np.concatenate([part.labels[name] for part in parts]) for name in first.labels}
    qid = _joined([part.qid for part in parts])
    docid = None if first.docid is None else _joined([part.docid for part in parts if part.docid is not None])
    weight = _column([part.weight for part in parts])
    document_weight = _column([part.document_weight for part in parts])
    names = first.feature_names
    del first
    # Memory is taken as rows are copied, and given back part by part.
    X: Any = np.empty((int(indptr[-1]), len(names)), dtype=np.result_type(*(part.X.dtype for part in parts)))
    end = len(X)
    while parts:
        part = parts.pop()
        X[end - part.n_docs : end] = part.X
        end -= part.n_docs
        del part
    return RankingData(
        X=X, indptr=indptr, labels=labels, qid=qid, docid=docid, weight=weight, document_weight=document_weight,
        feature_names=names,
    )  # fmt: skip


def _column(columns: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    there = [column for column in columns if column is not None]
    return np.concatenate(there) if there else None


def _packed(column: Strings) -> list[Any]:
    return [np.asarray(column.buffer), np.asarray(column.offsets)]


def _joined(columns: Sequence[Strings]) -> Strings:
    # Offsets of one column need not begin at 0 if it is a cut of another.
    parts = [np.asarray(column.buffer)[column.offsets[0] : column.offsets[-1]] for column in columns]
    lengths = np.concatenate([np.diff(column.offsets) for column in columns])
    return Strings(np.concatenate(parts), np.concatenate(([0], np.cumsum(lengths))))
