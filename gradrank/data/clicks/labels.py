"""Click labels: what the clicks of many users say about a document for a query.

Four labels in [0, 1] from a :class:`~gradrank.data.clicks.readers.ClickLog`, per query and document:

``last``
    share of the sessions showing the document in which it was clicked *last*. Svore et al. (2011, §6)
    use it against position bias: who stops after a click was probably satisfied by it;
``ctr``
    share of the sessions showing the document in which it was clicked at all;
``debiased``
    attractiveness in the position-based model (Richardson et al. 2007; Chuklin et al. 2015, §3.3): a
    click needs the position to be examined, with probability γ_p of the position alone, and the
    document to attract, with probability α_qd of query and document alone, P(click) = γ_p α_qd. Both are
    estimated by expectation maximization. Only products matter to the likelihood, so γ is scaled to
    a maximum of 1. The two can be told apart only as far as documents are seen at several positions.
``examined``
    clicks per impression that users examined: Σ clicks / Σ propensities of the positions at which the
    document was shown, for propensities that are known (``propensity.py``). Where positions were chosen by
    chance this is the inverse-propensity estimate of attractiveness with the least variance: what was
    clicked at a position that few examine counts for many, and no impression has a huge weight. Impressions at
    positions of unknown propensity are left out; a ratio above 1 becomes 1.

A prior (a, b) adds a clicked and b unclicked sessions to each document, which tames documents shown a
few times: (clicks + a) / (sessions + a + b). For ``examined`` it is found from the log if it is not given: the Beta
distribution with the mean and variance that attractiveness has among the documents of the log (empirical Bayes), so
that a document that hardly anybody examined gets the mean and not 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.position_model import count_cells, fit_position_model
from gradrank.data.clicks.propensity import Propensities
from gradrank.data.clicks.readers import ClickLog, intern, read_rows
from gradrank.data.formats.compressed import read_bytes
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.runtime.files import replacing

METHODS = ("last", "ctr", "debiased", "examined")


@dataclass(frozen=True, eq=False)
class Examination:
    """How likely users look at a position, by the position-based model."""

    position: NDArray[np.int64]
    """Positions that occur in the log, from 1."""
    probability: NDArray[np.float64]
    """Probability that a user examines the position, relative to the best one."""
    log_likelihood: NDArray[np.float64]
    """Log likelihood per impression (with the prior, if any) at the start of each iteration."""
    converged: bool
    """Whether the log likelihood had stopped rising."""


@dataclass(frozen=True, eq=False)
class ClickLabels:
    """One click label for each query and document that was shown.

    Row ``i`` is about query ``queries[query[i]]`` and document ``documents[document[i]]``; a pair
    occurs once.
    """

    queries: Strings
    documents: Strings
    query: NDArray[np.int32]
    document: NDArray[np.int32]
    label: NDArray[np.float64]
    """In [0, 1]; NaN where the document was shown in too few sessions."""
    impressions: NDArray[np.int64]
    """Sessions that showed the document."""
    clicks: NDArray[np.int64]
    """Sessions that clicked it."""
    last_clicks: NDArray[np.int64]
    """Sessions that clicked it last."""
    examination: Examination | None = None
    """The position-based model's curve; only for the method ``debiased``."""
    examined: NDArray[np.float64] | None = None
    """Impressions that were examined, in expectation; only for the method ``examined``."""
    examined_clicks: NDArray[np.float64] | None = None
    """Clicks at positions of known propensity; only for the method ``examined``."""
    prior: tuple[float, float] = (0.0, 0.0)
    """Clicked and unclicked sessions that were added to each document."""

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        dropped = int(np.isnan(self.label).sum())
        return (
            f"ClickLabels({len(self):,} documents of {len(self.queries):,} queries, "
            f"{dropped:,} of them shown too rarely for a label)"
        )


