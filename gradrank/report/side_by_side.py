"""Two rankings side by side, for the queries that change most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.data.texts import Texts
from gradrank.errors import DataError
from gradrank.models.systems import Documents, System, scores_of
from gradrank.ranking import rank
from gradrank.report.results import ChangedQuery

SHOWN_RANKS = 10
_LONGEST_TEXT = 240


@dataclass(frozen=True, eq=False)
class Rankings:
    """What systems' rankings are made of.

    Parameters
    ----------
    data
        The documents.
    scores
        Each system's scores, in the data's order.
    texts
        Texts of queries and documents, if there are any.
    """

    data: RankingData
    scores: Mapping[str, NDArray[np.float64]]
    texts: Texts | None = None

    @classmethod
    def of(cls, documents: Documents | None, scores: Mapping[str, System], texts: Texts | None) -> Rankings:
        """From what gives scores, such as a column in the order of the rows as given."""
        if documents is None:
            raise DataError("scores to show rankings of belong to one data set: give it as data")
        return cls(documents.data, {name: scores_of(column, documents) for name, column in scores.items()}, texts)


@dataclass(frozen=True)
class Item:
    """A document in one of two rankings."""

    rank: int
    name: str
    text: str | None
    label: str
    change: int | None
    """Places gained from the first ranking to the second; None where the other ranking lacks it."""
    only_here: bool
    """Whether the other ranking does not show it."""


@dataclass(frozen=True)
class QueryView:
    """One query's two rankings."""

    query: ChangedQuery
    text: str | None
    before: tuple[Item, ...]
    after: tuple[Item, ...]
    n_docs: int


def side_by_side(rankings: Rankings, queries: Sequence[ChangedQuery], baseline: str, system: str) -> list[QueryView]:
    """The first ranks of both systems for each query."""
    data = rankings.data
    unknown = [name for name in (baseline, system) if name not in rankings.scores]
    if unknown:
        raise DataError(f"there are no scores of {unknown[0]!r} to show rankings of")
    numbers = {qid: number for number, qid in enumerate(data.qid)}
    found = []
    for query in queries:
        if query.qid not in numbers:
            raise DataError(f"the rankings have no query {query.qid!r}, which the evaluation has")
        first, end = (int(edge) for edge in data.indptr[numbers[query.qid] :][:2])
        orders = [_order(rankings.scores[name][first:end]) for name in (baseline, system)]
        places = [{int(document): place for place, document in enumerate(order, 1)} for order in orders]
        texts = rankings.texts
        found.append(
            QueryView(
                query,
                None if texts is None else _short(texts.query(query.qid)),
                tuple(_items(rankings, first, orders[0], places[0], places[1], -1)),
                tuple(_items(rankings, first, orders[1], places[1], places[0], 1)),
                end - first,
            )
        )
    return found


def _order(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Documents that were retrieved, the best first."""
    ranking = rank(np.asarray(scores, dtype=np.float64), np.array([0, len(scores)]))
    return ranking.order[np.asarray(scores)[ranking.order] > -np.inf]


def _items(
    rankings: Rankings,
    first: int,
    order: NDArray[np.int64],
    here: Mapping[int, int],
    there: Mapping[int, int],
    sign: int,
) -> list[Item]:
    data, texts = rankings.data, rankings.texts
    items = []
    for document in order[:SHOWN_RANKS].tolist():
        row = first + document
        label = float(data.label()[row]) if data.label_names else np.nan
        other = there.get(document)
        given_row = row if data.rows is None else int(data.rows[row])
        items.append(
            Item(
                here[document],
                f"row {1 + given_row}" if data.docid is None else data.docid[row],
                None if texts is None else _short(texts.document(data, row)),
                "–" if np.isnan(label) else f"{label + 0.0:g}",
                None if other is None else sign * (other - here[document]),
                other is None or other > SHOWN_RANKS,
            )
        )
    return items


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= _LONGEST_TEXT:
        return text
    return text[: _LONGEST_TEXT - 1].rstrip() + "…"
