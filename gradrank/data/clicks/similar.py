"""Click labels also from similar queries: what users of "cheap flights" clicked tells of "cheap flight".

Svore et al. (2011, §6) take the clicks of queries that are like the judged one (their "≈") where its own are few. Two
queries are alike by one of

``clicks``
    the co-click graph (Craswell & Szummer 2007): the cosine of the two queries' vectors of clicks on documents;
``tokens``
    the share of common words, |A ∩ B| / |A ∪ B|, of their texts in lower case;
``edits``
    1 − (Levenshtein distance / length of the longer text).

Candidates share a clicked document (``clicks``), a word (``tokens``), or the first two or the last two letters
(``edits``); those shared by more than a thousand queries are left out, as all pairs of many queries are too many to
look at and a word that so many have tells little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.labels import ClickLabels
from gradrank.errors import DataError

LIKENESS = ("clicks", "tokens", "edits")
_MOST_SHARING = 1000


@dataclass(frozen=True, eq=False)
class SimilarLabels:
    """Click labels to which those of similar queries were added, and how many labels that won."""

    labels: ClickLabels
    pairs: int
    """Pairs of queries that are alike."""
    queries_helped: int
    """Queries with at least one label from another."""
    labels_before: int
    labels_won: int
    """Labels of documents that had none for the query itself."""
    labels_changed: int
    """Labels that now also rest on clicks of similar queries."""


def similar_queries(
    labels: ClickLabels,
    by: Literal["clicks", "tokens", "edits"] = "clicks",
    *,
    threshold: float = 0.5,
    texts: Mapping[str, str] | None = None,
) -> list[tuple[int, int, float]]:
    """Pairs of queries (numbers in ``labels.queries``, the lower first) that are alike, with their likeness.

    Parameters
    ----------
    labels
        Click labels; any method, as only their counts of clicks are looked at.
    by
        What makes queries alike; see above.
    threshold
        Least likeness, above 0 and up to 1.
    texts
        The queries' texts by id, for ``tokens`` and ``edits``; the ids themselves if not given.

    Examples
    --------
    >>> from gradrank.data.clicks.labels import click_labels
    >>> from gradrank.data.clicks.click_log import click_log
    >>> log = click_log([("cheap flight", ["a"], ["a"]), ("cheap flights", ["a"], ["a"]), ("news", ["b"], ["b"])])
    >>> [(i, j, round(s, 2)) for i, j, s in similar_queries(click_labels(log), "edits", threshold=0.8)]
    [(0, 1, 0.92)]
    """
    if by not in LIKENESS:
        raise DataError(f"likeness {by!r} does not exist, expected one of {', '.join(LIKENESS)}")
    if not 0 < threshold <= 1:
        raise DataError(f"threshold is {threshold}, expected a number above 0 and up to 1")
    if by == "clicks":
        found = _by_clicks(labels)
    else:
        names = list(labels.queries)
        shown = names if texts is None else [texts.get(name, "") for name in names]
        found = _by_tokens(shown) if by == "tokens" else _by_edits(shown, threshold)
    return [(i, j, likeness) for i, j, likeness in found if likeness >= threshold]


def with_similar_queries(
    labels: ClickLabels,
    by: Literal["clicks", "tokens", "edits"] = "clicks",
    *,
    threshold: float = 0.5,
    min_impressions: int = 1,
    texts: Mapping[str, str] | None = None,
) -> SimilarLabels:
    """Add the sessions of similar queries to each document's own, each weighted by the likeness.

    A document's label becomes Σ likeness·sessions·label / Σ likeness·sessions over its query (likeness 1) and those
    alike; it must have been shown for one of them.

    Parameters
    ----------
    labels
        Click labels.
    by, threshold, texts
        Which queries are alike; see :func:`similar_queries`.
    min_impressions
        Documents with fewer sessions, over the query and those alike, get no label.

    Examples
    --------
    >>> from gradrank.data.clicks.labels import click_labels
    >>> from gradrank.data.clicks.click_log import click_log
    >>> log = click_log([("flight", ["a", "b"], ["a"]), ("flights", ["a", "c"], ["a"])])
    >>> found = with_similar_queries(click_labels(log), "edits", threshold=0.8)
    >>> found.labels_before, found.labels_won
    (4, 2)
    """
    pairs = similar_queries(labels, by, threshold=threshold, texts=texts)
    width = max(1, len(labels.documents))
    by_query = np.argsort(labels.query, kind="stable")
    starts = np.searchsorted(labels.query[by_query], np.arange(len(labels.queries) + 1))
    own = labels.query.astype(np.int64) * width + labels.document
    keys, sources, likeness = [own], [np.arange(len(labels))], [np.ones(len(labels))]
    for i, j, alike in pairs:
        for to, source in ((i, j), (j, i)):
            rows = by_query[starts[source] : starts[source + 1]]
            keys.append(to * width + labels.document[rows].astype(np.int64))
            sources.append(rows)
            likeness.append(np.full(len(rows), alike))
    key, row, alike_of = np.concatenate(keys), np.concatenate(sources), np.concatenate(likeness)
    told = ~np.isnan(labels.label[row]) | (np.arange(len(key)) < len(own))
    key, row, alike_of = key[told], row[told], alike_of[told]
    distinct, place = np.unique(key, return_inverse=True)
    place = place.reshape(-1)
    n = len(distinct)
    known = ~np.isnan(labels.label[row])
    weight = alike_of * labels.impressions[row] * known
    sessions = np.bincount(place, weights=weight, minlength=n)
    total = np.bincount(place, weights=weight * np.nan_to_num(labels.label[row]), minlength=n)
    counted = np.bincount(place, weights=labels.impressions[row] * known, minlength=n)
    enough = (sessions > 0) & (counted >= min_impressions)
    label = np.where(enough, total / np.where(sessions > 0, sessions, 1.0), np.nan)
    counts = [
        np.rint(np.bincount(place, weights=alike_of * values[row], minlength=n)).astype(np.int64)
        for values in (labels.impressions, labels.clicks, labels.last_clicks)
    ]
    had = np.isin(distinct, own[~np.isnan(labels.label)])
    has = ~np.isnan(label)
    helped = np.bincount(place, weights=(alike_of < 1) | (key != own[row]), minlength=n) > 0
    changed = replace(
        labels, query=(distinct // width).astype(np.int32), document=(distinct % width).astype(np.int32), label=label,
        impressions=counts[0], clicks=counts[1], last_clicks=counts[2], examined=None, examined_clicks=None,
    )  # fmt: skip
    return SimilarLabels(
        labels=changed,
        pairs=len(pairs),
        queries_helped=len(np.unique(distinct[helped & has] // width)),
        labels_before=int((~np.isnan(labels.label)).sum()),
        labels_won=int((has & ~had).sum()),
        labels_changed=int((has & had & helped).sum()),
    )


def _by_clicks(labels: ClickLabels) -> Iterable[tuple[int, int, float]]:
    clicked = labels.clicks > 0
    query, document = labels.query[clicked], labels.document[clicked]
    count = labels.clicks[clicked].astype(np.float64)
    norms = np.sqrt(np.bincount(query, weights=count**2, minlength=len(labels.queries)))
    products: dict[tuple[int, int], float] = defaultdict(float)
    for rows in _groups(document):
        for a in range(len(rows)):
            for b in range(a):
                pair = sorted((int(query[rows[a]]), int(query[rows[b]])))
                products[pair[0], pair[1]] += count[rows[a]] * count[rows[b]]
    return [(i, j, dot / float(norms[i] * norms[j])) for (i, j), dot in sorted(products.items())]


def _groups(keys: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Rows with the same key, for keys with two to a thousand rows."""
    order = np.argsort(keys, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(order) else []
    return [part for part in parts if 2 <= len(part) <= _MOST_SHARING]


def _by_tokens(texts: Sequence[str]) -> Iterable[tuple[int, int, float]]:
    words = [frozenset(text.casefold().split()) for text in texts]
    common: dict[tuple[int, int], int] = defaultdict(int)
    for i, j in _candidates(words):
        common[i, j] += 1
    return [(i, j, n / len(words[i] | words[j])) for (i, j), n in sorted(common.items())]


def _by_edits(texts: Sequence[str], threshold: float) -> Iterable[tuple[int, int, float]]:
    lower = [" ".join(text.casefold().split()) for text in texts]
    ends = [frozenset({("<", text[:2]), (">", text[-2:])}) if text else frozenset() for text in lower]
    found = []
    for i, j in sorted(set(_candidates(ends))):
        longer = max(len(lower[i]), len(lower[j]))
        most = int((1 - threshold) * longer + 1e-9)
        distance = _edits(lower[i], lower[j], most)
        if distance <= most:
            found.append((i, j, 1 - distance / longer))
    return found


def _candidates(keys: Sequence[frozenset[object]]) -> Iterable[tuple[int, int]]:
    """Pairs of places, once for each key that they share."""
    holders: dict[object, list[int]] = defaultdict(list)
    for place, own in enumerate(keys):
        for key in own:
            holders[key].append(place)
    for places in holders.values():
        if len(places) <= _MOST_SHARING:
            for b in range(len(places)):
                for a in range(b):
                    yield places[a], places[b]


def _edits(one: str, two: str, most: int) -> int:
    """Levenshtein distance, or some number above ``most``."""
    if abs(len(one) - len(two)) > most:
        return most + 1
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(two, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
        if min(row) > most:
            return most + 1
    return row[-1]
