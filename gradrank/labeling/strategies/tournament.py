"""``tournament``, the default: a knockout finds the best document, then those that lost to it play for the next place.

Documents are the leaves of a knockout tournament. The unbeaten one is the best; the next best has lost to
it directly, so only its direct losers play on, and so forth (Kislitsyn 1964; Knuth, TAOCP 3, 5.3.3). Who is
paired matters: always the two whose subtrees are the lowest. A single document has rank 0 and a winner
of a match the rank max(its own, loser's) + 1. Pairing the two lowest ranks ends in the lowest possible rank R of
the last one unbeaten, ⌈lg Σ 2^rank⌉ (Golumbic 1976); its losers' ranks satisfy Σ 2^rank < 2^R, so R never
grows, no winner ever has more than R losers, and for a strict order

    judgments ≤ n − 1 + (k − 1)(⌈lg n⌉ − 1)        (94 for n = 50, k = 10; 90.6 on average)

A tie makes the two one class which plays on as one; its losers are those of both. That takes ties for
transitive, as trained assessors' mostly are, and saves the more the more ties there are.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from operator import attrgetter

from gradrank.labeling.records import Tool
from gradrank.labeling.strategies.base import Estimate, Pair, Race, Request, Strategy


@dataclass(slots=True)
class _Player:
    """Tied documents that play as one, shown by the first of them."""

    documents: list[str]
    rank: int
    entry: int
    """Number of entries among the unbeaten before this one: among equal ranks the first come are paired first."""
    losers: list[_Player] = field(default_factory=list)

    @property
    def place(self) -> tuple[int, int]:
        return self.rank, self.entry


_PLACE = attrgetter("place")


class TournamentRace(Race):
    """The unbeaten players by rank, and the classes that are settled.

    >>> race = TournamentRace(["d1", "d2", "d3"], 2)
    >>> race.answer(Pair("d1", "d2"), -1)
    >>> race.answer(Pair("d3", "d2"), 0)
    >>> race.top(), list(race.requests())
    ((('d3', 'd2'),), [])
    """

    def __init__(self, order: Sequence[str], k: int) -> None:
        self._k = k
        self._entries = len(order)
        self._unbeaten = [_Player([document], 0, entry) for entry, document in enumerate(order)]
        self._settled: list[tuple[str, ...]] = []
        self._found = 0
        self._matches = self._ties = 0
        self._settle()

    def requests(self) -> Iterator[Request]:
        if self._over:
            return
        # Lowest ranks first, also after skips: (0, 1), (0, 2), (1, 2), (0, 3), …
        for higher, second in enumerate(self._unbeaten):
            for first in self._unbeaten[:higher]:
                yield Pair(first.documents[0], second.documents[0])

    def answer(self, request: Request, value: int) -> None:
        first, second = (self._take(document) for document in request.documents)
        rank = max(first.rank, second.rank) + 1
        self._matches += 1
        winner, loser = (second, first) if value < 0 else (first, second)
        if value == 0:
            self._ties += 1
            winner.documents += loser.documents
            winner.losers += loser.losers
        else:
            winner.losers.append(loser)
        winner.rank = rank
        self._enter(winner)
        self._settle()

    def remove(self, documents: Sequence[str]) -> None:
        for document in documents:
            player = self._take(document)
            player.documents.remove(document)
            # Those that lost to it alone are unbeaten again.
            for back in [player] if player.documents else player.losers:
                self._enter(back)
        self._settle()

    def top(self) -> tuple[tuple[str, ...], ...]:
        return tuple(self._settled)

    def remaining(self) -> Estimate:
        if self._over:
            return Estimate(0, 0, 0)
        unbeaten = len(self._unbeaten)
        needed = self._k - self._found
        # A round settles one class and leaves at most `rank` players to find the next.
        rank = ceil(log2(sum(2**player.rank for player in self._unbeaten)))
        low = unbeaten - 1
        high = low + (needed - 1) * max(0, rank - 1)
        # Classes grow by ties as often as they did so far, in each of the lg(unbeaten) matches of a winner.
        size = sum(len(player.documents) for player in self._unbeaten) / unbeaten
        size *= (1 + self._ties / (self._matches + 5)) ** log2(unbeaten)
        expected = low + max(0.0, needed / size - 1) * max(0.0, rank - 1.4)
        return Estimate(low, min(high, round(expected)), high)

    @property
    def _over(self) -> bool:
        return self._found >= self._k or not self._unbeaten

    def _take(self, document: str) -> _Player:
        index = next(index for index, player in enumerate(self._unbeaten) if player.documents[0] == document)
        return self._unbeaten.pop(index)

    def _enter(self, player: _Player) -> None:
        player.entry = self._entries
        self._entries += 1
        insort(self._unbeaten, player, key=_PLACE)

    def _settle(self) -> None:
        while len(self._unbeaten) == 1 and self._found < self._k:
            best = self._unbeaten.pop()
            self._settled.append(tuple(best.documents))
            self._found += len(best.documents)
            for player in best.losers:
                self._enter(player)


TOURNAMENT = Strategy(
    "tournament",
    "Tournament with tie classes: fewest judgments when nothing is known",
    Tool.PREFERENCES,
    TournamentRace,
    "O(n + k log n)",
)
