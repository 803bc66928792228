"""Results of a project: records and outcomes for the reports, labels for learning."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gradrank.labeling.judgments import Verdict
from gradrank.labeling.project.judging import load_assignment, load_history
from gradrank.labeling.project.store import Store
from gradrank.labeling.records import Outcome, Record, Tool
from gradrank.labeling.strategies import State, strategy


@dataclass(frozen=True)
class Finding:
    """The state of one assignment that is not void."""

    assignment: int
    assessor: str
    query: str
    strategy: str
    k: int
    documents: tuple[str, ...]
    state: State

    @property
    def tool(self) -> Tool:
        """The tool that was used."""
        return strategy(self.strategy).tool


def findings(store: Store, *, unfinished: bool = False) -> list[Finding]:
    """The states of assignments that are finished, or begun if ``unfinished``; void ones are left out."""
    result = []
    with store.snapshot() as connection:
        rows = connection.execute(
            # With one candidate nothing need be asked, and the work is done without an event.
            "SELECT a.id, u.name, (SELECT count(*) FROM event e WHERE e.assignment = a.id) AS events "
            "FROM assignment a JOIN assessor u ON u.id = a.assessor WHERE a.id NOT IN (SELECT assignment FROM void) "
            "AND (events > 0 OR (SELECT count(*) FROM candidate c WHERE c.query = a.query) = 1) ORDER BY a.query, a.id"
        ).fetchall()
        for number, assessor, count in rows:
            item = load_assignment(connection, number)
            state = item.replay(load_history(connection, number, count))
            if state.done or (unfinished and count):
                result.append(Finding(number, assessor, item.query, item.strategy, item.k, item.documents, state))
    return result


def outcomes(store: Store) -> list[Outcome]:
    """The outcomes that the report reads; unfinished ones are marked."""
    return [
        Outcome(
            assessor=item.assessor,
            query=item.query,
            tool=item.tool,
            strategy=item.strategy,
            k=item.k,
            documents=item.documents,
            top=item.state.top,
            bad=item.state.bad,
            grades=item.state.grades,
            complete=item.state.done,
        )
        for item in findings(store, unfinished=True)
    ]


def records(store: Store) -> list[Record]:
    """All events, also those of void assignments (marked), in the order of time within an assignment."""
    rows = store.read().execute(
        "SELECT u.name, q.name, a.strategy, e.verdict, f.name, s.name, e.grade, e.active_seconds, e.first_left, "
        "v.assignment IS NOT NULL FROM event e JOIN assignment a ON a.id = e.assignment "
        "JOIN assessor u ON u.id = a.assessor JOIN query q ON q.id = a.query "
        "LEFT JOIN document f ON f.id = e.first LEFT JOIN document s ON s.id = e.second "
        "LEFT JOIN void v ON v.assignment = a.id ORDER BY e.assignment, e.seq"
    )
    return [
        Record(
            assessor=assessor,
            query=query,
            tool=strategy(name).tool,
            verdict=Verdict(verdict),
            first=first or "",
            second=second,
            grade=grade,
            seconds=seconds,
            first_left=None if first_left is None else bool(first_left),
            voided=bool(voided),
        )
        for assessor, query, name, verdict, first, second, grade, seconds, first_left, voided in rows
    ]


# ---------------------------------------------------------------------- labels
def position_labels(top: Sequence[Sequence[str]], documents: Iterable[str], k: int) -> dict[str, float]:
    """Labels of top-k truth: k + 1 − π for the document at place π, 0 for all others (Niu et al. 2012).

    Tied documents share the label of their first place.

    >>> position_labels([["a"], ["b", "c"], ["d"]], ["a", "b", "c", "d", "e"], k=4)
    {'a': 4.0, 'b': 3.0, 'c': 3.0, 'd': 1.0, 'e': 0.0}
    """
    labels = dict.fromkeys(documents, 0.0)
    place = 1
    for group in top:
        for name in group:
            labels[name] = float(k + 1 - place)
        place += len(group)
    return labels


def labels_by_query(found: Sequence[Finding], tool: Tool | None = None) -> dict[str, dict[str, float]]:
    """One label for each document of each query, from all its assessors.

    Preferences: the assessors' position labels are added up (Borda's count), the documents ordered by the sum,
    and the first k labeled by their place again. Grades: the lower median. ``tool`` says whose judgments; if none
    is given, preferences where a query has any, grades elsewhere.
    """
    by_query: dict[str, list[Finding]] = {}
    for item in found:
        if tool is None or item.tool is tool:
            by_query.setdefault(item.query, []).append(item)
    result = {}
    for query, items in by_query.items():
        pairs = [item for item in items if item.tool is Tool.PREFERENCES]
        result[query] = _consensus(pairs) if pairs else _median_grades(items)
    return result


def _consensus(items: Sequence[Finding]) -> dict[str, float]:
    k = max(item.k for item in items)
    sums: dict[str, float] = dict.fromkeys(items[0].documents, 0.0)
    for item in items:
        for name, label in position_labels(item.state.top, item.documents, item.k).items():
            sums[name] += label
    top: list[list[str]] = []
    for value in sorted({value for value in sums.values() if value > 0}, reverse=True):
        if sum(map(len, top)) >= k:
            break
        top.append([name for name in sums if sums[name] == value])
    return position_labels(top, sums, k)


def _median_grades(items: Sequence[Finding]) -> dict[str, float]:
    grades: dict[str, list[int]] = {}
    for item in items:
        # A document that was taken out as bad has no grade of its own.
        for name, grade in (dict.fromkeys(item.state.bad, 0) | dict(item.state.grades)).items():
            grades.setdefault(name, []).append(grade)
    return {name: float(statistics.median_low(given)) for name, given in grades.items()}
