"""The one shape in which data goes through gradrank: documents grouped by query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.strings import Strings
from gradrank.errors import DataError

PRIMARY_LABEL = "label"


def default_feature_names(count: int) -> tuple[str, ...]:
    """Names of features that came without any: ``f1``, ``f2``, … as LETOR files number them.

    >>> default_feature_names(3)
    ('f1', 'f2', 'f3')
    """
    return tuple(f"f{index}" for index in range(1, count + 1))


@dataclass(frozen=True, eq=False)
class RankingData:
    """Documents with features and labels, grouped by query.

    Rows of one query are consecutive: query ``q`` owns rows ``indptr[q]:indptr[q + 1]``. Construct it
    with :meth:`from_arrays` or a reader; both check everything once, and all code behind that door
    trusts it.

    >>> data = RankingData.from_arrays([[0.1], [0.5], [0.3]], [0, 2, 1], qid=["a", "a", "b"])
    >>> data.n_queries, data.n_docs, data.n_features
    (2, 3, 1)
    >>> data.label().tolist()
    [0.0, 2.0, 1.0]
    """

    X: NDArray[np.float32]
    """Features, documents × features; NaN = missing; may be a memory map."""
    indptr: NDArray[np.int64]
    """Query boundaries, length queries + 1."""
    labels: Mapping[str, NDArray[np.float32]]
    """Label columns by source name; the first is the primary one; NaN = unjudged."""
    qid: Strings
    """One id a query."""
    docid: Strings | None = None
    """One id a document, if known."""
    weight: NDArray[np.float64] | None = None
    """One weight a query, if any."""
    feature_names: tuple[str, ...] = ()
    rows: NDArray[np.int64] | None = field(default=None, repr=False)
    """If regrouping moved rows: ``rows[i]`` is the input row that document ``i`` came from."""

    # ------------------------------------------------------------------ construction
    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        qid: ArrayLike | Sequence[object] | None = None,
        group: ArrayLike | None = None,
        docid: Iterable[object] | None = None,
        weight: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        regroup: bool = True,
    ) -> RankingData:
        """Check and group arrays.

        ``y`` is one label column or a mapping of them by source name; NaN = unjudged. Queries are given
        either by ``qid`` (one id a row, in any order) or by ``group`` (sizes of consecutive queries, as
        LightGBM has it). ``weight`` is one number a query, in order of first appearance. Rows of a
        query that are not consecutive are brought together, keeping their order (``rows`` then tells
        where each came from), or refused with ``regroup=False``.

        >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [1, 0, 1], qid=[7, 8, 7])
        >>> data.rows.tolist(), list(data.qid)
        ([0, 2, 1], ['7', '8'])
        """
        features = np.asarray(X)
        if features.ndim != 2:
            raise DataError(f"X has {features.ndim} dimensions, expected 2 (documents × features)")
        try:
            with np.errstate(over="ignore"):  # said below, with the place
                features = features.astype(np.float32, copy=False)
        except (TypeError, ValueError):
            raise DataError(f"X holds values of type {features.dtype}, expected numbers") from None
        n_docs = len(features)
        if n_docs == 0:
            raise DataError("there are no documents")
        _check_features(features)
        columns = y if isinstance(y, Mapping) else {} if y is None else {PRIMARY_LABEL: y}
        labels = {str(name): _label_column(str(name), values, n_docs) for name, values in columns.items()}
        indptr, ids, order = _group(n_docs, qid, group, regroup)
        names = default_feature_names(features.shape[1]) if feature_names is None else tuple(feature_names)
        _check_feature_names(names, features.shape[1])
        doc_names = None if docid is None else Strings.of(docid)
        if doc_names is not None and len(doc_names) != n_docs:
            raise DataError(f"there are {len(doc_names)} document ids for {n_docs} documents")
        if order is not None:
            features = features[order]
            labels = {name: column[order] for name, column in labels.items()}
            doc_names = None if doc_names is None else doc_names[order]
        return cls(
            # Row by row, as kernels read them: what is summed in another order rounds to another model.
            X=np.ascontiguousarray(features),
            indptr=indptr,
            labels=labels,
            qid=ids,
            docid=doc_names,
            weight=None if weight is None else _query_weights(weight, len(ids)),
            feature_names=names,
            rows=order,
        )

    # ------------------------------------------------------------------ facts
    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return int(self.indptr[-1])

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.indptr) - 1

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of documents of each query."""
        return np.diff(self.indptr)

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the label sources, the primary one first."""
        return tuple(self.labels)

    def label(self, source: str | None = None) -> NDArray[np.float32]:
        """The label column of a source; the primary (first) one if no name is given."""
        if not self.labels:
            raise DataError("this data has no labels")
        if source is None:
            return next(iter(self.labels.values()))
        try:
            return self.labels[source]
        except KeyError:
            raise DataError(
                f"there is no label source {source!r}; this data has {', '.join(map(repr, self.labels))}"
            ) from None

    def query_of_row(self) -> NDArray[np.int64]:
        """For each document the number of its query."""
        return np.repeat(np.arange(self.n_queries), self.sizes)

    # ------------------------------------------------------------------ derived data
    def take_queries(self, queries: ArrayLike) -> RankingData:
        """The data of some queries, by number, in the given order.

        >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [1, 0, 1], qid=["a", "b", "c"])
        >>> list(data.take_queries([2, 0]).qid)
        ['c', 'a']
        """
        chosen = np.atleast_1d(np.asarray(queries))
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        sizes = self.sizes[chosen]
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.arange(indptr[-1]) + np.repeat(self.indptr[chosen] - indptr[:-1], sizes)
        return RankingData(
            X=self.X[rows],
            indptr=indptr,
            labels={name: column[rows] for name, column in self.labels.items()},
            qid=self.qid[chosen],
            docid=None if self.docid is None else self.docid[rows],
            weight=None if self.weight is None else self.weight[chosen],
            feature_names=self.feature_names,
        )

    def with_label(self, name: str, values: ArrayLike) -> RankingData:
        """The same data with one more (or a replaced) label column, given in this data's row order."""
        labels = dict(self.labels)
        labels[name] = _label_column(name, values, self.n_docs)
        return replace(self, labels=labels)

    def with_weight(self, weight: ArrayLike | None) -> RankingData:
        """The same data with other query weights."""
        checked = None if weight is None else _query_weights(weight, self.n_queries)
        return replace(self, weight=checked)

    def in_input_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring per-document values back to the order of the rows as they were given.

        >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], qid=[7, 8, 7])
        >>> data.in_input_order(data.X[:, 0]).tolist()
        [1.0, 2.0, 3.0]
        """
        if self.rows is None:
            return values
        result = np.empty_like(values)
        result[self.rows] = values
        return result

    def from_input_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring per-document values, given in the order of the input rows, to this data's order."""
        return values if self.rows is None else values[self.rows]

    def __repr__(self) -> str:
        return (
            f"RankingData({self.n_queries:,} queries, {self.n_docs:,} documents, "
            f"{self.n_features:,} features, labels: {', '.join(self.labels) or 'none'})"
        )


