"""A first look at data: its size, its labels, and what is likely to go wrong with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.interning import intern
from gradrank.data.doubts import id_doubts, label_doubts, numbering_doubts, ordering_doubts, weight_doubts
from gradrank.data.interpret import takes_frames
from gradrank.data.label_facts import label_facts
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings

_MAX_DISTINCT = 32
_MANY_DOCUMENTS = 10_000
_SORTED_SHARE = 0.9
_BLOCK_BYTES = 1 << 24
_QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class LabelProfile:
    """One label source."""

    name: str
    judged: int
    unjudged: int
    minimum: float | None
    maximum: float | None
    counts: dict[str, int] | None
    """Documents of each value, lowest first, if there are at most 32 values."""
    quantiles: dict[str, float] | None
    """Quantiles of the values, if there are more."""
    queries_unjudged: int
    """Queries without a judged document."""
    queries_without_relevant: int
    """Judged queries without a label above 0."""
    queries_all_equal: int
    """Judged queries of two or more documents whose labels are all the same: no ranking of them is better."""
    queries_sorted: int
    """Queries with different labels whose documents come in falling order of label."""


@dataclass(frozen=True)
class Profile:
    """What :func:`profile` found."""

    queries: int
    documents: int
    features: int
    documents_min: int
    documents_median: float
    documents_max: int
    queries_with_one_document: int
    labels: tuple[LabelProfile, ...]
    constant_features: tuple[str, ...]
    """Features with the same value (or none) in every document."""
    missing: dict[str, int]
    """Documents without a value, for features that have such."""
    label_copies: dict[str, str]
    """Features equal to a label source in every judged document, and that source."""
    duplicate_documents: int
    """Documents whose id occurred before in the same query."""
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries, lists and numbers, for JSON."""
        result = asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in result.items()}


@takes_frames("data")
def profile(data: RankingData) -> Profile:
    """Count and check data; features are read in blocks, so that a memory map is not loaded whole.

    Parameters
    ----------
    data
        The data to look at.

    Examples
    --------
    >>> data = RankingData.from_arrays([[1.0, 5.0], [2.0, 5.0], [0.0, 5.0]], [1, 2, 0], qid=["a", "a", "b"])
    >>> found = profile(data)
    >>> found.constant_features, found.label_copies, found.labels[0].counts
    (('f2',), {'f1': 'label'}, {'0': 1, '1': 1, '2': 1})
    """
    sizes = data.sizes
    labels = tuple(_label_profile(data, name) for name in data.labels)
    constant, missing, copies = _scan_features(data)
    duplicates = 0 if data.docid is None else _duplicate_documents(data, data.docid)
    return Profile(
        queries=data.n_queries,
        documents=data.n_docs,
        features=data.n_features,
        documents_min=int(sizes.min()),
        documents_median=float(np.median(sizes)),
        documents_max=int(sizes.max()),
        queries_with_one_document=int((sizes == 1).sum()),
        labels=labels,
        constant_features=constant,
        missing=missing,
        label_copies=copies,
        duplicate_documents=duplicates,
        warnings=(
            *_size_warnings(sizes, duplicates),
            *id_doubts(data),
            *weight_doubts(data),
            *_feature_warnings(data.n_features, constant, copies),
            *(line for name in data.labels for line in ordering_doubts(data, name, besides=list(copies))),
            *numbering_doubts(data),
            *(["there are no labels"] if not labels else []),
            *(line for place, label in enumerate(labels) for line in _label_warnings(data, label, place == 0)),
        ),
    )


# ---------------------------------------------------------------------- labels
def _label_profile(data: RankingData, name: str) -> LabelProfile:
    label = data.labels[name]
    judged = label[~np.isnan(label)]
    facts = label_facts(data, name)
    lowest = np.fmin.reduceat(label, data.indptr[:-1])
    highest = np.fmax.reduceat(label, data.indptr[:-1])
    values, numbers = np.unique(judged, return_counts=True)
    few = len(values) <= _MAX_DISTINCT
    counts = {f"{value:g}": int(number) for value, number in zip(values, numbers, strict=True)} if few else None
    quantiles = None
    if not few:
        found = np.quantile(judged.astype(np.float64), _QUANTILES)
        quantiles = {f"{share:g}": float(value) for share, value in zip(_QUANTILES, found, strict=True)}
    return LabelProfile(
        name=name,
        judged=len(judged),
        unjudged=len(label) - len(judged),
        minimum=float(judged.min()) if len(judged) else None,
        maximum=float(judged.max()) if len(judged) else None,
        counts=counts,
        quantiles=quantiles,
        queries_unjudged=facts.no_judged,
        queries_without_relevant=facts.no_relevant,
        queries_all_equal=facts.one_label,
        queries_sorted=_sorted_queries(data, label, highest != lowest),
    )


