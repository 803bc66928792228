"""Boosted trees: the definition step by step, model choice, interruption, continuation, wrong input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.errors import GradrankError, GradrankWarning
from gradrank.learners import MART, LambdaMART, LambdaSMART, McRank, Step
from gradrank.learners.base.checkpoint import sealed, unsealed
from gradrank.learners.trees import tree_course
from gradrank.learners.trees.boosting import LambdaCourse
from gradrank.learners.trees.size_rule import shape_by_size
from gradrank.measures import NDCG, Measure, parse_measure
from gradrank.models.linear import LinearRanker
from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import TreeEnsemble, assign_leaves
from gradrank.objectives import Lambda, Regression, parse_objective

SPLITS = make_splits(60, n_docs=12, n_features=6, random_state=3)
TRAIN, VALI, TEST = SPLITS["train"], SPLITS["vali"], SPLITS["test"]
SMALL: dict[str, Any] = {
    "n_estimators": 12,
    "num_leaves": 5,
    "min_child_samples": 5,
    "learning_rate": 0.2,
    "subsample": 1.0,
}


def fitted(**options: Any) -> LambdaMART:
    return LambdaMART("NDCG@5", **{**SMALL, **options}).fit(TRAIN, valid=VALI)


def trees_of(model: LambdaMART) -> TreeEnsemble:
    assert isinstance(model.ranker_, TreeEnsemble)
    return model.ranker_


# ---------------------------------------------------------------- the definition
@pytest.mark.parametrize(("split", "step"), [("mse", "newton"), ("newton", "newton"), ("mse", "gradient")])
def test_every_leaf_value_is_the_step_rule_of_the_current_lambdas(split: str, step: str) -> None:
    objective = Lambda(NDCG(), normalize="deviation" if step == "gradient" else "none")
    model = LambdaMART(objective, split=split, step=step, **SMALL).fit(TRAIN)  # type: ignore[arg-type]
    scores = np.zeros(TRAIN.n_docs)
    for tree in trees_of(model).trees:
        gradients = objective.bind(TRAIN).gradients(scores)
        leaf = assign_leaves(tree, TRAIN.X)
        for number in range(tree.n_leaves):
            lambdas, rhos = (a[leaf == number].astype(float) for a in (gradients.lambdas, gradients.rhos))
            expected = lambdas.sum() / rhos.sum() if step == "newton" else lambdas[rhos > 0].mean()
            np.testing.assert_allclose(tree.leaf_value[number], 0.2 * expected, rtol=1e-4)
        scores += tree.leaf_value[leaf]
    np.testing.assert_array_equal(model.predict(TRAIN.X), scores)


def test_mse_split_is_the_least_squares_tree_of_scikit_learn() -> None:
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    # Few distinct values, so that every cut is a bin boundary for both.
    features = rng.integers(0, 20, (400, 4)).astype(np.float32)
    data = RankingData.from_arrays(features, rng.integers(0, 3, 400) + (features[:, 0] > 9), group=np.full(40, 10))
    model = LambdaMART(
        Lambda(NDCG()),
        split="mse",
        n_estimators=1,
        num_leaves=6,
        min_child_samples=10,
        learning_rate=1.0,
        step="newton",
        subsample=1.0,
    )
    model.fit(data)
    lambdas = Lambda(NDCG()).bind(data).gradients(np.zeros(400)).lambdas
    reference = DecisionTreeRegressor(max_leaf_nodes=6, min_samples_leaf=10, random_state=0).fit(features, lambdas)
    ours = assign_leaves(trees_of(model).trees[0], features)
    theirs = reference.apply(features)
    # The same partition of the documents, whatever the leaves are numbered.
    assert len(set(zip(ours.tolist(), theirs.tolist(), strict=True))) == 6
    assert len(set(ours.tolist())) == 6


def test_mart_with_one_leaf_a_document_is_regression() -> None:
    data = RankingData.from_arrays(np.arange(8.0)[:, None], [3, 1, 4, 1, 5, 9, 2, 6], group=[4, 4])
    model = MART(
        n_estimators=1,
        num_leaves=8,
        min_child_samples=1,
        learning_rate=1.0,
        subsample=1.0,
        lightgbm={"min_data_in_bin": 1},
    ).fit(data)
    np.testing.assert_allclose(model.predict(data.X), data.label(), atol=1e-5)
    half = MART(
        n_estimators=1,
        num_leaves=8,
        min_child_samples=1,
        learning_rate=0.5,
        subsample=1.0,
        lightgbm={"min_data_in_bin": 1},
    ).fit(data)
    np.testing.assert_allclose(half.predict(data.X), (data.label() + data.label().mean()) / 2, atol=1e-5)


def test_mcrank_probabilities_fit_the_classes() -> None:
    rng = np.random.default_rng(1)
    features = rng.integers(0, 3, (300, 1)).astype(np.float32)
    labels = np.where(rng.random(300) < 0.2, rng.integers(0, 3, 300), features[:, 0])
    data = RankingData.from_arrays(features, labels, group=np.full(30, 10))
    model = McRank(n_estimators=60, num_leaves=3, min_child_samples=1, learning_rate=0.3, subsample=1.0).fit(data)
    chances = model.ranker_.probabilities(np.array([[0.0], [1.0], [2.0]]))  # type: ignore[attr-defined]
    for value in range(3):
        observed = [np.mean(labels[features[:, 0] == value] == grade) for grade in range(3)]
        np.testing.assert_allclose(chances[value], observed, atol=0.02)
    expected = chances @ np.arange(3)
    np.testing.assert_allclose(model.predict(np.array([[0.0], [1.0], [2.0]])), expected, atol=1e-12)


def test_learning_beats_the_best_feature() -> None:
    best_feature = max(NDCG(5).mean(sign * TEST.X[:, f], TEST) for f in range(6) for sign in (1, -1))
    for learner in (
        LambdaMART("NDCG@5", n_estimators=60, min_child_samples=5),
        MART(n_estimators=60, min_child_samples=5),
        McRank(n_estimators=30, min_child_samples=5),
    ):
        learner.fit(TRAIN, valid=VALI)
        assert NDCG(5).mean(learner.predict(TEST), TEST) > best_feature + 0.02, learner


# ---------------------------------------------------------------- model choice
def test_best_iteration_is_the_best_of_the_curve() -> None:
    model = fitted(n_estimators=30)
    curve = model.ranker_.training["curves"]["valid"]["NDCG@5"]
    assert len(curve) == 30
    assert trees_of(model).n_trees == int(np.argmax(curve)) + 1
    np.testing.assert_allclose(NDCG(5).mean(model.predict(VALI), VALI), max(curve), rtol=1e-12)
    staged = [NDCG(5).mean(trees.predict(VALI), VALI) for trees in map(_truncated(model), range(1, 31))]
    np.testing.assert_allclose(staged, curve, rtol=1e-12)


def _truncated(model: LambdaMART) -> Any:
    everything = TreeEnsemble([tree for (tree,) in model.trees_], TRAIN.feature_names)
    return everything.truncate


def test_graded_measures_choose_tier_by_tier() -> None:
    model = fitted(n_estimators=30, measure="Graded(P@1, MAP, tolerance=0.02)")
    curves = model.ranker_.training["curves"]["valid"]
    graded = parse_measure("Graded(P@1, MAP, tolerance=0.02)")
    assert trees_of(model).n_trees == graded.best(np.column_stack([curves["P@1"], curves["MAP"]])) + 1  # type: ignore[union-attr]


def test_early_stopping_stops_and_keeps_the_best() -> None:
    model = fitted(n_estimators=400, early_stopping_rounds=5)
    facts = model.ranker_.training
    assert facts["grown"] == facts["best"] + 5
    assert facts["grown"] < 400


def test_several_validation_sets_are_recorded_and_the_first_decides() -> None:
    model = LambdaMART("NDCG@5", train_measure=True, **SMALL).fit(TRAIN, valid={"a": VALI, "b": TEST})
    curves = model.ranker_.training["curves"]
    assert list(curves) == ["train", "a", "b"]
    assert model.ranker_.training["best"] == int(np.argmax(curves["a"]["NDCG@5"])) + 1
    everything = TreeEnsemble([tree for (tree,) in model.trees_], TRAIN.feature_names)
    np.testing.assert_allclose(
        curves["train"]["NDCG@5"][-1], NDCG(5).mean(everything.predict(TRAIN), TRAIN), rtol=1e-12
    )


# ---------------------------------------------------------------- interruption and continuation
def test_interrupt_keeps_the_best_model_so_far() -> None:
    def stop(step: Step) -> None:
        if step.number == 7:
            raise KeyboardInterrupt

    model = fitted(callbacks=[stop])
    facts = model.ranker_.training
    assert facts["interrupted"]
    assert facts["grown"] == 7
    assert trees_of(model).n_trees == int(np.argmax(facts["curves"]["valid"]["NDCG@5"])) + 1
    assert [t.leaf_value.tolist() for t in trees_of(model).trees] == [
        t.leaf_value.tolist() for t in trees_of(fitted(n_estimators=7)).trees
    ]


def same_model(one: LambdaMART, other: LambdaMART) -> bool:
    strip = {"seconds", "parameters"}
    a, b = one.ranker_.to_dict(), other.ranker_.to_dict()
    for side in (a, b):
        side["training"] = {key: value for key, value in side["training"].items() if key not in strip}
    return bool(a == b)


@pytest.mark.parametrize(
    "options",
    [{}, {"colsample_bytree": 0.5, "subsample": 0.6}, {"quantized": False}],
    ids=["plain", "sampled", "exact"],
)
def test_resumed_run_equals_the_uninterrupted_one(tmp_path: Path, options: dict[str, Any]) -> None:
    def stop(step: Step) -> None:
        if step.number == 8:
            raise RuntimeError("killed")

    path = tmp_path / "state"
    with pytest.raises(RuntimeError, match="killed"):
        fitted(checkpoint=path, checkpoint_every=3, callbacks=[stop], **options)
    assert path.exists()
    grown: list[int] = []
    resumed = fitted(checkpoint=path, checkpoint_every=3, callbacks=[lambda step: grown.append(step.number)], **options)
    assert grown[0] == 7  # six trees were in the checkpoint
    assert same_model(resumed, fitted(**options))


def test_resumed_run_of_other_learners(tmp_path: Path) -> None:
    base = LinearRanker(np.arange(6.0), feature_names=TRAIN.feature_names)
    for number, make in enumerate([
        lambda **o: LambdaSMART("NDCG@5", base=base, **SMALL, **o),
        lambda **o: MART(**SMALL, **o),
        lambda **o: McRank(**SMALL, **o),
    ]):  # fmt: skip
        path = tmp_path / str(number)

        def stop(step: Step) -> None:
            if step.number == 5:
                raise RuntimeError("killed")

        with pytest.raises(RuntimeError, match="killed"):
            make(checkpoint=path, checkpoint_every=2, callbacks=[stop]).fit(TRAIN, valid=VALI)
        resumed = make(checkpoint=path, checkpoint_every=2).fit(TRAIN, valid=VALI)
        assert same_model(resumed, make().fit(TRAIN, valid=VALI))


def test_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    fitted(checkpoint=path, checkpoint_every=4)
    with pytest.raises(GradrankError, match=r"belongs to another run \(num_leaves differ\)"):
        fitted(checkpoint=path, num_leaves=7)
    with pytest.raises(GradrankError, match=r"belongs to another run \(data differ\)"):
        LambdaMART("NDCG@5", checkpoint=path, **SMALL).fit(TEST, valid=VALI)
    kept = path.read_bytes()
    digit = kept.index(b"leaf_value") + 20
    other = b"7" if kept[digit : digit + 1] != b"7" else b"3"
    for damaged in (kept[:200], b"", b"[" * 100_000, kept[:digit] + other + kept[digit + 1 :]):
        path.write_bytes(damaged)
        with pytest.raises(GradrankError, match="is not a checkpoint that can be read"):
            fitted(checkpoint=path)


def test_trees_of_wider_data_are_not_walked_before_they_are_refused(tmp_path: Path) -> None:
    """A kernel that walks them would read beyond the rows."""
    path = tmp_path / "state"
    wide = [RankingData.from_arrays(np.tile(data.X, (1, 50)), data.label(), group=data.sizes) for data in (TRAIN, VALI)]
    LambdaMART("NDCG@5", checkpoint=path, **SMALL).fit(wide[0], valid=wide[1])
    walked: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_course, "assign_leaves", lambda *arguments, **options: walked.append(arguments))
        with pytest.raises(GradrankError, match=r"belongs to another run \(.*data differ\)"):
            fitted(checkpoint=path)
        # Not even if the file says that they are of this run.
        trees = json.loads(unsealed(path.read_bytes()))["model"]
        path.unlink()
        fitted(checkpoint=path)
        walked.clear()
        path.write_bytes(sealed(json.dumps({**json.loads(unsealed(path.read_bytes())), "model": trees}).encode()))
        with pytest.raises(GradrankError, match="is not a checkpoint that can be read"):
            fitted(checkpoint=path)
    assert walked == []


def test_warm_start_goes_on() -> None:
    model = fitted(n_estimators=5, warm_start=True)
    model.set_params(n_estimators=12).fit(TRAIN, valid=VALI)
    assert same_model(model, fitted(n_estimators=12))


def test_same_seed_same_model_for_any_number_of_threads() -> None:
    options: dict[str, Any] = {"colsample_bytree": 0.7, "subsample": 0.7, "random_state": 5}
    assert same_model(fitted(n_jobs=1, **options), fitted(n_jobs=2, **options))
    assert not same_model(fitted(**options), fitted(**{**options, "random_state": 6}))


# ---------------------------------------------------------------- options
def test_rows_of_a_query_in_any_order_give_the_same_model_quality() -> None:
    """Tied scores must not favor the order of the file: sorted by label, nothing would seem left to learn."""
    order = np.lexsort((-TRAIN.label(), TRAIN.query_of_row()))
    by_label = RankingData.from_arrays(TRAIN.X[order], TRAIN.label()[order], qid=TRAIN.query_of_row()[order])
    plain = LambdaMART("NDCG@5", **{**SMALL, "n_estimators": 40}).fit(TRAIN)
    turned = LambdaMART("NDCG@5", **{**SMALL, "n_estimators": 40}).fit(by_label)
    difference = NDCG(5).mean(plain.predict(TEST), TEST) - NDCG(5).mean(turned.predict(TEST), TEST)
    assert abs(difference) < 0.04


@pytest.mark.parametrize("policy", ["symmetric", "lossguide"])
@pytest.mark.parametrize("of", ["queries", "documents"])
def test_only_the_ratios_of_weights_count_where_nothing_is_given_that_counts_against_them(policy: str, of: str) -> None:
    # Powers of two, so that nothing is rounded.
    count = TRAIN.n_queries if of == "queries" else TRAIN.n_docs
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], count)
    given = TRAIN.with_weight if of == "queries" else TRAIN.with_document_weight
    scores = [
        LambdaMART(n_estimators=4, grow_policy=policy, n_jobs=1).fit(given(weight * scale)).predict(TRAIN)
        for scale in (1.0, 1 / 64)
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-4, atol=1e-6)
    assert len(np.unique(scores[0])) > 10


def test_query_weights_of_zero_leave_queries_out() -> None:
    weight = (np.arange(TRAIN.n_queries) < 30).astype(float)
    weighted = LambdaMART("NDCG@5", split="mse", **SMALL).fit(TRAIN.with_weight(weight))
    scores = np.zeros(TRAIN.n_docs)
    gradients = weighted._objective().bind(TRAIN.with_weight(weight)).gradients(scores)
    rows = np.repeat(weight, TRAIN.sizes) == 0
    assert not gradients.lambdas[rows].any()
    alone = weighted._objective().bind(TRAIN).gradients(scores)
    np.testing.assert_array_equal(gradients.lambdas[~rows], alone.lambdas[~rows])


def test_monotone_constraint_holds() -> None:
    model = fitted(n_estimators=40, monotone_constraints=(1, 0, 0, 0, 0, -1))
    grid = np.linspace(-1, 1, 41)
    rows = np.repeat(TEST.X[:30], 41, axis=0)
    for feature, sign in ((0, 1), (5, -1)):
        moved = rows.copy()
        moved[:, feature] = np.tile(grid, 30)
        steps = np.diff(model.predict(moved).reshape(30, 41), axis=1)
        assert (sign * steps >= -1e-9).all()
        assert (sign * steps > 1e-3).any()


def test_missing_constant_and_categorical_features() -> None:
    rng = np.random.default_rng(2)
    category = rng.integers(0, 6, TRAIN.n_docs)
    features = np.column_stack([TRAIN.X, np.ones(TRAIN.n_docs), category]).astype(np.float32)
    features[rng.random(features.shape) < 0.1] = np.nan
    labels = (category % 2 == 0) * 2.0
    data = RankingData.from_arrays(features, labels, group=TRAIN.sizes)
    model = LambdaMART("NDCG@5", categorical_feature=(7,), n_estimators=10, num_leaves=4, min_child_samples=5).fit(data)
    known = ~np.isnan(features[:, 7])
    scores = model.predict(features)
    assert scores[known & (labels == 2)].min() > scores[known & (labels == 0)].max()
    assert "6" not in {str(f) for tree in trees_of(model).trees for f in tree.split_feature}  # the constant feature
    named = LambdaMART("NDCG@5", categorical_feature="f8", n_estimators=10, num_leaves=4, min_child_samples=5).fit(data)
    np.testing.assert_array_equal(named.predict(features), scores)


def test_unjudged_documents_join_no_pair_but_are_scored() -> None:
    labels = TRAIN.label().copy()
    labels[::3] = np.nan
    model = LambdaMART("NDCG@5", **SMALL).fit(TRAIN.with_label("label", labels), valid=VALI)
    assert np.isfinite(model.predict(TRAIN)).all()


def test_lambdasmart_contains_its_base(tmp_path: Path) -> None:
    base = LinearRanker(np.arange(6.0), feature_names=TRAIN.feature_names)
    model = LambdaSMART("NDCG@5", base=base, reg_lambda=1.5, **SMALL).fit(TRAIN, valid=VALI)
    model.ranker_.save(tmp_path / "m.json")
    loaded = load_ranker(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict(TEST), model.predict(TEST))
    trees = loaded.parts[1][1]  # type: ignore[attr-defined]
    np.testing.assert_allclose(loaded.predict(TEST), base.predict(TEST) + trees.predict(TEST), rtol=1e-12)
    first = trees.truncate(1).trees[0]
    gradients = model._objective().bind(TRAIN).gradients(base.predict(TRAIN))
    leaf = assign_leaves(first, TRAIN.X)
    inside = leaf == 0
    expected = gradients.lambdas[inside].sum(dtype=float) / (gradients.rhos[inside].sum(dtype=float) + 1.5)
    np.testing.assert_allclose(first.leaf_value[0], 0.2 * expected, rtol=1e-4)


def test_base_that_only_numbers_its_features_takes_the_datas_names() -> None:
    import lightgbm

    booster = lightgbm.train({"verbose": -1, "num_leaves": 4}, lightgbm.Dataset(TRAIN.X, TRAIN.label()), 3)
    named = RankingData.from_arrays(TRAIN.X, TRAIN.label(), group=TRAIN.sizes, feature_names=list("abcdef"))
    base = TreeEnsemble.from_lightgbm(booster)
    model = LambdaSMART("NDCG@5", base=base, **SMALL).fit(named)
    assert model.ranker_.feature_names == tuple("abcdef")
    gap = model.ranker_.predict(named) - booster.predict(TRAIN.X)
    np.testing.assert_allclose(gap, model.ranker_.parts[1][1].predict(TRAIN.X), atol=1e-12)  # type: ignore[attr-defined]
    with pytest.raises(GradrankError, match="lacks the model's features"):
        LambdaSMART("NDCG@5", base=LinearRanker([1.0, 1.0], feature_names=["x", "y"]), **SMALL).fit(named)


def test_lambdasmart_on_a_score_column() -> None:
    model = LambdaSMART("NDCG@5", base="f2", **SMALL).fit(TRAIN, valid=VALI)
    assert model.ranker_.parts[0][1].predict(TEST).tolist() == TEST.X[:, 1].tolist()  # type: ignore[attr-defined]


def test_sigmoid_cost_goes_with_gradient_steps() -> None:
    model = LambdaMART("Lambda(NDCG@5, cost=sigmoid)", **SMALL).fit(TRAIN, valid=VALI)
    facts = model.ranker_.training
    assert facts["objective"] == "Lambda(NDCG@5, cost=sigmoid, normalize=deviation)"
    with pytest.raises(GradrankError, match="no usable second derivative"):
        LambdaMART("Lambda(NDCG@5, cost=sigmoid)", step="newton", **SMALL).fit(TRAIN)


@pytest.mark.parametrize(
    "target", ["NDCG", "DCG@5", "MAP(rel=2)", "MRR(rel=2)", "WTA", "P@3", "ERR", "KendallTau", "Bpref"]
)
def test_every_measure_trains(target: str) -> None:
    model = LambdaMART(target, **SMALL).fit(TRAIN, valid=VALI)
    assert model.ranker_.training["measure"] == target
    measure = parse_measure(target)
    assert isinstance(measure, Measure)
    tied, ideal = (measure.mean(scores, TRAIN) for scores in (np.zeros(TRAIN.n_docs), TRAIN.label()))
    # Twelve trees go more than half of the way from chance to the best order.
    assert measure.mean(model.predict(TRAIN), TRAIN) > 0.5 * (tied + ideal)


def test_every_tree_draws_its_own_share_of_the_queries() -> None:
    """Which queries a tree sees: as many as asked for, others for each tree, none left out for ever."""
    objective = parse_objective("NDCG@5")
    learner = LambdaMART(subsample=0.3, random_state=2)
    course = LambdaCourse(
        TRAIN, {}, objective, objective.bind(TRAIN), learner, shape_by_size(learner, 1, 1, validated=False),
        learner._rules(), measure=NDCG(5),
    )  # fmt: skip
    samples = [course.sampled_queries(step) for step in range(40)]
    assert all(sample is not None and sample.sum() == round(0.3 * TRAIN.n_queries) for sample in samples)
    counts = np.sum(samples, axis=0)
    # Of 40 draws with chance 0.3 nobody is drawn never or nearly always.
    assert counts.min() > 2
    assert counts.max() < 26
    np.testing.assert_array_equal(samples[7], course.sampled_queries(7))
    gradients = course._bound.gradients(np.zeros(TRAIN.n_docs))
    lambdas, rhos = course.sampled(gradients.lambdas, gradients.rhos, 0)
    inside = np.repeat(samples[0], TRAIN.sizes)
    np.testing.assert_array_equal(lambdas, np.where(inside, gradients.lambdas, 0))
    np.testing.assert_array_equal(rhos, np.where(inside, gradients.rhos, 0))


def test_a_goal_is_learned_from_below_its_cut_off() -> None:
    """Of a list of 40 the exact λ's of NDCG@1 see the first place alone; as a goal it learns from the whole list."""
    options = {"n_estimators": 40, "learning_rate": 0.1, "num_leaves": 7, "measure": "NDCG@1", "n_jobs": 1}
    data = make_splits(150, n_docs=40, n_features=8, noise=0.3, random_state=5)
    exact, goal = (
        LambdaMART(name, **options).fit(data["train"], valid=data["vali"]) for name in ("Lambda(NDCG@1)", "NDCG@1")
    )
    assert goal.score(data["test"]) > exact.score(data["test"]) + 0.05
    assert set(goal.record_.curves["valid"]) == {"NDCG@1"}
    assert goal.ranker_.training["objective"] == "LambdaWide(NDCG, normalize=log, gap=true, goal=NDCG@1)"


