"""What a measure loses without a feature, and how scores follow one, beside copies changed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gradrank import ablate, partial_dependence
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.evaluation import ablation
from gradrank.measures import NDCG, measure_values
from gradrank.models.linear import LinearRanker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble

RANKER = LinearRanker([1.0, 0.3, 0.0], feature_names=["a", "b", "c"])


@pytest.fixture(scope="module")
def data() -> RankingData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(180, 3)).astype(np.float32)
    labels = np.clip(np.round(X[:, 0] + 0.3 * X[:, 1] + 1), 0, 4)
    labels[:6] = np.nan  # a query without judgments
    return RankingData.from_arrays(X, labels, group=[6] * 30, feature_names=["a", "b", "c"])


def test_losses_are_those_of_copies_shuffled_within_queries(data, monkeypatch) -> None:
    found = ablate(RANKER, data, NDCG(5), features=["a", "c"], repeats=3, random_state=7)
    whole = measure_values([NDCG(5)], RANKER.predict(data), data)[NDCG(5)]
    shuffled = []
    for repeat in range(3):
        rng = np.random.default_rng([7, 0, repeat])
        key = rng.random(180)
        copy = data.X.copy()
        for start in range(0, 180, 6):
            rows = start + np.argsort(key[start : start + 6])
            copy[start : start + 6, 0] = data.X[rows, 0]
            assert sorted(copy[start : start + 6, 0]) == sorted(data.X[start : start + 6, 0])
        shuffled.append(measure_values([NDCG(5)], RANKER.predict(copy), data)[NDCG(5)])
    np.testing.assert_allclose(found.losses[0], whole - np.mean(shuffled, axis=0), atol=1e-12)
    loss = found.losses[0][1:]
    assert np.isnan(found.losses[0][0])
    assert found.tests[0].difference == pytest.approx(loss.mean())
    interval = stats.t.interval(0.95, len(loss) - 1, loss.mean(), stats.sem(loss))
    assert (found.tests[0].low, found.tests[0].high) == pytest.approx(interval)
    assert found.tests[0].low > 0.05
    assert found.tests[1].difference == 0.0  # the ranker does not use it
    monkeypatch.setattr(ablation, "_NUMBERS_PER_BLOCK", 3 * 7)
    assert ablate(RANKER, data, NDCG(5), features=["a"], repeats=3, random_state=7).losses[0].tobytes() == (
        found.losses[0].tobytes()
    )


def test_a_missing_feature_is_missing_everywhere(data) -> None:
    found = ablate(RANKER, data, NDCG(5), neutral="missing")
    assert found.features == ("a", "b")
    copy = data.X.copy()
    copy[:, 1] = np.nan
    whole, without = (measure_values([NDCG(5)], RANKER.predict(x), data)[NDCG(5)] for x in (data.X, copy))
    np.testing.assert_allclose(found.losses[1], whole - without, atol=1e-12)
    assert "set missing" in repr(found)


def test_a_draw_of_queries_is_measured_on_these_alone(data) -> None:
    found = ablate(RANKER, data, NDCG(5), max_queries=10, random_state=1)
    assert found.n_queries == found.losses.shape[1] == 10
    chosen = np.sort(np.random.default_rng(1).choice(30, 10, replace=False))
    part = data.take_queries(chosen)
    assert found.baseline == pytest.approx(NDCG(5).mean(RANKER.predict(part), part))
    assert [row[0] for row in found.table().rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"repeats": 0}, "repeats is 0"),
        ({"features": ["x"]}, "no feature 'x'"),
        ({"neutral": "zero"}, "expected 'shuffled' or 'missing'"),
    ],
)
def test_wrong_wishes(data, given, message) -> None:
    with pytest.raises(DataError, match=message):
        ablate(RANKER, data, **given)


def test_mean_scores_follow_a_feature(data) -> None:
    (found,) = partial_dependence(RANKER, data, ["b"], n_values=5, max_docs=50, random_state=2).dependences
    rows = np.sort(np.random.default_rng(2).choice(180, 50, replace=False))
    expected = np.quantile(data.X[:, 1], np.linspace(0.01, 0.99, 5), method="nearest")
    assert found.values.tolist() == expected.tolist()
    for value, mean in zip(found.values, found.means, strict=True):
        copy = data.X[rows].copy()
        copy[:, 1] = value
        assert mean == pytest.approx(RANKER.predict(copy).mean(), abs=1e-12)
    assert found.missing is None


def test_what_lacks_a_value_is_a_case_of_its_own() -> None:
    stump = Tree.numerical(
        split_feature=[0], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 3.0], default_left=False
    )
    data = RankingData.from_arrays([[0.0], [1.0], [np.nan]], qid=[1, 1, 1], feature_names=["a"])
    (found,) = partial_dependence(TreeEnsemble([stump], ["a"]), data).dependences
    assert (found.values.tolist(), found.means.tolist(), found.missing) == ([0.0, 1.0], [1.0, 3.0], 3.0)
    with pytest.raises(DataError, match="no feature 'x'"):
        partial_dependence(RANKER, data, ["x"])