def click_labels(
    log: ClickLog,
    method: str = "last",
    *,
    min_impressions: int = 1,
    prior: tuple[float, float] | None = None,
    propensities: Propensities | None = None,
) -> ClickLabels:
    """Labels of all documents shown, by one of :data:`METHODS`.

    Parameters
    ----------
    log
        The click log.
    method
        One of :data:`METHODS`.
    min_impressions
        Documents shown in fewer sessions get NaN.
    prior
        (a, b) as above; None = none, or for ``examined`` the one that the log suggests.
    propensities
        How likely each position is examined, for the method ``examined``.

    Examples
    --------
    >>> from gradrank.data.clicks.readers import click_log
    >>> log = click_log([("q", ["a", "b"], ["a", "b"]), ("q", ["a", "b"], ["a"])])
    >>> click_labels(log, "last").label.tolist()
    [0.5, 0.5]
    >>> click_labels(log, "ctr").label.tolist()
    [1.0, 0.5]
    """
    check_method(method, prior, propensities)
    width = len(log.documents)
    keys = np.repeat(log.query.astype(np.int64), np.diff(log.indptr)) * width + log.document
    keys, pair = np.unique(keys, return_inverse=True)
    pair = pair.reshape(-1)
    clicked = log.order > 0
    counted = [np.ones(len(pair)), clicked, log.last]
    if propensities is not None:
        chance = np.nan_to_num(propensities.at(log.position))
        counted += [chance, clicked & (chance > 0), chance**2]
    sums = np.empty((len(keys), len(counted)))
    for column, values in enumerate(counted):
        sums[:, column] = np.bincount(pair, weights=values, minlength=len(keys))
    labels = labels_of_counts(
        log.queries, log.documents, keys // width, keys % width, sums, "ctr" if method == "debiased" else method,
        min_impressions=min_impressions, prior=prior,
    )  # fmt: skip
    if method != "debiased":
        return labels
    label, examination = _position_based_model(pair, len(keys), log.position, clicked, labels.prior)
    label = np.where(labels.impressions < min_impressions, np.nan, label)
    return replace(labels, label=label, examination=examination)


def check_method(method: str, prior: tuple[float, float] | None, propensities: Propensities | None) -> None:
    """Refuse what does not go together."""
    if method not in METHODS:
        raise DataError(f"click label {method!r} does not exist, expected one of {', '.join(METHODS)}")
    if (method == "examined") != (propensities is not None):
        raise DataError("propensities go with the method examined, and it with them")
    if prior is not None and (len(prior) != 2 or not all(np.isfinite(value) and value >= 0 for value in prior)):
        raise DataError(f"prior is {prior}, expected two finite numbers of 0 or more")


def labels_of_counts(
    queries: Strings,
    documents: Strings,
    query: NDArray[np.int64],
    document: NDArray[np.int64],
    sums: NDArray[np.float64],
    method: str,
    *,
    min_impressions: int,
    prior: tuple[float, float] | None,
) -> ClickLabels:
    """Labels ``last``, ``ctr`` and ``examined`` from what was counted for each query and document.

    Parameters
    ----------
    queries, documents, query, document
        As for :class:`ClickLabels`.
    sums
        A row for each: impressions, clicks, last clicks; for ``examined`` also the sums of propensities, of clicks at
        positions of known propensity, and of squared propensities.
    method, min_impressions, prior
        As for :func:`click_labels`.

    >>> names, sums = Strings.of(["q"]), np.array([[4.0, 2.0, 1.0]])
    >>> zero = np.zeros(1, dtype=np.int64)
    >>> labels_of_counts(names, names, zero, zero, sums, "last", min_impressions=1, prior=None).label.tolist()
    [0.25]
    """
    impressions, clicks, last_clicks = (sums[:, column].astype(np.int64) for column in range(3))
    examined = examined_clicks = None
    if method == "examined":
        examined, examined_clicks, squares = sums[:, 3], sums[:, 4], sums[:, 5]
        prior = _suggested_prior(examined_clicks, examined, squares) if prior is None else prior
        with np.errstate(invalid="ignore", divide="ignore"):
            label = np.minimum((examined_clicks + prior[0]) / (examined + sum(prior)), 1.0)
        label[examined == 0] = np.nan
    else:
        prior = (0.0, 0.0) if prior is None else prior
        label = ((last_clicks if method == "last" else clicks) + prior[0]) / (impressions + sum(prior))
    return ClickLabels(
        queries=queries,
        documents=documents,
        query=query.astype(np.int32),
        document=document.astype(np.int32),
        label=np.where(impressions < min_impressions, np.nan, label),
        impressions=impressions,
        clicks=clicks,
        last_clicks=last_clicks,
        examined=examined,
        examined_clicks=examined_clicks,
        prior=prior,
    )


