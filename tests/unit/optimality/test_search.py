"""The verdict, on problems whose optimum is known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from gradrank.data import RankingData
from gradrank.errors import DataError
from gradrank.measures import MAP, MRR, NDCG, Measure
from gradrank.models.linear import LinearRanker
from gradrank.optimality import FINE_STEPS, STEPS, Tried, local_optimality
from gradrank.optimality.search import Plan

QUICK = {"epsilon": 0.05, "delta": 0.05}


def problem(random_state: int = 0, n_features: int = 2) -> RankingData:
    """Noisy labels: no direction of the weights ranks everything right."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(120, n_features)).astype(np.float32)
    hidden = X @ np.arange(1, n_features + 1) + rng.normal(size=120)
    return RankingData.from_arrays(X, np.searchsorted([0, 1.5], hidden), group=np.full(20, 6))


def towards(angle: float) -> LinearRanker:
    return LinearRanker([np.cos(angle), np.sin(angle)])


def best_and_worst(data: RankingData, measure: Measure) -> tuple[float, float, float]:
    """Angles of two weights at which the measure is highest and lowest, and its highest value, by brute force.

    Two weights rank by their angle alone, and a ranking changes only where they are at right angles to the difference
    of two documents: the middles of the stretches between such angles are all there is to try.
    """
    borders = []
    for start, end in pairwise(data.indptr.tolist()):
        X = data.X[start:end].astype(float)
        across = (X[:, None] - X)[np.triu_indices(len(X), 1)]
        angle = np.arctan2(across[:, 1], across[:, 0])
        borders += [angle + np.pi / 2, angle - np.pi / 2]
    around = np.sort(np.concatenate(borders) % (2 * np.pi))
    middles = (around + np.append(around[1:], around[0] + 2 * np.pi)) / 2
    values = np.array([measure.mean(towards(angle).predict(data), data) for angle in middles])
    return float(middles[values.argmax()]), float(middles[values.argmin()]), float(values.max())


@pytest.mark.parametrize("measure", [NDCG(), NDCG(3), MAP(rel=2), MRR(rel=2)])
@pytest.mark.parametrize("steps", [STEPS, FINE_STEPS])
def test_the_best_weights_of_all_pass_and_the_worst_fail(measure: Measure, steps: tuple[float, ...]) -> None:
    data = problem()
    best, worst, highest = best_and_worst(data, measure)
    passed = local_optimality(towards(best), data, measure, steps=steps)
    assert passed.local_optimum is True
    assert passed.gradient_vanishes is True
    assert (passed.directions, passed.improving, passed.improving_weights) == (459, 0, ())
    assert passed.confidence == 0.99
    assert passed.value == pytest.approx(highest, abs=1e-12)
    assert passed.best is None
    assert passed.verdict().startswith(f"Local optimum of {measure} with confidence 0.99")

    failed = local_optimality(towards(worst), data, measure)
    assert failed.local_optimum is False
    assert failed.improving > 300
    assert failed.falling == 0
    assert failed.verdict().startswith(f"Not a local optimum of {measure}")


def test_random_weights_fail() -> None:
    data = problem(1, 12)
    for random_state in range(5):
        result = local_optimality(
            LinearRanker(np.random.default_rng(random_state).normal(size=12)),
            data,
            NDCG(),
            random_state=random_state,
            **QUICK,
        )
        assert result.local_optimum is False
        assert result.improving > 0


def test_the_numbers_of_the_best_point_are_those_of_a_ranker_there() -> None:
    data = problem(2, 5)
    ranker = LinearRanker([1.0, 1.0, -1.0, 0.0, 2.0])
    result = local_optimality(ranker, data, NDCG(5), random_state=3, **QUICK)
    best = result.best
    assert best is not None
    assert best == result.improvements()[0]
    there = LinearRanker(ranker.weights + best.distance * result.direction_of(best))
    assert best.distance == pytest.approx(best.step * np.linalg.norm(ranker.weights))
    assert NDCG(5).mean(there.predict(data), data) == pytest.approx(result.value + best.gain, abs=1e-12)
    assert best.gain == max(result.changes.mean.max(), result.weight_changes.mean.max())
    before, after = (NDCG(5).values(one.predict(data), data) for one in (ranker, there))
    p = stats.ttest_rel(after, before, alternative="greater").pvalue
    points = 10 * (result.directions + 2 * result.weights_tried)
    assert best.p == pytest.approx(min(1.0, p * points))


def test_one_direction_that_was_built_to_be_better_is_found() -> None:
    # Feature 3 is the label; the others are constant within a query, so only this weight matters.
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 60)
    X = np.column_stack([np.repeat(rng.normal(size=(12, 2)), 5, axis=0), labels])
    data = RankingData.from_arrays(X, labels, group=np.full(12, 5), feature_names=["a", "b", "truth"])
    result = local_optimality(LinearRanker([1.0, 1.0, 0.0], feature_names=["a", "b", "truth"]), data, MAP())
    assert result.improving_weights == ("truth",)
    assert result.gradient_vanishes is False
    assert "1 of 3 weights changed alone improve it" in result.verdict()
    # Up or down in this weight is a matter of a coin; up always wins.
    assert 180 < result.improving < 280
    assert result.falling + result.improving == result.directions
    assert result.best is not None
    assert result.value + result.best.gain == pytest.approx(MAP().mean(labels, data))