# ---------------------------------------------------------------- scikit-learn's habits
def test_arrays_frames_and_ranking_data_train_the_same_model() -> None:
    import pandas as pd
    import polars as pl

    shuffled = np.random.default_rng(0).permutation(TRAIN.n_docs)
    qid = TRAIN.query_of_row()
    expected = LambdaMART("NDCG@5", **SMALL).fit(TRAIN).predict(TEST.X)
    arrays = LambdaMART("NDCG@5", **SMALL).fit(TRAIN.X, TRAIN.label(), qid)
    np.testing.assert_array_equal(arrays.predict(TEST.X), expected)
    columns = {name: TRAIN.X[:, i] for i, name in enumerate(TRAIN.feature_names)}
    for frame in (pd.DataFrame({**columns, "qid": qid}), pl.DataFrame({**columns, "qid": qid})):
        model = LambdaMART("NDCG@5", **SMALL).fit(frame, TRAIN.label())
        np.testing.assert_array_equal(model.predict(frame), arrays.predict(TRAIN.X))
    # Rows in any order: a ranking data that holds the same rows in that order trains the same model.
    mixed = LambdaMART("NDCG@5", **SMALL).fit(TRAIN.X[shuffled], TRAIN.label()[shuffled], qid[shuffled])
    regrouped = RankingData.from_arrays(TRAIN.X[shuffled], TRAIN.label()[shuffled], qid=qid[shuffled])
    np.testing.assert_array_equal(mixed.predict(TEST.X), LambdaMART("NDCG@5", **SMALL).fit(regrouped).predict(TEST.X))
    # Scores come in the order of the rows given.
    np.testing.assert_array_equal(mixed.predict(TRAIN.X[shuffled]), mixed.predict(TRAIN.X)[shuffled])


