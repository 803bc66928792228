"""Measures of preferences against a double loop over pairs."""

from __future__ import annotations

from itertools import permutations
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data import RankingData
from tests.support.measures import measure

lists = st.lists(st.one_of(st.integers(0, 3), st.none()), min_size=2, max_size=8)


def by_pairs(labels: list[int | None], k: int) -> dict[str, float]:
    """The sums over judged pairs of a list in the order of its ranks."""
    sums = dict.fromkeys(("right", "in reach", "all", "weighted"), 0.0)
    for upper, above in enumerate(labels):
        for below in labels[upper + 1 :]:
            if above is None or below is None or above == below:
                continue
            sums["all"] += 1
            if upper < k:
                sums["in reach"] += 1
                sums["right"] += above > below
                sums["weighted"] += (above > below) / log2(upper + 2)
    return sums


def value(name: str, labels: list[int | None], scores: list[float] | None = None) -> float:
    column = np.array([np.nan if label is None else label for label in labels], dtype=np.float32)
    data = RankingData.from_arrays(np.zeros((len(labels), 1)), column, qid=np.zeros(len(labels)))
    return float(measure(name).values(scores or -np.arange(float(len(labels))), data)[0])


@pytest.mark.kernel
@given(labels=lists, k=st.integers(1, 8))
def test_values_are_sums_over_pairs(labels: list[int | None], k: int) -> None:
    sums = by_pairs(labels, k)
    if sums["all"] == 0:
        assert all(np.isnan(value(f"{name}@{k}", labels)) for name in ("PPref", "RPref", "WPref", "NWPref"))
        return
    precision = sums["right"] / sums["in reach"] if sums["in reach"] else 0.0
    assert value(f"PPref@{k}", labels) == pytest.approx(precision, abs=1e-12)
    assert value(f"RPref@{k}", labels) == pytest.approx(sums["right"] / sums["all"], abs=1e-12)
    assert value(f"WPref@{k}", labels) == pytest.approx(sums["weighted"], abs=1e-12)


@given(labels=st.lists(st.one_of(st.integers(0, 2), st.none()), min_size=2, max_size=6), k=st.integers(1, 6))
def test_normalized_forms_divide_by_the_best_of_all_orders(labels: list[int | None], k: int) -> None:
    tried = [by_pairs(list(order), k) for order in set(permutations(labels))]
    sums = by_pairs(labels, k)
    if sums["all"] == 0:
        assert np.isnan(value(f"NWPref@{k}", labels))
        return
    weighted, right = (max(each[key] for each in tried) for key in ("weighted", "right"))
    assert value(f"NWPref@{k}", labels) == pytest.approx(sums["weighted"] / weighted, abs=1e-12)
    assert value(f"RPref(over=ideal)@{k}", labels) == pytest.approx(sums["right"] / right, abs=1e-12)


def test_precision_of_long_ties_across_the_cutoff_is_the_mean_of_drawn_orders() -> None:
    rng = np.random.default_rng(3)
    labels: list[int | None] = [None if draw == 5 else int(draw) for draw in rng.integers(0, 6, 60)]
    scores = [2.0] * 5 + [1.0] * 40 + [0.0] * 15
    tied = value("PPref@12", labels, scores)
    drawn = []
    for _ in range(4000):
        order = np.concatenate([rng.permutation(5), 5 + rng.permutation(40), 45 + rng.permutation(15)])
        sums = by_pairs([labels[at] for at in order], 12)
        drawn.append(sums["right"] / sums["in reach"])
    # Five standard errors of the mean of the drawn values.
    assert abs(tied - np.mean(drawn)) < 5 * np.std(drawn) / np.sqrt(len(drawn))


def test_without_cutoff_precision_is_kendalls_tau_on_another_scale() -> None:
    labels: list[int | None] = [1, 3, None, 0, 2, 2]
    assert value("PPref", labels) == pytest.approx((1 + value("KendallTau", labels)) / 2, abs=1e-12)
