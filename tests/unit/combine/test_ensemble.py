"""Weights for many rankers, and for the trees of an ensemble."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from gradrank.combine import combine_rankers, given_weights, optimal_combination, refit_weights, search_weights
from gradrank.data.artificial import make_data, make_splits
from gradrank.errors import DataError
from gradrank.learners import LambdaMART
from gradrank.measures import MAP, MRR, NDCG, Graded
from gradrank.models.feature import FeatureRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import TreeEnsemble

DATA = make_data(60, n_docs=12, n_features=6, random_state=3)
COLUMNS = [DATA.X[:, k].astype(float) for k in range(4)]


@pytest.mark.parametrize("method", ["exact", "powell"])
@pytest.mark.parametrize("measure", [NDCG(5), MAP(), Graded((NDCG(3), MRR()))], ids=str)
def test_never_worse_than_any_part(method: str, measure: NDCG | MAP | Graded) -> None:
    seen: list[float] = []
    found = search_weights(COLUMNS, DATA, measure, method=method, progress=lambda _, value: seen.append(value))
    first = measure.parts[0] if isinstance(measure, Graded) else measure
    assert found.value >= max(first.mean(column, DATA) for column in COLUMNS)
    total = sum(weight * column for weight, column in zip(found.weights, COLUMNS, strict=True) if weight)
    assert found.value == first.mean(total, DATA)
    assert all(weight >= 0 for weight in found.weights)
    assert all(later >= earlier for earlier, later in pairwise(seen))


def test_no_single_weight_improves_the_exact_search() -> None:
    found = search_weights(COLUMNS, DATA, NDCG(5))
    for k, factor in product(range(4), np.geomspace(0.01, 100, 41)):
        weights = np.array(found.weights)
        weights[k] *= factor
        total = sum(weight * column for weight, column in zip(weights, COLUMNS, strict=True))
        assert NDCG(5).mean(total, DATA) <= found.value + 1e-9


def test_two_rankers_are_the_exact_pair() -> None:
    pair = optimal_combination(COLUMNS[0], COLUMNS[1], DATA, NDCG(5))
    assert search_weights(COLUMNS[:2], DATA, NDCG(5)).value == pytest.approx(pair.value, abs=1e-12)


def test_scale_of_the_weights() -> None:
    plain, convex = (search_weights(COLUMNS, DATA, NDCG(5), convex=convex) for convex in (False, True))
    assert next(weight for weight in plain.weights if weight) == 1.0
    assert sum(convex.weights) == pytest.approx(1.0)


def test_a_perfect_part_is_found_whatever_its_scale() -> None:
    truth = DATA.label().astype(float)
    for scale in (1e-6, 1e6):
        assert search_weights([COLUMNS[0], scale * truth, COLUMNS[1]], DATA, NDCG()).value == pytest.approx(1.0)


def test_one_model_from_several(tmp_path: Path) -> None:
    rankers = [FeatureRanker("f1"), LinearRanker([0.5, 1.0, 0.0, 0.0, 0.0, 0.0]), FeatureRanker("f3", sign=-1)]
    both = combine_rankers(rankers, DATA, NDCG(5))
    both.save(tmp_path / "sum.json")
    loaded = load_ranker(tmp_path / "sum.json")
    np.testing.assert_array_equal(loaded.predict(DATA), both.predict(DATA))
    assert both.training["values"]["NDCG@5"] == NDCG(5).mean(both.predict(DATA), DATA)


def test_given_weights() -> None:
    assert given_weights(COLUMNS[:2], [1.0, -2.0], DATA, MAP()).value == MAP().mean(COLUMNS[0] - 2 * COLUMNS[1], DATA)
    with pytest.raises(DataError, match="3 weights for 2 rankers"):
        given_weights(COLUMNS[:2], [1, 2, 3], DATA, MAP())
    with pytest.raises(DataError, match="two or more"):
        search_weights(COLUMNS[:1], DATA, MAP())


def test_refitted_trees_never_get_worse_and_end_where_no_weight_helps() -> None:
    data = make_splits(40, n_docs=12, n_features=6, random_state=1)["train"]
    model = LambdaMART("NDCG@5", n_estimators=6, num_leaves=4, min_child_samples=5, learning_rate=0.3).fit(data).ranker_
    assert isinstance(model, TreeEnsemble)
    refit = refit_weights(model, data, NDCG(5), least=0.0)
    assert refit.values[0] == NDCG(5).mean(model.predict(data), data)
    assert all(later > earlier for earlier, later in pairwise(refit.values))
    assert refit.values[-1] == NDCG(5).mean(refit.ensemble.predict(data), data)
    assert refit.values[-1] > refit.values[0]
    for k, factor in product(range(model.n_trees), (0.0, 0.5, 0.9, 1.1, 2.0, 10.0)):
        weights = np.array(refit.weights)
        weights[k] *= factor
        other = TreeEnsemble(model.trees, model.feature_names, weights=weights, base_score=model.base_score)
        assert NDCG(5).mean(other.predict(data), data) <= refit.values[-1] + 1e-9
    assert len(refit_weights(model, data, NDCG(5), rounds=1).values) == 2


def test_refit_of_a_given_number_of_rounds_and_wrong_range() -> None:
    with pytest.raises(DataError, match="1 is the weight that trees have"):
        refit_weights(TreeEnsemble([], ["f1"]), DATA, NDCG(5), high=0.5)
