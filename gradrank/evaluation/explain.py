"""Explaining a ranking: which features put one document of a query above another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation.explanation import Contrast, Explanation, RankedDocument
from gradrank.models.attribution.attribution import Reference
from gradrank.models.features import frame_columns
from gradrank.models.ranker import Ranker
from gradrank.models.registry import under_names_of
from gradrank.models.systems import Data, Documents, System, as_ranker
from gradrank.ranking import rank
from gradrank.runtime.suggestions import did_you_mean

_LISTED = 5
_MOST_COMPARED = 2000


def explain(
    ranker: System,
    data: Data,
    query: object = None,
    *,
    above: object = None,
    below: object = None,
    against: Literal["next", "mean"] = "next",
    top: int = 10,
    reference: Reference | None = None,
    n_jobs: int | None = None,
) -> Explanation:
    """Why one document of a query stands above another: what each feature adds to the difference of their scores.

    The shares of the features add up to the difference. For trees they are Tree SHAP values as LightGBM has them
    (Lundberg et al. 2018), or Shapley values between the two documents; for nets integrated gradients (Sundararajan,
    Taly & Yan 2017); for weighted sums of features weight × difference; sums of rankers add up their parts. What was
    calculated is told in ``ways``.

    Parameters
    ----------
    ranker
        A ranker, a fitted learner or model of another package, or the path of a model file.
    data
        RankingData, a pandas or polars frame, or the path of a data file.
    query
        The query's id; needed if there are several.
    above, below
        The two documents: an id, ``"rank:3"`` for a place in the ranking, or ``"row:17"`` for a row of the data, both
        from 1. If the data has no document ids, a number is a rank. One of them alone is set against its neighbor
        in the ranking. Without both, the documents at the top are explained.
    against
        What documents at the top, or ``above`` alone, are set against: the ``next`` one in the ranking, or the
        ``mean`` of all documents of the query: then each feature has the mean of its shares against each of them.
    top
        How many documents at the top to explain.
    reference
        What a feature that is left out of trees counts as: as in the ``training`` documents on average (Tree SHAP), or
        as in the ``other`` document: features in which the two agree then have no share. The first unless given, where
        the trees know how many training documents came to each leaf.
    n_jobs
        Threads to use; all cores by default.

    >>> from gradrank import LinearRanker, RankingData
    >>> data = RankingData.from_arrays([[1.0, 3.0], [2.0, 1.0]], qid=[7, 7], docid=["d1", "d2"])
    >>> explain(LinearRanker([1.0, 2.0]), data, 7, above="d1", below="d2")
    Explanation: **Query 7: d1 (rank 1) stands above d2 (rank 2) by +3 (7 against 4)**
    <BLANKLINE>
    | feature | d1 | d2 | share |
    |---|---|---|--:|
    | f2 | 3 | 1 | +4.0000 |
    | f1 | 1 | 2 | -1.0000 |
    | all together |  |  | +3.0000 |
    """
    if against not in ("next", "mean"):
        raise DataError(f"against is {against!r}, expected 'next' or 'mean'")
    if top < 1:
        raise DataError(f"top is {top}, expected 1 or more")
    documents = Documents.of(data)
    model = as_ranker(ranker, documents)
    number = _query_number(documents.data, query)
    if documents.frame is None:
        model = under_names_of(model, documents.data)
    held = documents.query(model, number)
    listed = _Listed(documents.data, number, model.predict(held, n_jobs=n_jobs))
    pairs = listed.pairs(above, below, against, top)
    attribution = model.attribution(held, reference=reference, n_jobs=n_jobs)
    values = _Values(model, held)
    two = [(first, second) for first, second in pairs if second is not None]
    shares = iter(attribution.between(*np.array(two, dtype=np.int64).reshape(-1, 2).T)) if two else iter(())
    contrasts = tuple(
        Contrast(
            listed.document(first),
            None if second is None else listed.document(second),
            float(listed.scores[first] - (listed.scores.mean() if second is None else listed.scores[second])),
            attribution.against_all(first) if second is None else next(shares),
            values.of(first),
            values.means() if second is None else values.of(second),
        )
        for first, second in pairs
    )
    return Explanation(listed.query, len(listed.scores), model.feature_names, contrasts, attribution.ways)


class _Listed:
    """The documents of a query, numbered from 0 in the data's order, and their ranking."""

    def __init__(self, data: RankingData, number: int, scores: NDArray[np.float64]) -> None:
        self._first = int(data.indptr[number])
        self._data = data
        self.query = data.qid[number]
        self.scores = scores
        if not np.isfinite(scores).all():
            raise DataError(
                f"the model scores a document of query {self.query} with a value that is not a finite number"
            )
        self._order = rank(scores, np.array([0, len(scores)])).order
        self._rank_of = np.empty(len(scores), dtype=np.int64)
        self._rank_of[self._order] = np.arange(1, len(scores) + 1)
        ids = data.docid
        self._ids = None if ids is None else [ids[self._first + place] for place in range(len(scores))]

    def document(self, place: int) -> RankedDocument:
        rank_of = int(self._rank_of[place])
        label = float(self._data.label()[self._first + place]) if self._data.label_names else np.nan
        return RankedDocument(
            f"rank {rank_of}" if self._ids is None else self._ids[place],
            rank_of,
            self._row(place),
            float(self.scores[place]),
            None if np.isnan(label) else label + 0.0,
        )

    def _row(self, place: int) -> int:
        row = self._first + place
        return 1 + int(row if self._data.rows is None else self._data.rows[row])

    def pairs(
        self, above: object, below: object, against: Literal["next", "mean"], top: int
    ) -> list[tuple[int, int | None]]:
        """Numbers of the documents to set against each other; None = the mean."""
        if above is not None and below is not None:
            first, second = self.find(above), self.find(below)
            if first == second:
                raise DataError(f"above and below are the same document of query {self.query}: {above}")
            return [(first, second)]
        if below is not None:
            second = self.find(below)
            if self._rank_of[second] == 1:
                raise DataError(f"document {below} of query {self.query} is the first: nothing stands above it")
            return [(int(self._order[self._rank_of[second] - 2]), second)]
        chosen = self._order[:top].tolist() if above is None else [self.find(above)]
        if against == "mean":
            return [(first, None) for first in chosen]
        pairs: list[tuple[int, int | None]] = [
            (first, int(self._order[self._rank_of[first]]))
            for first in chosen
            if self._rank_of[first] < len(self._order)
        ]
        if not pairs:
            reason = "has one document" if len(self._order) == 1 else f"has nothing below document {above}"
            raise DataError(f"query {self.query} {reason}: there is no next one to set it against")
        return pairs

    def find(self, wanted: object) -> int:
        """The number of a document, given by id, rank or row."""
        word = str(wanted)
        if self._ids is not None and word in self._ids:
            if self._ids.count(word) > 1:
                raise DataError(f"query {self.query} has several documents {word!r}: name one as rank:N or row:N")
            return self._ids.index(word)
        kind, colon, digits = word.partition(":")
        if not colon and self._ids is None:
            kind, digits = "rank", word
        if kind in ("rank", "row") and digits.isascii() and digits.isdigit():
            place = int(digits)
            if kind == "rank" and 1 <= place <= len(self._order):
                return int(self._order[place - 1])
            rows = [self._row(number) for number in range(len(self._order))]
            if kind == "row" and place in rows:
                return rows.index(place)
            limits = f"ranks of 1 to {len(rows):,}" if kind == "rank" else f"rows of {min(rows):,} to {max(rows):,}"
            raise DataError(f"query {self.query} has no document {word!r}: it has {limits}")
        if self._ids is None:
            raise DataError(f"there is no document {word!r}: the data has no document ids, expected rank:N or row:N")
        near = _near(word, self._ids)
        raise DataError(f"query {self.query} has no document {word!r}; rank:N and row:N name documents as well{near}")