def _suggested_prior(
    clicks: NDArray[np.float64], examined: NDArray[np.float64], squares: NDArray[np.float64]
) -> tuple[float, float]:
    """The Beta prior with mean and variance of the documents' attractiveness, by moments.

    A document with attractiveness α has Σ p·α clicks in expectation, with variance Σ p·α − Σ p²·α²; what the squared
    deviations from the mean have beyond that is the variance of α.
    """
    total = float(examined.sum())
    mean = float(clicks.sum()) / total if total > 0 else 0.0
    if not 0 < mean < 1:
        return (0.0, 0.0)
    within = examined * mean - squares * mean**2
    variance = float(((clicks - examined * mean) ** 2 - within).sum() / (examined**2).sum())
    # At least as wide as if each document were worth ten thousand sessions, at most uniform.
    strength = min(max(mean * (1 - mean) / variance - 1, 0.1), 1e4) if variance > 0 else 1e4
    return (strength * mean, strength * (1 - mean))


def _position_based_model(
    pair: NDArray[np.int64],
    n_pairs: int,
    position: NDArray[np.int32],
    clicked: NDArray[np.bool_],
    prior: tuple[float, float],
) -> tuple[NDArray[np.float64], Examination]:
    """Attractiveness of the pairs and examination of the positions, by expectation maximization."""
    positions, place = np.unique(position, return_inverse=True)
    fitted = fit_position_model(count_cells(pair, place.reshape(-1), clicked, n_pairs, len(positions)), prior)
    scale = fitted.examined.max(initial=0) or 1.0
    examination = Examination(positions.astype(np.int64), fitted.examined / scale, fitted.trace, fitted.converged)
    return fitted.attraction * scale, examination


# ---------------------------------------------------------------------- joining
@dataclass(frozen=True)
class JoinCounts:
    """What joining click labels to data found and did not find."""

    documents_matched: int
    """Documents of the data that have a row of clicks."""
    documents_unmatched: int
    documents_labeled: int
    """Matched documents shown often enough for a label."""
    queries_matched: int
    """Queries of the data with at least one matched document."""
    queries_unmatched: int
    rows_used: int
    """Rows of clicks whose document is in the data."""
    rows_unused: int


def join_clicks(data: RankingData, labels: ClickLabels, name: str = "clicks") -> tuple[RankingData, JoinCounts]:
    """The data with click labels as one more label source, joined by query id and document id.

    Parameters
    ----------
    data
        Data with document ids.
    labels
        The click labels; documents without any get NaN.
    name
        Name of the label source.

    Returns
    -------
    The data, and counts of what was found and what was not.

    Examples
    --------
    >>> from gradrank.data.clicks.readers import click_log
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["q", "q"], docid=["a", "z"])
    >>> joined, counts = join_clicks(data, click_labels(click_log([("q", ["a", "b"], ["a"])])))
    >>> joined.label("clicks").tolist(), counts.documents_unmatched, counts.rows_unused
    ([1.0, nan], 1, 1)
    """
    if data.docid is None:
        raise DataError("this data has no document ids, so clicks cannot be joined to it")
    query = places_among(labels.queries, data.qid)[data.query_of_row()]
    document = places_among(labels.documents, data.docid)
    known = (query >= 0) & (document >= 0)
    width = max(1, len(labels.documents))
    wanted = query * width + document
    keys = labels.query.astype(np.int64) * width + labels.document
    by_key = np.argsort(keys, kind="stable")
    found = np.searchsorted(keys, wanted, sorter=by_key)
    row = by_key[np.minimum(found, len(keys) - 1)] if len(keys) else np.zeros(len(wanted), dtype=np.int64)
    matched = known & (found < len(keys))
    matched[matched] = keys[row[matched]] == wanted[matched]
    column = np.full(data.n_docs, np.nan)
    column[matched] = labels.label[row[matched]]
    n_matched = int(matched.sum())
    matched_queries = int(np.logical_or.reduceat(matched, data.indptr[:-1]).sum())
    used = len(np.unique(row[matched]))
    counts = JoinCounts(
        documents_matched=n_matched,
        documents_unmatched=data.n_docs - n_matched,
        documents_labeled=int((~np.isnan(column)).sum()),
        queries_matched=matched_queries,
        queries_unmatched=data.n_queries - matched_queries,
        rows_used=used,
        rows_unused=len(labels) - used,
    )
    return data.with_label(name, column), counts


