"""Numbers behind the tables and charts, against scipy and plain loops."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from gradrank.data.strings import Strings
from gradrank.evaluation import Evaluation, LabelFacts, compare
from gradrank.measures import parse_measure
from gradrank.report.results import HISTOGRAM_BARS, changed_queries, forests, mean_rows, pair_table, query_counts

NDCG, MRR = parse_measure("NDCG@10"), parse_measure("MRR")


@pytest.fixture
def evaluation() -> Evaluation:
    rng = np.random.default_rng(5)
    values = {}
    for name, shift in (("a", 0.0), ("b", 0.1), ("c", 0.12)):
        column = np.clip(rng.random(60) + shift, 0, 1).round(2)
        column[:3] = np.nan
        values[name] = {NDCG: column, MRR: rng.random(60)}
    return Evaluation(
        Strings.of(f"q{i}" for i in range(60)), (NDCG, MRR), values, {"label": LabelFacts(60, 3, 3, 0, 0)}
    )


def test_the_highest_mean_is_marked_once_a_measure(evaluation) -> None:
    rows = mean_rows(evaluation, compare(evaluation))
    for place, measure in enumerate(evaluation.measures):
        best = max(evaluation.systems, key=lambda system: np.nanmean(evaluation.values[system][measure]))
        assert [row.system for row in rows if row.cells[place].highest] == [best]
    assert [row.baseline for row in rows] == [True, False, False]
    assert all(cell.mark is None for cell in rows[0].cells)


def test_forest_places_are_proportional(evaluation) -> None:
    for forest in forests(compare(evaluation)):
        ticks = {float(text): at for at, text in forest.ticks}
        (first, left), (last, right) = min(ticks.items()), max(ticks.items())
        scale = (right - left) / (last - first)
        assert ticks[0.0] == pytest.approx(forest.zero, abs=0.01)
        for line in forest.lines:
            test, place = line.row.test, line.place
            assert place.at == pytest.approx(forest.zero + scale * test.difference, abs=0.05)
            assert place.low == pytest.approx(forest.zero + scale * test.low, abs=0.05)
            assert place.high == pytest.approx(forest.zero + scale * test.high, abs=0.05)
            assert 0 <= place.low <= place.at <= place.high <= 100


def test_query_counts(evaluation) -> None:
    for row in query_counts(evaluation, compare(evaluation)):
        pairs = [
            (x, y)
            for x, y in zip(evaluation.values[row.system][NDCG], evaluation.values["a"][NDCG], strict=True)
            if not np.isnan(x)
        ]
        assert row.wins == sum(x > y for x, y in pairs)
        assert row.ties == sum(x == y for x, y in pairs)
        assert row.losses == sum(x < y for x, y in pairs)
        assert row.total == 57
        # Bars right of the middle hold wins: their heights add up to the wins' share of the changed queries.
        right = sum(height for left, height in row.histogram.bars if left > 100 * (HISTOGRAM_BARS // 2 + 1) / 41 - 0.01)
        around_zero = row.histogram.limit / HISTOGRAM_BARS
        far_wins = sum(x - y > around_zero for x, y in pairs)
        far = sum(x != y for x, y in pairs)
        total = sum(height for _, height in row.histogram.bars)
        assert right / total == pytest.approx(far_wins / far, abs=0.01)


def test_changed_queries_are_the_extremes(evaluation) -> None:
    gains, losses = changed_queries(evaluation, compare(evaluation), "b")
    d = evaluation.values["b"][NDCG] - evaluation.values["a"][NDCG]
    assert [query.difference for query in gains] == pytest.approx(sorted(d[d > 0])[::-1][:8])
    assert [query.difference for query in losses] == pytest.approx(sorted(d[d < 0])[:8])
    place = int(gains[0].qid[1:])
    assert gains[0].after == evaluation.values["b"][NDCG][place]


def test_every_pair_against_scipy(evaluation) -> None:
    table = pair_table(evaluation, 0.05)
    pairs = list(combinations("abc", 2))
    tests = {
        (x, y): stats.ttest_rel(evaluation.values[x][NDCG], evaluation.values[y][NDCG], nan_policy="omit")
        for x, y in pairs
    }
    # Holm by hand: the smallest p times 3, the next times 2, the last times 1, never falling.
    corrected, highest = {}, 0.0
    for rank, pair in enumerate(sorted(pairs, key=lambda pair: tests[pair].pvalue)):
        highest = max(highest, min(1.0, (3 - rank) * tests[pair].pvalue))
        corrected[pair] = highest
    for x, y in pairs:
        assert table[x, y].p == table[y, x].p == pytest.approx(corrected[x, y])
        assert table[x, y].difference == -table[y, x].difference
        significant = corrected[x, y] < 0.05
        assert (table[x, y].mark.style != "equal") == significant
        if significant:
            assert table[x, y].mark.style == ("better" if table[x, y].difference > 0 else "worse")


def test_pairs_of_two_systems_are_the_comparison_itself(evaluation) -> None:
    two = Evaluation(
        evaluation.qids, evaluation.measures, {name: evaluation.values[name] for name in "ab"}, evaluation.facts
    )
    assert pair_table(two, 0.05) is None


def test_queries_without_weight_do_not_count(evaluation) -> None:
    weights = np.ones(60)
    weights[30:] = 0.0
    weighted = Evaluation(evaluation.qids, evaluation.measures, evaluation.values, evaluation.facts, weights)
    assert [row.total for row in query_counts(weighted, compare(weighted))] == [27, 27]
    gains, losses = changed_queries(weighted, compare(weighted), "b")
    assert all(int(query.qid[1:]) < 30 for query in gains + losses)
