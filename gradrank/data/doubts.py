"""What makes training data doubtful: said in sentences that tell what it means and what to do.

Nothing here is an error. Training, the command line and ``gradrank info`` say these sentences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.cut_queries import SeenQueries
from gradrank.data.label_facts import label_facts
from gradrank.data.ranking_data import PRIMARY_LABEL, RankingData

LARGEST_GRADE = 31
"""Beyond it 2^l − 1 outgrows 32-bit integers, and LightGBM's table of gains ends."""

_FEW_QUERIES = 20
_FEW_TO_LEARN_FROM = 10
# Pairs of documents with different labels that are looked at; the few features that order the first
# pairs as the label does are looked at in all of them.
_QUERIES = 1000
_FIRST_QUERIES = 100
_PAIRS_PER_QUERY = 10
_ORDERED_SHARE = 0.99
_SUSPECT_SHARE = 0.95
# By chance, features may order so little data: of as many random ones none may be expected to.
_CHANCE = 1e-4
_SHARED_QUERIES = 20
# Features that may number documents end so: item_id, itemId, index. So many rows are looked at; so many must differ.
_NUMBERS_DOCUMENTS = re.compile(r"(^|_|\W)([Ii]d|ID|idx|[Ii]ndex)$|[a-z](Id|ID)$")
_ID_ROWS = 100_000
_FEWEST_IDS = 20
_ID_SHARE = 0.5
_LONGEST_LIST = 5
# As NumPy, pandas, Python and databases spell it.
_NO_ID = frozenset({"nan", "nat", "none", "null", "<na>"})
_LONGEST_NO_ID = max(map(len, _NO_ID))
# Smaller weights, or larger ones, change what thresholds and penalties do.
_FAR_FROM_ONE = 1000.0


@dataclass(frozen=True)
class OrderingFeature:
    """A feature that orders documents as a label does."""

    name: str
    share: float
    """Share of the pairs of a query's documents with different labels that it orders so; ties count half."""
    reverse: bool
    """Whether it is low where the label is high."""


def training_doubts(
    train: RankingData,
    valid: RankingData | Mapping[str, RankingData] | None = None,
    source: str | None = None,
    *,
    exponential: bool = True,
) -> list[str]:
    """What is doubtful about data to learn from, one sentence each; nothing if it looks as data mostly does.

    Parameters
    ----------
    train
        The training data.
    valid
        Validation data, or several sets by name.
    source
        The label source that training reads; the primary one by default.
    exponential
        Whether the measure gives a document of label l the gain 2^l − 1.

    Examples
    --------
    >>> data = RankingData.from_arrays([[3.0], [1.0], [2.0]], [100, 0, -1], qid=[1, 1, 1])
    >>> for sentence in training_doubts(data):
    ...     print(sentence.split(":")[0])
    the training data has one query only
    label 'label' goes up to 100
    label 'label' is below 0 for 1 document (lowest -1)
    """
    sets = {} if valid is None else {"the validation data": valid} if isinstance(valid, RankingData) else valid
    doubts = (
        id_doubts(train)
        + _query_doubts(train, source)
        + weight_doubts(train)
        + label_doubts(train, source, exponential=exponential)
    )
    doubts += ordering_doubts(train, source) + numbering_doubts(train)
    for name, data in sets.items():
        doubts += validation_doubts(
            train, data, name if name.startswith("the ") else f"validation set {name!r}", source
        )
    return doubts


def id_doubts(data: RankingData) -> list[str]:
    """Queries whose id is what tools write where there is none.

    Parameters
    ----------
    data
        The data.

    >>> id_doubts(RankingData.from_arrays([[1.0], [2.0]], qid=["7", "NaN"]))[0].split(";")[0]
    "query id 'NaN' may stand for ids that are not known"
    """
    found = [name for name in data.qid if len(name) <= _LONGEST_NO_ID and name.casefold() in _NO_ID]
    return [
        f"query id {name!r} may stand for ids that are not known; then its documents are those of several queries: "
        "leave them out"
        for name in found
    ]


