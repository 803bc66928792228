"""Changes along lines equal those of rankers built at the points and evaluated by the measure itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError, ModelError
from gradrank.measures import MRR, NDCG, REGISTRY, parse_measure
from gradrank.models.feature import FeatureRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.weighted_sum import WeightedSum
from gradrank.optimality.terrain import Terrain

DISTANCES = np.array([0.01, 0.4, 2.0])
MEASURES = [
    *REGISTRY,
    *(f"NDCG(ties={ties})@3" for ties in ("file", "pessimistic", "optimistic", "docid")),
    "NDCG(unjudged=skip, ties=optimistic)@3",
    "NDCG(short=zero)@5",
    "NDCG(precision=single)@4",
    "MAP(unjudged=skip, empty=skip)",
    "MRR(empty=1)",
]


def made_up(random_state: int = 0, *, coarse: bool = True) -> RankingData:
    """Lists of 1 to 9 documents with equal documents in them, missing features, unjudged documents and lists."""
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, 10, 60)
    n = int(sizes.sum())
    X = rng.integers(0, 3, (n, 4)).astype(float) if coarse else rng.normal(size=(n, 4))
    X[rng.random((n, 4)) < 0.05] = np.nan
    labels = rng.integers(0, 5, n).astype(float)
    labels[rng.random(n) < 0.1] = np.nan
    labels[: sizes[0]] = np.nan
    labels[sizes[0] : sizes[:2].sum()] = 0
    sources = {"label": labels, "clicks": labels / 4}
    data = RankingData.from_arrays(X, sources, group=sizes)
    return replace(data, docid=Strings.of([f"d{i}" for i in rng.permutation(n)]))


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_and_tie_rule(name: str) -> None:
    data, measure = made_up(), parse_measure(name)
    ranker = LinearRanker([1.0, 0.5, -0.25, 2.0], mean=[1, 1, 1, 0], scale=[1, 2, 1, 4])
    terrain = Terrain(ranker, data, measure)
    rng = np.random.default_rng(1)
    # Whole numbers of quarters: moved scores are exact, so ties are ties however they are computed.
    directions = rng.integers(-4, 5, (5, 4)) / 4
    distances = np.array([0.25, 1.0, 4.0])
    changes = terrain.changes(directions, distances)
    before = measure.values(ranker.predict(data), data)
    assert terrain.value == pytest.approx(np.nanmean(before), rel=1e-12)
    for row, direction in enumerate(directions):
        for column, distance in enumerate(distances):
            moved = LinearRanker(ranker.weights + distance * direction, mean=ranker.mean, scale=ranker.scale)
            difference = measure.values(moved.predict(data), data) - before
            difference = difference[~np.isnan(difference)]
            assert changes.mean[row, column] == pytest.approx(difference.mean(), abs=1e-12)
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            assert changes.standard_error[row, column] == pytest.approx(error, rel=1e-9, abs=1e-12)


def test_a_weighted_sum_moves_the_weights_of_its_parts() -> None:
    data = made_up(coarse=False)
    stump = Tree.numerical(split_feature=[1], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0])
    names = data.feature_names
    parts = [FeatureRanker(names[2]), TreeEnsemble([stump], names), LinearRanker([1, 0, 0, 1], feature_names=names)]
    ranker = WeightedSum([(1.0, parts[0]), (0.5, parts[1]), (-0.5, parts[2])], feature_names=names)
    changes = Terrain(ranker, data, NDCG()).changes(np.eye(3), DISTANCES)
    for part in range(3):
        for column, distance in enumerate(DISTANCES):
            weights = np.array([1.0, 0.5, -0.5])
            weights[part] += distance
            moved = WeightedSum(list(zip(weights, parts, strict=True)), feature_names=names)
            expected = NDCG().mean(moved.predict(data), data) - NDCG().mean(ranker.predict(data), data)
            assert changes.mean[part, column] == pytest.approx(expected, abs=1e-12)


def test_threads_change_nothing() -> None:
    rng = np.random.default_rng(2)
    n_queries, n_docs = 900, 20
    X, labels = rng.normal(size=(n_queries * n_docs, 6)), rng.integers(0, 3, n_queries * n_docs)
    data = RankingData.from_arrays(X, labels, group=np.full(n_queries, n_docs))
    directions = rng.normal(size=(3, 6))
    one, three = (
        Terrain(LinearRanker(np.ones(6)), data, NDCG(10), n_jobs=n_jobs).changes(directions, DISTANCES)
        for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(one.mean, three.mean)
    np.testing.assert_array_equal(one.standard_error, three.standard_error)


def test_equal_documents_stay_tied_wherever_they_stand() -> None:
    rng = np.random.default_rng(3)
    document = rng.normal(size=7)
    # 37 copies of one document, one of them relevant: whatever the weights, its rank is any with equal chance.
    data = RankingData.from_arrays(np.tile(document, (37, 1)), [1] + [0] * 36, group=[37])
    terrain = Terrain(LinearRanker(rng.normal(size=7)), data, MRR())
    assert terrain.value == pytest.approx(sum(1 / r for r in range(1, 38)) / 37)
    assert not terrain.changes(rng.normal(size=(16, 7)), DISTANCES).mean.any()


def test_rankers_without_weights_are_refused() -> None:
    data = made_up()
    with pytest.raises(ModelError, match="kind 'trees' has no vector of weights"):
        Terrain(TreeEnsemble([], data.feature_names), data, NDCG())
    with pytest.raises(ModelError, match="kind 'feature'"):
        Terrain(FeatureRanker("f1", feature_names=data.feature_names), data, NDCG())


def test_data_without_judgments_is_refused() -> None:
    data = RankingData.from_arrays(np.ones((2, 1)), [np.nan, np.nan], group=[2])
    with pytest.raises(DataError, match="no query is judged"):
        Terrain(LinearRanker([1.0]), data, NDCG())


def test_weights_without_bounds_are_refused() -> None:
    data = RankingData.from_arrays([[1e30], [-1e30]], [0, 1], group=[2])
    terrain = Terrain(LinearRanker([1e270]), data, NDCG())
    with pytest.raises(ModelError, match="not finite numbers when its weights are moved"):
        terrain.changes(np.array([[1.0]]), np.array([1e290]))
    with pytest.raises(ModelError, match="gets the score inf, which is not a finite number"):
        Terrain(LinearRanker([1e290]), data, NDCG())


def test_document_ids_are_asked_for_only_if_documents_are_tied() -> None:
    measure = parse_measure("MRR(convention=trec_eval)")
    distinct = RankingData.from_arrays([[1.0], [2.0]], [0, 1], group=[2])
    assert not Terrain(LinearRanker([1.0]), distinct, measure).changes(np.ones((1, 1)), DISTANCES).mean.any()
    meets = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1], group=[2])
    with pytest.raises(DataError, match="no document ids"):
        Terrain(LinearRanker([1.0, 0.0]), meets, measure).changes(np.array([[0.0, 1.0]]), np.ones(1))
