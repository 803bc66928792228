"""Judging: the open question of an assignment, and the votes on it.

The state of an assignment is the replay of its events and is never stored. A vote names the place in the sequence
of events that it wants to take and the documents that it is about, and carries a token of the page it was made on.
So a double click, a second tab, a page from the history, a repeated request or a second device can neither lose
nor double a vote, nor count it for another pair than the one that was seen.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from gradrank.errors import DataError, StaleJudgment
from gradrank.labeling.judgments import Judgment, Verdict
from gradrank.labeling.project.active_time import KINDS, active_seconds, idle_limit
from gradrank.labeling.project.store import Store
from gradrank.labeling.strategies import Pair, State, strategy

LONGEST_COMMENT = 4000
_REMEMBERED_STATES = 4096


@dataclass(frozen=True)
class Assignment:
    """One assessor's work on one query: what never changes about it."""

    id: int
    assessor: int
    query: str
    text: str
    description: str
    strategy: str
    k: int
    seed: int
    documents: tuple[str, ...]
    """Names of the candidates, best first in the order of the runs."""
    numbers: dict[str, int]
    """The candidates' row numbers."""

    def replay(self, history: list[Judgment]) -> State:
        """The state after a history."""
        return strategy(self.strategy).replay(self.documents, self.k, self.seed, history, prior=self.documents)


@dataclass(frozen=True)
class Work:
    """An assignment with its state."""

    assignment: Assignment
    seq: int
    """The place that the next event takes."""
    state: State
    void: str | None
    """Why it was voided, if it was."""
    paused: bool = False

    @property
    def first_left(self) -> bool:
        """Whether the first document of the open question stands on the left: random, the same on every device."""
        return hashlib.sha256(f"side {self.assignment.seed} {self.seq}".encode()).digest()[0] % 2 == 0

    @property
    def shown(self) -> tuple[str, ...]:
        """The documents of the open question, from left to right."""
        if self.state.request is None:
            return ()
        documents = self.state.request.documents
        return documents if self.first_left or len(documents) == 1 else documents[::-1]


@dataclass(frozen=True)
class Vote:
    """What a page sends. ``verdict`` speaks of what was on the screen: ``a`` is the document on the left."""

    seq: int
    token: str
    verdict: Verdict
    shown: tuple[int, ...] = ()
    """Row numbers of the documents, from left to right; of no meaning for an undo."""
    grade: int | None = None
    comment: str = ""


class Answer(Enum):
    """What became of a vote."""

    ACCEPTED = "accepted"
    REPEATED = "repeated"
    """It is the same vote once more: it counts once."""
    STALE = "stale"
    """It was about something else than the open question; it does not count."""


_SWAPPED = {
    Verdict.FIRST: Verdict.SECOND,
    Verdict.SECOND: Verdict.FIRST,
    Verdict.FIRST_BAD: Verdict.SECOND_BAD,
    Verdict.SECOND_BAD: Verdict.FIRST_BAD,
}


