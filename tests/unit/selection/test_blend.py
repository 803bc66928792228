"""Weights of members, from scores of queries that no member has seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gradrank.data.artificial import make_data
from gradrank.data.ranking_data import RankingData
from gradrank.measures import NDCG, AnyMeasure, parse_measure
from gradrank.selection import blend as blend_module
from gradrank.selection.blend import blend, means

DATA = make_data(150, n_docs=12, n_features=3, random_state=4)
RNG = np.random.default_rng(1)


def truth_with(noise: float, data: RankingData = DATA, seed: int = 0) -> NDArray[np.float64]:
    noisy = np.random.default_rng(seed).normal(size=data.n_docs) * noise
    return np.asarray(data.label().astype(np.float64) + noisy)


@pytest.mark.parametrize("measure", ["NDCG@5", "Graded(MRR, NDCG)"])
def test_sum_is_never_worse_than_a_member(measure: str) -> None:
    wanted: AnyMeasure = parse_measure(measure)
    columns = [truth_with(noise, seed=k) for k, noise in enumerate((0.5, 1.0, 2.0, 8.0))]
    found = blend(columns, DATA, wanted)
    mixed = found.weights @ np.array(columns)
    first = wanted.parts[0]
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.values[str(first)] == pytest.approx(first.mean(mixed, DATA))
    for column, value in zip(columns, found.values_of_members, strict=True):
        assert value == pytest.approx(first.mean(column, DATA))
        assert first.mean(mixed, DATA) >= value - 1e-12


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 30))
def test_never_worse_whatever_the_members(seed: int, n_members: int, n_queries: int) -> None:
    rng = np.random.default_rng(seed)
    data = RankingData.from_arrays(
        np.zeros((n_queries * 4, 1)), rng.integers(0, 3, n_queries * 4), qid=np.repeat(np.arange(n_queries), 4)
    )
    columns = [rng.normal(size=data.n_docs).round(1) for _ in range(n_members)]
    found = blend(columns, data, NDCG(2), random_state=seed)
    mixed = found.weights @ np.array(columns)
    assert NDCG(2).mean(mixed, data) >= max(NDCG(2).mean(column, data) for column in columns) - 1e-9


def test_members_that_err_differently_join_and_noise_does_not() -> None:
    columns = [truth_with(1.5, seed=1), truth_with(1.5, seed=2), RNG.normal(size=DATA.n_docs)]
    found = blend(columns, DATA, NDCG(10))
    assert found.rule != "single"
    assert found.weights[:2].min() > 0.2
    assert found.weights[2] < 0.1
    fresh = make_data(300, n_docs=12, n_features=3, random_state=5)
    # The weights are good for other queries, too.
    others = [truth_with(1.5, fresh, seed=3), truth_with(1.5, fresh, seed=4)]
    noise = RNG.normal(size=fresh.n_docs)
    mixed = found.weights @ np.array([*others, noise])
    assert NDCG(10).mean(mixed, fresh) > max(NDCG(10).mean(column, fresh) for column in others) + 0.02


def test_one_member_far_above_the_others_stays_alone_or_nearly() -> None:
    columns = [truth_with(0.01), *(RNG.normal(size=DATA.n_docs) for _ in range(3))]
    found = blend(columns, DATA, NDCG(10))
    assert found.weights[0] > 0.9
    assert found.values["NDCG@10"] == pytest.approx(1.0)


def test_rules_are_judged_on_queries_that_did_not_find_the_weights() -> None:
    few = DATA.take_queries(np.arange(20))
    rows = np.repeat(np.arange(DATA.n_queries) < 20, DATA.sizes)
    columns = [RNG.normal(size=DATA.n_docs)[rows] for _ in range(12)]
    found = blend(columns, few, NDCG(3))
    # The best of twelve noises is good on its own queries only.
    assert found.judged["single"] < max(found.values_of_members) - 0.02


def test_repeats_exactly() -> None:
    columns = [truth_with(1.0, seed=k) for k in range(4)]
    first, again = (blend(columns, DATA, NDCG(10), random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.weights, again.weights)


def test_many_members_and_much_data_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blend_module, "_MOST_DOCS", 600)
    monkeypatch.setattr(blend_module, "_MOST_CANDIDATES", 4)
    columns = [truth_with(3.0, seed=k) for k in range(7)]
    columns[5] = truth_with(0.1)
    found = blend(columns, DATA, NDCG(10))
    assert len(found.weights) == 7
    assert np.count_nonzero(found.weights) <= 4
    assert found.weights.argmax() == 5


def test_means_leave_out_queries_without_a_value() -> None:
    values = np.array([[0.5, np.nan, 1.0], [np.nan] * 3])
    first, second = means(values, np.array([1.0, 1.0, 3.0]))
    assert first == pytest.approx(3.5 / 4)
    assert np.isnan(second)


def test_equal_weights_are_those_of_members_that_are_level_with_the_best() -> None:
    """One that is clearly behind would have a part in every sum that is drawn towards equal weights."""
    columns = [truth_with(1.0, seed=1), truth_with(6.0, seed=2), truth_with(1.0, seed=3)]
    sums = blend_module._Sums(columns, DATA, NDCG(10), 1)
    rules = blend_module._rules(sums, DATA, NDCG(10), 0, 1)
    everything = np.ones(DATA.n_queries, dtype=bool)
    np.testing.assert_allclose(rules["equal"](everything), [0.5, 0.0, 0.5])
    assert rules["greedy + equal"](everything)[1] < 0.05
    one = np.arange(DATA.n_queries) < 1
    np.testing.assert_allclose(rules["equal"](one), 1.0 / 3.0)  # a single query tells nothing
