"""A number that two data sets share only if they hold the same."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData

_BLOCK_BYTES = 1 << 24


def data_fingerprint(data: RankingData) -> str:
    """SHA-256 of features, names, queries, labels and weights, whatever file they came from; read in blocks.

    Parameters
    ----------
    data
        The data.

    Examples
    --------
    >>> def made(label):
    ...     return RankingData.from_arrays([[1.0], [2.0]], [0, label], qid=[1, 1])
    >>> data_fingerprint(made(1)) == data_fingerprint(made(1)), data_fingerprint(made(1)) == data_fingerprint(made(2))
    (True, False)
    """
    digest = hashlib.sha256()
    _add(digest, data.X)
    _add(digest, data.indptr)
    digest.update("\0".join(data.feature_names).encode("utf-8", "surrogatepass"))
    for name, label in data.labels.items():
        digest.update(f"\0label {name}\0".encode("utf-8", "surrogatepass"))
        _add(digest, label)
    if data.weight is not None:
        digest.update(b"\0weight\0")
        _add(digest, data.weight)
    if data.document_weight is not None:
        digest.update(b"\0document weight\0")
        _add(digest, data.document_weight)
    return digest.hexdigest()


def _add(digest: Any, array: NDArray[Any]) -> None:
    digest.update(f"{array.dtype.str} {array.shape}".encode())
    step = max(1, _BLOCK_BYTES // max(1, array.nbytes // max(1, len(array))))
    for start in range(0, len(array), step):
        block = np.ascontiguousarray(array[start : start + step])
        if block.dtype.kind == "f":
            # NaN is missing, whatever bits it has; and −0 is 0.
            block = np.where(np.isnan(block), block.dtype.type(np.nan), block + block.dtype.type(0.0))
        digest.update(block.tobytes())