def _query_doubts(train: RankingData, source: str | None) -> list[str]:
    if train.n_queries == 1:
        return [
            "the training data has one query only: what is learned from it may hold for no other query; check that qid "
            "tells queries apart"
        ]
    differ = len(_differing(train, train.label(source)))
    if 0 < differ < _FEW_TO_LEARN_FROM:
        return [
            f"only {_counted(differ, 'query', 'queries')} of the training data's {train.n_queries:,} "
            f"{'has' if differ == 1 else 'have'} documents with different labels: there is hardly anything to learn "
            "from; check that qid and labels are what they should be"
        ]
    return []


def weight_doubts(train: RankingData) -> list[str]:
    """Weights so far from 1 that thresholds and penalties mean something else.

    Parameters
    ----------
    train
        The training data.
    """
    if train.weight is None and train.document_weight is None:
        return []
    weights = train.row_weights()
    mean = float(weights[weights > 0].mean()) if (weights > 0).any() else 1.0
    if 1.0 / _FAR_FROM_ONE <= mean <= _FAR_FROM_ONE:
        return []
    return [
        f"weights average {mean:.3g} where they are not 0: parameters that count against them, such as "
        "min_child_weight, C or weight_decay, are meant for weights near 1; divide all of them by their mean"
    ]


def label_doubts(data: RankingData, source: str | None = None, *, exponential: bool = True) -> list[str]:
    """Labels that gains cannot take as they are meant.

    Parameters
    ----------
    data
        The data.
    source
        The label source; the primary one by default.
    exponential
        Whether the measure gives a document of label l the gain 2^l − 1.
    """
    label = data.label(source)
    name = source if source is not None else next(iter(data.labels), PRIMARY_LABEL)
    known = label[~np.isnan(label)]
    if not len(known):
        return []
    doubts = []
    highest, lowest = float(known.max()), float(known.min())
    if exponential and highest > LARGEST_GRADE:
        doubts.append(
            f"label {name!r} goes up to {highest:g}: with gains of 2^label − 1 one such document outweighs all others; "
            "bring the labels to a few grades such as 0 to 4, or take linear gains, as in NDCG(gain=linear)@10"
        )
    if lowest < 0:
        count = int((known < 0).sum())
        doubts.append(
            f"label {name!r} is below 0 for {_counted(count, 'document')} (lowest {lowest:g}): measures count them as "
            "0; if it marks documents that nobody judged, make it NaN (unjudged)"
        )
    return doubts


def validation_doubts(train: RankingData, valid: RankingData, name: str, source: str | None = None) -> list[str]:
    """Validation data that cannot choose a model.

    Parameters
    ----------
    train, valid
        The training and the validation data.
    name
        What the sentences call the validation data.
    source
        The label source; the primary one by default.
    """
    if not valid.labels or (source is not None and source not in valid.labels):
        return []
    facts = label_facts(valid, source)
    if facts.no_relevant + facts.no_judged == facts.queries:
        return [
            f"{name} has no relevant document (label above 0): every model has the same value there, so that it cannot "
            "choose one; check its labels"
        ]
    differ = len(_differing(valid, valid.label(source)))
    if differ == 0:
        return [f"{name} has no query with different labels: every ranking has the same value there; check its labels"]
    doubts = []
    if differ < _FEW_QUERIES:
        doubts.append(
            f"{name} has only {_counted(differ, 'query', 'queries')} that can tell rankings apart: what looks best on "
            "so few is largely chance; take more queries, or cross-validate"
        )
    if _same_documents(train, valid):
        doubts.append(
            f"{name} holds queries of the training data with the same documents: it cannot tell what was learned from "
            "what was memorized; cut the data by query (gradrank split)"
        )
    else:
        doubts += cut_doubts(SeenQueries.of(train), valid, name)
    return doubts


def cut_doubts(seen: SeenQueries | None, data: RankingData, name: str) -> list[str]:
    """Queries of which one part was learned from and another is to be measured.

    Parameters
    ----------
    seen
        The queries of the training data, if they are known.
    data
        The data to measure on.
    name
        What the sentence calls it.
    """
    cut = 0 if seen is None else seen.cut_in(data)
    if not cut:
        return []
    return [
        f"{_counted(cut, 'query', 'queries')} of {name} {'has' if cut == 1 else 'have'} the id of a query of the "
        f"training data, and other documents: if queries were cut in two, what was learned from one part is measured "
        "on the other, and values of parts are not those of lists; cut by query (scikit-learn's GroupKFold with "
        "groups=qid, split_queries, gradrank split)"
    ]


