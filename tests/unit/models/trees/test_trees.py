"""Tree ensembles against LightGBM and XGBoost, and the fast scorer against plain walks."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.data import RankingData
from gradrank.errors import ModelError
from gradrank.learners import LambdaMART
from gradrank.models.exchange.xgboost_model import largest_below
from gradrank.models.trees.ensemble import TreeEnsemble, assign_leaves, read_booster_tree
from gradrank.models.trees.side_by_side import SideBySideWalker
from gradrank.models.trees.tree import CATEGORICAL, DEFAULT_LEFT, MISSING_NAN, MISSING_NONE, MISSING_ZERO, ZERO, Tree


# ---------------------------------------------------------------------- the definition, in plain Python
def goes_left_by_definition(value: float, tree: Tree, node: int) -> bool:
    decision, threshold = int(tree.decision[node]), float(tree.threshold[node])
    if decision & CATEGORICAL:
        if math.isnan(value) or not -1 < value < 2**31:
            return False
        first, end = tree.cat_start[int(threshold)], tree.cat_start[int(threshold) + 1]
        members = {
            32 * w + bit for w, word in enumerate(tree.cat_words[first:end]) for bit in range(32) if word >> bit & 1
        }
        return int(value) in members
    missing = decision & 12
    if math.isnan(value) and missing != MISSING_NAN:
        value = 0.0
    if (missing == MISSING_ZERO and abs(value) <= ZERO) or (missing == MISSING_NAN and math.isnan(value)):
        return bool(decision & DEFAULT_LEFT)
    return value <= threshold


def score_by_definition(model: TreeEnsemble, x: list[float]) -> float:
    total = model.base_score
    for tree in model.trees:
        child = 0 if tree.n_nodes else -1
        while child >= 0:
            left = goes_left_by_definition(x[tree.split_feature[child]], tree, child)
            child = int(tree.left[child] if left else tree.right[child])
        total += float(tree.leaf_value[~child])
    return total


# Values that sit on, beside and far from the thresholds, and everything odd that a matrix may hold.
GRID = [-3e38, -2.0, -1.0, -0.5, -1e-36, 0.0, 1e-36, 0.1, 0.5, 1.0, 2.0, 31.0, 33.0, 3e38]
ODD = [math.nan, math.inf, -math.inf, -0.0, 1e-40, float(np.nextafter(np.float32(0.1), np.float32(1.0)))]
MISSING = [MISSING_NONE, MISSING_ZERO, MISSING_NAN]


def random_tree(rng: np.random.Generator, n_leaves: int, n_features: int, categorical: float, chain: float) -> Tree:
    """A tree grown by splitting random leaves, or (with ``chain``) always one of the two newest."""
    n_nodes = n_leaves - 1
    left, right = np.zeros(n_nodes, int), np.zeros(n_nodes, int)
    place: list[tuple[np.ndarray, int] | None] = [None]
    for node in range(n_nodes):
        leaf = int(rng.integers(len(place)))
        if rng.random() < chain:
            leaf = len(place) - 1
        above = place[leaf]
        if above is not None:
            above[0][above[1]] = node
        left[node], right[node] = ~leaf, ~(node + 1)
        place[leaf] = (left, node)
        place.append((right, node))
    is_categorical = rng.random(n_nodes) < categorical
    threshold = rng.choice([*GRID, 0.1 + 1e-12, 1e300, -1e300], n_nodes)
    threshold[is_categorical] = np.arange(is_categorical.sum())
    n_sets = int(is_categorical.sum())
    decision = rng.choice(MISSING, n_nodes) + DEFAULT_LEFT * rng.integers(0, 2, n_nodes)
    sizes = rng.integers(1, 3, n_sets)
    return Tree.of(
        split_feature=rng.integers(0, n_features, n_nodes),
        threshold=threshold,
        decision=np.where(is_categorical, CATEGORICAL, decision),
        left=left,
        right=right,
        leaf_value=rng.normal(size=n_leaves),
        cat_start=np.concatenate(([0], np.cumsum(sizes))),
        cat_words=rng.integers(0, 2**32, sizes.sum()),
        split_gain=rng.random(n_nodes),
        leaf_cover=rng.integers(1, 100, n_leaves),
    )


def random_model(rng: np.random.Generator, *, max_leaves: int, categorical: float, chain: float) -> TreeEnsemble:
    n_features = int(rng.integers(1, 5))
    n_trees = int(rng.integers(1, 6))
    trees = [
        random_tree(rng, int(rng.integers(1, max_leaves + 1)), n_features, categorical, chain) for _ in range(n_trees)
    ]
    return TreeEnsemble(trees, [f"x{j}" for j in range(n_features)], base_score=float(rng.choice([0.0, 1.5])))


def random_matrix(rng: np.random.Generator, n_docs: int, n_features: int, odd: float, dtype: type) -> np.ndarray:
    values = rng.choice([*GRID, 0.3, 1.5, 7.0, -7.5], (n_docs, n_features))
    values = np.where(rng.random(values.shape) < odd, rng.choice(ODD, values.shape), values)
    return values.astype(dtype)


@pytest.mark.checked
@settings(max_examples=150, deadline=None)
@given(
    random_state=st.integers(0, 2**32 - 1),
    max_leaves=st.sampled_from([1, 2, 5, 32, 33, 63, 65, 130, 300]),
    categorical=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    chain=st.sampled_from([0.0, 0.5, 1.0]),
    odd=st.sampled_from([0.0, 0.05, 0.5]),
    n_docs=st.sampled_from([1, 2, 63, 64, 65, 200]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_fast_scores_equal_plain_walks_bit_for_bit(random_state, max_leaves, categorical, chain, odd, n_docs, dtype):
    rng = np.random.default_rng(random_state)
    model = random_model(rng, max_leaves=max_leaves, categorical=categorical, chain=chain)
    X = random_matrix(rng, n_docs, model.n_features, odd, dtype)
    walked = model.score_by_walking(X)
    assert model.scorer.score(X).tobytes() == walked.tobytes()
    assert model.predict(X).tobytes() == walked.tobytes()
    assert np.array_equal(assign_leaves(model.trees[0], X), model.predict_leaf(X)[:, 0])
    few = X[:5].astype(np.float64).tolist()
    assert walked[:5].tolist() == [score_by_definition(model, x) for x in few]


@pytest.mark.checked
@settings(max_examples=100, deadline=None)
@given(
    random_state=st.integers(0, 2**32 - 1),
    max_leaves=st.sampled_from([1, 2, 9, 70]),
    chain=st.sampled_from([0.0, 0.9]),
    n_trees=st.integers(0, 20),
    n_docs=st.integers(0, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_trees_side_by_side_score_as_by_definition(random_state, max_leaves, chain, n_trees, n_docs, dtype):
    rng = np.random.default_rng(random_state)
    trees = [random_tree(rng, int(rng.integers(1, max_leaves + 1)), 3, 0.0, chain) for _ in range(n_trees)]
    simple = [replace(tree, decision=tree.decision & ~np.uint8(MISSING_ZERO)) for tree in trees]
    model = TreeEnsemble(simple, ["a", "b", "c"], base_score=1.5)
    X = random_matrix(rng, n_docs, 3, 0.3, dtype)
    walker = SideBySideWalker.of(model.arrays, 1.5, 3)
    assert walker is not None
    assert walker.score(X).tolist() == [score_by_definition(model, row.tolist()) for row in X.astype(np.float64)]


def test_trees_that_need_more_than_a_comparison_are_not_walked_side_by_side():
    rng = np.random.default_rng(3)
    categories = random_model(rng, max_leaves=9, categorical=1.0, chain=0.0)
    assert SideBySideWalker.of(categories.arrays, 0.0, categories.n_features) is None
    assert np.array_equal(categories.predict(np.ones((1, categories.n_features))),
                          categories.score_by_walking(np.ones((1, categories.n_features))))  # fmt: skip


def test_many_documents_and_large_trees_score_alike_on_any_number_of_threads():
    rng = np.random.default_rng(4)
    trees = [replace(tree, decision=tree.decision & ~np.uint8(MISSING_ZERO))
             for tree in (random_tree(rng, 300, 3, 0.0, 0.0) for _ in range(40))]  # fmt: skip
    model = TreeEnsemble(trees, ["a", "b", "c"])
    X = np.asfortranarray(random_matrix(rng, 5000, 3, 0.2, np.float32))
    wanted = model.score_by_walking(X)
    assert len(np.unique(wanted)) > 100
    for n_jobs in (1, 3):
        assert np.array_equal(SideBySideWalker.of(model.arrays, 0.0, 3).score(X, n_jobs), wanted)
        assert np.array_equal(model.predict(X, n_jobs=n_jobs), wanted)


@pytest.mark.checked
def test_more_pieces_than_one_group_are_summed_in_order():
    rng = np.random.default_rng(3)
    trees = [random_tree(rng, 40, 3, 0.1, 0.3) for _ in range(250)]
    model = TreeEnsemble(trees, ["a", "b", "c"])
    X = random_matrix(rng, 150, 3, 0.1, np.float32)
    assert model.scorer.leaf_value.shape[0] > 2 * 192
    assert model.predict(X).tobytes() == model.score_by_walking(X).tobytes()


def test_scores_do_not_depend_on_threads_or_memory_layout():
    rng = np.random.default_rng(4)
    model = random_model(rng, max_leaves=50, categorical=0.1, chain=0.2)
    X = random_matrix(rng, 20_000, model.n_features, 0.05, np.float64)
    one = model.predict(X, n_jobs=1)
    assert np.array_equal(one, model.predict(X, n_jobs=3))
    assert np.array_equal(one, model.predict(np.asfortranarray(X), n_jobs=2))
    assert np.array_equal(one[::3], model.predict(X[::3]))
    assert model.predict(X[:0]).shape == (0,)


# ---------------------------------------------------------------------- LightGBM
def training_matrix(rng: np.random.Generator, n_docs: int = 600) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n_docs, 5))
    X[:, 1] = rng.integers(0, 3, n_docs)  # zeros
    X[:, 2] = rng.integers(0, 60, n_docs)  # categories
    X[:, 3] = np.where(rng.random(n_docs) < 0.2, np.nan, X[:, 3])
    X[:, 4] = np.where(rng.random(n_docs) < 0.5, 0.0, X[:, 4])
    y = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 3], nan=2.0) + (X[:, 2] % 7 < 3) + np.abs(X[:, 4])
    return X, y


CASES = {
    "plain": {},
    "no missing handling": {"use_missing": False},
    "zero as missing": {"zero_as_missing": True},
    "categories": {"categorical_feature": [1, 2], "min_data_per_group": 5, "cat_smooth": 1},
    "zero as missing, categories": {
        "zero_as_missing": True,
        "categorical_feature": [2],
        "min_data_per_group": 1,
        "cat_smooth": 1,
    },
    "many leaves": {"num_leaves": 255, "min_data_in_leaf": 1},
    "stumps": {"num_leaves": 2},
    "single leaves": {"min_data_in_leaf": 10_000},
    "dart": {"boosting": "dart", "drop_rate": 0.5},
    "forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
}


@pytest.fixture(scope="module", params=CASES, ids=list(CASES))
def booster(request):
    X, y = training_matrix(np.random.default_rng(1))
    parameters = {"objective": "regression", "num_leaves": 20, "verbose": -1, "min_data_in_leaf": 5, "num_threads": 1}
    parameters |= CASES[request.param]
    categories = parameters.pop("categorical_feature", "auto")
    return lightgbm.train(parameters, lightgbm.Dataset(X, y, categorical_feature=categories), 12)


def held_out() -> np.ndarray:
    rng = np.random.default_rng(2)
    X, _ = training_matrix(rng, 300)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = 0.0
    X[rng.random(X.shape) < 0.03] = -1.5
    X[rng.random(X.shape) < 0.03] = np.inf
    X[rng.random(X.shape) < 0.03] = 5e9
    return X


def test_the_cases_hold_what_their_names_say(booster, request):
    case = request.node.callspec.params["booster"]
    decisions = np.concatenate([tree.decision for tree in TreeEnsemble.from_lightgbm(booster).trees])
    largest = max(tree.n_leaves for tree in TreeEnsemble.from_lightgbm(booster).trees)
    numerical = decisions[decisions & CATEGORICAL == 0]
    assert bool((decisions & CATEGORICAL).any()) == ("categories" in case)
    assert bool((numerical & 12 == MISSING_ZERO).any()) == ("zero as missing" in case)
    assert bool((numerical & 12 == MISSING_NAN).any()) == (
        case not in ("no missing handling", "single leaves") and "zero as missing" not in case
    )
    assert (largest > 64) == (case == "many leaves")
    assert (largest == 1) == (case == "single leaves")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_leaves_and_importance_equal_lightgbms(booster, dtype):
    model = TreeEnsemble.from_lightgbm(booster)
    X = held_out().astype(dtype)
    expected = booster.predict(X, raw_score=True)
    assert model.score_by_walking(X).tobytes() == expected.tobytes()
    assert model.predict(X).tobytes() == expected.tobytes()
    assert model.predict(X[:1]).tobytes() == expected[:1].tobytes()
    assert np.array_equal(model.predict_leaf(X), booster.predict(X, pred_leaf=True).reshape(len(X), -1))
    assert np.array_equal(model.feature_importance("split"), booster.feature_importance("split"))
    # LightGBM writes gains with six digits.
    assert np.allclose(model.feature_importance("gain"), booster.feature_importance("gain"), rtol=1e-5)


def test_lightgbm_loads_our_text_and_predicts_the_same(booster):
    model = TreeEnsemble.from_lightgbm(booster)
    X = held_out()
    again = lightgbm.Booster(model_str=model.to_lightgbm_text())
    assert again.predict(X).tobytes() == booster.predict(X, raw_score=True).tobytes()
    assert TreeEnsemble.from_lightgbm(again).to_lightgbm_text() == model.to_lightgbm_text()


def test_one_tree_of_a_live_booster_assigns_leaves_as_lightgbm_does(booster):
    X = held_out()
    for dtype in (np.float32, np.float64):
        leaves = booster.predict(X.astype(dtype), pred_leaf=True).reshape(len(X), -1)
        for iteration in range(booster.num_trees()):
            tree = read_booster_tree(booster, iteration)
            assert np.array_equal(assign_leaves(tree, X.astype(dtype)), leaves[:, iteration])
            assert np.array_equal(assign_leaves(tree, np.asfortranarray(X.astype(dtype))), leaves[:, iteration])
    with pytest.raises(ModelError, match="no tree of iteration 99"):
        read_booster_tree(booster, 99)


def test_rows_that_were_brought_together_come_back_in_the_order_given():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    data = RankingData.from_arrays(X, X[:, 0], qid=rng.permutation(np.repeat(np.arange(6), 10)))
    assert data.rows is not None
    model = LambdaMART(n_estimators=3, min_child_samples=2, num_leaves=4, n_jobs=1).fit(data).ranker_
    np.testing.assert_array_equal(model.predict_leaf(data), model.predict_leaf(X))
    np.testing.assert_array_equal(model.contributions(data), model.contributions(X))
    np.testing.assert_allclose(model.contributions(data).sum(axis=1), model.predict(data))


def test_contributions_add_up_to_the_scores_and_equal_lightgbms(booster):
    model = TreeEnsemble.from_lightgbm(booster)
    X = np.nan_to_num(held_out(), posinf=3.0)
    shares = model.contributions(X)
    assert shares.shape == (300, 6)
    assert np.allclose(shares.sum(axis=1), model.predict(X), rtol=1e-9, atol=1e-9)
    if "rf" not in booster.model_to_string():  # a forest's contributions are divided by its number of trees
        assert np.array_equal(shares, booster.predict(X, pred_contrib=True))


def test_best_iteration_and_truncation():
    X, y = training_matrix(np.random.default_rng(5))
    booster = lightgbm.train({"verbose": -1, "num_threads": 1}, lightgbm.Dataset(X, y), 10)
    booster.best_iteration = 4
    model = TreeEnsemble.from_lightgbm(booster)
    assert model.n_trees == 4
    assert np.array_equal(model.predict(X), booster.predict(X))
    assert np.array_equal(model.truncate(2).predict(X), booster.predict(X, num_iteration=2))
    assert model.truncate(0).predict(X).tolist() == [0.0] * len(X)
    with pytest.raises(ModelError, match="cannot keep 5 trees of 4"):
        model.truncate(5)


def test_models_that_are_no_single_score_or_have_linear_leaves_are_refused():
    X, y = training_matrix(np.random.default_rng(6))
    quiet = {"verbose": -1, "num_threads": 1}
    several = lightgbm.train(quiet | {"objective": "multiclass", "num_class": 3}, lightgbm.Dataset(X, X[:, 1]), 2)
    with pytest.raises(ModelError, match="3 classes"):
        TreeEnsemble.from_lightgbm(several)
    linear = lightgbm.train(quiet | {"linear_tree": True}, lightgbm.Dataset(np.nan_to_num(X), y), 2)
    with pytest.raises(ModelError, match="linear leaves"):
        TreeEnsemble.from_lightgbm(linear)
    with pytest.raises(ModelError, match="cannot read a LightGBM model from int"):
        TreeEnsemble.from_lightgbm(3)


def test_estimators_and_feature_names_with_spaces():
    X, y = training_matrix(np.random.default_rng(7))
    estimator = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1).fit(X, y)
    assert np.array_equal(TreeEnsemble.from_lightgbm(estimator).predict(X), estimator.predict(X, raw_score=True))
    trees = TreeEnsemble.from_lightgbm(estimator).trees
    text = TreeEnsemble(trees, ["a b", "c", "d", "e", "f"]).to_lightgbm_text()
    assert lightgbm.Booster(model_str=text).feature_name() == ["a_b", "c", "d", "e", "f"]
    with pytest.raises(ModelError, match="the same to LightGBM"):
        TreeEnsemble(trees, ["a b", "a_b", "d", "e", "f"]).to_lightgbm_text()


# ---------------------------------------------------------------------- XGBoost
XGBOOST_CASES = {
    "ranking": {"objective": "rank:ndcg"},
    "base score": {"objective": "reg:squarederror", "base_score": 3.25},
    "logistic": {"objective": "binary:logistic"},
    "poisson": {"objective": "count:poisson"},
    "dart": {"booster": "dart", "rate_drop": 0.5, "objective": "reg:squarederror"},
    "lossguide": {"grow_policy": "lossguide", "max_leaves": 80, "max_depth": 0, "min_child_weight": 0},
    "pruned": {"gamma": 5.0, "tree_method": "exact"},
}


@pytest.mark.parametrize("case", XGBOOST_CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_xgboosts_up_to_its_float32_sums(case, dtype):
    X, y = training_matrix(np.random.default_rng(8))
    data = xgboost.DMatrix(X, (y > 1) * 1.0 if case in ("logistic", "ranking") else np.abs(y))
    if case == "ranking":
        data.set_group([20] * 30)
    booster = xgboost.train({"nthread": 1, "eta": 0.3} | XGBOOST_CASES[case], data, 12)
    model = TreeEnsemble.from_xgboost(booster)
    held = np.concatenate((X, held_out()[:, :5])).astype(dtype)
    held[np.isinf(held)] = 0.0
    # Thresholds themselves, and their float64 neighbors, which XGBoost rounds to float32 first.
    for tree in model.trees:
        rows = np.zeros((3 * tree.n_nodes, 5))
        rows[np.arange(len(rows)), np.tile(tree.split_feature, 3)] = np.concatenate(
            (tree.threshold, np.nextafter(tree.threshold, np.inf), tree.threshold + 1e-9)
        )
        held = np.concatenate((held, rows.astype(dtype)))
    matrix = xgboost.DMatrix(held)
    leaves = model.predict_leaf(held)
    values = np.column_stack([tree.leaf_value[leaves[:, t]] for t, tree in enumerate(model.trees)])
    expected = booster.predict(matrix, output_margin=True)
    # The same leaves' values, summed in float32: every step rounds by at most 2^-24 of the partial sum.
    bound = (values.shape[1] + 2) * 2.0**-24 * (np.abs(values).sum(axis=1) + abs(model.base_score))
    assert (np.abs(model.predict(held) - expected) <= bound).all()
    assert model.predict(held).tobytes() == model.score_by_walking(held).tobytes()


def test_xgboost_raw_models_estimators_and_refusals():
    X, y = training_matrix(np.random.default_rng(9))
    estimator = xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(X, y)
    model = TreeEnsemble.from_xgboost(estimator)
    for name in ("json", "ubj"):
        raw = bytes(estimator.get_booster().save_raw(name))
        assert np.array_equal(TreeEnsemble.from_xgboost(raw).predict(X), model.predict(X))
        for cut in (len(raw) // 3, len(raw) - 3):
            with pytest.raises(ModelError):
                TreeEnsemble.from_xgboost(raw[:cut])
    named = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, y, feature_names=list("abcde")), 1)
    assert TreeEnsemble.from_xgboost(named).feature_names == tuple("abcde")
    assert model.feature_names == ("f1", "f2", "f3", "f4", "f5")
    with pytest.raises(ModelError, match="gblinear"):
        TreeEnsemble.from_xgboost(xgboost.train({"booster": "gblinear", "nthread": 1}, xgboost.DMatrix(X, y), 1))
    classes = xgboost.train({"objective": "multi:softprob", "num_class": 3}, xgboost.DMatrix(X, X[:, 1]), 1)
    with pytest.raises(ModelError, match="several classes"):
        TreeEnsemble.from_xgboost(classes)
    categories = xgboost.DMatrix(X[:, 2:3], X[:, 2] % 7, feature_types=["c"], enable_categorical=True)
    with pytest.raises(ModelError, match="categorical splits"):
        TreeEnsemble.from_xgboost(xgboost.train({"max_cat_to_onehot": 1, "nthread": 1}, categories, 2))
    with pytest.raises(ModelError, match="no learner"):
        TreeEnsemble.from_xgboost({"format": "?"})


def early_stopped(kind: type, **parameters) -> tuple[Any, np.ndarray]:
    """An estimator that early stopping made wait for an improvement on noise, and the features."""
    X, y = training_matrix(np.random.default_rng(12))
    grades, groups = (y > np.median(y)).astype(int), np.repeat(np.arange(len(y) // 20), 20)
    noise = np.random.default_rng(13).integers(0, 2, len(y))
    if kind is xgboost.XGBRanker:
        estimator = kind(n_estimators=30, n_jobs=1, early_stopping_rounds=3, **parameters)
        return estimator.fit(X, grades, qid=groups, eval_set=[(X, noise)], eval_qid=[groups], verbose=False), X
    estimator = kind(n_estimators=30, n_jobs=1, verbose=-1, **parameters)
    sizes = np.bincount(groups)
    stop = lightgbm.early_stopping(3, verbose=False)
    estimator.fit(X, grades, group=sizes, eval_set=[(X, noise)], eval_group=[sizes], callbacks=[stop])
    return estimator, X


@pytest.mark.parametrize(
    "parameters",
    [{}, {"num_parallel_tree": 3, "subsample": 0.5}, {"booster": "dart", "rate_drop": 0.5}],
    ids=["trees", "forests", "dart"],
)
def test_an_early_stopped_xgboost_model_scores_as_its_estimator_in_any_form(tmp_path, parameters):
    estimator, X = early_stopped(xgboost.XGBRanker, **parameters)
    booster = estimator.get_booster()
    kept = estimator.best_iteration + 1
    assert kept < booster.num_boosted_rounds()
    expected = estimator.predict(X)
    whole = booster.predict(xgboost.DMatrix(X))
    assert np.abs(expected - whole).max() > 0.01
    forms: dict[str, Any] = {"estimator": estimator, "booster": booster}
    for name in ("model.json", "model.ubj"):
        estimator.save_model(tmp_path / name)
        forms[name] = (tmp_path / name).read_bytes()
        again = xgboost.Booster()
        again.load_model(tmp_path / name)
        forms[f"booster of {name}"] = again
    for name, form in forms.items():
        model = TreeEnsemble.from_xgboost(form)
        assert model.n_trees == kept * parameters.get("num_parallel_tree", 1), name
        # XGBoost sums a few trees' values in float32.
        assert np.allclose(model.predict(X), expected, rtol=1e-5, atol=1e-5), name
        assert (model.training["best"], model.training["grown"]) == (kept, booster.num_boosted_rounds())


def test_an_xgboost_file_of_old_that_does_not_tell_its_iterations():
    estimator, X = early_stopped(xgboost.XGBRanker, num_parallel_tree=2)
    content = json.loads(bytes(estimator.get_booster().save_raw("json")))
    del content["learner"]["gradient_booster"]["model"]["iteration_indptr"]
    model = TreeEnsemble.from_xgboost(content)
    assert model.n_trees == 2 * (estimator.best_iteration + 1)
    assert np.allclose(model.predict(X), estimator.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'")  # what replaces it is newer than our oldest LightGBM
def test_an_early_stopped_lightgbm_estimator_scores_alike_in_any_form(tmp_path):
    estimator, X = early_stopped(lightgbm.LGBMRanker)
    assert 0 < estimator.best_iteration_ < 30
    estimator.booster_.save_model(tmp_path / "model.txt")
    for form in (estimator, estimator.booster_, (tmp_path / "model.txt").read_text()):
        model = TreeEnsemble.from_lightgbm(form)
        assert model.n_trees == estimator.best_iteration_
        assert model.predict(X).tobytes() == estimator.predict(X).tobytes()


def test_an_early_stopped_lightgbm_booster_that_still_has_all_trees_is_cut():
    X, y = training_matrix(np.random.default_rng(12))
    noise = lightgbm.Dataset(X, np.random.default_rng(13).normal(size=len(y)), free_raw_data=False)
    booster = lightgbm.train(
        {"verbose": -1, "num_threads": 1}, lightgbm.Dataset(X, y), 30, [noise],
        keep_training_booster=True, callbacks=[lightgbm.early_stopping(3, verbose=False)],
    )  # fmt: skip
    assert 0 < booster.best_iteration < booster.num_trees()
    model = TreeEnsemble.from_lightgbm(booster)
    assert model.n_trees == booster.best_iteration
    assert model.predict(X).tobytes() == booster.predict(X).tobytes()


def test_xgboost_contributions_add_up():
    X, y = training_matrix(np.random.default_rng(10))
    booster = xgboost.train({"nthread": 1, "base_score": 0.5}, xgboost.DMatrix(X, y), 5)
    model = TreeEnsemble.from_xgboost(booster)
    shares = model.contributions(X)
    assert np.allclose(shares.sum(axis=1), model.predict(X), atol=1e-9)
    # XGBoost sums in float32; covers are scaled to whole numbers below 1e9.
    assert np.allclose(shares, booster.predict(xgboost.DMatrix(X), pred_contribs=True), atol=2e-5)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_largest_below_is_the_exact_border_of_xgboosts_test(threshold):
    bound = largest_below(np.array([threshold], dtype=np.float32))[0]
    with np.errstate(over="ignore"):
        assert np.float32(bound) < np.float32(threshold)
        assert not np.float32(np.nextafter(bound, np.inf)) < np.float32(threshold)


# ---------------------------------------------------------------------- construction
def stump(**changes):
    facts = {
        "split_feature": [0],
        "threshold": [0.5],
        "decision": [0],
        "left": [-1],
        "right": [-2],
        "leaf_value": [1.0, 2.0],
    }
    return Tree.of(**(facts | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": [0]}, "do not form a tree"),
        ({"left": [-2]}, "do not form a tree"),
        ({"left": [-9]}, "do not form a tree"),
        ({"leaf_value": [1.0]}, "1 leaves and 1 splits"),
        ({"leaf_value": [1.0, math.nan]}, "not a finite number"),
        ({"threshold": [math.nan]}, "not a finite number"),
        ({"threshold": [0.5, 1.0]}, "threshold of shape"),
        ({"decision": [CATEGORICAL], "threshold": [0.0]}, "category set that does not exist"),
        ({"cat_start": [0, 2], "cat_words": [1]}, "category sets are damaged"),
        ({"split_feature": [-1]}, "splits on feature number -1"),
        ({"leaf_cover": [1.0]}, "1 leaf covers"),
    ],
)
def test_damaged_trees_are_refused(changes, message):
    with pytest.raises(ModelError, match=message):
        stump(**changes)


def test_weights_base_score_and_bad_arguments():
    model = TreeEnsemble([stump(), stump()], ["a"], weights=[2.0, -1.0], base_score=10.0)
    assert model.predict([[0.5], [0.75]]).tolist() == [10.0 + 2.0 - 1.0, 10.0 + 4.0 - 2.0]
    with pytest.raises(ModelError, match="1 weights for 2 trees"):
        TreeEnsemble([stump(), stump()], ["a"], weights=[1.0])
    with pytest.raises(ModelError, match="feature number 0, but there are 0"):
        TreeEnsemble([stump()], [])
    with pytest.raises(ModelError, match="base_score is nan"):
        TreeEnsemble([], ["a"], base_score=math.nan)
    with pytest.raises(ModelError, match="expected 'gain' or 'split'"):
        model.feature_importance("cover")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="number of training documents"):
        model.contributions([[0.5]])


def test_ensembles_are_pickled_for_worker_processes():
    rng = np.random.default_rng(11)
    model = random_model(rng, max_leaves=40, categorical=0.2, chain=0.0)
    X = random_matrix(rng, 100, model.n_features, 0.1, np.float32)
    expected = model.predict(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