def test_relative_steps_do_not_see_the_length_of_the_weights() -> None:
    data, weights = problem(5, 4), np.array([0.5, 1.0, 2.0, -1.0])
    one, other = (local_optimality(LinearRanker(f * weights), data, NDCG(10), **QUICK) for f in (1.0, 1024.0))
    np.testing.assert_array_equal(one.changes.mean, other.changes.mean)
    np.testing.assert_array_equal(one.weight_changes.mean, other.weight_changes.mean)


def test_absolute_steps_are_distances() -> None:
    data, weights = problem(5, 4), np.array([0.0, 3.0, 4.0, 0.0])
    relative = local_optimality(LinearRanker(weights), data, NDCG(10), **QUICK)
    absolute = local_optimality(
        LinearRanker(weights), data, NDCG(10), scale="absolute", steps=relative.distances, **QUICK
    )
    np.testing.assert_array_equal(relative.changes.mean, absolute.changes.mean)
    huge = local_optimality(LinearRanker(1e12 * weights), data, NDCG(10), scale="absolute", **QUICK)
    # Steps that are nothing beside the weights change nothing: said, not hidden.
    assert huge.level == huge.directions
    assert "59 directions leave it unchanged" in huge.verdict()


def test_of_many_weights_as_many_as_directions_are_changed_alone() -> None:
    data = problem(6, 90)
    result = local_optimality(LinearRanker(np.ones(90)), data, MRR(), **QUICK)
    assert result.planned == result.weights_tried == 59
    assert len(set(result.weights.tolist())) == 59
    assert result.complete
    without = local_optimality(LinearRanker(np.ones(90)), data, MRR(), single_weights=False, **QUICK)
    assert (without.weights_tried, without.gradient_vanishes, without.complete) == (0, None, True)


def test_an_interrupted_test_tells_what_is_known() -> None:
    data = problem()
    best, worst, _ = best_and_worst(data, NDCG())
    seen: list[Tried] = []

    def stop(tried: Tried) -> None:
        seen.append(tried)
        if len(seen) == 2:
            raise KeyboardInterrupt

    result = local_optimality(towards(best), data, NDCG(), callback=stop)
    assert result.local_optimum is None
    assert not result.complete
    assert result.directions == seen[-1].done == 32
    assert result.confidence == pytest.approx(1 - 0.99**32)
    assert result.gradient_vanishes is None
    assert result.verdict().startswith("Stopped after 32 of 459 random directions, of which none improves NDCG")
    # Something better that was found before the end is an answer.
    seen.clear()
    assert local_optimality(towards(worst), data, NDCG(), callback=stop).local_optimum is False
    assert len(seen) == 2


def test_progress_counts_up_to_everything() -> None:
    seen: list[Tried] = []
    local_optimality(towards(0.3), problem(), NDCG(), callback=seen.append, **QUICK)
    assert [tried.total for tried in seen] == [59 + 4] * len(seen)
    assert seen[-1].done == seen[-1].total
    assert seen[-1].best >= seen[0].best >= seen[0].value


def test_same_seed_same_result() -> None:
    data, ranker = problem(7, 6), LinearRanker(np.ones(6))
    first = local_optimality(ranker, data, NDCG(), random_state=1, **QUICK)
    again = local_optimality(ranker, data, NDCG(), random_state=1, n_jobs=1, **QUICK)
    other = local_optimality(ranker, data, NDCG(), random_state=2, **QUICK)
    np.testing.assert_array_equal(first.changes.mean, again.changes.mean)
    assert not np.array_equal(first.changes.mean, other.changes.mean)


def test_a_single_query_has_no_significance() -> None:
    data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1], group=[2])
    result = local_optimality(LinearRanker([1.0, 0.0]), data, MRR(), **QUICK)
    assert result.best is not None
    assert np.isnan(result.best.p)
    assert result.to_dict()["best"]["p"] is None
    assert "not significant" in result.verdict()


def test_the_record_holds_everything() -> None:
    result = local_optimality(towards(0.3), problem(), NDCG(10), steps=FINE_STEPS, **QUICK)
    record = result.to_dict()
    names = {"local_optimum", "directions", "improving", "confidence", "measure_at_optimum"}
    assert names <= set(record)
    assert record["measure"] == "NDCG@10"
    assert record["steps"] == list(FINE_STEPS)
    assert np.shape(record["curves"]) == (59, 10)
    assert [curve["weight"] for curve in record["weight_curves"]] == ["f1", "f2"]
    assert "curves" not in result.to_dict(curves=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": ()}, "no steps"),
        ({"steps": (0.0, 1.0)}, "a step is 0.0"),
        ({"steps": (1.0, float("inf"))}, "a step is inf"),
        ({"steps": (0.2, 0.1)}, "ascending"),
        ({"scale": "other"}, "expected relative or absolute"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
    ],
)
def test_bad_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Plan(**settings)  # type: ignore[arg-type]


def test_weights_of_0_need_absolute_steps() -> None:
    with pytest.raises(DataError, match="all weights are 0"):
        local_optimality(LinearRanker([0.0, 0.0]), problem(), NDCG())
    assert local_optimality(LinearRanker([0.0, 0.0]), problem(), NDCG(), scale="absolute", **QUICK).improving > 0