def test_clone_and_grid_search_with_groups() -> None:
    import pandas as pd
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, GroupKFold

    model = LambdaMART("NDCG@5", **SMALL)
    assert clone(model).get_params() == model.get_params()
    qid = TRAIN.query_of_row()
    frame = pd.DataFrame(TRAIN.X, columns=list(TRAIN.feature_names)).assign(qid=qid)
    search = GridSearchCV(model, {"num_leaves": [2, 6]}, cv=GroupKFold(3)).fit(frame, TRAIN.label(), groups=qid)
    assert set(search.cv_results_["param_num_leaves"]) == {2, 6}
    assert 0.3 < search.best_score_ <= 1.0


# ---------------------------------------------------------------- wrong input
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators is 0"),
        ({"num_leaves": 1}, "num_leaves is 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"min_child_samples": 0}, "min_child_samples is 0"),
        ({"split": "gini"}, "split is 'gini'"),
        ({"step": "leap"}, "step is 'leap'"),
        ({"colsample_bytree": 0.0}, "colsample_bytree is 0.0"),
        ({"subsample": 1.5}, "subsample is 1.5"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds is 0"),
        ({"monotone_constraints": (1,)}, "for each of 6 features"),
        ({"monotone_constraints": (1, 0, 0, 0, 0, 0), "split": "mse"}, "monotone_constraints go with"),
        ({"categorical_feature": ("color",)}, "'color' is not among"),
        ({"categorical_feature": (9,)}, "out of range"),
        ({"categorical_feature": (0,)}, r"'f1' holds -?[0-9.]+, expected whole numbers from 0 to"),
        ({"objective": "NDGC"}, "did you mean NDCG"),
        ({"measure": "NDCG@0"}, "cut-off is 0"),
        ({"lightgbm": {"lambda_l1": -1}}, "LightGBM refuses"),
        ({"lightgbm": {"max_bin": 100}}, "is gradrank's max_bin: set that"),
        ({"lightgbm": {"path_smoth": 1.0}}, "no parameter of LightGBM; did you mean path_smooth"),
        ({"checkpoint": "x", "checkpoint_every": 0}, "checkpoint_every is 0"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        LambdaMART(**{"objective": "NDCG@5", **SMALL, **options}).fit(TRAIN, valid=VALI)


def test_wrong_data() -> None:
    equal = TRAIN.with_label("label", np.ones(TRAIN.n_docs))
    with pytest.raises(GradrankError, match="one label only: there is nothing to order"):
        LambdaMART("NDCG@5", **SMALL).fit(equal)
    with pytest.raises(GradrankError, match="no document of the training data is judged"):
        LambdaMART("NDCG@5", **SMALL).fit(TRAIN.with_label("label", np.full(TRAIN.n_docs, np.nan)))
    with pytest.raises(GradrankError, match="no label source 'clicks'"):
        LambdaMART("CNDCG@3", **SMALL).fit(TRAIN)
    with pytest.raises(GradrankError, match="valid does not fit the training data: X has 2 features"):
        LambdaMART("NDCG@5", **SMALL).fit(
            TRAIN, valid=RankingData.from_arrays(VALI.X[:, :2], VALI.label(), group=VALI.sizes)
        )
    with pytest.raises(GradrankError, match="there are no query ids"):
        LambdaMART("NDCG@5", **SMALL).fit(TRAIN.X, TRAIN.label())
    with pytest.raises(GradrankError, match="no labels"):
        LambdaMART("NDCG@5", **SMALL).fit(TRAIN.X, None, TRAIN.query_of_row())
    with pytest.raises(GradrankError, match="label 2000 is too large"):
        LambdaMART("NDCG@5", **SMALL).fit(TRAIN.with_label("label", TRAIN.label() * 500))
    with pytest.raises(GradrankError, match="give y and qid with arrays only"):
        LambdaMART("NDCG@5", **SMALL).fit(TRAIN, TRAIN.label())
    with pytest.raises(GradrankError, match="X has 3 features, the model expects 6"):
        fitted().predict(TRAIN.X[:, :3])
    with pytest.raises(GradrankError, match="needs a base"):
        LambdaSMART("NDCG@5", **SMALL).fit(TRAIN)
    with pytest.raises(GradrankError, match="MART learns by regression"):
        MART("NDCG@5", **SMALL).fit(TRAIN)
    with pytest.raises(GradrankError, match="McRank needs 2 to 64 grades"):
        McRank(**SMALL).fit(equal)
    with pytest.raises(GradrankError, match="validation data: no query is judged"):
        LambdaMART("NDCG@5", **SMALL).fit(TRAIN, valid=VALI.with_label("label", np.full(VALI.n_docs, np.nan)))


def test_regression_ignores_unjudged_documents() -> None:
    labels = TRAIN.label().copy()
    labels[:200] = np.nan
    bound = Regression().bind(TRAIN.with_label("label", labels))
    gradients = bound.gradients(np.zeros(TRAIN.n_docs))
    assert not gradients.lambdas[:200].any()
    np.testing.assert_allclose(bound.start(), labels[200:].mean(), rtol=1e-6)


def test_nothing_left_to_push() -> None:
    # One tree puts every query into perfect order, after which no pair is misranked and every λ is 0.
    X = np.tile([[1.0], [0.0]], (40, 1))
    labels = np.tile([1, 0], 40)
    learner = LambdaMART("Lambda(MRR, pairs=misranked)", n_estimators=5, min_child_samples=1, subsample=1.0)
    with pytest.warns(GradrankWarning, match="nothing is left to learn after 1 tree: every λ is 0"):
        ranker = learner.fit(X, labels, qid=np.repeat(np.arange(40), 2)).ranker_
    assert isinstance(ranker, TreeEnsemble)
    assert [tree.n_leaves for tree in ranker.trees] == [2]
    better, worse = ranker.predict([[1.0], [0.0]])
    assert better > worse
