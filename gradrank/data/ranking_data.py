"""The one shape in which data goes through gradrank: documents grouped by query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.arrays import check_id_numbers, number_array, plain_array, unmasked
from gradrank.data.precision import Matrix, fitting_matrix
from gradrank.data.row_index import check_same_order
from gradrank.data.strings import Strings
from gradrank.errors import DataError, NoDocumentsError
from gradrank.runtime.suggestions import known_keywords

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

    X: Matrix
    """Features, documents × features; NaN = missing; float32, or float64 if one of them needs it (see
    :mod:`gradrank.data.precision`); may be a memory map."""
    indptr: NDArray[np.int64]
    """Query boundaries, length queries + 1."""
    labels: Mapping[str, NDArray[np.float32]]
    """Label columns by source name; the first is the primary one; NaN = unjudged."""
    qid: Strings
    """Query ids, one per query."""
    docid: Strings | None = None
    """Document ids, one per document, if known."""
    weight: NDArray[np.float64] | None = None
    """Weights, one per query, if any."""
    document_weight: NDArray[np.float64] | None = None
    """Weights, one per document, if any: a pair counts with that of its better document."""
    feature_names: tuple[str, ...] = ()
    rows: NDArray[np.int64] | None = field(default=None, repr=False)
    """If regrouping moved rows: ``rows[i]`` is the input row that document ``i`` came from."""
    keys: NDArray[np.uint64] | None = field(default=None, repr=False)
    """If the data is part of a larger set: a number for each query by which random draws are made, so that they do not
    depend on where the query is kept."""

    # ------------------------------------------------------------------ construction
    @classmethod
    @known_keywords
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        qid: ArrayLike | Sequence[object] | None = None,
        group: ArrayLike | None = None,
        docid: Iterable[object] | None = None,
        weight: ArrayLike | None = None,
        document_weight: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        regroup: bool = True,
    ) -> RankingData:
        """Ranking data from arrays: checked, and grouped by query.

        Parameters
        ----------
        X
            Features, a matrix of documents × features; NaN = missing.
        y
            Labels, one per row, or a mapping of label source → labels, the primary one first; NaN = unjudged.
        qid
            Query ids, one per row, in any order.
        group
            Sizes of consecutive queries, as LightGBM has it, instead of ``qid``.
        docid
            Document ids, one per row.
        weight
            Weights, one per query, in order of first appearance.
        document_weight
            Weights, one per row; see :meth:`with_document_weight`.
        feature_names
            Names of the features; ``f1``, ``f2``, … if not given.
        regroup
            Whether rows of a query that are not consecutive are brought together, keeping their order (``rows`` then
            tells where each came from), or refused.

        Examples
        --------
        >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [1, 0, 1], qid=[7, 8, 7])
        >>> data.rows.tolist(), list(data.qid)
        ([0, 2, 1], ['7', '8'])
        """
        beside = dict(y) if isinstance(y, Mapping) else {"y": y}
        check_same_order({"X": X, **beside, "qid": qid, "docid": docid, "document_weight": document_weight})
        features = _feature_matrix(X)
        n_docs = len(features)
        if n_docs == 0:
            raise NoDocumentsError("there are no documents")
        check_features(features)
        columns = y if isinstance(y, Mapping) else {} if y is None else {PRIMARY_LABEL: y}
        labels = {str(name): _label_column(str(name), values, n_docs) for name, values in columns.items()}
        indptr, ids, order = _group(n_docs, qid, group, regroup)
        names = default_feature_names(features.shape[1]) if feature_names is None else tuple(map(str, feature_names))
        check_feature_names(names, features.shape[1])
        document_weights = None if document_weight is None else checked_document_weights(document_weight, n_docs)
        doc_names = None if docid is None else Strings.of(docid)
        if doc_names is not None and len(doc_names) != n_docs:
            raise DataError(f"there are {len(doc_names)} document ids for {n_docs} documents")
        if order is not None:
            features = features[order]
            labels = {name: column[order] for name, column in labels.items()}
            doc_names = None if doc_names is None else doc_names[order]
            document_weights = None if document_weights is None else document_weights[order]
        return cls(
            # Row by row, as kernels read them: what is summed in another order rounds to another model.
            X=np.ascontiguousarray(features),  # type: ignore[arg-type]
            indptr=indptr,
            labels=labels,
            qid=ids,
            docid=doc_names,
            weight=None if weight is None else checked_query_weights(weight, len(ids)),
            document_weight=document_weights,
            feature_names=names,
            rows=order,
        )

    @classmethod
    def from_frame(cls, frame: Any, **columns: Any) -> RankingData:
        """Ranking data from a pandas or polars frame or an Arrow table.

        Parameters
        ----------
        frame
            The frame, one row per document, in any order.
        columns
            Which column is what (``qid=``, ``labels=``, ``features=``, ``ignore=`` …), where its name does not tell;
            see :func:`gradrank.data.frames.from_frame`.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"query": [1, 1], "grade": [0, 1], "bm25": [3.5, 7.1]})
        >>> RankingData.from_frame(frame, qid="query", labels="grade")
        RankingData(1 queries, 2 documents, 1 features, labels: grade)
        """
        from gradrank.data.frames import from_frame

        return from_frame(frame, **columns)

    def to_frame(self, kind: Literal["pandas", "polars", "arrow"] = "pandas") -> Any:
        """The data as a frame, one row per document; see :func:`gradrank.data.frames.to_frame`.

        Parameters
        ----------
        kind
            ``"pandas"``, ``"polars"`` or ``"arrow"``.
        """
        from gradrank.data.frames import to_frame

        return to_frame(self, kind)

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
        """The data of some queries, in the given order.

        Parameters
        ----------
        queries
            Numbers of queries from 0, or a Boolean for each query.

        Examples
        --------
        >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [1, 0, 1], qid=["a", "b", "c"])
        >>> list(data.take_queries([2, 0]).qid)
        ['c', 'a']
        """
        chosen = self._chosen_queries(queries)
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
            document_weight=None if self.document_weight is None else self.document_weight[rows],
            feature_names=self.feature_names,
            keys=None if self.keys is None else self.keys[chosen],
        )

    def _chosen_queries(self, queries: ArrayLike) -> NDArray[np.int64]:
        """Numbers of the queries that a caller names by numbers or by a Boolean for each."""
        given = np.atleast_1d(plain_array(queries, "queries"))
        if given.dtype == bool and given.shape == (self.n_queries,):
            return np.flatnonzero(given)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise DataError(
                f"queries are {given.dtype} of shape {given.shape}, expected whole numbers from 0, or "
                f"{self.n_queries} Booleans"
            )
        outside = (given < 0) | (given >= self.n_queries)
        if outside.any():
            raise DataError(
                f"query number {given[np.argmax(outside)]} is given, expected one from 0 to {self.n_queries - 1}"
            )
        return given.astype(np.int64)

    def with_label(self, name: str, values: ArrayLike) -> RankingData:
        """The same data with one more (or a replaced) label source.

        Parameters
        ----------
        name
            Name of the label source.
        values
            Its labels, in this data's own order (:meth:`from_input_order` brings them there); NaN = unjudged.
        """
        labels = dict(self.labels)
        labels[name] = _label_column(name, values, self.n_docs)
        return replace(self, labels=labels)

    def with_weight(self, weight: ArrayLike | None) -> RankingData:
        """The same data with other query weights, one per query in this data's order."""
        checked = None if weight is None else checked_query_weights(weight, self.n_queries)
        return replace(self, weight=checked)

    def with_document_weight(self, weight: ArrayLike | None) -> RankingData:
        """The same data with other document weights.

        A pair of documents counts with the weight of its better one, times that of the query: the click on a document
        that few users examine stands for many (inverse propensity), and the pairs that it wins count as often.
        Objectives that look at single documents weigh those.

        Parameters
        ----------
        weight
            One finite number of 0 or more per document, in this data's own order; None = no weights.

        Examples
        --------
        >>> data = RankingData.from_arrays([[1.0], [2.0]], [1, 0], qid=[7, 7])
        >>> data.with_document_weight([4.0, 1.0]).document_weight.tolist()
        [4.0, 1.0]
        """
        return replace(self, document_weight=None if weight is None else checked_document_weights(weight, self.n_docs))

    def row_weights(self) -> NDArray[np.float64]:
        """For each document its weight times that of its query."""
        weights = np.ones(self.n_docs) if self.document_weight is None else np.asarray(self.document_weight)
        return weights if self.weight is None else weights * np.repeat(self.weight, self.sizes)

    def with_sample_weight(self, sample_weight: ArrayLike) -> RankingData:
        """The same data with query weights that are given per row, as scikit-learn has them, or per query.

        Parameters
        ----------
        sample_weight
            One number per row, in the order in which the rows were given and the same in all rows of a query; or one
            number per query, in order of first appearance.

        Examples
        --------
        >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], qid=[7, 8, 7])
        >>> data.with_sample_weight([2.0, 5.0, 2.0]).weight.tolist()
        [2.0, 5.0]
        """
        values = number_array(sample_weight, "the weights", np.float64)
        if values.shape == (self.n_docs,):
            return replace(self, weight=_weight_of_rows(self, self.from_input_order(values)))
        if values.shape != (self.n_queries,):
            raise DataError(
                f"the weights have shape {values.shape}, expected one number for each of {self.n_docs} documents or of "
                f"{self.n_queries} queries"
            )
        return self.with_weight(values)

    def in_input_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring per-document values from this data's order back to the order in which the rows were given.

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