def _check_features(features: NDArray[np.float32]) -> None:
    # max and min ignore nothing but NaN-propagate; a sum over blocks finds infinities in one pass.
    for start in range(0, len(features), 65536):
        block = features[start : start + 65536]
        infinite = np.isinf(block)
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise DataError(
                f"feature {column + 1} of document {start + row + 1} is infinite (as float32), "
                "expected a finite number or NaN for a missing value"
            )


def _check_feature_names(names: tuple[str, ...], count: int) -> None:
    if len(names) != count:
        raise DataError(f"there are {len(names)} feature names for {count} features")
    if len(set(names)) != count:
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise DataError(f"feature name {twice!r} is given twice")


def _label_column(name: str, values: ArrayLike, n_docs: int) -> NDArray[np.float32]:
    try:
        column = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        raise DataError(f"label {name!r} holds something that is not a number") from None
    if column.shape != (n_docs,):
        raise DataError(f"label {name!r} has shape {column.shape}, expected one number for each of {n_docs} documents")
    if np.isinf(column).any():
        row = int(np.flatnonzero(np.isinf(column))[0])
        raise DataError(f"label {name!r} of document {row + 1} is infinite, expected a number or NaN (unjudged)")
    return column


def _query_weights(values: ArrayLike, n_queries: int) -> NDArray[np.float64]:
    weight = np.asarray(values, dtype=np.float64)
    if weight.shape != (n_queries,):
        raise DataError(f"weight has shape {weight.shape}, expected one number for each of {n_queries} queries")
    if not np.isfinite(weight).all() or (weight < 0).any():
        query = int(np.flatnonzero(~np.isfinite(weight) | (weight < 0))[0])
        raise DataError(f"weight of query {query + 1} is {weight[query]}, expected a finite number of 0 or more")
    return weight


