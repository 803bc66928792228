"""Votes: each counts once, for the pair that was seen, in the order in which they came."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradrank.errors import DataError
from gradrank.labeling.judgments import Judgment, Verdict
from gradrank.labeling.project.judging import Answer, Desk, Vote, Work, load_history
from gradrank.labeling.project.store import Store
from gradrank.labeling.strategies import Pair, strategy


def vote_for(work: Work, verdict: Verdict, **changes: object) -> Vote:
    numbers = tuple(work.assignment.numbers[name] for name in work.shown)
    values: dict[str, object] = {
        "seq": work.seq,
        "token": secrets.token_urlsafe(16),
        "verdict": verdict,
        "shown": () if verdict is Verdict.UNDO else numbers,
    }
    return Vote(**(values | changes))  # type: ignore[arg-type]


def events(desk: Desk, assignment: int = 1) -> int:
    sql = "SELECT count(*) FROM event WHERE assignment = ?"
    return int(desk.store.read().execute(sql, (assignment,)).fetchone()[0])


def finish(desk: Desk, number: int, better: Callable[[str], float]) -> list[tuple[str, str]]:
    """Judge an assignment to its end by a hidden score; gives the shown pairs."""
    pairs = []
    while not (work := desk.work(number)).state.done:
        left, right = work.shown
        pairs.append((left, right))
        values = better(left), better(right)
        verdict = Verdict.FIRST if values[0] > values[1] else Verdict.SECOND if values[0] < values[1] else Verdict.TIE
        assert desk.vote(number, vote_for(work, verdict)) is Answer.ACCEPTED
    return pairs


def test_judging_what_is_on_the_screen_finds_the_true_order(project: Store) -> None:
    desk = Desk(project)
    finish(desk, 1, lambda name: int(name[1:]))
    assert desk.work(1).state.top == (("d6",), ("d5",), ("d4",))


def test_sides_are_random_stable_and_recorded(make_project: Callable[..., Store]) -> None:
    desk = Desk(make_project(assessors=40, overlap=20))
    sides: Counter[bool] = Counter()
    for number in range(1, 41):
        work = desk.work(number)
        assert work.shown == Desk(desk.store).work(number).shown
        request = work.state.request
        assert isinstance(request, Pair)
        sides[work.shown == (request.first, request.second)] += 1
        desk.vote(number, vote_for(work, Verdict.FIRST))
        row = (
            desk.store.read()
            .execute(
                "SELECT f.name, s.name, e.first_left, e.verdict FROM event e JOIN document f ON f.id = e.first "
                "JOIN document s ON s.id = e.second WHERE e.assignment = ?",
                (number,),
            )
            .fetchone()
        )
        assert row[:2] == (request.first, request.second)
        assert (row[0] if row[2] else row[1]) == work.shown[0]
        # The left one was chosen, wherever the strategy had it.
        assert (row[0] if row[3] == "a" else row[1]) == work.shown[0]
    # Two-sided binomial test at 1e-4 for 40 fair coins: 8 to 32.
    assert 8 <= sides[True] <= 32


def test_the_same_vote_twice_counts_once(project: Store) -> None:
    desk = Desk(project)
    vote = vote_for(desk.work(1), Verdict.SECOND)
    assert [desk.vote(1, vote) for _ in range(3)] == [Answer.ACCEPTED, Answer.REPEATED, Answer.REPEATED]
    assert events(desk) == 1


def test_two_answers_from_one_page_count_the_first(project: Store) -> None:
    desk = Desk(project)
    work = desk.work(1)
    assert desk.vote(1, vote_for(work, Verdict.FIRST, token="one-page")) is Answer.ACCEPTED
    assert desk.vote(1, vote_for(work, Verdict.SECOND, token="one-page")) is Answer.STALE
    assert events(desk) == 1


def test_a_second_tab_does_not_judge_the_next_pair(project: Store) -> None:
    desk = Desk(project)
    work = desk.work(1)
    first, second = vote_for(work, Verdict.FIRST), vote_for(work, Verdict.FIRST)
    assert desk.vote(1, first) is Answer.ACCEPTED
    assert desk.vote(1, second) is Answer.STALE
    assert events(desk) == 1


def test_votes_for_another_pair_or_place_are_stale(project: Store) -> None:
    desk = Desk(project)
    work = desk.work(1)
    numbers = tuple(work.assignment.numbers[name] for name in work.shown)
    for changes in ({"shown": numbers[::-1]}, {"shown": numbers[:1]}, {"shown": ()}, {"seq": 2}, {"seq": 0}):
        assert desk.vote(1, vote_for(work, Verdict.FIRST, **changes)) is Answer.STALE
    assert desk.vote(1, vote_for(work, Verdict.UNDO)) is Answer.STALE  # nothing to take back
    assert events(desk) == 0


def test_a_token_of_another_assignment_tells_nothing(project: Store) -> None:
    desk = Desk(project)
    vote = vote_for(desk.work(1), Verdict.FIRST, token="theirs-theirs")
    desk.vote(1, vote)
    assert desk.vote(2, vote_for(desk.work(2), Verdict.FIRST, token="theirs-theirs")) is Answer.STALE
    assert events(desk, 2) == 0


def test_another_assessors_assignment_does_not_exist(project: Store) -> None:
    desk = Desk(project)
    owner = desk.work(1).assignment.assessor
    other = 3 - owner
    work = desk.work(1)
    calls: list[Callable[[], object]] = [
        lambda: desk.work(1, other),
        lambda: desk.vote(1, vote_for(work, Verdict.FIRST), other),
        lambda: desk.shown(1, "page", other),
        lambda: desk.pause(1, True, "page", other),
        lambda: desk.heard(1, "page", "hidden", other),
    ]
    for call in calls:
        with pytest.raises(DataError, match=r"there is no assignment 1$"):
            call()
    with pytest.raises(DataError, match=r"there is no assignment 99$"):
        desk.work(99, other)
    assert events(desk) == 0


def test_twenty_devices_at_once_get_one_vote_through(project: Store) -> None:
    desk = Desk(project)
    work = desk.work(1)
    votes = [vote_for(work, Verdict.FIRST) for _ in range(20)]
    answers: list[Answer] = []
    start = threading.Barrier(20)

    def send(vote: Vote) -> None:
        start.wait()
        answers.append(desk.vote(1, vote))

    threads = [threading.Thread(target=send, args=(vote,)) for vote in votes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(answers) == {Answer.ACCEPTED: 1, Answer.STALE: 19}
    assert events(desk) == 1


def test_undo_is_an_event_and_shows_the_pair_again(project: Store) -> None:
    desk = Desk(project)
    before = desk.work(1)
    desk.vote(1, vote_for(before, Verdict.TIE))
    desk.vote(1, vote_for(desk.work(1), Verdict.UNDO))
    after = desk.work(1)
    assert after.state.request == before.state.request
    assert (after.seq, after.state.asked, after.state.can_undo) == (3, 0, False)
    assert desk.seen(1) == set(before.shown)


def test_grades(make_project: Callable[..., Store]) -> None:
    desk = Desk(make_project(strategies=("grades",)))
    given: dict[str, int] = {}
    while not (work := desk.work(1)).state.done:
        (name,) = work.shown
        given[name] = int(name[1:]) % 5
        assert desk.vote(1, vote_for(work, Verdict.GRADE, grade=given[name])) is Answer.ACCEPTED
    assert dict(desk.work(1).state.grades) == given
    assert len(given) == 6


@pytest.mark.parametrize(("verdict", "grade"), [(Verdict.GRADE, 2), (Verdict.GRADE, None)])
def test_a_grade_for_a_pair_is_refused(project: Store, verdict: Verdict, grade: int | None) -> None:
    desk = Desk(project)
    with pytest.raises(DataError, match="cannot be said of a pair"):
        desk.vote(1, vote_for(desk.work(1), verdict, grade=grade))
    assert events(desk) == 0


@pytest.mark.parametrize("grade", [-1, 5, None])
def test_grades_outside_of_the_scale_are_refused(make_project: Callable[..., Store], grade: int | None) -> None:
    desk = Desk(make_project(strategies=("grades",)))
    with pytest.raises(DataError, match="expected 0 to 4"):
        desk.vote(1, vote_for(desk.work(1), Verdict.GRADE, grade=grade))
    assert events(desk) == 0


def test_active_time_leaves_out_what_was_not_work(project: Store) -> None:
    now = [1000.0]
    project.clock = lambda: now[0]
    desk = Desk(project)
    for at, act in [
        (1000, lambda: desk.shown(1, "page")),
        (1010, lambda: desk.heard(1, "page", "hidden")),
        (1500, lambda: desk.heard(1, "page", "visible")),
        (1504, lambda: desk.pause(1, True, "page")),
        (9000, lambda: desk.pause(1, False, "page")),
        (9000, lambda: desk.shown(1, "page2")),
    ]:
        now[0] = at
        act()
    now[0] = 9003.5
    desk.vote(1, vote_for(desk.work(1), Verdict.FIRST))
    row = project.read().execute("SELECT shown_at, at, active_seconds FROM event").fetchone()
    assert row == (1000.0, 9003.5, 17.5)


def test_pause_is_kept_on_the_server(project: Store) -> None:
    desk = Desk(project)
    desk.pause(1, True, "page")
    assert Desk(project).work(1).paused
    assert not Desk(project).work(2).paused
    desk.pause(1, False, "page")
    assert not Desk(project).work(1).paused


def test_void_work_takes_no_votes(project: Store) -> None:
    from gradrank.labeling.project.assignment import void

    desk = Desk(project)
    work = desk.work(1)
    void(project, 1, "wrong guidelines")
    assert desk.vote(1, vote_for(work, Verdict.FIRST)) is Answer.STALE
    assert desk.work(1).void == "wrong guidelines"


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(sorted(set(Verdict) - {Verdict.GRADE})), st.sampled_from(["once", "twice", "late"])),
        max_size=25,
    )
)
def test_any_session_is_the_replay_of_its_accepted_votes(
    make_project: Callable[..., Store], steps: list[tuple[Verdict, str]]
) -> None:
    """Whatever is sent, doubled or sent from an old page: what counts is what the strategy itself would have heard."""
    store = make_project()
    desk = Desk(store)
    heard: list[Judgment] = []
    old = desk.work(1)
    for verdict, how in steps:
        work = desk.work(1)
        vote = vote_for(old if how == "late" else work, verdict)
        answer = desk.vote(1, vote)
        if how == "twice" and answer is Answer.ACCEPTED:
            assert desk.vote(1, vote) is Answer.REPEATED
        if how == "late" and old.seq != work.seq:
            assert answer is Answer.STALE
        if answer is Answer.ACCEPTED:
            request = work.state.request
            if verdict is Verdict.UNDO:
                heard.append(Judgment(verdict))
            else:
                assert isinstance(request, Pair)
                swap = {"a": "b", "b": "a", "a_bad": "b_bad", "b_bad": "a_bad"}
                said = verdict.value if work.shown[0] == request.first else swap.get(verdict.value, verdict.value)
                heard.append(Judgment(Verdict(said), request.first, request.second))
        old = work
    item = desk.work(1).assignment
    assert load_history(store.read(), 1, 10_000) == heard
    assert desk.work(1).state == strategy("tournament").replay(item.documents, item.k, item.seed, heard)
