"""Labels and queries of a file, without its features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.data.streaming.queries import QueryRuns
from gradrank.data.streaming.source import Source
from gradrank.data.strings import Strings
from gradrank.runtime.files import scratch_folder


def read_labels(source: Source, *, regroup: bool = True) -> RankingData:
    """The data of a source without features: labels, queries, ids and weights, as the format's reader has them.

    Parameters
    ----------
    source
        The rows.
    regroup
        Whether rows of a query that are not consecutive are brought together or refused.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from gradrank.data.streaming.letor_source import LetorSource
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = path.write_text("1 qid:a 1:5\\n0 qid:b 1:6\\n2 qid:a 1:7\\n")
    >>> data = read_labels(LetorSource(path))
    >>> data.n_features, data.label().tolist(), data.rows.tolist()
    (0, [1.0, 2.0, 0.0], [0, 2, 1])
    """
    with scratch_folder() as folder:
        runs = QueryRuns(source, folder)
        try:
            labels: dict[str, list[NDArray[np.float32]]] = {}
            docids: list[Strings] = []
            for rows in source.rows(features=False):
                runs.add(rows)
                for name, values in rows.labels.items():
                    labels.setdefault(name, []).append(values)
                if rows.docid is not None:
                    docids.append(rows.docid)
            if runs.interleaved and not regroup:
                runs.refuse_interleaved()
            indptr, qid, order = source.query_sizes(runs.n_docs), runs.qid(), None
            if indptr is not None:
                qid = Strings.of(range(1, len(indptr)))
            else:
                indptr = runs.indptr()
            if runs.interleaved:
                order = np.empty(runs.n_docs, dtype=np.int64)
                for first, places in runs.targets():
                    order[places] = np.arange(first, first + len(places))
            weight = runs.weight()
        finally:
            runs.close()
    source.finish()
    docid = _joined(docids) if docids else None
    if docid is not None and source.optional_docids and not len(docid.buffer):
        docid = None
    columns: dict[str, Any] = {name: np.concatenate(parts) for name, parts in labels.items()}
    if order is not None:
        columns = {name: column[order] for name, column in columns.items()}
        docid = None if docid is None else docid[order]
    X: Any = np.empty((runs.n_docs, 0), dtype=np.float32)
    return RankingData(X=X, indptr=indptr, labels=columns, qid=qid, docid=docid, weight=weight, rows=order)


def _joined(parts: list[Strings]) -> Strings:
    """Several columns of strings as one."""
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return Strings(np.concatenate([part.buffer[part.offsets[0] : part.offsets[-1]] for part in parts]), offsets)
