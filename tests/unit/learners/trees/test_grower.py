"""Growing trees on rounded and exact gradients."""

from __future__ import annotations

import numpy as np
import pytest

from gradrank import LambdaMART, RankingData
from gradrank.data.artificial import make_data
from gradrank.learners.trees.grower import TreeGrower
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.objectives import parse_objective

DATA = make_data(60, n_docs=40, n_features=8, random_state=5)


@pytest.mark.parametrize("split", ["newton", "mse"])
def test_rounded_gradients_give_the_tree_that_exact_sums_of_them_give(split: str) -> None:
    quick, exact = (
        TreeGrower(
            DATA,
            TreeParameters(num_leaves=12, min_child_samples=5, quantized=quantized, random_state=1, n_jobs=2),
            split=split,
        )
        for quantized in (True, False)
    )
    bound = parse_objective("NDCG@10").bind(DATA)
    for step in range(5):
        gradients = bound.gradients(np.random.default_rng(step).normal(size=DATA.n_docs))
        tree = quick.grow(gradients.lambdas, gradients.rhos, step)
        assert quick._gradients is not None
        rounded, curvatures = quick._gradients
        assert len(np.unique(rounded)) <= 127
        same = exact.grow(-rounded, curvatures, step)
        np.testing.assert_array_equal(tree.split_feature, same.split_feature)
        np.testing.assert_allclose(tree.threshold, same.threshold)


@pytest.mark.parametrize(
    "options", [{"colsample_bytree": 0.5}, {"monotone_constraints": (1,) + (0,) * 7}, {"quantized": False}]
)
def test_where_lightgbm_cannot_sum_rounded_gradients_they_are_exact(options: dict[str, object]) -> None:
    grower = TreeGrower(DATA, TreeParameters(**options, random_state=1, n_jobs=1), split="newton")  # type: ignore[arg-type]
    gradients = parse_objective("NDCG@10").bind(DATA).gradients(np.arange(DATA.n_docs, dtype=np.float64))
    grower.grow(gradients.lambdas, gradients.rhos, 0)
    assert grower._gradients is not None
    np.testing.assert_array_equal(grower._gradients[0], -gradients.lambdas)


def test_whether_a_value_is_there_can_be_all_that_matters() -> None:
    # LightGBM then splits at infinity: everything that is there goes one way.
    import lightgbm

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2))
    X[labels == 0, 1] = np.nan
    data = RankingData.from_arrays(X, labels, group=np.full(60, 10))
    ranker = LambdaMART("NDCG@10", n_estimators=3, min_child_samples=5).fit(data).ranker_
    assert isinstance(ranker, TreeEnsemble)
    scores = ranker.predict(data)
    assert scores[labels == 1].min() > scores[labels == 0].max()
    booster = lightgbm.Booster(model_str=ranker.to_lightgbm_text())
    np.testing.assert_array_equal(booster.predict(data.X), scores)
    assert np.isfinite(ranker.trees[0].threshold).all()


def test_rounded_gradients_give_the_same_tree_by_rows_and_by_columns_on_any_number_of_threads() -> None:
    ways = [({"force_row_wise": row, "force_col_wise": not row}, n_jobs) for row in (True, False) for n_jobs in (1, 2)]
    big = make_data(120, n_docs=60, n_features=80, random_state=1)  # large enough for two threads
    growers = [
        TreeGrower(big, TreeParameters(num_leaves=31, lightgbm=extra, random_state=1, n_jobs=n_jobs), split="newton")
        for extra, n_jobs in ways
    ]
    gradients = parse_objective("NDCG@10").bind(big).gradients(np.random.default_rng(0).normal(size=big.n_docs))
    first, *others = [grower.grow(gradients.lambdas, gradients.rhos, 0) for grower in growers]
    assert first.n_leaves == 31
    for tree in others:
        np.testing.assert_array_equal(tree.split_feature, first.split_feature)
        np.testing.assert_array_equal(tree.threshold, first.threshold)
        np.testing.assert_array_equal(tree.leaf_value, first.leaf_value)
