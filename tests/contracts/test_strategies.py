"""What every labeling strategy promises, over all of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.errors import DataError, StaleJudgment
from gradrank.labeling import (
    DEFAULT_STRATEGY,
    GRADE_NAMES,
    STRATEGIES,
    Judgment,
    Pair,
    Request,
    State,
    Strategy,
    Tool,
    Verdict,
    strategy,
)

every_strategy = pytest.mark.parametrize("chosen", list(STRATEGIES.values()), ids=list(STRATEGIES))


def perfect(request: Request, worth: dict[str, int]) -> Judgment:
    """A judge who never errs. Grades are the worth itself, so it must be 0 to 4 for them."""
    if isinstance(request, Pair):
        first, second = (worth[document] for document in request.documents)
        verdict = Verdict.TIE if first == second else Verdict.FIRST if first > second else Verdict.SECOND
        return Judgment(verdict, request.first, request.second)
    return Judgment(Verdict.GRADE, request.document, None, worth[request.document])


def judged(chosen: Strategy, documents: Sequence[str], k: int, seed: int, worth: dict[str, int]) -> list[Judgment]:
    """The whole history of a perfect judge."""
    history: list[Judgment] = []
    while (request := chosen.replay(documents, k, seed, history).request) is not None:
        history.append(perfect(request, worth))
        assert len(history) <= len(documents) ** 2
    return history


def worths(chosen: Strategy, order: Sequence[str]) -> dict[str, int]:
    """A worth for each document of an order, best first: all different where pairs are asked, else as grades go."""
    if chosen.tool is Tool.PREFERENCES:
        return {document: len(order) - place for place, document in enumerate(order)}
    return {document: max(0, len(GRADE_NAMES) - 1 - place // 2) for place, document in enumerate(order)}


def true_top(worth: dict[str, int], k: int, *, without_bad: bool) -> list[set[str]]:
    """Classes of equal worth, best first, until k documents are in; by sorting."""
    groups: list[set[str]] = []
    for level in sorted({value for value in worth.values() if value > 0 or not without_bad}, reverse=True):
        if sum(map(len, groups)) >= k:
            break
        groups.append({document for document, value in worth.items() if value == level})
    return groups


def check_top(chosen: Strategy, state: State, worth: dict[str, int], k: int) -> None:
    # A document graded "bad" is out of the race.
    expected = true_top(worth, k, without_bad=chosen.tool is Tool.GRADES)
    assert state.request is None
    assert [set(group) for group in state.top] == expected


@every_strategy
@pytest.mark.parametrize("k", [1, 2, 4])
def test_finds_the_top_k_of_every_order_of_four(chosen: Strategy, k: int) -> None:
    documents = ["a", "b", "c", "d"]
    for order in permutations(documents):
        worth = worths(chosen, order)
        state = chosen.replay(documents, k, 0, judged(chosen, documents, k, 0, worth))
        check_top(chosen, state, worth, k)


@every_strategy
@settings(max_examples=40)
@given(data=st.data())
def test_finds_the_top_k_of_random_orders(chosen: Strategy, data: st.DataObject) -> None:
    documents = [f"d{number}" for number in range(data.draw(st.integers(1, 30)))]
    order = data.draw(st.permutations(documents))
    k, seed = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 1000))
    worth = worths(chosen, order)
    state = chosen.replay(documents, k, seed, judged(chosen, documents, k, seed, worth))
    check_top(chosen, state, worth, k)
    assert state.remaining.low == state.remaining.high == 0


@every_strategy
@settings(max_examples=30)
@given(data=st.data())
def test_undo_leads_back_and_replay_changes_nothing(chosen: Strategy, data: st.DataObject) -> None:
    documents = [f"d{number}" for number in range(data.draw(st.integers(2, 12)))]
    order = data.draw(st.permutations(documents))
    k, seed = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 5))
    history = judged(chosen, documents, k, seed, worths(chosen, order))
    given_documents, given_history = deepcopy(documents), deepcopy(history)
    states = [chosen.replay(documents, k, seed, history[:count]) for count in range(len(history) + 1)]
    assert (documents, history) == (given_documents, given_history)
    # Backwards as forwards: a state depends on the history alone, not on what was replayed before.
    for count in reversed(range(len(states))):
        assert chosen.replay(documents, k, seed, history[:count]) == states[count]
        assert states[count].asked == count
        assert states[count].can_undo == (count > 0)
    undone = list(history)
    for count in reversed(range(len(history))):
        undone.append(Judgment(Verdict.UNDO))
        assert chosen.replay(documents, k, seed, undone) == states[count]
    with pytest.raises(StaleJudgment, match="no judgment left to undo"):
        chosen.replay(documents, k, seed, [*undone, Judgment(Verdict.UNDO)])


@every_strategy
def test_a_judgment_on_another_question_is_refused(chosen: Strategy) -> None:
    documents = [f"d{number}" for number in range(6)]
    worth = worths(chosen, documents)
    history = judged(chosen, documents, 2, 0, worth)
    first = history[0]
    strangers = [
        Judgment(first.verdict, "somebody", first.second, first.grade),
        Judgment(Verdict.TIE, first.first)
        if chosen.tool is Tool.GRADES
        else Judgment(Verdict.GRADE, first.first, None, 2),
    ]
    if first.second is not None:
        strangers.append(Judgment(first.verdict, first.second, first.first))
    for stranger in strangers:
        with pytest.raises(StaleJudgment):
            chosen.replay(documents, 2, 0, [stranger])
    with pytest.raises(StaleJudgment, match="judgment 2"):
        chosen.replay(documents, 2, 0, [first, first])
    with pytest.raises(StaleJudgment, match="no question was left"):
        chosen.replay(documents, 2, 0, [*history, first])


@every_strategy
def test_the_seed_alone_decides_the_questions(chosen: Strategy) -> None:
    documents = [f"d{number}" for number in range(10)]
    worth = worths(chosen, documents)
    asked = {seed: [each.first for each in judged(chosen, documents, 3, seed, worth)] for seed in range(6)}
    for seed, firsts in asked.items():
        assert [each.first for each in judged(chosen, documents, 3, seed, worth)] == firsts
    assert len({tuple(firsts) for firsts in asked.values()}) > 1


@every_strategy
def test_a_document_that_is_called_bad_is_not_in_the_top(chosen: Strategy) -> None:
    documents = [f"d{number}" for number in range(8)]
    worth = worths(chosen, documents)
    request = chosen.replay(documents, 3, 0, []).request
    out = request.documents[0]
    history = [Judgment(Verdict.FIRST_BAD, *request.documents)]
    while (state := chosen.replay(documents, 3, 0, history)).request is not None:
        assert out not in state.request.documents
        history.append(perfect(state.request, worth))
    assert state.bad[0] == out
    check_top(chosen, state, {name: value for name, value in worth.items() if name != out}, 3)


@every_strategy
def test_bad_arguments(chosen: Strategy) -> None:
    for documents, k in ((["a", "a"], 1), (["a", "b"], 0)):
        with pytest.raises(DataError):
            chosen.replay(documents, k, 0, [])
    assert chosen.replay([], 1, 0, []).done


def test_names() -> None:
    for name, chosen in STRATEGIES.items():
        assert strategy(name) is chosen
        assert chosen.name == name
        assert chosen.title
    assert DEFAULT_STRATEGY in STRATEGIES
    with pytest.raises(DataError, match="there is no strategy 'quick', expected one of tournament, heap"):
        strategy("quick")
