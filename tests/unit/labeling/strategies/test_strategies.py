"""Strategies against brute force, with ties, undo, skips and bad documents in any order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.errors import DataError, StaleJudgment
from gradrank.labeling import STRATEGIES, Judgment, Pair, Single, State, Strategy, Verdict, strategy

PAIR_NAMES = ["tournament", "heap", "heap-infer", "insertion"]
WHOLE_LAST_GROUP = ["tournament", "insertion"]


def truthful(request: Pair | Single, grade: dict[str, int]) -> Judgment:
    if isinstance(request, Single):
        return Judgment(Verdict.GRADE, request.document, None, grade[request.document])
    first, second = grade[request.first], grade[request.second]
    verdict = Verdict.TIE if first == second else Verdict.FIRST if first > second else Verdict.SECOND
    return Judgment(verdict, request.first, request.second)


def true_groups(grade: dict[str, int], k: int) -> list[set[str]]:
    """Brute force: all classes, best first, until k documents are reached."""
    groups: list[set[str]] = []
    for level in sorted(set(grade.values()), reverse=True):
        if sum(map(len, groups)) < k:
            groups.append({document for document in grade if grade[document] == level})
    return groups


def check_result(name: str, state: State, grade: dict[str, int], k: int) -> None:
    groups = [set(group) for group in state.top]
    if name in WHOLE_LAST_GROUP:
        assert groups == true_groups(grade, k)
        assert state.tied_out == ()
        return
    # The heap keeps exactly k: the last group is part of the true one, and which part is chance.
    expected = true_groups(grade, k)
    assert [len(group) for group in groups[:-1]] == [len(group) for group in expected[:-1]]
    assert groups[:-1] == expected[:-1]
    assert sum(map(len, groups)) == min(k, len(grade))
    if groups:
        assert groups[-1] <= expected[-1]
        assert set(state.tied_out) <= expected[-1] - groups[-1]


def finish(
    chosen: Strategy, documents: Sequence[str], grade: dict[str, int], k: int, seed: int, history: list[Judgment]
) -> State:
    while (request := (state := chosen.replay(documents, k, seed, history)).request) is not None:
        history.append(truthful(request, grade))
        assert len(history) < 2000
    return state


@pytest.mark.parametrize("name", PAIR_NAMES)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_order_of_answers_undo_skip_and_bad_finds_the_true_top(name: str, data: st.DataObject) -> None:
    levels = data.draw(st.lists(st.integers(0, data.draw(st.sampled_from([1, 3, 100]))), min_size=0, max_size=14))
    documents = [f"d{index}" for index in range(len(levels))]
    grade = dict(zip(documents, levels, strict=True))
    k, seed = data.draw(st.integers(1, 16)), data.draw(st.integers(0, 5))
    prior = data.draw(st.none() | st.permutations(documents))
    chosen = strategy(name)
    actions = data.draw(st.lists(st.sampled_from(["answer"] * 4 + ["undo", "skip", "bad"]), max_size=40))
    history: list[Judgment] = []
    before: list[State] = []
    for action in actions:
        state = chosen.replay(documents, k, seed, history, prior)
        assert state.can_undo == bool(before)
        assert state.asked == len(before) - _standing_skips(history)
        if action == "undo" and before:
            history.append(Judgment(Verdict.UNDO))
            assert chosen.replay(documents, k, seed, history, prior) == before.pop()
            continue
        if state.request is None or action == "undo":
            continue
        before.append(state)
        first, second = state.request.documents
        if action == "skip":
            history.append(Judgment(Verdict.SKIP, first, second))
            after = chosen.replay(documents, k, seed, history, prior)
            assert (after.asked, after.top, after.bad) == (state.asked, state.top, state.bad)
            assert after.request is not None
        elif action == "bad":
            verdict = data.draw(st.sampled_from([Verdict.FIRST_BAD, Verdict.SECOND_BAD, Verdict.BOTH_BAD]))
            history.append(Judgment(verdict, first, second))
        else:
            history.append(truthful(state.request, grade))
    while (state := chosen.replay(documents, k, seed, history, prior)).request is not None:
        history.append(truthful(state.request, grade))
    assert state.remaining.low == state.remaining.expected == state.remaining.high == 0
    racing = {document: level for document, level in grade.items() if document not in state.bad}
    assert len(set(state.bad)) == len(state.bad)
    check_result(name, state, racing, k)


def _standing_skips(history: list[Judgment]) -> int:
    kept: list[Judgment] = []
    for judgment in history:
        if judgment.verdict is Verdict.UNDO:
            kept.pop()
        else:
            kept.append(judgment)
    return sum(judgment.verdict is Verdict.SKIP for judgment in kept)


@pytest.mark.parametrize("name", PAIR_NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_estimates_hold_all_along(name: str, data: st.DataObject) -> None:
    levels = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=25))
    grade = {f"d{index}": level for index, level in enumerate(levels)}
    k = data.draw(st.integers(1, 12))
    race = strategy(name).start(list(grade), k)
    estimates = []
    while (request := next(race.requests(), None)) is not None:
        estimates.append(race.remaining())
        answer = truthful(request, grade).verdict
        race.answer(request, {Verdict.FIRST: 1, Verdict.TIE: 0, Verdict.SECOND: -1}[answer])
    for index, estimate in enumerate(estimates):
        assert estimate.low <= len(estimates) - index <= estimate.high
        assert estimate.low <= estimate.expected <= estimate.high


@pytest.mark.parametrize("name", PAIR_NAMES)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_contradictory_answers_still_end_in_an_order(name: str, data: st.DataObject) -> None:
    documents = [f"d{index}" for index in range(data.draw(st.integers(1, 12)))]
    k = data.draw(st.integers(1, 12))
    verdicts = st.sampled_from([Verdict.FIRST, Verdict.SECOND, Verdict.TIE, Verdict.SECOND_BAD, Verdict.SKIP])
    history: list[Judgment] = []
    while (state := strategy(name).replay(documents, k, 0, history)).request is not None:
        # Not skips for ever.
        verdict = data.draw(verdicts) if len(history) < 60 else Verdict.FIRST
        history.append(Judgment(verdict, *state.request.documents))
        assert len(history) < 300
    found = [document for group in state.top for document in group]
    assert len(set(found)) == len(found) >= min(k, len(documents) - len(state.bad))
    assert not set(found) & set(state.bad)
    assert {*found, *state.bad, *state.tied_out} <= set(documents)


@pytest.mark.parametrize("name", PAIR_NAMES)
def test_a_skipped_pair_waits_for_the_others(name: str) -> None:
    documents = [f"d{index}" for index in range(12)]
    grade = {document: index for index, document in enumerate(documents)}
    chosen = strategy(name)
    history: list[Judgment] = []
    # For the heap: past the building of the heap, where nothing else can be asked.
    while True:
        request = chosen.replay(documents, 3, 0, history).request
        assert isinstance(request, Pair)
        skip = [*history, Judgment(Verdict.SKIP, request.first, request.second)]
        after = chosen.replay(documents, 3, 0, skip).request
        assert isinstance(after, Pair)
        if after != request:
            break
        history.append(truthful(request, grade))
    assert {after.first, after.second} != {request.first, request.second}
    # Whoever skips everything gets the pair that was skipped first again, not one twice in a row.
    seen = [request, after]
    for _ in range(100):
        skip.append(Judgment(Verdict.SKIP, seen[-1].first, seen[-1].second))
        again = chosen.replay(documents, 3, 0, skip).request
        assert isinstance(again, Pair)
        if again in seen:
            break
        seen.append(again)
    assert again == request
    check_result(name, finish(chosen, documents, grade, 3, 0, skip), grade, 3)


@pytest.mark.parametrize("name", ["heap-infer", "insertion", "tournament"])
@settings(max_examples=60, deadline=None)
@given(
    levels=st.lists(st.integers(0, 6), min_size=2, max_size=20), k=st.integers(1, 8), bad_at=st.sets(st.integers(0, 30))
)
def test_nothing_is_asked_twice(name: str, levels: list[int], k: int, bad_at: set[int]) -> None:
    documents = [f"d{index}" for index in range(len(levels))]
    grade = dict(zip(documents, levels, strict=True))
    history: list[Judgment] = []
    asked = set()
    while (request := strategy(name).replay(documents, k, 0, history).request) is not None:
        pair = frozenset(request.documents)
        assert pair not in asked
        asked.add(pair)
        if len(history) in bad_at:
            history.append(Judgment(Verdict.SECOND_BAD, *request.documents))
        else:
            history.append(truthful(request, grade))


def test_grades_order_by_grade_and_leave_bad_ones_out() -> None:
    documents = ["a", "b", "c", "d", "e"]
    grade = {"a": 4, "b": 0, "c": 2, "d": 4, "e": 1}
    state = finish(strategy("grades"), documents, grade, 3, 0, [])
    assert [set(group) for group in state.top] == [{"a", "d"}, {"c"}]
    assert state.bad == ("b",)
    assert dict(state.grades) == grade
    assert state.asked == 5


def test_grades_can_be_skipped_undone_and_removed() -> None:
    chosen, documents = strategy("grades"), ["a", "b", "c"]
    order = [chosen.replay(documents, 2, 0, []).request]
    assert isinstance(order[0], Single)
    skip = Judgment(Verdict.SKIP, order[0].document)
    after = chosen.replay(documents, 2, 0, [skip]).request
    assert isinstance(after, Single)
    assert after != order[0]
    assert chosen.replay(documents, 2, 0, [skip, Judgment(Verdict.UNDO)]).request == order[0]
    history = [skip, Judgment(Verdict.FIRST_BAD, after.document)]
    state = finish(chosen, documents, dict.fromkeys(documents, 3), 2, 0, history)
    assert state.bad == (after.document,)
    assert set(state.top[0]) == set(documents) - {after.document}
    # The skipped document came last.
    assert history[-1].first == order[0].document


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_stale_judgment_is_refused(name: str) -> None:
    chosen, documents = strategy(name), ["a", "b", "c"]
    request = chosen.replay(documents, 1, 0, []).request
    assert request is not None
    right = truthful(request, {"a": 1, "b": 2, "c": 3})
    with pytest.raises(StaleJudgment, match="judgment 2 is about"):
        chosen.replay(documents, 1, 0, [right, right])
    with pytest.raises(StaleJudgment, match="no judgment left to undo"):
        chosen.replay(documents, 1, 0, [right, Judgment(Verdict.UNDO), Judgment(Verdict.UNDO)])
    history: list[Judgment] = []
    finish(chosen, documents, {"a": 1, "b": 2, "c": 3}, 1, 0, history)
    with pytest.raises(StaleJudgment, match="no question was left"):
        chosen.replay(documents, 1, 0, [*history, right])


def test_a_swapped_pair_and_a_grade_for_a_pair_are_refused() -> None:
    chosen, documents = strategy("tournament"), ["a", "b"]
    request = chosen.replay(documents, 1, 0, []).request
    assert isinstance(request, Pair)
    with pytest.raises(StaleJudgment, match="the open question was"):
        chosen.replay(documents, 1, 0, [Judgment(Verdict.FIRST, request.second, request.first)])
    with pytest.raises(StaleJudgment, match="cannot be said of a pair"):
        chosen.replay(documents, 1, 0, [Judgment(Verdict.GRADE, request.first, request.second, 3)])


@pytest.mark.parametrize("grade", [None, 5, -1])
def test_a_grade_outside_the_scale_is_refused(grade: int | None) -> None:
    with pytest.raises(StaleJudgment, match="expected 0 to 4"):
        strategy("grades").replay(["a"], 1, 0, [Judgment(Verdict.GRADE, "a", None, grade)])
    with pytest.raises(StaleJudgment, match="cannot be said of a single document"):
        strategy("grades").replay(["a"], 1, 0, [Judgment(Verdict.TIE, "a")])


@pytest.mark.parametrize("name", STRATEGIES)
def test_small_and_wrong_input(name: str) -> None:
    chosen = strategy(name)
    empty = chosen.replay([], 10, 0, [])
    assert (empty.request, empty.top, empty.can_undo) == (None, (), False)
    if name != "grades":
        assert chosen.replay(["a"], 10, 0, []).top == (("a",),)
    with pytest.raises(DataError, match="k is 0"):
        chosen.replay(["a"], 0, 0, [])
    with pytest.raises(DataError, match="'a' is twice"):
        chosen.replay(["a", "b", "a"], 1, 0, [])


def test_an_unknown_strategy_is_named() -> None:
    with pytest.raises(DataError, match="no strategy 'hepa', expected one of tournament, heap"):
        strategy("hepa")


def test_the_seed_decides_the_order_and_nothing_else_does() -> None:
    documents = [f"d{index}" for index in range(20)]
    requests = {strategy("heap").replay(documents, 5, seed, []).request for seed in range(10)}
    assert len(requests) > 5
    assert strategy("heap").replay(documents, 5, 3, []) == strategy("heap").replay(documents, 5, 3, [])


def test_a_prior_may_lack_candidates_and_name_others() -> None:
    chosen = strategy("insertion")
    state = chosen.replay(["a", "b", "c"], 1, 0, [], prior=["x", "c", "b", "c"])
    assert state.request == Pair("b", "c")
