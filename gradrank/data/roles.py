"""Which column of a table is what: query id, document id, weight, labels, features.

One rule for frames, Parquet, Arrow and CSV files:

1. A column named by an argument (``qid=``, ``docid=``, ``weight=``, ``labels=``, ``features=``, ``keep=``, ``ignore=``)
   has that role and no other.
2. Arrow tables and files written by gradrank carry their roles with them (schema metadata, key ``gradrank``), and these
   hold for the rest.
3. Anything else goes by its name, where case, ``_``, ``-``, ``.`` and blanks do not count: ``qid`` or ``query_id`` is
   the query, ``docid``, ``document_id`` or ``docno`` the document id, ``weight``, ``query_weight`` or ``sample_weight``
   the query's weight, ``document_weight`` or ``doc_weight`` the document's, ``label`` the label named "label" and
   ``label:NAME`` the label named NAME, the first of them being the primary one. An index that pandas stored
   (``__index_level_0__``) is left out.
4. All other columns are features, except those that look like a label (``grade``, ``relevance``, ``clicks``,
   ``purchases`` …) or like one more id or weight: these never become features by themselves. If labels were named
   explicitly, such columns are left out, with a warning that names them; if they were not, a column that looks like
   a label is an error that tells the ways to say what it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.data.ranking_data import PRIMARY_LABEL, first_repeated
from gradrank.errors import DataError
from gradrank.runtime.suggestions import did_you_mean
from gradrank.runtime.warn import warn

LABEL_PREFIX = PRIMARY_LABEL + ":"

# Names as plain_name has them; the first that a table has is taken.
QID_NAMES = ("qid", "queryid")
DOCID_NAMES = ("docid", "documentid", "docno")
WEIGHT_NAMES = ("weight", "queryweight", "sampleweight")
DOCUMENT_WEIGHT_NAMES = ("documentweight", "docweight")
_ID_NAMES = {"qid": QID_NAMES, "docid": DOCID_NAMES, "weight": WEIGHT_NAMES}
LABEL_LIKE = frozenset({
    "label", "labels", "grade", "grades", "rel", "relevance", "relevancy", "rating", "ratings", "judgment", "judgments",
    "judgement", "judgements", "target", "y", "gain", "gains", "click", "clicks", "clicked", "purchase", "purchases",
    "purchased", "bought", "conversion", "conversions", "converted",
})  # fmt: skip

_ROLE_LIKE = LABEL_LIKE.union(QID_NAMES, DOCID_NAMES, WEIGHT_NAMES, DOCUMENT_WEIGHT_NAMES)
# What people call the column of query ids; said in the message, and never taken for it by itself.
_QUERY_LIKE = frozenset({
    "q", "query", "queries", "search", "searchid", "srchid", "session", "sessionid", "topic", "topicid", "group",
    "groupid", "request", "requestid", "listid", "impressionid",
})  # fmt: skip
# An empty head of a column, and what pandas makes of it.
_NAMELESS = re.compile(r"|Unnamed: \d+")
_STORED_INDEX = re.compile(r"__index_level_\d+__")
_LONGEST_LIST = 12

LabelChoice = str | Sequence[str] | Mapping[str, str] | None


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What a user says about the columns of a table; whatever is not said goes by the rule of this module."""

    qid: str | None = None
    """Column of query ids."""
    docid: str | None = None
    """Column of document ids."""
    weight: str | None = None
    """Column of query weights, the same number in all rows of a query."""
    labels: LabelChoice = None
    """Label columns, the primary one first; a mapping gives label name → column; ``()`` = no labels."""
    features: Sequence[str] | None = None
    """The feature columns, if not all columns without another role."""
    keep: Sequence[str] = ()
    """Columns that are features although their names look like a label, an id or a weight."""
    ignore: Sequence[str] = ()
    """Columns to leave out."""
    given: Collection[str] = ()
    """Roles that are given beside the table: ``qid``, ``docid``, ``weight``, ``labels``."""
    sources: Collection[str] = ()
    """Columns, if the table has them, that what is given beside it was taken from: no features."""

    def __post_init__(self) -> None:
        for role in ("qid", "docid", "weight"):
            value = getattr(self, role)
            object.__setattr__(self, role, None if value is None else _name(role, value))
        for role in ("features", "keep", "ignore"):
            value = getattr(self, role)
            object.__setattr__(self, role, None if value is None else _names(role, value))
        if self.labels is not None and not isinstance(self.labels, Mapping | str):
            object.__setattr__(self, "labels", _names("labels", self.labels))