class Desk:
    """Gives out work and takes votes; one for a store, used by many threads.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from gradrank.labeling.project.assignment import assign
    >>> from gradrank.labeling.project.importing import import_files
    >>> from gradrank.labeling.project.store import create_project
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "queries.tsv").write_text("q1\\twhy is the sky blue\\n")
    >>> _ = (folder / "documents.tsv").write_text("d1\\tRayleigh scattering.\\nd2\\tA song.\\n")
    >>> store = create_project(folder / "project.db")
    >>> _ = import_files(store, queries=folder / "queries.tsv", documents=[folder / "documents.tsv"])
    >>> _ = assign(store, assessors=1, k=1)
    >>> desk = Desk(store)
    >>> work = desk.work(1)
    >>> shown = tuple(work.assignment.numbers[name] for name in work.shown)
    >>> vote = Vote(work.seq, "token", Verdict.FIRST, shown)
    >>> desk.vote(1, vote).name, desk.vote(1, vote).name, desk.work(1).state.top == ((work.shown[0],),)
    ('ACCEPTED', 'REPEATED', True)
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._assignments: _Recent[int, Assignment] = _Recent(_REMEMBERED_STATES)
        self._states: _Recent[tuple[int, int], State] = _Recent(_REMEMBERED_STATES)

    # ------------------------------------------------------------------ reading
    def work(self, assignment: int, assessor: int | None = None) -> Work:
        """The state of an assignment; one that is not the assessor's is an error like one that does not exist."""
        return self._work(self.store.read(), assignment, assessor)

    def seen(self, assignment: int) -> set[str]:
        """Names of the documents that were judged or skipped before in this assignment."""
        rows = self.store.read().execute(
            "SELECT d.name FROM event e JOIN document d ON d.id IN (e.first, e.second) WHERE e.assignment = ?",
            (assignment,),
        )
        return {name for (name,) in rows}

    def statuses(self, assessor: int) -> Iterator[tuple[int, str, str]]:
        """Number, query text and ``new``, ``open`` or ``done`` of an assessor's assignments, in their order."""
        rows = self.store.read().execute(
            "SELECT a.id, q.text, EXISTS (SELECT 1 FROM event e WHERE e.assignment = a.id), "
            "(SELECT count(*) FROM (SELECT 1 FROM candidate c WHERE c.query = a.query LIMIT 2)) "
            "FROM assignment a JOIN query q ON q.id = a.query "
            "WHERE a.assessor = ? AND a.id NOT IN (SELECT assignment FROM void) ORDER BY a.place",
            (assessor,),
        )
        for number, text, begun, candidates in rows.fetchall():
            # With two candidates or more there is a first question; only what was begun is replayed.
            if not begun and candidates > 1:
                yield number, text, "new"
            else:
                done = self.work(number).state.done
                yield number, text, "done" if done else "open" if begun else "new"

    def next_of(self, assessor: int) -> int | None:
        """The first assignment in the assessor's order that has an open question."""
        return next((number for number, _text, status in self.statuses(assessor) if status != "done"), None)

    # ------------------------------------------------------------------ writing
    def vote(self, assignment: int, vote: Vote, assessor: int | None = None) -> Answer:
        """Take a vote. When this returns ``ACCEPTED`` or ``REPEATED``, the vote is on disk."""
        # Outside of the transaction: replays here need no lock, and the answer is remembered.
        self.work(assignment, assessor)
        with self.store.write() as connection:
            old = connection.execute("SELECT * FROM event WHERE token = ?", (vote.token,)).fetchone()
            work = self._work(connection, assignment, assessor)
            if old is not None:
                return Answer.REPEATED if self._same(work.assignment, old, vote) else Answer.STALE
            judgment = self._judgment(work, vote)
            if judgment is None:
                return Answer.STALE
            state = self._append(connection, work, vote, judgment)
        # Only now: a state is remembered when its events are on disk.
        self._states.put((assignment, work.seq), state)
        return Answer.ACCEPTED

    def pause(self, assignment: int, paused: bool, page: str, assessor: int | None = None) -> None:
        """Stop or start the clock; while it is stopped, documents are hidden."""
        self._note(assignment, assessor, page, "pause" if paused else "resume")

    def shown(self, assignment: int, page: str, assessor: int | None = None) -> None:
        """A page with the open question was given out."""
        self._note(assignment, assessor, page, "shown")

    def heard(self, assignment: int, page: str, kind: str, assessor: int | None = None) -> None:
        """A page says that it was hidden, became visible, idle, active, or was closed."""
        if kind not in KINDS - {"shown", "pause", "resume"}:
            raise DataError(f"kind of activity is {kind!r}, expected hidden, visible, idle, active or closed")
        self._note(assignment, assessor, page, kind)

    def _note(self, assignment: int, assessor: int | None, page: str, kind: str) -> None:
        with self.store.write(synced=False) as connection:
            work = self._work(connection, assignment, assessor)
            connection.execute(
                "INSERT INTO activity (assignment, seq, page, kind, at) VALUES (?, ?, ?, ?, ?)",
                (assignment, work.seq, page[:64], kind, self.store.clock()),
            )

    # ------------------------------------------------------------------ inside
    def _work(self, connection: sqlite3.Connection, number: int, assessor: int | None) -> Work:
        assignment = self._assignments.get(number)
        if assignment is None:
            assignment = load_assignment(connection, number)
            self._assignments.put(number, assignment)
        if assessor is not None and assignment.assessor != assessor:
            raise DataError(f"there is no assignment {number}")
        count, void, pause = connection.execute(
            "SELECT (SELECT coalesce(max(seq), 0) FROM event WHERE assignment = ?1), "
            "(SELECT reason FROM void WHERE assignment = ?1), "
            "(SELECT kind FROM activity WHERE assignment = ?1 AND kind IN ('pause', 'resume') "
            "ORDER BY id DESC LIMIT 1)",
            (number,),
        ).fetchone()
        state = self._states.get((number, count))
        if state is None:
            state = assignment.replay(load_history(connection, number, count))
            self._states.put((number, count), state)
        return Work(assignment, count + 1, state, void, pause == "pause")

    def _judgment(self, work: Work, vote: Vote) -> Judgment | None:
        """The vote as a judgment on the open question; None if it is about another."""
        if work.void is not None or vote.seq != work.seq:
            return None
        if vote.verdict is Verdict.UNDO:
            return Judgment(Verdict.UNDO) if work.state.can_undo else None
        request = work.state.request
        if request is None or vote.shown != tuple(work.assignment.numbers[name] for name in work.shown):
            return None
        if not isinstance(request, Pair):
            judgment = Judgment(vote.verdict, request.document, None, vote.grade)
        else:
            verdict = vote.verdict if work.first_left else _SWAPPED.get(vote.verdict, vote.verdict)
            judgment = Judgment(verdict, request.first, request.second)
        return judgment

    def _append(self, connection: sqlite3.Connection, work: Work, vote: Vote, judgment: Judgment) -> State:
        assignment, numbers = work.assignment, work.assignment.numbers
        history = [*load_history(connection, assignment.id, work.seq - 1), judgment]
        try:
            # The strategy has the last word on what may be said.
            state = assignment.replay(history)
        except StaleJudgment as error:
            raise DataError(str(error)) from None
        now = self.store.clock()
        activity = connection.execute(
            "SELECT at, page, kind FROM activity WHERE assignment = ? AND seq = ? ORDER BY id",
            (assignment.id, work.seq),
        ).fetchall()
        shown = [at for at, _page, kind in activity if kind == "shown"]
        limit = idle_limit(words_of(connection, [numbers[name] for name in work.shown]))
        connection.execute(
            "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                assignment.id,
                work.seq,
                judgment.verdict.value,
                numbers.get(judgment.first),
                None if judgment.second is None else numbers[judgment.second],
                int(work.first_left) if judgment.second is not None else None,
                judgment.grade,
                vote.comment.strip()[:LONGEST_COMMENT],
                vote.token,
                min(shown, default=None),
                now,
                active_seconds(activity, now, limit) if shown else None,
            ),
        )
        return state

    def _same(self, assignment: Assignment, row: tuple[object, ...], vote: Vote) -> bool:
        """Whether an event with the token of a vote is that vote."""
        number, seq, verdict, first, second, first_left, grade = row[:7]
        if (number, seq, grade) != (assignment.id, vote.seq, vote.grade):
            return False
        said = Verdict(str(verdict))
        if said is Verdict.UNDO or vote.verdict is Verdict.UNDO:
            return said is vote.verdict
        shown = (first,) if second is None else (first, second) if first_left else (second, first)
        if second is not None and not first_left:
            said = _SWAPPED.get(said, said)
        return said is vote.verdict and shown == vote.shown


