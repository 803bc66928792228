"""Rows divided without regard to queries are told; whole queries, and queries that are mere numbers, are not."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data.cut_queries import SeenQueries
from gradrank.data.doubts import training_doubts
from gradrank.data.ranking_data import RankingData

RNG = np.random.default_rng(3)
IDS = np.array(["shoes", "hats", "a coat", "17", "x"])[RNG.integers(0, 5, 200)]
FEATURES = RNG.normal(size=(200, 2))


def data(rows: np.ndarray, ids: np.ndarray = IDS) -> RankingData:
    labels = (FEATURES[rows, 0] > 0).astype(int)
    return RankingData.from_arrays(FEATURES[rows], labels, qid=ids[rows])


def cut(first: np.ndarray, second: np.ndarray, ids: np.ndarray = IDS) -> int:
    return SeenQueries.of(data(first, ids)).cut_in(data(second, ids))


def test_queries_on_both_sides_of_a_division_by_rows_are_counted() -> None:
    order = RNG.permutation(200)
    # Divided anywhere: the queries of both sides, found by looking.
    for middle in (3, 100, 190):
        first, second = order[:middle], order[middle:]
        assert cut(first, second) == len(set(IDS[first]) & set(IDS[second])) > 0
    [sentence] = training_doubts(data(order[:150]), {"late": data(order[150:])})[-1:]
    assert sentence.startswith("5 queries of validation set 'late' have the id of a query of the training data")


def test_whole_queries_are_no_cause_for_doubt() -> None:
    shoes = np.isin(IDS, ["shoes", "x"])
    first, second = np.flatnonzero(shoes), np.flatnonzero(~shoes)
    assert cut(first, second) == 0
    # The training data itself, or queries of it, in any order.
    everything = RNG.permutation(200)
    assert cut(np.arange(200), everything) == cut(everything, first) == 0


@pytest.mark.parametrize("begin", [0, 1])
def test_queries_that_each_file_counts_anew_are_others(begin: int) -> None:
    few, many = (np.repeat(np.arange(count) + begin, 3) for count in (20, 60))
    train = RankingData.from_arrays(np.zeros((180, 1)), qid=many)
    test = RankingData.from_arrays(np.zeros((59, 1)), qid=few[:-1])
    assert SeenQueries.of(train).cut_in(test) == 0
    # The same sizes under numbers that do not begin there are parts of queries.
    part = RankingData.from_arrays(np.zeros((59, 1)), qid=few[:-1] + 40)
    assert SeenQueries.of(train).cut_in(part) == len(set(few + 40) & set(many))