# ---------------------------------------------------------------------- features that give the answer away
def ordering_features(data: RankingData, source: str | None = None) -> list[OrderingFeature]:
    """Features that order the documents of nearly all queries as a label does, or in reverse.

    A feature that is made from the label, or from what the label is made of, does so. Up to 1,000 queries with
    different labels are looked at, a few pairs of documents in each; a missing value counts as lowest. Nothing is found
    in data so small that one of as many random features could do the same.

    Parameters
    ----------
    data
        The data.
    source
        The label source; the primary one by default.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 400)
    >>> X = np.column_stack([rng.random(400), 7.0 - 2 * labels])
    >>> ordering_features(RankingData.from_arrays(X, labels, qid=np.arange(400) // 10))
    [OrderingFeature(name='f2', share=1.0, reverse=True)]
    """
    label = np.asarray(data.label(source), dtype=np.float64)
    queries = _differing(data, label)
    if not len(queries) or not data.n_features:
        return []
    rng = np.random.default_rng(0)
    chosen = rng.permutation(queries)[:_QUERIES]
    if _log_chance(data, label, chosen) + np.log(2.0 * data.n_features) > np.log(_CHANCE):
        return []
    higher, lower = _pairs(data, label, chosen, rng)
    first = _PAIRS_PER_QUERY * _FIRST_QUERIES
    share = _ordered_share(data.X, higher[:first], lower[:first], np.arange(data.n_features))
    suspects = np.flatnonzero(np.abs(share - 0.5) >= _SUSPECT_SHARE - 0.5)
    share = _ordered_share(data.X, higher, lower, suspects)
    return [
        OrderingFeature(data.feature_names[column], float(max(value, 1.0 - value)), bool(value < 0.5))
        for column, value in zip(suspects, share, strict=True)
        if max(value, 1.0 - value) >= _ORDERED_SHARE
    ]


def numbering_doubts(data: RankingData) -> list[str]:
    """Sentences about features that number documents, by their names and their values: item ids, row indexes.

    Parameters
    ----------
    data
        The data.

    Examples
    --------
    >>> data = RankingData.from_arrays(np.arange(30)[:, None], qid=np.arange(30) // 3, feature_names=["item_id"])
    >>> numbering_doubts(data)[0].split(":")[0]
    "feature 'item_id' seems to number documents"
    """
    found = []
    for column, name in enumerate(data.feature_names):
        if not _NUMBERS_DOCUMENTS.search(name):
            continue
        values = np.asarray(data.X[:_ID_ROWS, column])
        whole = len(values) >= _FEWEST_IDS and bool((values == np.floor(values)).all())
        if whole and len(np.unique(values)) > _ID_SHARE * len(values):
            found.append(name)
    return [
        f"feature {name!r} seems to number documents: what trees learn of single ones holds for no other; leave it out "
        "(ignore=, --ignore-column)"
        for name in found[:_LONGEST_LIST]
    ]


def ordering_doubts(data: RankingData, source: str | None = None, besides: Sequence[str] = ()) -> list[str]:
    """Sentences about the features that order documents as a label does.

    Parameters
    ----------
    data
        The data.
    source
        The label source; the primary one by default.
    besides
        Names of features about which all is said already.
    """
    found = [feature for feature in ordering_features(data, source) if feature.name not in besides]
    name = source if source is not None else next(iter(data.labels), PRIMARY_LABEL)
    advice = (
        "made from the label or from what the label is made of, it will not be there when documents are ranked; then "
        "leave it out (ignore=, --ignore-column)"
    )
    if len(found) > _LONGEST_LIST:
        listed = ", ".join(repr(feature.name) for feature in found[:_LONGEST_LIST])
        return [
            f"{len(found):,} features ({listed}, …) order the documents of a query as label {name!r} does: if one is "
            f"{advice}"
        ]
    return [
        f"feature {feature.name!r} orders the documents of a query as label {name!r} does"
        f"{', in reverse' if feature.reverse else ''} ({feature.share:.1%} of the pairs): if it is {advice}"
        for feature in found
    ]


