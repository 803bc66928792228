"""Importance of features."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, ModelError
from gradrank.evaluation import importance
from gradrank.evaluation.importance import permutation_importance
from gradrank.measures import MRR, NDCG
from gradrank.models.feature import FeatureRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.trees.expected_grade import ExpectedGrade
from gradrank.models.weighted_sum import WeightedSum


def stump(feature: int, gain: float = 1.0) -> Tree:
    return Tree.of(
        split_feature=[feature],
        threshold=[0.5],
        decision=[2],
        left=[-1],
        right=[-2],
        leaf_value=[0.0, 1.0],
        split_gain=[gain],
    )


@pytest.fixture
def data() -> RankingData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)).astype(np.float32)
    labels = np.clip(np.round(X[:, 0] + 0.3 * X[:, 1] + 1), 0, 4)
    return RankingData.from_arrays(X, labels, group=[6] * 20, feature_names=["a", "b", "c"])


def test_drops_are_those_of_shuffled_copies(data) -> None:
    ranker = LinearRanker([1.0, 0.3, 0.1], feature_names=["a", "b", "c"])
    found = permutation_importance(ranker, data, NDCG(5), repeats=3, random_state=7)
    assert found.baseline == NDCG(5).mean(ranker.predict(data), data)
    for feature in range(3):
        for repeat in range(3):
            copy = data.X.copy()
            copy[:, feature] = np.random.default_rng([7, feature, repeat]).permutation(copy[:, feature])
            expected = found.baseline - NDCG(5).mean(ranker.predict(copy), data)
            assert found.drops[feature, repeat] == expected
    assert found.mean == pytest.approx(found.drops.sum(axis=1) / 3)
    assert found.standard_error == pytest.approx(found.drops.std(axis=1, ddof=1) / np.sqrt(3))
    assert found.mean[0] > found.mean[1] > abs(found.mean[2])


def test_blocks_of_rows_do_not_matter(data, monkeypatch) -> None:
    ranker = LinearRanker([1.0, 0.3, 0.1], feature_names=["a", "b", "c"])
    whole = permutation_importance(ranker, data, NDCG(5))
    monkeypatch.setattr(importance, "_NUMBERS_PER_BLOCK", 3 * 7)
    assert permutation_importance(ranker, data, NDCG(5)).drops.tolist() == whole.drops.tolist()


def test_seed_decides_and_threads_do_not(data) -> None:
    ranker = LinearRanker([1.0, 0.3, 0.1], feature_names=["a", "b", "c"])
    one, same, other = (
        permutation_importance(ranker, data, MRR(), random_state=random_state, n_jobs=n_jobs).drops.tolist()
        for random_state, n_jobs in ((1, 1), (1, 2), (2, 1))
    )
    assert one == same
    assert one != other


def test_a_read_only_memory_map_is_not_changed(data, tmp_path) -> None:
    np.save(tmp_path / "X.npy", data.X)
    mapped = RankingData(np.load(tmp_path / "X.npy", mmap_mode="r"), data.indptr, data.labels, data.qid,
                         feature_names=data.feature_names)  # fmt: skip
    ranker = LinearRanker([1.0, 0.3, 0.1], feature_names=["a", "b", "c"])
    found = permutation_importance(ranker, mapped, NDCG(5))
    assert found.drops.tolist() == permutation_importance(ranker, data, NDCG(5)).drops.tolist()
    assert np.array_equal(mapped.X, data.X)


def test_columns_are_found_by_name(data) -> None:
    ranker = LinearRanker([0.3, 1.0], feature_names=["b", "a"])
    found = permutation_importance(ranker, data, NDCG(5))
    assert found.feature_names == ("b", "a")
    assert found.mean[1] > found.mean[0] > 0


def test_unused_features_are_not_scored(data) -> None:
    class Counting(TreeEnsemble):
        calls = 0

        def _score(self, X, n_jobs):
            type(self).calls += 1
            return super()._score(X, n_jobs)

    found = permutation_importance(Counting([stump(1)], ["a", "b", "c"]), data, NDCG(5), repeats=4)
    assert Counting.calls == 1 + 4
    assert found.drops[[0, 2]].tolist() == [[0.0] * 4] * 2


def test_one_shuffle_has_no_standard_error(data) -> None:
    found = permutation_importance(LinearRanker([1, 1, 1], feature_names=["a", "b", "c"]), data, NDCG(5), repeats=1)
    assert np.isnan(found.standard_error).all()


def test_errors(data) -> None:
    ranker = LinearRanker([1, 1, 1], feature_names=["a", "b", "c"])
    with pytest.raises(DataError, match="repeats is 0"):
        permutation_importance(ranker, data, NDCG(5), repeats=0)
    unjudged = data.with_label("label", np.full(data.n_docs, np.nan))
    with pytest.raises(DataError, match="no query is judged"):
        permutation_importance(ranker, unjudged, NDCG(5))
    with pytest.raises(ModelError, match="needs a model with trees"):
        ranker.feature_importance()


def test_splits_of_every_kind_of_ranker() -> None:
    one = TreeEnsemble([stump(0, 2.0), stump(1, 3.0), stump(1, 4.0)], ["a", "b", "c"])
    assert one.feature_importance("gain").tolist() == [2, 7, 0]
    assert ExpectedGrade([one, one]).feature_importance("split").tolist() == [2, 4, 0]
    both = WeightedSum([(1.0, FeatureRanker("z")), (2.0, one)], feature_names=["z", "c", "b", "a"])
    assert both.feature_importance("split").tolist() == [0, 0, 2, 1]
    assert both.used_features() == ("z", "b", "a")
    assert ExpectedGrade([one, one]).used_features() == ("a", "b")
    assert WeightedSum([(0.0, FeatureRanker("z")), (1.0, one)]).used_features() == ("a", "b")
