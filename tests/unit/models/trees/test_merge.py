"""Sums of trees as one model."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank import MART, LambdaMART
from gradrank.data.artificial import make_data
from gradrank.models.linear import LinearRanker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.trees.merge import merged
from gradrank.models.weighted_sum import WeightedSum

DATA = make_data(30, n_docs=12, n_features=6, random_state=4)


@pytest.fixture(scope="module")
def parts() -> list[TreeEnsemble]:
    learners = (
        LambdaMART(n_estimators=8, num_leaves=6, min_child_samples=3),
        MART(n_estimators=5, num_leaves=4, min_child_samples=3),
    )
    found = [learner.fit(DATA).ranker_ for learner in learners]
    assert all(isinstance(ranker, TreeEnsemble) for ranker in found)
    return found


def test_trees_of_a_sum_become_one_model(parts: list[TreeEnsemble]) -> None:
    total = WeightedSum([(0.5, parts[0]), (2.0, parts[1])], training={"learner": "sum"})
    one = merged(total)
    assert isinstance(one, TreeEnsemble)
    assert one.n_trees == 13
    assert one.training["learner"] == "sum"
    np.testing.assert_allclose(one.predict(DATA), total.predict(DATA), rtol=1e-12, atol=1e-12)
    # MART starts from the mean label: the constant is part of the sum.
    assert one.base_score == pytest.approx(2.0 * parts[1].base_score)


def test_features_are_found_by_name(parts: list[TreeEnsemble]) -> None:
    names = [f"g{number}" for number in range(1, 7)]
    renamed = TreeEnsemble(parts[0].trees, names)
    total = WeightedSum([(1.0, parts[1]), (1.0, renamed)])
    one = merged(total)
    assert one.feature_names == (*parts[1].feature_names, *names)
    X = np.hstack([DATA.X, DATA.X[::-1]])
    np.testing.assert_allclose(one.predict(X), parts[1].predict(DATA.X) + parts[0].predict(DATA.X[::-1]), rtol=1e-12)


def test_other_parts_and_inner_sums_stay(parts: list[TreeEnsemble]) -> None:
    linear = LinearRanker(np.arange(6.0), feature_names=DATA.feature_names)
    inner = WeightedSum([(3.0, linear), (1.0, parts[0])])
    total = WeightedSum([(0.5, inner), (1.0, parts[1])])
    one = merged(total)
    assert isinstance(one, WeightedSum)
    assert [type(part).__name__ for _, part in one.parts] == ["TreeEnsemble", "LinearRanker"]
    np.testing.assert_allclose(one.predict(DATA), total.predict(DATA), rtol=1e-12, atol=1e-12)
    only = merged(WeightedSum([(2.0, linear)]))
    np.testing.assert_array_equal(only.predict(DATA), 2.0 * linear.predict(DATA))
    assert merged(linear) is linear
