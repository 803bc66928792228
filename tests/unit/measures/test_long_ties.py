"""ERR over many tied documents: the same as the slow sum over sets of documents, in a time that fits."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from gradrank.data.ranking_data import RankingData
from gradrank.measures import ERR
from gradrank.objectives import parse_objective


def value(labels: list[int] | np.ndarray, scores: np.ndarray | None = None, cutoff: int | None = None) -> float:
    data = RankingData.from_arrays(np.zeros((len(labels), 1)), labels, group=[len(labels)])
    return float(ERR(cutoff).values(np.zeros(len(labels)) if scores is None else scores, data, n_jobs=1)[0])


@pytest.mark.parametrize("cutoff", [None, 1, 700, 1500])
@pytest.mark.parametrize("shares", [(0.5, 0.2, 0.15, 0.1, 0.05), (0.999, 0.001, 0, 0, 0), (1, 0, 0, 0, 0)])
def test_long_ties_are_as_those_of_the_slow_way(shares: tuple[float, ...], cutoff: int | None) -> None:
    labels = np.random.default_rng(3).choice(5, 1600, p=shares)
    scores = np.zeros(1600)
    scores[:4] = [3, 2, 2, 1]  # some stand above the tie
    labels[:4] = [1, 0, 2, 0]
    found = value(labels, scores, cutoff)
    gain = (2.0**labels - 1) / 16
    assert found == pytest.approx(slow(gain, scores, cutoff), rel=1e-11)


def slow(gain: np.ndarray, scores: np.ndarray, cutoff: int | None) -> float:
    """passing[j] = mean chance to pass j of the tied documents, which are added one by one."""
    total, going_on, rank = 0.0, 1.0, 0
    for score in sorted(set(scores), reverse=True):
        tied = gain[scores == score]
        passing = np.zeros(len(tied) + 1)
        passing[0] = 1.0
        for m, stops in enumerate(tied, 1):
            j = np.arange(1, m + 1)
            passing[1 : m + 1] = (1 - j / m) * passing[1 : m + 1] + j / m * (1 - stops) * passing[:m]
        for j in range(len(tied)):
            if cutoff is None or rank + j < cutoff:
                total += going_on * (passing[j] - passing[j + 1]) / (rank + j + 1)
        going_on *= passing[-1]
        rank += len(tied)
    return total


def test_the_slow_way_is_the_mean_over_all_orders() -> None:
    gain = np.array([0.25, 0.0, 0.75, 0.5])
    values = []
    for order in permutations(gain):
        passed = np.concatenate(([1.0], np.cumprod(1 - np.array(order))[:-1]))
        values.append(float((passed * order / np.arange(1, 5)).sum()))
    assert slow(gain, np.zeros(4), None) == pytest.approx(np.mean(values))


@pytest.mark.parametrize("top", [20, 60, 128, 1000])
def test_a_top_grade_beyond_all_digits_divides_by_nothing(top: int) -> None:
    labels = [top, 0, top - 1, 1, top, 0]
    data = RankingData.from_arrays(np.zeros((6, 1)), labels, group=[6])
    measure = ERR(top=float(top))
    scores = np.array([3.0, 2.5, 2.0, 1.5, 1.0, 0.5])
    found = parse_objective(f"Lambda(ERR(top={top}))").bind(data, n_jobs=1).gradients(scores)
    assert np.isfinite(found.lambdas).all()
    assert np.isfinite(found.rhos).all()
    assert measure.values(scores, data)[0] == pytest.approx(1.0, abs=1e-5)
    exact = measure.swap_deltas_by_definition(labels, scores)
    np.testing.assert_allclose(measure.swap_deltas(labels, scores), exact, atol=2e-5)
