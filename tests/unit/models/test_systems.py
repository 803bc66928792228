"""Every kind of system with every kind of data through every function, on queries whose rows are interleaved.

The truth is made by hand: each system's scores by its own package on the rows as they stand in the frame, each query's
documents sorted in plain Python.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import gradrank
from gradrank import (
    FeatureRanker,
    LinearRanker,
    RankingData,
    RankSVM,
    as_ranker,
    combine_rankers,
    compare,
    evaluate,
    from_frame,
    load_ranker,
    optimal_combination,
    parse_measure,
    permutation_importance,
    refit_weights,
    search_weights,
)
from gradrank.cli.main import app
from gradrank.errors import DataError, FeatureMismatch, ModelError
from gradrank.models.foreign import ForeignRanker
from gradrank.models.systems import Documents, scores_of
from gradrank.report import render_report

MEASURE = "NDCG(ties=file)@3"
QUERIES, DOCS = 30, 8
NAMES = ["a", "b", "c"]


def make_frame(random_state: int) -> pd.DataFrame:
    """Rows of 30 queries in random order; the columns are not in the order that models are trained with."""
    rng = np.random.default_rng(random_state)
    n = QUERIES * DOCS
    X = rng.normal(size=(n, 3)).astype(np.float32).astype(np.float64)
    grade = np.clip(np.round(X[:, 0] - 0.5 * X[:, 1] + 0.7 * rng.normal(size=n) + 0.5), 0, 3)
    return pd.DataFrame(
        {"qid": rng.permutation(np.repeat(np.arange(QUERIES), DOCS)), "c": X[:, 2], "label": grade, "a": X[:, 0],
         "b": X[:, 1]}
    )  # fmt: skip


TRAIN, FRAME = make_frame(1), make_frame(2)
TRAIN_SORTED = TRAIN.sort_values("qid", kind="stable")
SIZES = [DOCS] * QUERIES


def ndcg_by_hand(scores: np.ndarray, frame: pd.DataFrame = FRAME) -> float:
    """Mean NDCG@3 with gains 2^label − 1; equal scores stay in the order of the rows."""
    values = []
    for query in dict.fromkeys(frame["qid"].tolist()):
        rows = [row for row, qid in enumerate(frame["qid"].tolist()) if qid == query]
        labels = [frame["label"].tolist()[row] for row in sorted(rows, key=lambda row: -float(scores[row]))]

        def dcg(ordered: list[float]) -> float:
            return sum((2.0**label - 1.0) / math.log2(rank + 2) for rank, label in enumerate(ordered[:3]))

        ideal = dcg(sorted(labels, reverse=True))
        values.append(dcg(labels) / ideal if ideal else 0.0)
    return sum(values) / len(values)


# ---------------------------------------------------------------------- the systems
class Anonymous:
    """A model of nobody's package: it knows neither names nor number of features."""

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(X)[:, 1] - np.asarray(X)[:, 0]


