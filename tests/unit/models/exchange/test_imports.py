"""Models of other tools score as their own tools do, and go out again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from gradrank.data import RankingData
from gradrank.errors import ModelError
from gradrank.evaluation import evaluate
from gradrank.learners import LambdaSMART
from gradrank.models.exchange.registry import EXPORTS
from gradrank.models.linear import LinearRanker
from gradrank.models.registry import load_ranker
from gradrank.models.systems import as_ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.weighted_sum import WeightedSum
from tests.support.consumers import CONSUMERS
from tests.support.export_matrix import NAMES, documents, kinds, probes, reversed_pairs, truth

X = documents(800, 11)
Y = truth(X)
HOLES = X.copy()
HOLES[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan


def catboost_model(**settings: Any) -> Any:
    fixed = {"iterations": 6, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return catboost.CatBoostRegressor(**{**fixed, **settings}).fit(HOLES, Y)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"nan_mode": "Max"},
        {"grow_policy": "Lossguide", "max_leaves": 9},
        {"grow_policy": "Depthwise", "nan_mode": "Max"},
        {"boost_from_average": False},
    ],
    ids=str,
)
def test_catboost(settings: dict[str, Any], tmp_path: Path) -> None:
    model = catboost_model(**settings)
    model.save_model(str(tmp_path / "model.json"), format="json")
    ranker = load_ranker(tmp_path / "model.json")
    assert len(ranker.tree_ensembles()[0].trees) == 6
    for rows in (probes(ranker, 300, single=True), probes(ranker, 100, single=False)):
        expected = model.predict(rows, prediction_type="RawFormulaVal")
        np.testing.assert_allclose(ranker.predict(rows), expected, rtol=0, atol=1e-14)
        assert len(np.unique(expected)) > 20
    assert TreeEnsemble.from_catboost(model).to_dict() == ranker.to_dict()


def test_a_fitted_catboost_model_becomes_trees() -> None:
    model = catboost_model()
    ranker = as_ranker(model)
    assert isinstance(ranker, TreeEnsemble)
    np.testing.assert_allclose(ranker.predict(HOLES), model.predict(HOLES), rtol=0, atol=1e-14)
    with pytest.raises(ModelError, match="not fitted"):
        as_ranker(catboost.CatBoostRegressor())


def test_catboost_that_is_not_numbers_only_is_refused(tmp_path: Path) -> None:
    words = np.column_stack((X[:, 0].astype(str), X[:, 5].astype(int).astype(str)))
    model = catboost.CatBoostRegressor(
        iterations=2, verbose=0, allow_writing_files=False, cat_features=[1], thread_count=1
    ).fit(words, Y)
    model.save_model(str(tmp_path / "model.json"), format="json", pool=catboost.Pool(words, cat_features=[1]))
    with pytest.raises(ModelError, match=r"model\.json: is a CatBoost model with categorical features"):
        load_ranker(tmp_path / "model.json")
    classes = catboost.CatBoostClassifier(iterations=2, verbose=0, allow_writing_files=False, thread_count=1)
    classes.fit(X, np.searchsorted([0, 1], Y))
    with pytest.raises(ModelError, match="3 classes"):
        TreeEnsemble.from_catboost(classes)


def test_hist_gradient_boosting_bit_for_bit() -> None:
    model = HistGradientBoostingRegressor(max_iter=7, max_leaf_nodes=11, random_state=0).fit(HOLES, Y)
    ranker = as_ranker(model)
    assert isinstance(ranker, TreeEnsemble)
    rows = probes(ranker, 400, single=False)
    assert ranker.predict(rows).tobytes() == model.predict(rows).tobytes()
    two = HistGradientBoostingClassifier(max_iter=4, random_state=0).fit(HOLES, Y > 1)
    np.testing.assert_array_equal(as_ranker(two).predict(rows), two.decision_function(rows))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (HistGradientBoostingRegressor(max_iter=2, loss="poisson").fit(X, np.exp(Y)), "loss 'poisson'"),
        (HistGradientBoostingRegressor(max_iter=2, categorical_features=[5]).fit(X, Y), "categorical"),
        (HistGradientBoostingClassifier(max_iter=2).fit(X, np.searchsorted([0, 1], Y)), "several classes"),
    ],
)
def test_other_models_of_scikit_learn_are_scored_by_it(model: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        TreeEnsemble.from_sklearn(model)
    assert as_ranker(model).kind == "foreign"


# ---------------------------------------------------------------------- RankLib
RANKLIB = """## LambdaMART
## No. of trees = 2
## No. of leaves = 3