def _differing(data: RankingData, label: NDArray[Any]) -> NDArray[np.int64]:
    """Queries whose judged documents have different labels."""
    starts = data.indptr[:-1]
    return np.flatnonzero(np.fmax.reduceat(label, starts) > np.fmin.reduceat(label, starts))


def _rows_of(data: RankingData, queries: NDArray[np.int64]) -> NDArray[np.int64]:
    sizes = data.sizes[queries]
    ends = np.cumsum(sizes)
    rows: NDArray[np.int64] = np.arange(ends[-1]) + np.repeat(data.indptr[queries] - (ends - sizes), sizes)
    return rows


def _log_chance(data: RankingData, label: NDArray[np.float64], queries: NDArray[np.int64]) -> float:
    """Logarithm of the probability that a random feature orders the documents of all queries as their labels do."""
    from scipy.special import gammaln

    rows = _rows_of(data, queries)
    place = np.repeat(np.arange(len(queries)), data.sizes[queries])
    judged = ~np.isnan(label[rows])
    keys = np.column_stack([place[judged], label[rows][judged]])
    _, of_label = np.unique(keys, axis=0, return_counts=True)
    _, of_query = np.unique(place[judged], return_counts=True)
    return float(gammaln(of_label + 1.0).sum() - gammaln(of_query + 1.0).sum())


def _pairs(
    data: RankingData, label: NDArray[np.float64], queries: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of pairs of a query's documents, that with the higher label first; the pairs of a query come together."""
    rows = _rows_of(data, queries)
    place = np.repeat(np.arange(len(queries)), data.sizes[queries])
    judged = ~np.isnan(label[rows])
    rows, place = rows[judged], place[judged]
    order = np.lexsort((-label[rows], place))
    rows, place = rows[order], place[order]
    levels = label[rows]
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    ends = np.append(starts[1:], len(rows))
    changes = np.flatnonzero((np.diff(place, prepend=-1) != 0) | (np.diff(levels, prepend=np.nan) != 0))
    level_end = np.repeat(np.append(changes[1:], len(rows)), np.diff(np.append(changes, len(rows))))
    # Documents that have worse ones are those before the query's last level.
    last_level = changes[np.searchsorted(changes, ends, side="left") - 1]
    better = rng.integers(np.repeat(starts, _PAIRS_PER_QUERY), np.repeat(last_level, _PAIRS_PER_QUERY))
    worse = rng.integers(level_end[better], np.repeat(ends, _PAIRS_PER_QUERY))
    return rows[better], rows[worse]


def _ordered_share(
    X: NDArray[Any], higher: NDArray[np.int64], lower: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Share of the pairs in which a feature is higher where the label is; ties count half."""
    if not len(columns):
        return np.empty(0)
    total = np.zeros(len(columns))
    step = _FIRST_QUERIES * _PAIRS_PER_QUERY
    for start in range(0, len(higher), step):
        values = [np.asarray(X[rows[start : start + step]])[:, columns] for rows in (higher, lower)]
        above, below = (np.where(np.isnan(part), -np.inf, part) for part in values)
        total += (above > below).sum(axis=0) + 0.5 * (above == below).sum(axis=0)
    share: NDArray[np.float64] = total / len(higher)
    return share


def _same_documents(train: RankingData, valid: RankingData) -> bool:
    """Whether queries of both have the same id and the same documents; query ids alone may be mere numbers."""
    if train is valid:
        return True
    numbers = {name: number for number, name in enumerate(train.qid)}
    shared = [(numbers[name], number) for number, name in enumerate(valid.qid) if name in numbers][:_SHARED_QUERIES]
    if not shared or train.n_features != valid.n_features:
        return False
    return all(np.array_equal(_features(train, one), _features(valid, other), equal_nan=True) for one, other in shared)


def _features(data: RankingData, query: int) -> NDArray[Any]:
    return np.asarray(data.X[data.indptr[query] : data.indptr[query + 1]])


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