def load_assignment(connection: sqlite3.Connection, number: int) -> Assignment:
    """Read an assignment with its candidates."""
    row = connection.execute(
        "SELECT a.assessor, q.name, q.text, q.description, a.strategy, a.k, a.seed, q.id FROM assignment a "
        "JOIN query q ON q.id = a.query WHERE a.id = ?",
        (number,),
    ).fetchone()
    if row is None:
        raise DataError(f"there is no assignment {number}")
    documents = connection.execute(
        "SELECT d.name, d.id FROM candidate c JOIN document d ON d.id = c.document WHERE c.query = ? ORDER BY c.place",
        (row[7],),
    ).fetchall()
    assessor, query, text, description, name, k, seed, _query = row
    names = tuple(document for document, _number in documents)
    return Assignment(number, assessor, query, text, description, name, k, seed, names, dict(documents))


def load_history(connection: sqlite3.Connection, number: int, count: int) -> list[Judgment]:
    """The first judgments of an assignment."""
    rows = connection.execute(
        "SELECT e.verdict, f.name, s.name, e.grade FROM event e LEFT JOIN document f ON f.id = e.first "
        "LEFT JOIN document s ON s.id = e.second WHERE e.assignment = ? AND e.seq <= ? ORDER BY e.seq",
        (number, count),
    )
    return [Judgment(Verdict(verdict), first or "", second, grade) for verdict, first, second, grade in rows]


def words_of(connection: sqlite3.Connection, documents: list[int]) -> int:
    """About how many words documents have, by their length; six letters and blanks per word."""
    marks = ",".join("?" * len(documents))
    sql = f"SELECT coalesce(sum(length(title) + length(body)), 0) FROM document WHERE id IN ({marks})"
    return int(connection.execute(sql, documents).fetchone()[0]) // 6


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class _Recent(Generic[_Key, _Value]):
    """The values used last; what is asked for again is not computed again."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _Key) -> _Value | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: _Key, value: _Value) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._size:
                self._values.popitem(last=False)