def rows_alone(X: Matrix, feature_names: Sequence[str]) -> RankingData:
    """Rows without labels and ids, as if of one query: enough for whatever looks at each row by itself.

    >>> rows_alone(np.zeros((2, 1)), ["bm25"])
    RankingData(1 queries, 2 documents, 1 features, labels: none)
    """
    indptr = np.array([0, len(X)])
    return RankingData(X=X, indptr=indptr, labels={}, qid=Strings.of([""]), feature_names=tuple(feature_names))


def _feature_matrix(X: Any) -> Matrix:
    if hasattr(X, "toarray"):
        raise DataError("X is a sparse matrix, expected a dense one (X.toarray())")
    values = plain_array(unmasked(X), "X")
    if values.ndim != 2:
        raise DataError(f"X has {values.ndim} dimensions, expected 2 (documents × features)")
    if values.dtype.kind in "mM":
        raise DataError(f"X holds values of type {values.dtype}, expected numbers")
    if values.dtype.kind == "c":
        raise DataError("X holds complex numbers. Complex data not supported, expected real numbers")
    if values.dtype.kind not in "biuf":
        try:
            values = number_array(values, "X", np.float64)
        except DataError:
            raise DataError(f"X holds values of type {values.dtype}, expected numbers") from None
    return fitting_matrix(values)