@dataclass(frozen=True)
class Case:
    system: Any
    truth: np.ndarray
    """Scores in the order of the frame's rows, by the system's own package."""
    ranks_others: bool = True
    """Whether the system can score other data."""
    tolerance: float = 0.0


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("systems")
    found: dict[str, Case] = {}
    learner = RankSVM().fit(from_frame(TRAIN))
    own = learner.ranker_.predict(FRAME[NAMES[2:] + NAMES[:2]].to_numpy())
    found["learner"] = Case(learner, own)
    found["ranker"] = Case(LinearRanker([1.0, -0.5, 0.0], feature_names=NAMES), FRAME["a"] - 0.5 * FRAME["b"])
    found["feature"] = Case(FeatureRanker("b", -1), -FRAME["b"])
    LinearRanker([0.0, 1.0, -1.0], feature_names=["c", "b", "a"]).save(folder / "ours.json")
    found["model file"] = Case(folder / "ours.json", FRAME["b"] - FRAME["a"])

    quiet = {"n_estimators": 20, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
    lgbm = lightgbm.LGBMRanker(**quiet).fit(TRAIN_SORTED[NAMES], TRAIN_SORTED["label"], group=SIZES)
    found["LGBMRanker"] = Case(lgbm, lgbm.predict(FRAME[NAMES]))
    found["LightGBM booster"] = Case(lgbm.booster_, lgbm.predict(FRAME[NAMES]))
    lgbm.booster_.save_model(folder / "lightgbm.txt")
    found["LightGBM file"] = Case(str(folder / "lightgbm.txt"), lgbm.predict(FRAME[NAMES]))
    unnamed = TRAIN_SORTED[["c", "a", "b"]].to_numpy()
    numbered = lightgbm.LGBMRanker(**quiet).fit(unnamed, TRAIN_SORTED["label"], group=SIZES)
    found["LightGBM without names"] = Case(numbered, numbered.booster_.predict(FRAME[["c", "a", "b"]].to_numpy()))
    classes = lightgbm.LGBMClassifier(**quiet).fit(TRAIN[NAMES], TRAIN["label"] > 0)
    found["LGBMClassifier"] = Case(classes, classes.predict(FRAME[NAMES], raw_score=True))

    xgb = xgboost.XGBRanker(n_estimators=30, n_jobs=1, early_stopping_rounds=2)
    noise = np.random.default_rng(0).integers(0, 2, len(TRAIN))
    ids = TRAIN_SORTED["qid"]
    xgb.fit(TRAIN_SORTED[NAMES], TRAIN_SORTED["label"], qid=ids, eval_set=[(TRAIN_SORTED[NAMES], noise)],
            eval_qid=[ids], verbose=False)  # fmt: skip
    assert xgb.best_iteration + 1 < xgb.get_booster().num_boosted_rounds()
    found["XGBRanker"] = Case(xgb, xgb.predict(FRAME[NAMES]), tolerance=1e-5)
    found["XGBoost booster"] = Case(xgb.get_booster(), xgb.predict(FRAME[NAMES]), tolerance=1e-5)
    xgb.save_model(folder / "xgboost.json")
    found["XGBoost file"] = Case(folder / "xgboost.json", xgb.predict(FRAME[NAMES]), tolerance=1e-5)

    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(TRAIN[NAMES], TRAIN["label"])
    found["pipeline"] = Case(pipeline, pipeline.predict(FRAME[NAMES]), tolerance=1e-12)
    regression = LinearRegression().fit(unnamed, TRAIN_SORTED["label"])
    truth = regression.predict(FRAME[["c", "a", "b"]].to_numpy())
    found["scikit-learn without names"] = Case(regression, truth, tolerance=1e-12)
    logistic = LogisticRegression().fit(TRAIN[NAMES], TRAIN["label"] > 0)
    found["classifier"] = Case(logistic, logistic.decision_function(FRAME[NAMES]), tolerance=1e-12)
    graded = LogisticRegression().fit(TRAIN[NAMES], TRAIN["label"])
    expected = graded.predict_proba(FRAME[NAMES]) @ np.arange(4.0)
    found["classifier of grades"] = Case(graded, expected, tolerance=1e-12)
    found["anything with predict"] = Case(Anonymous(), FRAME["a"] - FRAME["c"])

    scores = np.random.default_rng(5).normal(size=len(FRAME))
    (folder / "scores.txt").write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    found["list"] = Case(scores.tolist(), scores, False)
    found["array"] = Case(scores, scores, False)
    found["series"] = Case(pd.Series(scores), scores, False)
    found["score file"] = Case(folder / "scores.txt", scores, False)
    found["function"] = Case(
        lambda data: data.in_input_order(data.X[:, data.feature_names.index("b")]), FRAME["b"], False
    )
    return {name: Case(c.system, np.asarray(c.truth, float), c.ranks_others, c.tolerance) for name, c in found.items()}


KINDS = [
    "learner", "ranker", "feature", "model file", "LGBMRanker", "LightGBM booster", "LightGBM file",
    "LightGBM without names", "LGBMClassifier", "XGBRanker", "XGBoost booster", "XGBoost file", "pipeline",
    "scikit-learn without names", "classifier", "classifier of grades", "anything with predict", "list", "array",
    "series", "score file", "function",
]  # fmt: skip
MODELS = KINDS[: KINDS.index("list")]
DATA: dict[str, Callable[[Path], Any]] = {
    "RankingData": lambda folder: from_frame(FRAME),
    "pandas": lambda folder: FRAME,
    "polars": lambda folder: pl.from_pandas(FRAME),
    "arrow": lambda folder: pa.Table.from_pandas(FRAME),
    "path": lambda folder: _csv(folder),
}


def _csv(folder: Path) -> Path:
    FRAME.to_csv(folder / "data.csv", index=False)
    return folder / "data.csv"


def test_every_kind_is_in_the_lists(cases):
    assert set(cases) == set(KINDS)
    assert sorted(name for name, case in cases.items() if case.ranks_others) == sorted(MODELS)
    # The truth of no two systems is alike by chance, and an order mixed up would show.
    assert from_frame(FRAME).rows is not None
    assert ndcg_by_hand(cases["ranker"].truth) > ndcg_by_hand(cases["ranker"].truth[::-1]) + 0.1


@pytest.mark.parametrize("form", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_systems_own(cases, tmp_path, kind, form):
    case = cases[kind]
    documents = Documents.of(DATA[form](tmp_path))
    scores = documents.data.in_input_order(scores_of(case.system, documents))
    assert np.allclose(scores, case.truth, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("form", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_and_compare(cases, tmp_path, kind, form):
    case, data = cases[kind], DATA[form](tmp_path)
    expected = ndcg_by_hand(case.truth)
    assert evaluate(data, {"x": case.system}, MEASURE).means()["x"][MEASURE] == pytest.approx(expected, abs=1e-12)
    (row,) = compare(data, {"base": FRAME["c"].to_numpy(), "x": case.system}, [parse_measure(MEASURE)]).rows
    assert row.mean == pytest.approx(expected, abs=1e-12)
    assert row.baseline_mean == pytest.approx(ndcg_by_hand(FRAME["c"]), abs=1e-12)


def test_a_series_with_the_rows_in_another_order_is_refused():
    by_score = FRAME.sort_values("c")["c"]
    with pytest.raises(DataError, match=r"system 'c' has the rows of data in another order.*\.loc\[data\.index\]"):
        evaluate(FRAME, {"c": by_score}, MEASURE)
    with pytest.raises(DataError, match=r"scores.*another order.*\.loc\[data\.index\]"):
        gradrank.measure_values(MEASURE, by_score, FRAME)
    aligned = evaluate(FRAME, {"c": by_score.loc[FRAME.index]}, MEASURE).means()["c"][MEASURE]
    assert aligned == pytest.approx(ndcg_by_hand(FRAME["c"]), abs=1e-12)


@pytest.mark.parametrize("form", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_combining_two(cases, tmp_path, kind, form):
    case, data = cases[kind], DATA[form](tmp_path)
    other = FRAME["c"].to_numpy()
    found = optimal_combination(case.system, other, data, MEASURE)
    first, second = found.weights
    assert found.values_of_parts[0][MEASURE] == pytest.approx(ndcg_by_hand(case.truth), abs=1e-12)
    assert found.value == pytest.approx(ndcg_by_hand(first * case.truth + second * other), abs=1e-12)
    weighting = search_weights([other, case.system], data, parse_measure(MEASURE))
    together = weighting.weights[0] * other + weighting.weights[1] * case.truth
    assert weighting.value == pytest.approx(ndcg_by_hand(together), abs=1e-12)


@pytest.mark.parametrize("form", DATA)
@pytest.mark.parametrize("kind", MODELS)
def test_combined_rankers_score_new_data(cases, tmp_path, kind, form):
    case, data = cases[kind], DATA[form](tmp_path)
    both = combine_rankers([case.system, FeatureRanker("c")], data, MEASURE)
    weights = both.training["weights"]
    expected = weights[0] * case.truth + weights[1] * FRAME["c"].to_numpy()
    close = {"rtol": max(case.tolerance, 1e-12), "atol": max(case.tolerance, 1e-12)}
    assert np.allclose(both.predict(FRAME), expected, **close)
    assert np.allclose(both.predict(from_frame(FRAME)), expected, **close)
    assert both.training["values"][MEASURE] == pytest.approx(ndcg_by_hand(both.predict(FRAME)), abs=1e-12)


@pytest.mark.parametrize("form", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_reports(cases, tmp_path, kind, form):
    case, data = cases[kind], DATA[form](tmp_path)
    systems = {"base": FRAME["c"].to_numpy(), "x": case.system}
    page = render_report(data=data, systems=systems, measures=MEASURE)
    for truth in (case.truth, FRAME["c"]):
        assert f">{ndcg_by_hand(truth):.4f}" in page
    assert ('<h3 id="model-1">x</h3>' in page) == case.ranks_others


@pytest.mark.parametrize("form", DATA)
@pytest.mark.parametrize("kind", MODELS)
def test_permutation_importance(cases, tmp_path, kind, form):
    case, data = cases[kind], DATA[form](tmp_path)
    found = permutation_importance(case.system, data, MEASURE, repeats=2)
    assert found.baseline == pytest.approx(ndcg_by_hand(case.truth), abs=1e-3 if "XGB" in kind else 1e-12)
    unused = {"ranker": "c", "model file": "c", "anything with predict": "b"}.get(kind)
    drops = dict(zip(found.feature_names, found.mean.tolist(), strict=True))
    assert unused is None or drops.pop(unused) == 0.0
    assert max(map(abs, drops.values())) > 0.01


@pytest.mark.parametrize("form", DATA)
@pytest.mark.parametrize("kind", ["LGBMRanker", "LightGBM file", "XGBRanker", "XGBoost file"])
def test_new_weights_for_trees(cases, tmp_path, kind, form):
    refitted = refit_weights(cases[kind].system, DATA[form](tmp_path), MEASURE, rounds=1)
    assert refitted.values[0] == pytest.approx(ndcg_by_hand(as_ranker(cases[kind].system).predict(FRAME)), abs=1e-12)
    assert refitted.values[-1] == pytest.approx(ndcg_by_hand(refitted.ensemble.predict(FRAME)), abs=1e-12)
    assert len(refitted.values) == 2 or "XGB" in kind  # two trees leave nothing to gain


def test_columns_of_the_data_itself_stand_in_its_own_order():
    data = from_frame(FRAME)
    measure = parse_measure(MEASURE)
    place = data.feature_names.index("a")
    for column, truth in ((data.X[:, place], FRAME["a"]), (data.label(), FRAME["label"])):
        expected = pytest.approx(ndcg_by_hand(truth), abs=1e-12)
        assert evaluate(data, {"x": column}, MEASURE).means()["x"][MEASURE] == expected
        assert measure.mean(column, data) == expected
        assert gradrank.measure_values(MEASURE, column, data)[measure].mean() == expected
        assert optimal_combination(column, column, data, MEASURE).value == expected
    # A copy is nobody's column: it is taken for what predict would give.
    assert measure.mean(data.in_input_order(data.X[:, place].copy()), data) == pytest.approx(ndcg_by_hand(FRAME["a"]))


@pytest.mark.parametrize("kind", MODELS)
def test_predict_and_the_model_itself_are_the_same_system(cases, kind):
    case, data = cases[kind], from_frame(FRAME)
    ranker = as_ranker(case.system, data)
    for given in (data, FRAME, pl.from_pandas(FRAME)):
        if ranker.feature_names[0] == "f1" or ranker.feature_names[0].startswith("Column_"):
            given = data  # names that number the features are not those of columns
        assert np.allclose(ranker.predict(given), case.truth, rtol=case.tolerance, atol=case.tolerance)


# ---------------------------------------------------------------------- the command line
@pytest.fixture
def folder(cases, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    _csv(tmp_path)
    for kind, name in (("model file", "ours.json"), ("LightGBM file", "lgbm.txt"), ("XGBoost file", "xgb.json"),
                       ("score file", "scores.txt")):  # fmt: skip
        Path(name).write_bytes(Path(cases[kind].system).read_bytes())
    cases["learner"].system.ranker_.save("svm.json")
    return tmp_path


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result


FILES = {"ours.json": "model file", "lgbm.txt": "LightGBM file", "xgb.json": "XGBoost file", "svm.json": "learner"}


def test_the_command_evaluate(cases, folder):
    models = [word for file in FILES for word in ("--model", f"{file[:3]}={file}")]
    said = run("evaluate", "data.csv", "--scores", "scores.txt", *models, "-m", MEASURE, "--format", "json")
    told = json.loads(said.stdout)
    assert list(told) == ["scores.txt", "our", "lgb", "xgb", "svm", "queries"]
    for file, kind in (*FILES.items(), ("scores.txt", "score file")):
        name = file if file == "scores.txt" else file[:3]
        # XGBoost's trees are added up in double precision here.
        assert told[name][MEASURE] == pytest.approx(
            ndcg_by_hand(cases[kind].truth), abs=1e-3 if name == "xgb" else 1e-12
        )


def test_the_command_compare(cases, folder):
    files = ("--scores", "scores.txt", "--model", "lgbm.txt", "--model", "ours.json")
    for baseline in ("lgbm.txt", None):
        chosen = () if baseline is None else ("--baseline", baseline)
        told = json.loads(run("compare", "data.csv", *files, *chosen, "-m", MEASURE, "--format", "json").stdout)
        assert told["baseline"] == (baseline or "scores.txt")
        means = {row["system"]: row["mean"] for row in told["rows"]}
        for name, kind in {"scores.txt": "score file", **FILES}.items():
            if name in means:
                assert means[name] == pytest.approx(ndcg_by_hand(cases[kind].truth), abs=1e-12)


def test_the_commands_combine_report_score_and_importance(cases, folder):
    parts = ("lgbm.txt", "scores.txt")
    said = run("combine", *parts, "--data", "data.csv", "-m", MEASURE, "-o", "sum.txt", "--format", "json")
    told = json.loads(said.stdout)
    together = np.loadtxt("sum.txt")
    first, second = told["weights"]
    assert together == pytest.approx(first * cases["LightGBM file"].truth + second * cases["score file"].truth)
    assert told["value"] == pytest.approx(ndcg_by_hand(together), abs=1e-12)
    run("combine", "lgbm.txt", "ours.json", "--data", "data.csv", "-m", MEASURE, "-o", "both.json")
    both = load_ranker("both.json")
    parts = cases["LightGBM file"].truth, cases["model file"].truth
    assert both.predict(FRAME) == pytest.approx(
        sum(w * p for w, p in zip(both.training["weights"], parts, strict=True))
    )
    run("score", "lgbm.txt", "data.csv", "-o", "lgbm.scores")
    assert np.loadtxt("lgbm.scores").tolist() == cases["LightGBM file"].truth.tolist()
    run("report", "data.csv", "--scores", "scores.txt", "--model", "lgbm.txt", "-m", MEASURE, "-o", "report.html")
    page = Path("report.html").read_text()
    for kind in ("score file", "LightGBM file"):
        assert f">{ndcg_by_hand(cases[kind].truth):.4f}" in page
    said = run("importance", "lgbm.txt", "--kind", "permutation", "--data", "data.csv", "-m", MEASURE)
    assert f"{MEASURE} is {ndcg_by_hand(cases['LightGBM file'].truth):.4f}" in said.stdout


def test_trec_files_in_python(tmp_path):
    (tmp_path / "qrels").write_text("1 0 d1 1\n1 0 d2 0\n2 0 d1 1\n2 0 d2 0\n3 0 d1 1\n")
    (tmp_path / "run").write_text("2 Q0 d2 1 2.0 x\n2 Q0 d1 2 1.0 x\n1 Q0 d1 1 2.0 x\n9 Q0 d1 1 2.0 x\n")
    result = evaluate(tmp_path / "qrels", {"bm25": tmp_path / "run"}, "MRR")
    assert result.values["bm25"][parse_measure("MRR")].tolist() == [1.0, 0.5, 0.0]
    assert result.notes()[:2] == [
        "bm25: lacks 1 queries of the qrels; they count as nothing retrieved",
        "bm25: has 1 queries that are not in the qrels; they are left out",
    ]
    with pytest.raises(DataError, match="system 'x' is no TREC run, but the data is TREC qrels"):
        evaluate(tmp_path / "qrels", {"x": [1.0, 2.0]}, "MRR")


# ---------------------------------------------------------------------- what cannot be
def test_one_system_alone_is_named_after_what_it_is(cases, tmp_path):
    assert evaluate(FRAME, cases["learner"].system).systems == ("RankSVM",)
    assert evaluate(FRAME, cases["score file"].system).systems == ("scores.txt",)
    assert evaluate(FRAME, FRAME["a"].to_numpy()).systems == ("scores",)
    assert [str(measure) for measure in evaluate(FRAME, FRAME["a"]).measures] == ["NDCG@10", "MAP", "MRR"]


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (RankSVM(), "system 'x': this RankSVM is not fitted: call fit first"),
        (lightgbm.LGBMRanker(), "system 'x': this LGBMRanker is not fitted"),
        (xgboost.XGBRanker(), "system 'x': this XGBRanker is not fitted"),
        (LinearRegression(), "system 'x': this LinearRegression is not fitted"),
        (LinearRanker([1.0, 1.0], feature_names=["a", "z"]), "system 'x': X lacks the model's feature 'z'"),
        (LinearRanker([1.0, 1.0]), "system 'x': X has 3 features, the model expects 2|lacks"),
        ([1.0, 2.0], r"scores of 'x' have shape \(2,\)"),
        ("nowhere.txt", "nowhere.txt: there is no such file"),
    ],
)
@pytest.mark.parametrize("form", ["RankingData", "pandas"])
def test_systems_that_do_not_fit_are_named(tmp_path, system, message, form):
    with pytest.raises((DataError, ModelError), match=message):
        evaluate(DATA[form](tmp_path), {"x": system}, MEASURE)


def test_models_that_give_no_single_number_are_refused():
    class Two:
        def predict(self, X: Any) -> np.ndarray:
            return np.zeros((len(X), 2))

    class Words:
        def predict(self, X: Any) -> np.ndarray:
            return np.array(["good"] * len(X))

    class Column:
        def predict(self, X: Any) -> np.ndarray:
            return np.asarray(X)[:, :1]

    data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[1, 1])
    with pytest.raises(ModelError, match=r"Two\.predict gives an array of shape \(2, 2\) for 2 documents"):
        evaluate(data, {"x": Two()})
    with pytest.raises(ModelError, match=r"Words\.predict gives something that is not a number"):
        evaluate(data, {"x": Words()})
    assert evaluate(data, {"x": Column()}, "MRR").means() == {"x": {"MRR": 1.0}}
    names = LogisticRegression().fit([[0.0], [1.0], [2.0]], ["bad", "fair", "good"])
    with pytest.raises(ModelError, match="tells classes"):
        evaluate(data, {"x": names})


def test_models_that_only_their_own_package_can_score():
    data, X = from_frame(FRAME), FRAME[NAMES]
    quiet = {"n_estimators": 5, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
    linear = lightgbm.LGBMRegressor(**quiet, linear_tree=True).fit(TRAIN[NAMES], TRAIN["label"])
    graded = lightgbm.LGBMClassifier(**quiet).fit(TRAIN[NAMES], TRAIN["label"])
    classes = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(TRAIN[NAMES], TRAIN["label"].astype(int))
    line = xgboost.train({"booster": "gblinear", "nthread": 1}, xgboost.DMatrix(TRAIN[NAMES], TRAIN["label"]), 5)
    truths = {
        "linear leaves": (linear, linear.predict(X)),
        "booster with linear leaves": (linear.booster_, linear.predict(X)),
        "LightGBM's classes": (graded, graded.predict_proba(X) @ np.arange(4.0)),
        "XGBoost's classes": (classes, classes.predict_proba(X) @ np.arange(4.0)),
        "XGBoost's line": (line, line.predict(xgboost.DMatrix(X))),
    }
    for name, (model, truth) in truths.items():
        assert isinstance(as_ranker(model), ForeignRanker), name
        for given in (data, FRAME, pl.from_pandas(FRAME)):
            found = evaluate(given, {"x": model}, MEASURE).means()["x"][MEASURE]
            assert found == pytest.approx(ndcg_by_hand(truth), abs=1e-12), name


def test_scores_cannot_be_part_of_a_ranker(cases):
    for kind in ("array", "score file", "function"):
        with pytest.raises(ModelError, match="scores cannot rank other documents"):
            combine_rankers([cases[kind].system, FeatureRanker("a")], FRAME, MEASURE)


def test_documents_not_retrieved_count_in_an_evaluation_and_not_in_a_combination():
    data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [1, 0, 1], qid=["a", "b", "a"])
    scores = [2.0, 1.0, -np.inf]
    assert evaluate(data, {"x": scores}, "Recall").means()["x"]["Recall"] == 0.25
    with pytest.raises(DataError, match="score of document 3 is -inf, expected a finite number"):
        optimal_combination(scores, [1.0, 2.0, 3.0], data, "MRR")
    with pytest.raises(DataError, match="score of 'x' for document 2 is nan"):
        evaluate(data, {"x": [1.0, np.nan, 2.0]}, "MRR")


def test_frames_with_text_are_for_models_that_take_it():
    frame = FRAME.assign(shop=pd.Categorical(np.where(FRAME["a"] > 0, "x", "y")))
    trained = TRAIN.assign(shop=pd.Categorical(np.where(TRAIN["a"] > 0, "x", "y")))
    model = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1, n_jobs=1)
    model.fit(trained[["shop", "b"]], trained["label"])
    expected = ndcg_by_hand(model.predict(frame[["shop", "b"]]))
    assert evaluate(frame, model, MEASURE).means()["LGBMRegressor"][MEASURE] == pytest.approx(expected, abs=1e-12)
    assert evaluate(frame, {"f": FeatureRanker("a")}, MEASURE).means()["f"][MEASURE] == ndcg_by_hand(FRAME["a"])
    both = combine_rankers([model, FeatureRanker("a")], frame, MEASURE)
    assert both.training["values"][MEASURE] == pytest.approx(ndcg_by_hand(both.predict(frame)), abs=1e-12)


def test_a_foreign_model_is_kept_but_not_written(tmp_path, cases):
    ranker = as_ranker(cases["pipeline"].system)
    assert isinstance(ranker, ForeignRanker)
    assert repr(ranker) == "ForeignRanker(Pipeline, 3 features)"
    assert ranker.used_features() == ("a", "b", "c")
    with pytest.raises(ModelError, match="a Pipeline of sklearn cannot be written"):
        ranker.save(tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()
    with pytest.raises(ModelError, match="a Anonymous does not tell its features"):
        as_ranker(Anonymous())
    with pytest.raises(FeatureMismatch):
        ranker.predict(FRAME[["a", "b"]])