def _group(
    n_docs: int, qid: ArrayLike | Sequence[object] | None, group: ArrayLike | None, regroup: bool
) -> tuple[NDArray[np.int64], Strings, NDArray[np.int64] | None]:
    """Query boundaries, query ids, and the row order if rows had to move."""
    if (qid is None) == (group is None):
        raise DataError("give the queries by qid (one id a row) or by group (sizes), one of the two")
    if group is not None:
        indptr = indptr_of_sizes(np.asarray(group), n_docs)
        return indptr, Strings.of(range(1, len(indptr))), None
    values = np.asarray(qid)
    if values.shape != (n_docs,):
        raise DataError(f"qid has shape {values.shape}, expected one id for each of {n_docs} documents")
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise DataError(f"qid of document {int(np.flatnonzero(~np.isfinite(values))[0]) + 1} is missing")
        if (values == np.floor(values)).all():
            values = values.astype(np.int64)  # so that 1.0 and 1 name the same query
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    run_ids = values[starts]
    _, first, inverse = np.unique(run_ids.astype(str), return_index=True, return_inverse=True)
    if len(first) == len(starts):
        return np.append(starts, n_docs).astype(np.int64), Strings.of(run_ids.tolist()), None
    order, indptr, first_runs = regroup_runs(starts, n_docs, first, inverse)
    if not regroup:
        run = next(run for run in range(len(starts)) if first[inverse[run]] != run)
        raise DataError(f"rows of query {run_ids[run]!s} are not consecutive: it comes again at row {starts[run] + 1}")
    return indptr, Strings.of(run_ids[first_runs].tolist()), order


def indptr_of_sizes(sizes: NDArray[Any], n_docs: int) -> NDArray[np.int64]:
    """Query boundaries from group sizes, checked against the number of documents.

    >>> indptr_of_sizes(np.array([2, 1]), 3).tolist()
    [0, 2, 3]
    """
    if sizes.ndim != 1 or len(sizes) == 0 or not np.issubdtype(sizes.dtype, np.number):
        raise DataError("group sizes are not a list of whole numbers")
    if (sizes != np.floor(sizes)).any() or (sizes < 1).any():
        bad = int(np.flatnonzero((sizes != np.floor(sizes)) | (sizes < 1))[0])
        raise DataError(f"group size {bad + 1} is {sizes[bad]}, expected a whole number of 1 or more")
    indptr = np.concatenate(([0], np.cumsum(sizes.astype(np.int64))))
    if indptr[-1] != n_docs:
        raise DataError(f"group sizes add up to {indptr[-1]}, but there are {n_docs} documents")
    return indptr


def regroup_runs(
    starts: NDArray[np.int64], n_docs: int, first: NDArray[np.int64], inverse: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Bring runs of the same query together: row order, query boundaries, first run of each query.

    ``first`` and ``inverse`` are those of ``np.unique`` over the runs' ids. Queries keep the order of
    their first appearance, rows within a query their order in the file.
    """
    appearance = np.argsort(first, kind="stable")
    number = np.empty(len(first), dtype=np.int64)
    number[appearance] = np.arange(len(first))
    query_of_run = number[inverse.reshape(-1)]
    run_sizes = np.diff(np.append(starts, n_docs))
    order = np.argsort(np.repeat(query_of_run, run_sizes), kind="stable")
    sizes = np.bincount(query_of_run, weights=run_sizes, minlength=len(first)).astype(np.int64)
    return order, np.concatenate(([0], np.cumsum(sizes))), first[appearance]
