"""The owner's board: how far a project is, by assessor and by assignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gradrank.labeling.project.judging import Desk


@dataclass(frozen=True)
class AssignmentStatus:
    """One assignment."""

    number: int
    assessor: str
    query: str
    text: str
    strategy: str
    asked: int
    expected: int | None
    """Judgments left, most likely; None if nothing was judged yet."""
    status: str
    """``new``, ``open``, ``done`` or ``void``."""
    reason: str = ""
    """Why it is void."""


@dataclass
class AssessorStatus:
    """One assessor."""

    number: int
    name: str
    edition: int
    assigned: int = 0
    done: int = 0
    judgments: int = 0
    """Those that stand: neither undone nor skipped."""
    minutes: float = 0.0
    last: float | None = None


@dataclass(frozen=True)
class Board:
    """A project at one moment."""

    title: str
    queries: int
    documents: int
    candidates: int
    assessors: list[AssessorStatus] = field(default_factory=list)
    assignments: list[AssignmentStatus] = field(default_factory=list)

    def count(self, status: str) -> int:
        """How many assignments have a status."""
        return sum(item.status == status for item in self.assignments)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "title": self.title,
            "queries": self.queries,
            "documents": self.documents,
            "candidates": self.candidates,
            "assignments": {status: self.count(status) for status in ("new", "open", "done", "void")},
            "judgments": sum(item.judgments for item in self.assessors),
            "assessors": [
                {
                    "name": item.name,
                    "assigned": item.assigned,
                    "done": item.done,
                    "judgments": item.judgments,
                    "minutes": round(item.minutes, 2),
                    "last": item.last,
                }
                for item in self.assessors
            ],
        }


def board(desk: Desk) -> Board:
    """The board of a project now."""
    store = desk.store
    connection = store.read()
    queries, documents, candidates = connection.execute(
        "SELECT (SELECT count(*) FROM query), (SELECT count(*) FROM document), (SELECT count(*) FROM candidate)"
    ).fetchone()
    people = {
        number: AssessorStatus(number, name, edition, minutes=minutes, last=last)
        for number, name, edition, minutes, last in connection.execute(
            "SELECT u.id, u.name, u.edition, coalesce(sum(e.active_seconds), 0) / 60, max(e.at) "
            "FROM assessor u LEFT JOIN assignment a ON a.assessor = u.id LEFT JOIN event e ON e.assignment = a.id "
            "GROUP BY u.id ORDER BY u.id"
        )
    }
    rows = connection.execute(
        "SELECT a.id, a.assessor, q.name, q.text, a.strategy, v.reason, "
        "EXISTS (SELECT 1 FROM event e WHERE e.assignment = a.id) OR "
        "(SELECT count(*) FROM candidate c WHERE c.query = a.query) = 1 FROM assignment a "
        "JOIN query q ON q.id = a.query LEFT JOIN void v ON v.assignment = a.id ORDER BY a.id"
    ).fetchall()
    assignments = []
    for number, assessor, query, text, name, reason, begun in rows:
        person = people[assessor]
        asked, expected, status = 0, None, "new"
        if begun:
            # Only what was begun is replayed: most of a large project is not.
            state = desk.work(number).state
            asked, expected = state.asked, state.remaining.expected
            status = "done" if state.done else "open"
            person.judgments += asked
        if reason is not None:
            status = "void"
        else:
            person.assigned += 1
            person.done += status == "done"
        assignments.append(
            AssignmentStatus(number, person.name, query, text, name, asked, expected, status, reason or "")
        )
    return Board(store.setting("title"), queries, documents, candidates, list(people.values()), assignments)
