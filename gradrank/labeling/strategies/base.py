"""What all strategies share: questions, the state after a history of answers, and the replay that leads there.

A strategy is a pure function: candidates, k, seed and the history of answers give the next question or the
result. Nothing else is ever stored, so undo, resuming on another device and a restart of the server are all
the same: replay. A strategy brings a :class:`Race`, which knows the questions that could be asked now; the
replay picks among them, hears undo, skips and bad documents, and refuses answers to other questions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from gradrank.errors import DataError, StaleJudgment
from gradrank.labeling.judgments import GRADE_NAMES, PAIR_VERDICTS, SINGLE_VERDICTS, Judgment, Verdict
from gradrank.labeling.judgments import standing as standing_judgments
from gradrank.labeling.records import Tool


@dataclass(frozen=True, slots=True)
class Pair:
    """The question which of two documents is more relevant.

    >>> Pair("d1", "d2").documents
    ('d1', 'd2')
    """

    first: str
    second: str

    @property
    def documents(self) -> tuple[str, ...]:
        """The documents to show."""
        return (self.first, self.second)


@dataclass(frozen=True, slots=True)
class Single:
    """The question which grade a document has.

    >>> Single("d1").documents
    ('d1',)
    """

    document: str

    @property
    def documents(self) -> tuple[str, ...]:
        """The document to show."""
        return (self.document,)


Request = Pair | Single


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many judgments are left: at least, most likely, at most (as long as no document is called bad).

    >>> Estimate(3, 4, 9).expected
    4
    """

    low: int
    expected: int
    high: int


@dataclass(frozen=True, slots=True)
class State:
    """Where a history has led."""

    request: Request | None
    """The open question; None if the work is done."""
    top: tuple[tuple[str, ...], ...]
    """Tie groups that are settled, best first; all of the top k once ``request`` is None.

    The last group is whole, so the groups may hold more than k documents in all. (`heap` and `heap-infer` hold
    exactly k, as Algorithm 1 does; see ``tied_out``.)
    """
    bad: tuple[str, ...]
    """Documents that left the race, in the order in which they did."""
    asked: int
    """Judgments that count: without skips, and without what undo took back."""
    remaining: Estimate
    can_undo: bool = False
    """Whether there is something to take back."""
    tied_out: tuple[str, ...] = ()
    """Documents outside ``top`` known to be as good as its last group: the cut at k between them is arbitrary."""
    grades: tuple[tuple[str, int], ...] = ()
    """(document, grade) for each document graded so far, in the order of grading."""

    @property
    def done(self) -> bool:
        """Whether no question is left."""
        return self.request is None


class Race(ABC):
    """The inside of a strategy: documents competing for the top k."""

    @abstractmethod
    def requests(self) -> Iterator[Request]:
        """The questions that could be asked now, best first; none if the race is over.

        Lazy: mostly only the first is looked at. After skips the replay looks further.
        """

    @abstractmethod
    def answer(self, request: Request, value: int) -> None:
        """Take in an answer to one of the requests: 1, 0 or −1 for first, tie, second of a pair; or a grade."""

    @abstractmethod
    def remove(self, documents: Sequence[str]) -> None:
        """Take documents of the open question out of the race; answers about others keep their worth."""

    @abstractmethod
    def top(self) -> tuple[tuple[str, ...], ...]:
        """The tie groups that are settled."""

    @abstractmethod
    def remaining(self) -> Estimate:
        """Judgments left, as far as one can tell."""

    def tied_out(self) -> tuple[str, ...]:
        """Documents cut off although as good as the last group."""
        return ()

    def grades(self) -> tuple[tuple[str, int], ...]:
        """Grades given so far."""
        return ()


_VALUES = {Verdict.FIRST: 1, Verdict.TIE: 0, Verdict.SECOND: -1}


