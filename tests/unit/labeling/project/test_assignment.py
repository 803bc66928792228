"""Who judges what: overlap, balance, and nobody twice with a query."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gradrank.errors import DataError
from gradrank.labeling.project.assignment import (
    Planned,
    assign,
    plan_assignments,
    queries_without_candidates,
    tool_strategies,
    void,
)
from gradrank.labeling.project.store import Store, create_project

TOOLS = ["tournament", "grades"]


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def check(planned: list[Planned], queries: list[str], strategies: list[str], overlap: int) -> None:
    """What every plan must hold."""
    who = defaultdict(set)
    for item in planned:
        who[item.query, item.strategy].add(item.assessor)
    assert {key: len(people) for key, people in who.items()} == {
        (query, name): overlap for query in queries for name in strategies
    }
    pairs = Counter((item.assessor, item.query) for item in planned)
    assert max(pairs.values()) == 1


@given(
    queries=st.integers(1, 30),
    assessors=st.integers(1, 9),
    overlap=st.integers(1, 4),
    tools=st.integers(1, 2),
    seed=st.integers(0, 5),
)
def test_every_plan_is_complete_and_balanced(queries: int, assessors: int, overlap: int, tools: int, seed: int) -> None:
    assume(overlap * tools <= assessors)
    strategies = TOOLS[:tools]
    people = names("u", assessors)
    planned = plan_assignments(names("q", queries), people, strategies, overlap=overlap, seed=seed)
    check(planned, names("q", queries), strategies, overlap)
    for name in strategies:
        load = Counter(item.assessor for item in planned if item.strategy == name)
        # One tool can always be shared evenly; two tools exclude each other within a query.
        assert max(load[one] for one in people) - min(load[one] for one in people) <= tools


@given(assessors=st.integers(2, 9), rounds=st.integers(1, 4), queries=st.integers(2, 40))
def test_the_papers_design(assessors: int, rounds: int, queries: int) -> None:
    assume(2 * rounds <= assessors <= queries)
    people = names("u", assessors)
    planned = plan_assignments(names("q", queries), people, TOOLS, overlap=rounds, design="paper")
    check(planned, names("q", queries), TOOLS, rounds)
    # Every assessor uses every tool.
    assert {(item.assessor, item.strategy) for item in planned} == {(one, tool) for one in people for tool in TOOLS}


def test_the_papers_five_folds() -> None:
    """50 queries, 5 assessors: U_i has fold Q_i with T1 and the fold of U_{i+1} with T2, ten queries each."""
    planned = plan_assignments(names("q", 50), names("u", 5), TOOLS, design="paper")
    folds = {tool: defaultdict(set) for tool in TOOLS}
    for item in planned:
        folds[item.strategy][item.assessor].add(item.query)
    for number in range(5):
        assert len(folds["tournament"][f"u{number}"]) == 10
        assert folds["grades"][f"u{number}"] == folds["tournament"][f"u{(number + 1) % 5}"]


def test_the_same_seed_gives_the_same_plan() -> None:
    plans = [plan_assignments(names("q", 20), names("u", 5), TOOLS, overlap=2, seed=seed) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"overlap": 3}, "needs 6 assessors for each query, there are 5"),
        ({"overlap": 0}, "overlap is 0"),
        ({"queries": []}, "no query"),
        ({"design": "random"}, "design is 'random'"),
        ({"design": "paper", "strategies": ["heap"]}, "compares two tools"),
        ({"design": "paper", "existing": [Planned("u0", "q0", "heap")]}, "without assignments"),
    ],
)
def test_what_cannot_be_planned_is_explained(changes: dict[str, object], message: str) -> None:
    values = {"queries": names("q", 4), "assessors": names("u", 5), "strategies": TOOLS} | changes
    with pytest.raises(DataError, match=message):
        plan_assignments(**values)  # type: ignore[arg-type]


def test_tools_of_a_project() -> None:
    assert tool_strategies("heap", "pairs", "balanced") == ["heap"]
    assert tool_strategies("heap", "both", "balanced") == ["heap", "grades"]
    assert tool_strategies("heap", "grades", "balanced") == ["grades"]
    with pytest.raises(DataError, match="no strategy 'quick'"):
        tool_strategies("quick", "pairs", "balanced")


def test_assigning_again_adds_what_is_missing(project: Store) -> None:
    assert assign(project, assessors=2, k=3) == []
    (owner,) = (
        project.read()
        .execute("SELECT u.name FROM assignment a JOIN assessor u ON u.id = a.assessor WHERE a.id = 1")
        .fetchone()
    )
    void(project, 1, "fell asleep")
    (again,) = assign(project, assessors=2, k=3)
    # Whoever has seen the query does not get it again.
    assert again.assessor != owner
    void(project, 3, "fell asleep too")
    with pytest.raises(DataError, match="more assessors are needed"):
        assign(project, assessors=2, k=3)


def test_queries_without_candidates_are_left_out(project: Store) -> None:
    with project.write() as connection:
        connection.execute("INSERT INTO query (name, text, description) VALUES ('q3', 'later', '')")
    assert queries_without_candidates(project) == ["q3"]
    assert assign(project, assessors=2, k=3) == []


def test_too_many_documents_need_a_run(tmp_path: Path) -> None:
    with create_project(tmp_path / "p.db") as store:
        with store.write() as connection:
            connection.execute("INSERT INTO query (name, text, description) VALUES ('q1', 'x', '')")
            connection.executemany(
                "INSERT INTO document (name, title, body, kind) VALUES (?, '', 'x', 'text')",
                ((f"d{number}",) for number in range(201)),
            )
        with pytest.raises(DataError, match="no query has candidates, and there are 201 documents"):
            assign(store, assessors=1)


def test_a_preview_changes_nothing(make_project: Callable[..., Store]) -> None:
    store = make_project()
    assert len(assign(store, assessors=4, overlap=2, preview=True)) == 2
    counts = "SELECT (SELECT count(*) FROM assignment), (SELECT count(*) FROM assessor)"
    assert store.read().execute(counts).fetchone() == (2, 2)


def test_voiding_needs_a_reason_and_happens_once(project: Store) -> None:
    with pytest.raises(DataError, match="a reason is needed"):
        void(project, 1, "  ")
    with pytest.raises(DataError, match="no assignment 99"):
        void(project, 99, "why not")
    void(project, 1, "wrong")
    with pytest.raises(DataError, match="void already"):
        void(project, 1, "wrong again")
    assert project.read().execute("SELECT action, detail FROM audit ORDER BY id DESC").fetchone() == (
        "void",
        "assignment 1: wrong",
    )