class _Values:
    """The features' values as people have them: of a frame as they stand there, else as numbers."""

    def __init__(self, ranker: Ranker, held: Any) -> None:
        if isinstance(held, RankingData):
            self._columns: Sequence[Sequence[Any]] = np.asarray(ranker.matrix(held), dtype=np.float64).T.tolist()
        else:
            self._columns = [list(held[name]) for name in frame_columns(held, ranker.feature_names)]

    def of(self, place: int) -> tuple[Any, ...]:
        return tuple(_plain(column[place]) for column in self._columns)

    def means(self) -> tuple[float | None, ...]:
        return tuple(_mean([_plain(value) for value in column]) for column in self._columns)


def _plain(value: Any) -> Any:
    """A value of a table as a number or text; None if it is missing."""
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bool | np.bool_ | int | np.integer | float | np.floating):
        return float(value)
    return str(value)


def _mean(values: list[Any]) -> float | None:
    known = [value for value in values if value is not None]
    if not known or any(isinstance(value, str) for value in known):
        return None
    return float(np.mean(known))


def _query_number(data: RankingData, query: object) -> int:
    ids = data.qid.to_list()
    if query is None:
        if len(ids) == 1:
            return 0
        raise DataError(f"there are {len(ids):,} queries: say which ({', '.join(ids[:_LISTED])}, …)")
    word = str(query)
    if word not in ids:
        more = ", …" if len(ids) > _LISTED else ""
        raise DataError(f"there is no query {word!r}; there are {', '.join(ids[:_LISTED])}{more}{_near(word, ids)}")
    return ids.index(word)


def _near(word: str, known: Sequence[str]) -> str:
    # Comparing with a hundred thousand names takes seconds.
    return did_you_mean(word, known) if len(known) <= _MOST_COMPARED else ""