<ensemble>
	<tree id="1" weight="0.1">
		<split>
			<feature> 3 </feature>
			<threshold> 0.5 </threshold>
			<split pos="left">
				<feature> 1 </feature>
				<threshold> -0.25 </threshold>
				<split pos="left">
					<output> 1.5 </output>
				</split>
				<split pos="right">
					<output> -2.0 </output>
				</split>
			</split>
			<split pos="right">
				<output> 0.75 </output>
			</split>
		</split>
	</tree>
	<tree id="2" weight="0.1">
		<split>
			<output> 4.0 </output>
		</split>
	</tree>
</ensemble>
"""


def test_ranklib_trees_by_hand(tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text(RANKLIB)
    ranker = load_ranker(tmp_path / "model.txt")
    assert ranker.feature_names == ("f1", "f2", "f3")
    rows = [[-0.25, 9.0, 0.5], [np.nan, 9.0, 0.5], [0.0, 9.0, 0.6], [-1.0, 9.0, np.nan]]
    # The weight is a float32, and so are the products.
    leaves = np.array([1.5, -2.0, 0.75, 1.5], dtype=np.float32) * np.float32(0.1) + np.float32(4) * np.float32(0.1)
    np.testing.assert_allclose(ranker.predict(rows), leaves, rtol=1e-7)
    with_roots = RANKLIB.replace("## LambdaMART", "## MART")
    (tmp_path / "mart.txt").write_text(with_roots)
    assert load_ranker(tmp_path / "mart.txt").training["learner"] == "MART"


def test_ranklib_compares_in_single_precision(tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text(RANKLIB.replace(" 0.5 ", " 0.1 "))
    ranker = load_ranker(tmp_path / "model.txt")
    # RankLib rounds both to the same float32, so that 0.1 + 1e-10 is not above the threshold.
    near = ranker.predict([[1.0, 0.0, 0.1], [1.0, 0.0, 0.1 + 1e-10], [1.0, 0.0, 0.1 + 1e-8]])
    assert near[0] == near[1] != near[2]


@pytest.mark.parametrize("kind", ["Linear Regression", "Coordinate Ascent"])
def test_ranklib_lines(kind: str, tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text(f"## {kind}\n## Lambda = 1.0E-10\n0:0.5 1:2.0 3:-1e-1 \n")
    ranker = load_ranker(tmp_path / "model.txt")
    assert isinstance(ranker, LinearRanker)
    assert ranker.predict([[1.0, 7.0, 10.0], [np.nan, np.nan, 1.0]]).tolist() == [1.5, 0.4]


# ---------------------------------------------------------------------- round trips
def exported_and_read(name: str, form: str, folder: Path) -> tuple[Any, Any, Path]:
    ranker = kinds()[name]
    path = folder / f"{form}{EXPORTS[form].suffix}"
    ranker.export(path, form)
    return ranker, load_ranker(path), path


@pytest.mark.parametrize("form", ["lightgbm", "xgboost", "xgboost-ubj", "ranklib", "onnx", "onnx-double"])
@pytest.mark.parametrize("kind", ["trees", "trees, missing values", "sum of trees"])
def test_what_goes_out_comes_back(kind: str, form: str, tmp_path: Path) -> None:
    if (kind, form) == ("trees, missing values", "ranklib"):
        with pytest.raises(ModelError, match="cannot hold the model: tree 0 sends a missing"):
            kinds()[kind].export(tmp_path / "model", form)
        return
    ranker, again, path = exported_and_read(kind, form, tmp_path)
    single = CONSUMERS[form].single
    rows = probes(ranker, 300, single=single)
    # In single precision every document reaches the leaf it reached before; leaves are rounded.
    assert [tree.n_leaves for tree in again.trees[-3:]] == [
        tree.n_leaves for tree in ranker.tree_ensembles()[-1].trees[-3:]
    ]
    np.testing.assert_allclose(again.predict(rows), ranker.predict(rows), rtol=0, atol=1e-6 if single else 1e-15)
    assert reversed_pairs(ranker.predict(rows), again.predict(rows)) == 0
    np.testing.assert_allclose(again.predict(rows), CONSUMERS[form].score(path, rows, NAMES), rtol=0, atol=1e-6)
    # A second trip changes nothing more.
    again.export(tmp_path / "second", form)
    assert load_ranker(tmp_path / "second").predict(rows).tobytes() == again.predict(rows).tobytes()


def test_a_line_goes_to_ranklib_and_back(tmp_path: Path) -> None:
    line = LinearRanker([0.1, 0.0, -3.0], 1 / 3)
    line.export(tmp_path / "model.txt", "ranklib")
    again = load_ranker(tmp_path / "model.txt")
    assert isinstance(again, LinearRanker)
    assert again.predict(X[:, :3]).tobytes() == line.predict(X[:, :3]).tobytes()


def test_imported_models_are_used_like_others(tmp_path: Path) -> None:
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1).fit(X, Y)
    model.get_booster().save_model(tmp_path / "x.ubj")
    catboost_model().save_model(str(tmp_path / "c.json"), format="json")
    first, second = load_ranker(tmp_path / "x.ubj"), load_ranker(tmp_path / "c.json")
    labels = np.searchsorted([0.0, 1.0], Y)
    data = RankingData.from_arrays(X, labels, group=np.full(40, 20))
    both = WeightedSum([(0.5, first.renamed(data.feature_names)), (0.5, second.renamed(data.feature_names))])
    found = evaluate(data, {"x": tmp_path / "x.ubj", "c": tmp_path / "c.json", "both": both}, ["NDCG@5"])
    assert min(row["NDCG@5"] for row in found.means().values()) > 0.8
    on_top = LambdaSMART("NDCG@5", base=tmp_path / "c.json", n_estimators=2, n_jobs=1).fit(data)
    on_top.ranker_.export(tmp_path / "m.py", "python")
    theirs = CONSUMERS["python"].score(tmp_path / "m.py", X[:50], data.feature_names)
    assert theirs.tobytes() == on_top.ranker_.predict(X[:50]).tobytes()


def test_lightgbm_takes_back_its_categories_without_a_word(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame(
        {"a": X[:, 0], "city": pd.Categorical(np.array(["Ulm", "Bonn", "Köln"])[X[:, 5].astype(int) % 3])}
    )
    settings = {"verbose": -1, "num_threads": 1, "min_data_per_group": 5, "cat_smooth": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(frame, Y), 5)
    TreeEnsemble.from_lightgbm(booster).export(tmp_path / "m.txt", "lightgbm", name="a [name: with] brackets")
    capfd.readouterr()
    again = lightgbm.Booster(model_file=tmp_path / "m.txt")
    assert capfd.readouterr() == ("", "")
    assert again.predict(frame).tobytes() == booster.predict(frame).tobytes()
    assert load_ranker(tmp_path / "m.txt").predict(frame).tobytes() == booster.predict(frame).tobytes()


# ---------------------------------------------------------------------- ONNX of others
def tree_ensemble_of(mode: str, tracks: int, aggregate: str = "SUM") -> bytes:
    import onnx
    from onnx import helper

    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, aggregate_function=aggregate,
        nodes_treeids=[0] * 3 + [4], nodes_nodeids=[2, 0, 1, 0], nodes_featureids=[1, 0, 0, 0],
        nodes_values=[0.3, 0.0, 0.0, 0.0], nodes_modes=[mode, "LEAF", "LEAF", "LEAF"],
        nodes_truenodeids=[0, 0, 0, 0], nodes_falsenodeids=[1, 0, 0, 0],
        nodes_missing_value_tracks_true=[tracks, 0, 0, 0], target_treeids=[0, 0, 4], target_nodeids=[0, 1, 0],
        target_ids=[0, 0, 0], target_weights=[1.0, 2.0, 0.5], base_values=[0.25],
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [None, 2])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, 1])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return content


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
@pytest.mark.parametrize("tracks", [0, 1])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
def test_every_comparison_of_onnx(mode: str, tracks: int, aggregate: str, tmp_path: Path) -> None:
    import onnxruntime

    content = tree_ensemble_of(mode, tracks, aggregate)
    (tmp_path / "model.onnx").write_bytes(content)
    ranker = load_ranker(tmp_path / "model.onnx")
    at = np.float32(0.3)
    column = [np.nextafter(at, np.float32(-1)), at, np.nextafter(at, np.float32(1)), np.nan, 0.0, 5.0]
    rows = np.column_stack((np.zeros(6), column)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(content).run(None, {"x": rows})
    np.testing.assert_allclose(ranker.predict(rows), expected[:, 0], rtol=1e-7)
    assert len(np.unique(expected)) == 2


def test_onnx_that_is_no_sum_of_trees_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    kinds()["net"].export(path, "onnx")
    with pytest.raises(ModelError, match=r"model\.onnx: is an ONNX model with the operator"):
        load_ranker(path)
    for content, message in [
        (tree_ensemble_of("BRANCH_EQ", 0), "mode 'BRANCH_EQ'"),
        (tree_ensemble_of("BRANCH_LEQ", 0, "MAX"), "takes the MAX"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ModelError, match=message):
            load_ranker(path)


def test_names_of_features_come_back(tmp_path: Path) -> None:
    for form in ("onnx", "xgboost", "xgboost-ubj"):
        _, again, path = exported_and_read("trees", form, tmp_path)
        assert list(again.feature_names) == NAMES, path
    assert json.loads((tmp_path / "xgboost.json").read_text())["learner"]["attributes"]["gradrank_origin"]