def _sorted_queries(data: RankingData, label: NDArray[np.float32], differ: NDArray[np.bool_]) -> int:
    """Number of the queries in ``differ`` whose judged labels never rise in file order."""
    known = ~np.isnan(label)
    query, label = data.query_of_row()[known], label[known]
    rises = (label[1:] > label[:-1]) & (query[1:] == query[:-1])
    rising = np.zeros(data.n_queries, dtype=bool)
    rising[query[1:][rises]] = True
    judged = np.zeros(data.n_queries, dtype=bool)
    judged[query] = True
    return int((judged & differ & ~rising).sum())


def _label_warnings(data: RankingData, label: LabelProfile, primary: bool) -> list[str]:
    if label.minimum is None or label.maximum is None:
        return [f"label {label.name!r}: no document is judged"]
    warnings = []
    column = data.labels[label.name]
    # Rates between 0 and 1 are what secondary sources such as clicks hold.
    if primary or label.minimum < 0 or label.maximum > 1:
        fractions = int((column[~np.isnan(column)] % 1 != 0).sum())
        if fractions:
            warnings.append(f"{fractions:,} documents have a label that is not a whole number")
    judged_alone = int(np.count_nonzero((data.sizes == 1) & ~np.isnan(column[data.indptr[:-1]])))
    differ = data.n_queries - label.queries_unjudged - label.queries_all_equal - judged_alone
    if differ and label.queries_sorted > _SORTED_SHARE * differ:
        warnings.append(
            f"in {label.queries_sorted:,} of {differ:,} queries the documents are sorted by label; "
            "a measure that breaks ties by file order is too high"
        )
    for count, what in (
        (label.queries_without_relevant, "have no relevant document"),
        (label.queries_unjudged, "have no judged document"),
    ):
        if count:
            warnings.append(f"{count:,} of {data.n_queries:,} queries {what}")
    return label_doubts(data, label.name) + [f"label {label.name!r}: {warning}" for warning in warnings]


# ---------------------------------------------------------------------- features
def _scan_features(data: RankingData) -> tuple[tuple[str, ...], dict[str, int], dict[str, str]]:
    """Constant features, counts of missing values, and features that equal a label source."""
    n_features = data.n_features
    lowest = np.full(n_features, np.inf, dtype=data.X.dtype)
    highest = np.full(n_features, -np.inf, dtype=data.X.dtype)
    missing = np.zeros(n_features, dtype=np.int64)
    # A label with one value only would make every such constant feature a copy.
    sources = {name: np.arange(n_features) for name, label in data.labels.items() if len(_distinct(label)) > 1}
    step = max(1, _BLOCK_BYTES // max(1, 4 * n_features))
    for start in range(0, data.n_docs, step):
        block = data.X[start : start + step]
        np.fmin(lowest, np.fmin.reduce(block, axis=0), out=lowest)
        np.fmax(highest, np.fmax.reduce(block, axis=0), out=highest)
        missing += np.isnan(block).sum(axis=0)
        for name, candidates in sources.items():
            label = data.labels[name][start : start + step]
            judged = ~np.isnan(label)
            same = (block[:, candidates][judged] == label[judged, None]).all(axis=0)
            sources[name] = candidates[same]
    names = data.feature_names
    is_constant = ((lowest == highest) & (missing == 0)) | (missing == data.n_docs)
    constant = tuple(names[feature] for feature in np.flatnonzero(is_constant))
    copies = {names[feature]: name for name, candidates in sources.items() for feature in candidates}
    return constant, {names[feature]: int(missing[feature]) for feature in np.flatnonzero(missing)}, copies


def _distinct(label: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.unique(label[~np.isnan(label)])


def _feature_warnings(n_features: int, constant: tuple[str, ...], copies: dict[str, str]) -> list[str]:
    warnings = []
    if constant:
        shown = ", ".join(constant[:5]) + (", …" if len(constant) > 5 else "")
        warnings.append(f"{len(constant):,} of {n_features:,} features are constant: {shown}")
    warnings += [
        f"feature {feature} equals label {name!r} in every judged document: it gives the answer away"
        for feature, name in copies.items()
    ]
    return warnings


# ---------------------------------------------------------------------- queries and documents
def _duplicate_documents(data: RankingData, docid: Strings) -> int:
    offsets = np.asarray(docid.offsets)
    codes, distinct = intern(np.asarray(docid.buffer), offsets[:-1], offsets[1:])
    named = np.diff(offsets) > 0  # an empty id is no id
    keys = (data.query_of_row() * max(1, len(distinct)) + codes)[named]
    return len(keys) - len(np.unique(keys))


def _size_warnings(sizes: NDArray[np.int64], duplicates: int) -> list[str]:
    warnings = []
    many = int((sizes > _MANY_DOCUMENTS).sum())
    if many:
        warnings.append(f"{many:,} queries have more than {_MANY_DOCUMENTS:,} documents, which LightGBM refuses")
    if duplicates:
        warnings.append(f"{duplicates:,} documents occur again in their query (same document id)")
    return warnings
