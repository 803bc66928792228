"""Climbing goes up only, and ends where the test passes."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.errors import DataError
from gradrank.measures import NDCG
from gradrank.models.linear import LinearRanker
from gradrank.models.registry import load_ranker
from gradrank.optimality import Tried, climb

QUICK = {"epsilon": 0.05, "delta": 0.05}


@pytest.fixture
def data() -> RankingData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    hidden = X @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=600)
    return RankingData.from_arrays(X, np.searchsorted([0, 3], hidden), group=np.full(60, 10))


def test_from_bad_weights_to_a_local_optimum(data: RankingData, tmp_path) -> None:
    start = LinearRanker([1.0, -1.0, 1.0, -1.0])
    found = climb(start, data, NDCG(10), **QUICK)
    assert found.values[0] == NDCG(10).mean(start.predict(data), data)
    assert (np.diff(found.values) > 0).all()
    assert len(found.moves) == len(found.values) - 1
    assert found.values[-1] == NDCG(10).mean(found.ranker.predict(data), data)
    assert found.gain > 0.2
    assert found.result.local_optimum is True
    # The truth is nearly found again, up to its length.
    cosine = found.ranker.weights @ [1, 2, 3, 4] / np.linalg.norm(found.ranker.weights) / np.sqrt(30)
    assert cosine > 0.95
    assert start.weights.tolist() == [1.0, -1.0, 1.0, -1.0]
    found.ranker.save(tmp_path / "better.json")
    saved = load_ranker(tmp_path / "better.json")
    assert saved.training["climb"]["to"] == found.values[-1]
    np.testing.assert_array_equal(saved.predict(data), found.ranker.predict(data))


def test_weights_that_pass_stay() -> None:
    data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1], group=[2])
    start = LinearRanker([-1.0, 1.0])
    found = climb(start, data, NDCG())
    assert found.ranker is start
    assert (found.values, found.moves, found.gain) == ((1.0,), (), 0.0)
    assert "climb" not in start.training


def test_the_limit_of_moves_holds(data: RankingData) -> None:
    start = LinearRanker([1.0, -1.0, 1.0, -1.0])
    found = climb(start, data, NDCG(10), most_moves=2, **QUICK)
    assert len(found.moves) == 2
    # The test of the last weights is complete and says that there is more to gain.
    assert found.result.complete
    assert found.result.local_optimum is False
    with pytest.raises(DataError, match="most_moves is 0"):
        climb(start, data, NDCG(10), most_moves=0)


def test_interrupted_it_keeps_its_moves(data: RankingData) -> None:
    def stop(tried: Tried) -> None:
        if tried.moves == 3:
            raise KeyboardInterrupt

    found = climb(LinearRanker([1.0, -1.0, 1.0, -1.0]), data, NDCG(10), callback=stop, **QUICK)
    assert len(found.moves) == 3
    assert found.values[-1] == NDCG(10).mean(found.ranker.predict(data), data)
    assert not found.result.complete


def test_its_record_holds_the_way(data: RankingData) -> None:
    record = climb(LinearRanker([1.0, 1.0, 1.0, 1.0]), data, NDCG(10), **QUICK).to_dict(curves=False)
    assert record["climb"]["values"][-1] == record["measure_at_optimum"]
    assert len(record["climb"]["moves"]) == len(record["climb"]["values"]) - 1


def test_single_weights_are_followed_too(data: RankingData) -> None:
    # Four directions at a time, then the four weights alone: not all of ten draws of directions hold a better one.
    few = {"epsilon": 0.5, "delta": 0.1, "most_moves": 1}
    firsts = [
        climb(LinearRanker([1.0, 2.0, 3.0, 2.0]), data, NDCG(10), random_state=random_state, **few).moves[0]
        for random_state in range(10)
    ]
    assert {first.weight is None for first in firsts} == {True, False}