def check_features(features: Matrix, first_row: int = 0) -> None:
    """Refuse numbers that are infinite; ``first_row`` is the number of the first row."""
    for start in range(0, len(features), 65536):
        block = features[start : start + 65536]
        with np.errstate(over="ignore"):
            infinite = np.isinf(block.astype(np.float32, copy=False))
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise DataError(
                f"feature {column + 1} of document {first_row + start + row + 1} is infinite (as float32), "
                "expected a finite number or NaN for a missing value"
            )


def check_feature_names(names: tuple[str, ...], count: int) -> None:
    """Refuse names that are too few or too many, or given twice."""
    if len(names) != count:
        raise DataError(f"there are {len(names)} feature names for {count} features")
    twice = first_repeated(names)
    if twice is not None:
        raise DataError(f"feature name {twice!r} is given twice")


def first_repeated(names: Iterable[str]) -> str | None:
    """The first name that came before, if any.

    >>> first_repeated(["a", "b", "a"])
    'a'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _label_column(name: str, values: ArrayLike, n_docs: int) -> NDArray[np.float32]:
    column = number_array(unmasked(values), f"label {name!r}", np.float32)
    if column.shape != (n_docs,):
        raise DataError(f"label {name!r} has shape {column.shape}, expected one number for each of {n_docs} documents")
    check_label(name, column)
    return column


def check_label(name: str, column: NDArray[np.float32], first_row: int = 0) -> None:
    """Refuse labels that are infinite; ``first_row`` is the number of the first row."""
    if np.isinf(column).any():
        row = first_row + int(np.flatnonzero(np.isinf(column))[0])
        raise DataError(f"label {name!r} of document {row + 1} is infinite, expected a number or NaN (unjudged)")


def checked_query_weights(values: ArrayLike, n_queries: int) -> NDArray[np.float64]:
    """Weights of queries as an array, refused if one is not finite or below 0."""
    weight = number_array(values, "weight", np.float64)
    if weight.shape != (n_queries,):
        raise DataError(f"weight has shape {weight.shape}, expected one number for each of {n_queries} queries")
    if not np.isfinite(weight).all() or (weight < 0).any():
        query = int(np.flatnonzero(~np.isfinite(weight) | (weight < 0))[0])
        raise DataError(f"weight of query {query + 1} is {weight[query]}, expected a finite number of 0 or more")
    return weight


def checked_document_weights(values: ArrayLike, n_docs: int) -> NDArray[np.float64]:
    """Weights of documents as an array, refused if one is not finite or below 0."""
    weight = number_array(values, "document_weight", np.float64)
    if weight.shape != (n_docs,):
        raise DataError(f"document_weight has shape {weight.shape}, expected one number for each of {n_docs} documents")
    if not np.isfinite(weight).all() or (weight < 0).any():
        row = int(np.flatnonzero(~np.isfinite(weight) | (weight < 0))[0])
        raise DataError(f"weight of document {row + 1} is {weight[row]}, expected a finite number of 0 or more")
    return weight


def _weight_of_rows(data: RankingData, column: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight of each query, given in all of its rows."""
    weight = column[data.indptr[:-1]]
    query = data.query_of_row()
    wrong = np.flatnonzero((column != weight[query]) | ~np.isfinite(column) | (column < 0))
    if len(wrong):
        row, number = int(wrong[0]), int(query[wrong[0]])
        first = weight[number]
        expected = f"{first:g} as in its first row" if np.isfinite(first) and first >= 0 else "a number of 0 or more"
        raise DataError(f"the weight of query {data.qid[number]} is {column[row]:g} in one row, expected {expected}")
    return weight


