"""Assignment: who judges which query with which tool.

For every query and tool there are as many assessors as the overlap asks for; nobody gets a query with both tools;
the tools and the work are balanced between the assessors.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from gradrank.errors import DataError
from gradrank.labeling.project.store import Store, note
from gradrank.labeling.strategies import DEFAULT_STRATEGY, STRATEGIES

GRADES = "grades"
"""The strategy of the second tool: five grades for one document at a time."""

MOST_SHARED = 200
"""A query without candidates gets every document, if there are no more than this."""

DESIGNS = ("balanced", "paper")

TOOLS = {"pairs": "pairs", "grades": "five grades", "both": "both, on different queries for each assessor"}


def tool_strategies(strategy: str, tools: str, design: str) -> list[str]:
    """The strategies of the tools that are used: the pairs' one, five grades, or both.

    >>> tool_strategies("tournament", "pairs", "paper")
    ['tournament', 'grades']
    """
    if strategy not in STRATEGIES:
        raise DataError(f"there is no strategy {strategy!r}, expected one of {', '.join(STRATEGIES)}")
    if tools not in TOOLS:
        raise DataError(f"tools is {tools!r}, expected {', '.join(TOOLS)}")
    if tools == "both" or design == "paper":
        return [DEFAULT_STRATEGY if strategy == GRADES else strategy, GRADES]
    return [GRADES] if tools == "grades" else [strategy]


@dataclass(frozen=True)
class Planned:
    """One assessor judges one query."""

    assessor: str
    query: str
    strategy: str


def plan_assignments(
    queries: Sequence[str],
    assessors: Sequence[str],
    strategies: Sequence[str],
    *,
    overlap: int = 1,
    design: str = "balanced",
    seed: int = 0,
    existing: Sequence[Planned] = (),
    blocked: Sequence[tuple[str, str]] = (),
) -> list[Planned]:
    """Plan what is still to be assigned, in the order in which each assessor gets it.

    Parameters
    ----------
    queries, assessors
        their names
    strategies
        one strategy per tool
    overlap
        assessors per query and tool
    design
        ``balanced``: work and tools are evenly spread. ``paper``: the queries are divided into as many folds Q as there
        are assessors U, and U_i judges Q_i with the first tool and Q_{i+1} with the second (Niu et al. 2012); a higher
        overlap goes on with Q_{i+2}, Q_{i+3} and so on
    seed
        of the order of the queries and of the choice between equals
    existing
        assignments that were made before; they count
    blocked
        (assessor, query) pairs that must not be assigned, because the assessor has seen the query

    Examples
    --------
    >>> plan = plan_assignments(["q1", "q2"], ["ada", "ben"], ["tournament", "grades"], design="paper")
    >>> sorted((item.assessor, item.query[0], item.strategy) for item in plan)[:2]
    [('ada', 'q', 'grades'), ('ada', 'q', 'tournament')]
    """
    if design not in DESIGNS:
        raise DataError(f"design is {design!r}, expected {' or '.join(DESIGNS)}")
    if overlap < 1:
        raise DataError(f"overlap is {overlap}, expected at least 1")
    if not queries:
        raise DataError("there is no query to assign")
    needed = overlap * len(strategies)
    if needed > len(assessors):
        tools = "two tools, and nobody may see a query with both" if len(strategies) > 1 else "one tool"
        raise DataError(
            f"an overlap of {overlap} with {tools} needs {needed} assessors for each query, there are {len(assessors)}"
        )
    shuffle = random.Random(f"assignment {seed}")
    order = list(queries)
    shuffle.shuffle(order)
    if design == "paper":
        if len(strategies) != 2:
            raise DataError("the paper's design compares two tools")
        if existing:
            raise DataError("the paper's design needs a project without assignments")
        planned = _by_folds(order, assessors, strategies, overlap)
    else:
        planned = _balanced(order, assessors, strategies, overlap, existing, blocked, shuffle)
    shuffle.shuffle(planned)
    return planned


def _by_folds(
    queries: Sequence[str], assessors: Sequence[str], strategies: Sequence[str], overlap: int
) -> list[Planned]:
    count = len(assessors)
    return [
        Planned(assessor, query, strategy)
        for number, assessor in enumerate(assessors)
        for step in range(2 * overlap)
        for strategy in [strategies[step % 2]]
        for query in queries[(number + step) % count :: count]
    ]


def _balanced(
    queries: Sequence[str],
    assessors: Sequence[str],
    strategies: Sequence[str],
    overlap: int,
    existing: Sequence[Planned],
    blocked: Sequence[tuple[str, str]],
    shuffle: random.Random,
) -> list[Planned]:
    """Each place goes to the assessor with the least work with that tool, who has met the others least often."""
    load: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    met: Counter[frozenset[str]] = Counter()
    who: dict[tuple[str, str], list[str]] = {}
    seen = set(blocked)
    for item in existing:
        load[item.assessor, item.strategy] += 1
        total[item.assessor] += 1
        who.setdefault((item.query, item.strategy), []).append(item.assessor)
        seen.add((item.assessor, item.query))
    for group in who.values():
        met.update(map(frozenset, combinations(group, 2)))
    planned = []
    for number, query in enumerate(queries):
        # The tool that chooses first has the better choice: they take turns.
        turn = number % len(strategies)
        for strategy in [*strategies[turn:], *strategies[:turn]]:
            group = who.setdefault((query, strategy), [])
            while len(group) < overlap:
                free = [name for name in assessors if (name, query) not in seen]
                if not free:
                    raise DataError(
                        f"query {query} has seen {len(group)} of {overlap} assessors for {strategy}, and every "
                        "assessor has met it: more assessors are needed"
                    )
                chosen = min(
                    free,
                    key=lambda name: (
                        load[name, strategy],
                        total[name],
                        sum(met[frozenset((name, other))] for other in group),
                        shuffle.random(),
                    ),
                )
                met.update(frozenset((chosen, other)) for other in group)
                group.append(chosen)
                seen.add((chosen, query))
                load[chosen, strategy] += 1
                total[chosen] += 1
                planned.append(Planned(chosen, query, strategy))
    return planned


def summarize_plan(planned: Sequence[Planned]) -> dict[str, Mapping[str, int]]:
    """How many queries each assessor gets with each strategy.

    >>> summarize_plan([Planned("ada", "q1", "tournament"), Planned("ada", "q2", "grades")])
    {'ada': {'tournament': 1, 'grades': 1}}
    """
    counts: dict[str, Counter[str]] = {}
    for item in planned:
        counts.setdefault(item.assessor, Counter())[item.strategy] += 1
    return {name: dict(counts[name]) for name in sorted(counts)}


# ---------------------------------------------------------------------- in the project
def assign(
    store: Store,
    *,
    assessors: int,
    overlap: int = 1,
    k: int = 10,
    strategies: Sequence[str] = ("tournament",),
    design: str = "balanced",
    seed: int = 0,
    preview: bool = False,
) -> list[Planned]:
    """Plan assignments and write them into a project.

    Called again, it adds what is missing: after more queries were imported or an assignment was voided. Queries without
    candidates are left out; if no query has any, every document becomes a candidate of every query.

    Parameters
    ----------
    store
        the project
    assessors
        how many assessors take part: the project's first ones, and new ones if there are fewer
    overlap
        assessors per query and tool
    k
        how many documents at the top are put in order
    strategies
        one strategy per tool
    design, seed
        as :func:`plan_assignments` takes them
    preview
        only plan, write nothing
    """
    if k < 1:
        raise DataError(f"k is {k}, expected at least 1")
    if assessors < 1:
        raise DataError(f"there are {assessors} assessors, expected at least 1")
    left_out = queries_without_candidates(store)
    with store.snapshot() as connection:
        queries = [name for (name,) in connection.execute("SELECT name FROM query ORDER BY id")]
        names = [name for (name,) in connection.execute("SELECT name FROM assessor ORDER BY id LIMIT ?", (assessors,))]
        rows = connection.execute(
            "SELECT u.name, q.name, a.strategy, v.reason FROM assignment a JOIN assessor u ON u.id = a.assessor "
            "JOIN query q ON q.id = a.query LEFT JOIN void v ON v.assignment = a.id ORDER BY a.id"
        ).fetchall()
        documents = connection.execute("SELECT count(*) FROM document").fetchone()[0]
        names += _new_names(connection.execute("SELECT name FROM assessor").fetchall(), assessors - len(names))
    if queries and len(left_out) == len(queries):
        if not 0 < documents <= MOST_SHARED:
            raise DataError(
                f"no query has candidates, and there are {documents} documents, expected 1 to {MOST_SHARED} for all "
                "of them to be candidates of every query: import a run",
                path=store.path,
            )
        left_out = []
    unseen = set(left_out)
    queries = [query for query in queries if query not in unseen]
    planned = plan_assignments(
        queries,
        names,
        strategies,
        overlap=overlap,
        design=design,
        seed=seed,
        existing=[Planned(*row[:3]) for row in rows if row[3] is None],
        blocked=[(row[0], row[1]) for row in rows],
    )
    if not preview:
        _save(store, planned, names, k, seed)
    return planned


def queries_without_candidates(store: Store) -> list[str]:
    """Names of the queries for which there is nothing to judge."""
    rows = store.read().execute("SELECT name FROM query WHERE id NOT IN (SELECT query FROM candidate) ORDER BY id")
    return [name for (name,) in rows]


def _new_names(taken: Sequence[tuple[str]], count: int) -> list[str]:
    names = {name for (name,) in taken}
    fresh: list[str] = []
    number = 1
    while len(fresh) < count:
        name = f"assessor-{number}"
        if name not in names:
            fresh.append(name)
        number += 1
    return fresh


def _save(store: Store, planned: Sequence[Planned], names: Sequence[str], k: int, seed: int) -> None:
    with store.write() as connection:
        connection.executemany("INSERT OR IGNORE INTO assessor (name) VALUES (?)", ((name,) for name in names))
        connection.execute(
            "INSERT INTO candidate (query, place, document) SELECT q.id, d.id, d.id FROM query q, document d "
            "WHERE NOT EXISTS (SELECT 1 FROM candidate)"
        )
        last = connection.execute("SELECT coalesce(max(place), 0) FROM assignment").fetchone()[0]
        for place, item in enumerate(planned, last + 1):
            # Each assessor meets the documents in an order of his own.
            own = random.Random(f"{seed} {item.assessor} {item.query}").getrandbits(48)
            connection.execute(
                "INSERT INTO assignment (assessor, query, strategy, k, seed, place, made_at) "
                "SELECT u.id, q.id, ?, ?, ?, ?, ? FROM assessor u, query q WHERE u.name = ? AND q.name = ?",
                (item.strategy, k, own, place, store.clock(), item.assessor, item.query),
            )
        note(connection, store.clock(), "assign", f"{len(planned)} assignments, k = {k}, seed {seed}")


def void(store: Store, assignment: int, reason: str) -> None:
    """Take an assignment out of all results, for a reason that is kept; its events stay in the file."""
    if not reason.strip():
        raise DataError("a reason is needed to void an assignment")
    with store.write() as connection:
        if connection.execute("SELECT 1 FROM assignment WHERE id = ?", (assignment,)).fetchone() is None:
            raise DataError(f"there is no assignment {assignment}", path=store.path)
        if connection.execute("SELECT 1 FROM void WHERE assignment = ?", (assignment,)).fetchone() is not None:
            raise DataError(f"assignment {assignment} is void already", path=store.path)
        connection.execute("INSERT INTO void VALUES (?, ?, ?)", (assignment, reason.strip(), store.clock()))
        note(connection, store.clock(), "void", f"assignment {assignment}: {reason.strip()}")
