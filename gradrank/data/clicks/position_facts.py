"""What a click log tells of positions: counts of the same documents, or of equally good ones, at several of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog
from gradrank.data.clicks.position_model import Cells
from gradrank.errors import DataError


@dataclass(frozen=True, eq=False)
class PositionFacts:
    """Counts by query, group and position; the counts of a group at a position are summed over queries."""

    query: NDArray[np.int64]
    group: NDArray[np.int64]
    place: NDArray[np.int64]
    hits: NDArray[np.float64]
    misses: NDArray[np.float64]
    n_places: int
    compared: int

    @cached_property
    def numbered(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct groups at positions, and the number of each row's."""
        keys, cell = np.unique(self.group * self.n_places + self.place, return_inverse=True)
        return keys, cell.reshape(-1)

    def cells(self, weight: NDArray[np.float64] | None = None) -> Cells:
        """Summed over the queries, each counted as often as its weight says."""
        keys, cell = self.numbered
        times = 1.0 if weight is None else weight[self.query]
        hits, misses = (
            np.bincount(cell, weights=times * counts, minlength=len(keys)).astype(np.float64)
            for counts in (self.hits, self.misses)
        )
        n_groups = int(self.group.max(initial=-1)) + 1
        return Cells(keys // self.n_places, keys % self.n_places, hits, misses, n_groups, self.n_places)


def _summed(*keys: NDArray[Any], clicked: NDArray[np.bool_]) -> tuple[list[NDArray[np.int64]], Any, Any]:
    """Distinct combinations of the keys, with clicks and impressions of each."""
    code = np.zeros(len(clicked), dtype=np.int64)
    sizes = [int(key.max(initial=0)) + 1 for key in keys]
    for key, size in zip(keys, sizes, strict=True):
        code = code * size + key
    distinct, number = np.unique(code, return_inverse=True)
    number = number.reshape(-1)
    shown = np.bincount(number, minlength=len(distinct)).astype(np.float64)
    hits = np.bincount(number[clicked], minlength=len(distinct)).astype(np.float64)
    parts: list[NDArray[np.int64]] = []
    for size in reversed(sizes):
        parts.insert(0, distinct % size)
        distinct = distinct // size
    return parts, hits, shown


def randomized_facts(log: ClickLog, place: NDArray[np.int64], n_places: int) -> PositionFacts:
    if log.randomized is None or not log.randomized.any():
        raise DataError("no session of the log says that its list was shown in random order (randomized)")
    lengths = np.diff(log.indptr)
    chosen = np.repeat(log.randomized, lengths)
    shown_query, shown_length = (np.repeat(values, lengths)[chosen] for values in (log.query, lengths))
    (query, length, place), hits, shown = _summed(
        shown_query, shown_length, place[chosen], clicked=log.order[chosen] > 0
    )
    return PositionFacts(query, length, place, hits, shown - hits, n_places, int(log.randomized.sum()))


def document_facts(log: ClickLog, place: NDArray[np.int64], n_places: int) -> PositionFacts:
    shown_query = np.repeat(log.query, np.diff(log.indptr))
    (query, document, place), hits, shown = _summed(shown_query, log.document, place, clicked=log.order > 0)
    _, first, count = np.unique(
        query * len(log.documents) + document, return_inverse=True, return_counts=True
    )  # fmt: skip
    # A document seen at one position only tells nothing of positions.
    several = (count > 1)[first.reshape(-1)]
    _, group = np.unique(first.reshape(-1)[several], return_inverse=True)
    return PositionFacts(
        query[several],
        group.reshape(-1),
        place[several],
        hits[several],
        (shown - hits)[several],
        n_places,
        int(np.count_nonzero(count > 1)),
    )


def harvested_facts(log: ClickLog, place: NDArray[np.int64], n_places: int) -> PositionFacts:
    lengths = np.diff(log.indptr)
    # Without names of rankers every change of position counts as if another ranker had made it.
    by = np.repeat(np.zeros(log.n_sessions, dtype=np.int32) if log.ranker is None else log.ranker, lengths)
    told = by >= 0
    (query, document, ranker, place), hits, shown = _summed(
        np.repeat(log.query, lengths)[told], log.document[told], by[told], place[told], clicked=log.order[told] > 0
    )
    pair = query * len(log.documents) + document  # rising, so that the cells of a pair stand together
    parts: list[tuple[NDArray[Any], ...]] = []
    compared = np.zeros(len(pair), dtype=bool)
    for distance in range(1, len(pair)):
        one = np.flatnonzero(pair[distance:] == pair[:-distance])
        if not len(one):
            break
        two = one + distance
        apart = place[one] != place[two]
        if log.ranker is not None:
            apart &= ranker[one] != ranker[two]
        one, two = one[apart], two[apart]
        compared[one] = True
        weight = shown[one] * shown[two] / (shown[one] + shown[two])
        group = np.minimum(place[one], place[two]) * n_places + np.maximum(place[one], place[two])
        for cell in (one, two):
            rate = hits[cell] / shown[cell]
            parts.append((query[cell], group, place[cell], weight * rate, weight * (1 - rate)))
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return PositionFacts(empty, empty, empty, empty.astype(float), empty.astype(float), n_places, 0)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    query, group, place, clicks, misses = columns
    return PositionFacts(query, group, place, clicks, misses, n_places, len(np.unique(pair[compared])))


def connected_positions(facts: PositionFacts, method: str) -> tuple[Cells, NDArray[np.bool_]]:
    """The cells, and which positions can be compared with the topmost that can be compared with any."""
    cells, n_places = facts.cells(), facts.n_places
    clicked = np.bincount(cells.place, weights=cells.hits, minlength=n_places) > 0
    usable = clicked[cells.place] & (cells.shown > 0)
    usable &= (np.bincount(cells.group, weights=cells.hits, minlength=max(1, cells.n_groups)) > 0)[cells.group]
    component = np.arange(n_places)
    while True:
        # The lowest number of its neighbors spreads through each component.
        lowest = np.full(max(1, cells.n_groups), n_places)
        np.minimum.at(lowest, cells.group[usable], component[cells.place[usable]])
        merged = component.copy()
        np.minimum.at(merged, cells.place[usable], lowest[cells.group[usable]])
        if np.array_equal(merged, component):
            break
        component = merged
    sizes = np.bincount(component, minlength=n_places)
    if sizes.max(initial=0) < 2:
        raise DataError(_unidentified(method, n_places))
    known = component == int(np.flatnonzero(sizes >= 2)[0])
    return cells, known


def _unidentified(method: str, n_places: int) -> str:
    if n_places < 2:
        return "all documents were shown at one position: there is nothing to compare it with"
    what = {
        "randomized": "the sessions in random order have no clicks at two positions of lists of the same length",
        "harvest": "no clicked document of a query was shown at two positions by different rankers",
    }.get(method, "no clicked document of a query was shown at two positions")
    return (
        f"the log cannot tell how likely positions are examined: {what}, so that a good position and good documents "
        "look the same; show some sessions in random order, or the lists of several rankers"
    )
