"""Strategies that ask one question after another, each written down as an ordinary algorithm.

An algorithm is a generator: it yields a :class:`Question` and gets an answer. It may leave open which of
several documents answers first (any newcomer may be the next to challenge the root of a heap), so that a
skipped pair can wait. When a document that already took part turns out bad, the algorithm starts anew
without it and takes the answers it needs from what was said before; only what is missing is asked.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gradrank.labeling.strategies.base import Pair, Race, Request
from gradrank.labeling.strategies.known_relations import KnownRelations


@dataclass(frozen=True, slots=True)
class Question:
    """Any of ``firsts`` against ``second``; answered by the document chosen and 1, 0 or −1."""

    firsts: list[str]
    """The list may be the algorithm's own: a bad document vanishes from it."""
    second: str
    newcomers: bool = False
    """Whether ``firsts`` are documents that the algorithm has not yet taken in."""


Answer = tuple[str, int]
Algorithm = Generator[Question, Answer | None, list[list[str]]]
"""Yields questions; None as an answer means "look again, a newcomer is gone". Returns groups, best first."""


class SerialRace(Race):
    """Runs an algorithm; subclasses write it down in :meth:`run`."""

    infer = True
    """Whether answers are never asked for twice, nor what follows from them."""

    def __init__(self, order: Sequence[str], k: int) -> None:
        self.k = k
        self._order = list(order)
        self._said: list[tuple[str, str, int]] = []
        self._known = KnownRelations()
        self._ties = 0
        self._groups: list[list[str]] | None = None
        self._question: Question | None = None
        self._restart()

    @abstractmethod
    def run(self, order: list[str]) -> Algorithm:
        """The algorithm over documents in their order of entry (a list of its own)."""

    def requests(self) -> Iterator[Request]:
        question = self._question
        if question is None:
            return
        for place, first in enumerate(question.firsts):
            # The first is open, else it would not be asked; of the others some may be known from before a restart.
            if place == 0 or self._known.relation(first, question.second) is None:
                yield Pair(first, question.second)

    def answer(self, request: Request, value: int) -> None:
        first, second = request.documents
        self._said.append((first, second, value))
        self._ties += value == 0
        if self.infer:
            self._known.add(first, second, value)
        self._send((first, value))

    def remove(self, documents: Sequence[str]) -> None:
        question = self._question
        assert question is not None
        gone = set(documents)
        self._order = [document for document in self._order if document not in gone]
        if question.newcomers and question.second not in gone:
            question.firsts[:] = [first for first in question.firsts if first not in gone]
            self._send(None)
        else:
            self._restart()

    def top(self) -> tuple[tuple[str, ...], ...]:
        return () if self._groups is None else tuple(tuple(group) for group in self._groups)

    def tie_share(self) -> float:
        """Share of ties among the answers, drawn to 0 while there are few."""
        return self._ties / (len(self._said) + 5)

    def grouped(self, documents: Sequence[str]) -> list[list[str]]:
        """An order cut into tie groups, as far as the answers tell of ties."""
        known = self._all_known()
        groups = [[document] for document in documents[:1]]
        for better, worse in pairwise(documents):
            if known.relation(better, worse) == 0:
                groups[-1].append(worse)
            else:
                groups.append([worse])
        return groups

    def _all_known(self) -> KnownRelations:
        if self.infer:
            return self._known
        known = KnownRelations()
        for said in self._said:
            known.add(*said)
        return known

    def _restart(self) -> None:
        self._known = self._all_known()
        self._groups = None
        # Those with answers come first, so that the answers are used before others are asked for.
        judged = {document for first, second, _ in self._said for document in (first, second)}
        self._order.sort(key=lambda document: document not in judged)
        self._algorithm = self.run(list(self._order))
        self._send(None)

    def _send(self, answer: Answer | None) -> None:
        try:
            question = self._algorithm.send(answer)
            while known := self._answer_known(question):
                question = self._algorithm.send(known)
        except StopIteration as end:
            self._question, self._groups = None, end.value
        else:
            self._question = question

    def _answer_known(self, question: Question) -> Answer | None:
        """An answer to the question that need not be asked."""
        first = question.firsts[0]
        value = self._known.relation(first, question.second)
        return None if value is None else (first, value)