def _group(
    n_docs: int, qid: ArrayLike | Sequence[object] | None, group: ArrayLike | None, regroup: bool
) -> tuple[NDArray[np.int64], Strings, NDArray[np.int64] | None]:
    """Query boundaries, query ids, and the row order if rows had to move."""
    if (qid is None) == (group is None):
        raise DataError("give the queries by qid (one id per row) or by group (sizes), one of the two")
    if group is not None:
        indptr = indptr_of_sizes(plain_array(group, "group"), n_docs)
        return indptr, Strings.of(range(1, len(indptr))), None
    values = plain_array(qid, "qid")
    if values.shape != (n_docs,):
        raise DataError(f"qid has shape {values.shape}, expected one id for each of {n_docs} documents")
    if values.dtype.kind in "OMm":
        missing = [row for row, value in enumerate(values) if _is_missing(value)]
        if missing:
            raise DataError(f"qid of document {missing[0] + 1} is missing")
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise DataError(f"qid of document {int(np.flatnonzero(~np.isfinite(values))[0]) + 1} is missing")
        check_id_numbers(values, "qid")
        if (values == np.floor(values)).all():
            values = values.astype(np.int64)  # so that 1.0 and 1 name the same query
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    run_ids = values[starts]
    if run_ids.dtype.kind in "OUS" and (empty := [run for run, value in enumerate(run_ids) if value in ("", b"")]):
        raise DataError(f"qid of document {starts[empty[0]] + 1} is empty")
    _, first, inverse = np.unique(run_ids.astype(str), return_index=True, return_inverse=True)
    if len(first) == len(starts):
        return np.append(starts, n_docs).astype(np.int64), Strings.of(run_ids.tolist()), None
    order, indptr, first_runs = regroup_runs(starts, n_docs, first, inverse)
    if not regroup:
        run = next(run for run in range(len(starts)) if first[inverse[run]] != run)
        raise DataError(f"rows of query {run_ids[run]!s} are not consecutive: it comes again at row {starts[run] + 1}")
    return indptr, Strings.of(run_ids[first_runs].tolist()), order


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas' NA is neither equal nor different
        return True


def indptr_of_sizes(sizes: NDArray[Any], n_docs: int) -> NDArray[np.int64]:
    """Query boundaries from group sizes, checked against the number of documents.

    >>> indptr_of_sizes(np.array([2, 1]), 3).tolist()
    [0, 2, 3]
    """
    if sizes.ndim != 1 or len(sizes) == 0 or sizes.dtype.kind not in "iuf":
        raise DataError("group sizes are not a list of whole numbers")
    # Sizes beyond the number of documents might add up to it once their sum has wrapped around.
    wrong = (sizes != np.floor(sizes)) | (sizes < 1) | (sizes > n_docs)
    if wrong.any():
        bad = int(np.argmax(wrong))
        raise DataError(
            f"group size {bad + 1} is {sizes[bad]}, expected a whole number from 1 to the number of documents, {n_docs}"
        )
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