@dataclass(frozen=True)
class Strategy:
    """A named way to find the ordered top k by asking.

    >>> from gradrank.labeling import strategy
    >>> state = strategy("tournament").replay(["d1", "d2", "d3"], k=1, seed=0, history=[])
    >>> state.request, state.remaining.expected
    (Pair(first='d1', second='d2'), 2)
    """

    name: str
    title: str
    """One line for people."""
    tool: Tool
    """Which tool its questions need: T1 shows pairs, T2 one document with five grades."""
    start: Callable[[Sequence[str], int], Race]
    """Documents in the order in which they enter the race, and k."""
    complexity: str
    """Order of the number of judgments."""
    uses_prior: bool = False
    """Whether documents enter by the prior order, best first, rather than at random."""

    def race(self, candidates: Sequence[str], k: int, seed: int, prior: Sequence[str] | None = None) -> Race:
        """The race at its start: what :meth:`replay` feeds with a history."""
        _check(candidates, k)
        order = shuffled(candidates, seed)
        if self.uses_prior and prior is not None:
            place = {document: index for index, document in enumerate(dict.fromkeys(prior))}
            order.sort(key=lambda document: place.get(document, len(place)))
        return self.start(order, k)

    def replay(
        self,
        candidates: Sequence[str],
        k: int,
        seed: int,
        history: Sequence[Judgment],
        prior: Sequence[str] | None = None,
    ) -> State:
        """The state after a history; the same arguments always give the same state.

        Parameters
        ----------
        candidates
            names of the documents
        k
            how many documents at the top are put in order
        seed
            of the order in which documents enter
        history
            judgments so far, skips and undo included
        prior
            candidates best first, as some ranker orders them; only a strategy with ``uses_prior`` looks at it, and
            candidates that it lacks enter last

        Raises
        ------
        StaleJudgment
            if a judgment answers another question than the one that was open
        """
        race = self.race(candidates, k, seed, prior)
        skipped: dict[frozenset[str], int] = {}
        bad: list[str] = []
        judgments = standing_judgments(history)
        asked = 0
        for index, judgment in enumerate(judgments):
            request = _choose(race, skipped)
            _check_fits(judgment, request, index)
            assert request is not None
            if judgment.verdict is Verdict.SKIP:
                skipped[frozenset(request.documents)] = index
                continue
            asked += 1
            if judgment.verdict in _VALUES:
                race.answer(request, _VALUES[judgment.verdict])
            elif judgment.verdict is Verdict.GRADE:
                assert judgment.grade is not None
                race.answer(request, judgment.grade)
            if documents := _bad_documents(judgment, request):
                bad += documents
                if judgment.verdict is not Verdict.GRADE:
                    race.remove(documents)
        return State(
            request=_choose(race, skipped),
            top=race.top(),
            bad=tuple(bad),
            asked=asked,
            remaining=race.remaining(),
            can_undo=bool(judgments),
            tied_out=race.tied_out(),
            grades=race.grades(),
        )


def shuffled(candidates: Sequence[str], seed: int) -> list[str]:
    """The candidates in random order.

    Fisher and Yates by hand: stored histories must replay alike under every Python, and of the random module only
    ``random()`` is promised never to change.

    >>> shuffled(["a", "b", "c", "d"], seed=1)
    ['d', 'b', 'c', 'a']
    """
    order = list(candidates)
    random = Random(seed)
    for last in range(len(order) - 1, 0, -1):
        other = int(random.random() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


def _choose(race: Race, skipped: dict[frozenset[str], int]) -> Request | None:
    """The best request that was not skipped, else the one skipped longest ago."""
    if not skipped:
        return next(race.requests(), None)
    oldest: Request | None = None
    when = -1
    for request in race.requests():
        last = skipped.get(frozenset(request.documents))
        if last is None:
            return request
        if oldest is None or last < when:
            oldest, when = request, last
    return oldest


def _bad_documents(judgment: Judgment, request: Request) -> tuple[str, ...]:
    if judgment.verdict is Verdict.FIRST_BAD or (judgment.verdict is Verdict.GRADE and judgment.grade == 0):
        return request.documents[:1]
    if judgment.verdict is Verdict.SECOND_BAD:
        return request.documents[1:]
    if judgment.verdict is Verdict.BOTH_BAD:
        return request.documents
    return ()


def _check(candidates: Sequence[str], k: int) -> None:
    if k < 1:
        raise DataError(f"k is {k}, expected 1 or more")
    if len(set(candidates)) != len(candidates):
        twice = next(document for document in candidates if list(candidates).count(document) > 1)
        raise DataError(f"document {twice!r} is twice among the candidates, expected distinct documents")


def _check_fits(judgment: Judgment, request: Request | None, index: int) -> None:
    said = (judgment.first,) if judgment.second is None else (judgment.first, judgment.second)
    if request is None:
        raise StaleJudgment(f"judgment {index + 1} is about {_shown(said)}, but no question was left")
    if said != request.documents:
        raise StaleJudgment(
            f"judgment {index + 1} is about {_shown(said)}, but the open question was {_shown(request.documents)}"
        )
    allowed = PAIR_VERDICTS if isinstance(request, Pair) else SINGLE_VERDICTS
    if judgment.verdict not in allowed:
        kind = "a pair" if isinstance(request, Pair) else "a single document"
        raise StaleJudgment(f"judgment {index + 1} says {judgment.verdict.value!r}, which cannot be said of {kind}")
    if judgment.verdict is Verdict.GRADE and judgment.grade not in range(len(GRADE_NAMES)):
        raise StaleJudgment(f"judgment {index + 1} has grade {judgment.grade}, expected 0 to {len(GRADE_NAMES) - 1}")


def _shown(documents: Sequence[str]) -> str:
    return " and ".join(repr(document) for document in documents)