def places_among(known: Strings, wanted: Strings) -> NDArray[np.int64]:
    """For each wanted string its place among the known, which are distinct; −1 if it is not there."""
    buffer = np.concatenate((known.buffer, wanted.buffer))
    shift = len(known.buffer)
    starts = np.concatenate((known.offsets[:-1], np.asarray(wanted.offsets[:-1]) + shift))
    ends = np.concatenate((known.offsets[1:], np.asarray(wanted.offsets[1:]) + shift))
    # Numbered by first appearance, the known strings are 0, 1, 2, …
    codes = intern(buffer, starts, ends)[0][len(known) :].astype(np.int64)
    return np.where(codes < len(known), codes, -1)


# ---------------------------------------------------------------------- files
_COLUMNS = ("qid", "docid", "label", "impressions", "clicks", "last_clicks")


def write_click_labels(labels: ClickLabels, path: str | Path) -> None:
    """Write labels as tab-separated rows with the header ``qid docid label impressions clicks last_clicks``.

    >>> import tempfile
    >>> from gradrank.data.clicks.readers import click_log
    >>> path = Path(tempfile.mkdtemp()) / "clicks.tsv"
    >>> write_click_labels(click_labels(click_log([("q", ["a"], ["a"])])), path)
    >>> path.read_text().splitlines()[1].split()
    ['q', 'a', '1.0', '1', '1', '1']
    """
    queries, documents = labels.queries.to_list(), labels.documents.to_list()
    for value in (*queries, *documents):
        if "\t" in value or "\n" in value or "\r" in value:
            raise DataError(f"id {value!r} holds a tab or line end and cannot be written as a row", path=path)
    rows = zip(
        labels.query.tolist(),
        labels.document.tolist(),
        labels.label.tolist(),
        labels.impressions.tolist(),
        labels.clicks.tolist(),
        labels.last_clicks.tolist(),
        strict=True,
    )
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(_COLUMNS) + "\n")
        for query, document, label, impressions, clicks, last_clicks in rows:
            file.write(f"{queries[query]}\t{documents[document]}\t{label!r}\t{impressions}\t{clicks}\t{last_clicks}\n")


def read_click_labels(path: str | Path) -> ClickLabels:
    """Read what :func:`write_click_labels` wrote, or a file like it; a label may be ``nan`` or empty."""
    rows = read_rows(read_bytes(path), path, "\t", _COLUMNS)
    query, queries = rows.codes("qid")
    document, documents = rows.codes("docid")
    impressions, clicks, last_clicks = (rows.numbers(column) for column in _COLUMNS[3:])
    label = np.empty(len(query))
    for row in range(len(query)):
        text = rows.text("label", row).strip() or "nan"
        try:
            label[row] = float(text)
        except ValueError:
            label[row] = -1.0
        if not (np.isnan(label[row]) or 0 <= label[row] <= 1):
            rows.fail("label", row, "a number from 0 to 1, or nan")
    keys = query.astype(np.int64) * max(1, len(documents)) + document
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        again = np.ones(len(keys), dtype=bool)
        again[first] = False
        row = int(np.flatnonzero(again)[0])
        rows.fail("docid", row, f"each document once for query {rows.text('qid', row)!r}, but it came before")
    return ClickLabels(queries, documents, query, document, label, impressions, clicks, last_clicks)
