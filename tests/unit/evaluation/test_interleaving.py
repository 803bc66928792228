"""Team draft by its definition, and the analysis of clicks on shared lists by hand and by simulation."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data.clicks.traffic import Impression
from gradrank.errors import DataError
from gradrank.evaluation.interleaving import analyze_interleaving, team_draft


def all_drafts(first: list[int], second: list[int]) -> Counter[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every outcome of the definition with its probability times a power of two."""
    rounds = len(first)
    found: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for coins in range(2**rounds):
        shown: list[int] = []
        teams: list[int] = []
        for number in range(rounds):
            begins = coins >> number & 1
            for team in (begins, 1 - begins):
                rest = [document for document in (first, second)[team] if document not in shown]
                if rest:
                    shown.append(rest[0])
                    teams.append(team)
        found[tuple(shown), tuple(teams)] += 1
    return found


@pytest.mark.parametrize("second", list(permutations(range(3))))
def test_drafts_are_those_of_the_definition_as_often_as_by_coins(second: tuple[int, ...]) -> None:
    wanted = all_drafts([0, 1, 2], list(second))
    total = sum(wanted.values())
    seen = Counter(
        (tuple(shown), tuple(teams))
        for shown, teams in (team_draft([0, 1, 2], second, random_state=seed) for seed in range(2000))
    )
    assert set(seen) == set(wanted)
    for outcome, count in wanted.items():
        share = count / total
        assert abs(seen[outcome] / 2000 - share) < 5 * np.sqrt(share * (1 - share) / 2000) + 1e-9


@given(st.permutations(range(8)), st.permutations(range(8)), st.integers(1, 8), st.integers(0, 2**32))
def test_a_list_is_fair_and_has_no_document_twice(first: list[int], second: list[int], k: int, seed: int) -> None:
    shown, teams = team_draft(first, second, k, random_state=seed)
    assert len(set(shown)) == len(shown) == k
    for end in range(1, k + 1):
        assert abs(sum(teams[:end]) - (end - sum(teams[:end]))) <= 1
    assert (shown, teams) == tuple(part[:k] for part in team_draft(first, second, random_state=seed))


def shared(clicks: list[str], unit: str | None = None, models: tuple[str, str] = ("old@1", "new@1")) -> Impression:
    return Impression("i", "q", ["a", "b", "c"], models, [0, 1, 1], unit, clicks)


def test_credit_and_sign_test_by_hand() -> None:
    lists = [shared(["b"])] * 8 + [shared(["a"])] * 2 + [shared(["a", "b"]), shared([]), shared(["x", "b", "b", "c"])]
    found = analyze_interleaving(lists)
    assert found.credit == (3, 11)
    assert (found.wins, found.ties, found.lists, found.clicked) == ((2, 9), 2, 13, 12)
    assert found.p == pytest.approx(2 * sum(comb(11, n) for n in range(3)) / 2**11)
    assert found.winner is None
    assert found.preference == 9 / 11
    assert found.low < 9 / 11 < found.high


def test_users_with_many_lists_are_one_vote() -> None:
    lists = [shared(["b"], "anna")] * 50 + [shared(["a"], "anna"), shared(["a"], "bert"), shared(["a"])]
    found = analyze_interleaving(lists)
    assert (found.units, found.wins) == (3, (2, 1))


def test_pairs_of_models_are_told_apart() -> None:
    lists = [shared(["b"]), shared(["a"], models=("old@1", "new@2")), Impression("s", "q", ["a"], ("old@1",))]
    with pytest.raises(DataError, match="several pairs of models: old@1 and new@1"):
        analyze_interleaving(lists)
    assert analyze_interleaving(lists, ("old", "new")).lists == 2
    assert analyze_interleaving(lists, ("old@1", "new@2")).wins == (1, 0)
    with pytest.raises(DataError, match="no list that two models shared: new and old"):
        analyze_interleaving(lists, ("new", "old"))


def test_a_better_ranker_wins_and_equal_ones_do_not() -> None:
    rng = np.random.default_rng(1)

    def decided(noise_first: float, noise_second: float) -> float:
        lists = []
        for number in range(300):
            truth = rng.random(8)
            orders = [np.argsort(-(truth + rng.normal(0, s, 8))).tolist() for s in (noise_first, noise_second)]
            shown, teams = team_draft(*orders, 4, random_state=number)
            clicks = [str(d) for d in shown if rng.random() < 0.8 * truth[d] ** 3]
            lists.append(Impression(str(number), "q", [str(d) for d in shown], ("a@1", "b@1"), teams, None, clicks))
        return analyze_interleaving(lists).p if noise_first == noise_second else analyze_interleaving(lists).preference

    assert decided(2.0, 0.05) > 0.65
    assert decided(0.05, 2.0) < 0.35
    assert np.mean([decided(0.3, 0.3) < 0.05 for _ in range(40)]) < 0.2
