"""Comparisons within segments of the queries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gradrank import compare, compare_segments
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation.segments import MOST_SEGMENTS, segment_names


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(4)
    data = RankingData.from_arrays(np.zeros((400, 1)), np.tile([0, 1, 0, 2], 100), group=[4] * 100)
    systems = {name: data.label() + size * rng.normal(size=400) for name, size in (("old", 3), ("new", 1), ("mid", 2))}
    return compare(data, systems, ["NDCG@4", "MRR"])


def test_each_segment_is_tested_by_itself_and_corrected_over_all(comparison) -> None:
    values = ["de"] * 60 + ["fr"] * 30 + [None] * 10
    found = compare_segments(comparison, values, name="market")
    assert [(row.system, segment, queries) for segment, queries, row in found.rows] == [
        (system, segment, queries)
        for system in ("new", "mid")
        for segment, queries in (("de", 60), ("fr", 30), ("unknown", 10))
    ]
    measure = comparison.evaluation.measures[0]
    held = comparison.evaluation.values
    raw = []
    for segment, _, row in found.rows:
        inside = [index for index, value in enumerate(values) if (value or "unknown") == segment]
        a, b = held[row.system][measure][inside], held["old"][measure][inside]
        raw.append(stats.ttest_rel(a, b).pvalue)
        assert row.test.p == pytest.approx(raw[-1])
        assert (row.mean, row.baseline_mean) == pytest.approx((a.mean(), b.mean()))
    # Holm by its definition: the i-th smallest times the number not yet rejected, never falling.
    order, largest, expected = np.argsort(raw), 0.0, np.empty(6)
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, raw[place] * (6 - rank)))
        expected[place] = largest
    assert [row.p_corrected for _, _, row in found.rows] == pytest.approx(expected.tolist())
    assert {row.verdict for _, _, row in found.rows if row.p_corrected >= 0.05} <= {"no significant difference"}
    assert "by market; paired t-test with Holm's correction" in repr(found)


def test_values_by_query_id(comparison) -> None:
    by_place = compare_segments(comparison, ["a"] * 50 + ["b"] * 50)
    qids = comparison.evaluation.qids.to_list()
    by_id = compare_segments(comparison, {qid: "a" if place < 50 else "b" for place, qid in enumerate(qids)})
    assert by_id.rows == by_place.rows
    with pytest.raises(DataError, match="none of the queries has a market"):
        compare_segments(comparison, {"nobody": 1}, name="market")
    with pytest.raises(DataError, match="there are 2 values of market for 100 queries"):
        compare_segments(comparison, [1, 2], name="market")


def test_numbers_are_few_values_or_quarters() -> None:
    assert segment_names(["10", "9", "", "9.0"]).of_query.tolist() == ["10", "9", "unknown", "9"]
    skewed = [0] * 90 + list(range(1, 11))
    found = segment_names(skewed)
    assert sum(found.of_query == found.ordered[0]) >= 90
    assert set(found.of_query) == set(found.ordered)
    quarters = segment_names(np.random.default_rng(0).permutation(1000))
    assert [int((quarters.of_query == name).sum()) for name in quarters.ordered] == pytest.approx([250] * 4, abs=1)


def test_the_smallest_of_many_segments_are_put_together() -> None:
    values = [f"m{number:02d}" for number in range(30) for _ in range(number + 1)]
    found = segment_names(values)
    assert len(found.ordered) == MOST_SEGMENTS
    assert found.ordered[-1] == "all others"
    assert sum(found.of_query == "all others") == sum(range(1, 12))