@dataclass(frozen=True)
class Roles:
    """Every column's role."""

    qid: str | None
    docid: str | None
    weight: str | None
    labels: Mapping[str, str]
    """Label name → column."""
    features: tuple[str, ...]
    document_weight: str | None = None
    left_out: tuple[str, ...] = ()
    """Columns that look like a label, an id or a weight, and were left out for that reason alone."""

    def named(self) -> list[str]:
        """The columns that are not features, each once."""
        columns = [self.qid, self.docid, self.weight, self.document_weight, *self.labels.values()]
        return list(dict.fromkeys(column for column in columns if column is not None))

    def warn_of_left_out(self, path: Path | None = None) -> None:
        """Warn of columns that were left out because of their names."""
        if self.left_out:
            where = "" if path is None else f"{path}: "
            many = len(self.left_out) > 1
            warn(
                f"{where}column{'s' * many} {_listed(self.left_out)} {'look' if many else 'looks'} like labels, ids or "
                f"weights and {'are' if many else 'is'} left out of the features; say keep= (--keep-column) if "
                f"{'they are features' if many else 'it is a feature'}, ignore= (--ignore-column) if not",
            )


def _name(role: str, value: Any) -> str:
    """The name of a column: frames have numbers and tuples as names, too, which are their text everywhere else."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | tuple | np.integer) and not isinstance(value, bool):
        return str(value)
    raise DataError(f"{role}= is of type {type(value).__qualname__}, expected the name of a column")


def _names(role: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str | int | np.integer):  # one column, not one for each letter
        return (_name(role, value),)
    if not isinstance(value, Iterable) or isinstance(value, bytes) or getattr(value, "ndim", 1) != 1:
        raise DataError(f"{role}= is of type {type(value).__qualname__}, expected names of columns")
    if getattr(getattr(value, "dtype", None), "kind", "O") in "fb":
        raise DataError(f"{role}= is an array of numbers, expected names of columns")
    return tuple(_name(role, name) for name in value)


def plain_name(name: str) -> str:
    """A column's name as roles are looked up: without case and without what separates words.

    >>> plain_name("Query_ID")
    'queryid'
    """
    return re.sub(r"[\W_]", "", name).casefold()


def resolve_roles(
    names: Sequence[str], columns: Columns, recorded: Mapping[str, Any] | None = None, path: Path | None = None
) -> Roles:
    """Give every column its role, by the rule of this module.

    >>> roles = resolve_roles(["qid", "label", "bm25"], Columns())
    >>> roles.qid, dict(roles.labels), roles.features
    ('qid', {'label': 'label'}, ('bm25',))
    >>> resolve_roles(["qid", "label", "clicks", "bm25"], Columns(labels=["label", "clicks"])).features
    ('bm25',)
    """
    chosen_labels = label_columns(columns.labels, path)
    explicit = _explicit(names, columns, chosen_labels, path)
    # Sets where it matters: a table may have thousands of columns.
    free = [
        name
        for name in names
        if name not in explicit and name not in columns.sources and not _STORED_INDEX.fullmatch(name)
    ]
    known = _Recorded.of(recorded)

    def detect(role: str, chosen: str | None, likely: tuple[str, ...]) -> str | None:
        if chosen is not None or role in columns.given:
            return chosen
        if known is not None:
            return known.ids.get(role) if known.ids.get(role) in free else None
        return next((name for word in likely for name in free if plain_name(name) == word), None)

    qid = detect("qid", columns.qid, QID_NAMES)
    if qid is None and "qid" not in columns.given:
        raise DataError(
            "there is no column 'qid' or 'query_id', and qid= (--qid-column) names no other; "
            f"the columns are {_listed(names)}{_perhaps_queries(free)}",
            path=path,
        )
    docid, weight = detect("docid", columns.docid, DOCID_NAMES), detect("weight", columns.weight, WEIGHT_NAMES)
    document_weight = detect("document_weight", None, DOCUMENT_WEIGHT_NAMES)
    taken = {qid, docid, weight, document_weight}
    labels = chosen_labels
    if "labels" in columns.given:
        labels = {}
    elif labels is None and known is not None:
        labels = {source: name for source, name in known.labels.items() if name in free}
    elif labels is None:
        labels = label_columns([name for name in free if _is_label(name) and name not in taken], path)
    assert labels is not None
    taken |= set(labels.values())
    rest = [name for name in free if name not in taken]
    if columns.features is not None:
        kept = [name for name in columns.keep if name not in columns.features]
        return Roles(qid, docid, weight, labels, (*columns.features, *kept), document_weight)
    doubtful = [
        name for name in rest if (known is None or name not in known.features) and _looks_like_role(name, known)
    ]
    named_labels = chosen_labels is not None or "labels" in columns.given
    if not named_labels:
        _refuse_label_like([name for name in doubtful if plain_name(name) in LABEL_LIKE], path)
    no_labels = "labels" in columns.given or (columns.labels is not None and not chosen_labels)
    quiet = {
        name
        for name in doubtful
        if (no_labels and _is_label(name))
        or any(plain_name(name) in likely for role, likely in _ID_NAMES.items() if role in columns.given)
    }
    plain = set(rest) - set(doubtful) | set(columns.keep)
    features = [name for name in names if name in plain]
    nameless = next((name for name in features if _NAMELESS.fullmatch(name) and name not in columns.keep), None)
    if nameless is not None:
        raise DataError(
            f"has a column without a name{f' ({nameless!r})' if nameless else ''}; if it is a row index, pass "
            f"ignore=[{nameless!r}]",
            path=path,
        )
    left_out = tuple(name for name in doubtful if name not in quiet)
    return Roles(qid, docid, weight, labels, tuple(features), document_weight, left_out)


def label_columns(labels: LabelChoice, path: Path | None = None) -> dict[str, str] | None:
    """Label name → column, from what ``labels=`` may be.

    >>> label_columns(["label", "label:clicks"]), label_columns("grade")
    ({'label': 'label', 'clicks': 'label:clicks'}, {'grade': 'grade'})
    """
    if labels is None or isinstance(labels, Mapping):
        return None if labels is None else {str(source): str(column) for source, column in labels.items()}
    result: dict[str, str] = {}
    for column in [labels] if isinstance(labels, str) else labels:
        source = column.removeprefix(LABEL_PREFIX) or column
        if source in result:
            said = f"columns {result[source]!r} and {column!r} both give the label {source!r}"
            raise DataError(said, path=path)
        result[source] = column
    return result


@dataclass(frozen=True)
class _Recorded:
    """Roles that gradrank wrote into a file."""

    ids: Mapping[str, str | None]
    labels: Mapping[str, str]
    features: frozenset[str]

    @classmethod
    def of(cls, record: Mapping[str, Any] | None) -> _Recorded | None:
        if record is None:
            return None
        ids = {role: record.get(role) for role in ("qid", "docid", "weight", "document_weight")}
        return cls(ids, record["labels"], frozenset(record.get("features", ())))

    def has_role(self, name: str) -> bool:
        return name in self.ids.values() or name in self.labels.values()


def _explicit(
    names: Sequence[str], columns: Columns, labels: Mapping[str, str] | None, path: Path | None
) -> dict[str, str]:
    """Columns whose role was named, with the argument that named it."""
    present = set(names)
    twice = first_repeated(names)
    if twice is not None:
        raise DataError(f"column {twice!r} comes twice", path=path)
    explicit: dict[str, str] = {}
    for role, column in (
        ("qid", columns.qid),
        ("docid", columns.docid),
        ("weight", columns.weight),
        *(("labels", column) for column in (labels or {}).values()),
        *(("features", column) for column in columns.features or ()),
        *(("keep", column) for column in columns.keep if column not in (columns.features or ())),
        *(("ignore", column) for column in columns.ignore),
    ):
        if column is None:
            continue
        if column not in present:
            said = f"there is no column {column!r} for {role}; the columns are {_listed(names)}"
            raise DataError(said + did_you_mean(str(column), names), path=path)
        if column in explicit:
            raise DataError(f"column {column!r} is named for {explicit[column]} and for {role}", path=path)
        explicit[column] = role
    return explicit


def _perhaps_queries(names: Iterable[str]) -> str:
    """The end of a sentence that names the column of query ids by the look of its name."""
    found = next((name for name in names if plain_name(name) in _QUERY_LIKE), None)
    return "" if found is None else f"; if the queries are in {found!r}, say qid={found!r} (--qid-column {found})"


def _is_label(name: str) -> bool:
    return name.casefold() == PRIMARY_LABEL or name.startswith(LABEL_PREFIX)


def _looks_like_role(name: str, known: _Recorded | None) -> bool:
    return _is_label(name) or plain_name(name) in _ROLE_LIKE or (known is not None and known.has_role(name))


def _refuse_label_like(found: list[str], path: Path | None) -> None:
    if not found:
        return
    shown = f"[{_listed(found)}]"
    many = len(found) > 1
    raise DataError(
        f"column{'s' * many} {_listed(found)} {'look' if many else 'looks'} like {'labels' if many else 'a label'}, "
        f"and nothing says whether {'they are' if many else 'it is one'}: give labels={shown} (--label-column), "
        f"keep={shown} (--keep-column) or features=[…] if {'they are features' if many else 'it is a feature'}, or "
        f"ignore={shown} (--ignore-column)",
        path=path,
    )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = len(names) - _LONGEST_LIST
    return ", ".join(map(repr, names[:_LONGEST_LIST])) + (f" and {more} more" if more > 0 else "")
