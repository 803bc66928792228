"""What all learners share: data in any order, names that match, words where a number would be misleading."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.errors import DoubtfulDataWarning, GradrankError, GradrankWarning, NotConvergedWarning, TrainingError
from gradrank.evaluation import evaluate
from gradrank.learners import MART, LambdaMART, LambdaRank, LambdaSMART, McRank, RankBoost, RankSVM
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.measures import MAP, NDCG
from gradrank.models.feature import FeatureRanker

SPLITS = make_splits(50, n_docs=14, n_features=6, random_state=2)
TRAIN, VALI, TEST = SPLITS["train"], SPLITS["vali"], SPLITS["test"]
SMALL = {"n_estimators": 15, "learning_rate": 0.2, "num_leaves": 6}


def frame_of(data: RankingData, order: np.ndarray | None = None) -> pd.DataFrame:
    frame = pd.DataFrame(data.X, columns=list(data.feature_names))
    frame.insert(0, "qid", data.query_of_row())
    return frame if order is None else frame.iloc[order]


def shuffled(data: RankingData, random_state: int = 0) -> np.ndarray:
    return np.random.default_rng(random_state).permutation(data.n_docs)


# ---------------------------------------------------------------- the order of rows
def test_scores_stand_in_the_order_of_the_rows_given() -> None:
    model = LambdaMART(**SMALL).fit(TRAIN)
    order = shuffled(TEST)
    mixed = RankingData.from_arrays(TEST.X[order], TEST.label()[order], qid=TEST.query_of_row()[order])
    assert mixed.rows is not None
    expected = model.predict(TEST.X)[order]
    for given in (mixed, frame_of(TEST, order), TEST.X[order]):
        np.testing.assert_array_equal(model.predict(given), expected)
        np.testing.assert_array_equal(model.ranker_.predict(given), expected)
    truth = NDCG(10).mean(model.predict(TEST), TEST)
    assert truth > 0.8
    for system in (model, model.ranker_, expected):
        assert evaluate(mixed, {"m": system}, [NDCG(10)]).means()["m"]["NDCG@10"] == pytest.approx(truth, abs=1e-12)
    assert NDCG(10).mean(expected, mixed) == pytest.approx(truth, abs=1e-12)
    assert model.score(mixed) == pytest.approx(truth, abs=1e-12)


def test_shuffled_rows_train_the_same_ranker_up_to_the_order_of_queries() -> None:
    order = shuffled(TRAIN)
    whole = {**SMALL, "subsample": 1.0, "quantized": False}
    plain = LambdaMART(**whole).fit(TRAIN)
    mixed = LambdaMART(**whole).fit(TRAIN.X[order], TRAIN.label()[order], qid=TRAIN.query_of_row()[order])
    assert mixed.score(TEST) == pytest.approx(plain.score(TEST), abs=0.02)


# ---------------------------------------------------------------- features by name
def test_validation_features_are_found_by_name() -> None:
    frames = {name: frame_of(data) for name, data in SPLITS.items()}
    backwards = frames["vali"][list(frames["vali"].columns)[::-1]]
    expected = LambdaMART(**SMALL).fit(frames["train"], TRAIN.label(), valid=(frames["vali"], VALI.label()))
    found = LambdaMART(**SMALL).fit(frames["train"], TRAIN.label(), valid=(backwards, VALI.label()))
    assert found.record_.curves == expected.record_.curves
    assert found.record_.best == expected.record_.best
    renamed = backwards.rename(columns={"f3": "price"})
    with pytest.raises(TrainingError, match=r"valid does not fit the training data: .*'f3'"):
        LambdaMART(**SMALL).fit(frames["train"], TRAIN.label(), valid=(renamed, VALI.label()))


def test_names_and_numbers_of_features_are_remembered() -> None:
    model = RankSVM().fit(frame_of(TRAIN), TRAIN.label())
    assert list(model.feature_names_in_) == ["f1", "f2", "f3", "f4", "f5", "f6"]
    assert model.n_features_in_ == 6
    model.fit(TRAIN.X, TRAIN.label(), qid=TRAIN.query_of_row())
    assert not hasattr(model, "feature_names_in_")


# ---------------------------------------------------------------- validation data as peers take it
def test_eval_set_is_validation_data() -> None:
    expected = LambdaMART(**SMALL).fit(TRAIN, valid={"valid": VALI, "valid2": TEST})
    found = LambdaMART(**SMALL).fit(
        TRAIN.X, TRAIN.label(), qid=TRAIN.query_of_row(),
        eval_set=[(VALI.X, VALI.label()), (TEST.X, TEST.label())],
        eval_qid=[VALI.query_of_row(), TEST.query_of_row()],
    )  # fmt: skip
    assert found.record_.curves == expected.record_.curves
    assert LambdaMART(**SMALL).fit(TRAIN, eval_set=[VALI]).record_.best == expected.record_.best
    with pytest.raises(TrainingError, match="eval_qid has 1 lists of query ids for the 2 sets"):
        LambdaMART().fit(TRAIN, eval_set=[(VALI.X, VALI.label())] * 2, eval_qid=[VALI.query_of_row()])
    with pytest.raises(TrainingError, match="given twice"):
        LambdaMART().fit(TRAIN, valid=VALI, eval_set=[VALI])


def test_one_set_need_not_stand_in_a_list() -> None:
    features, labels, qid = VALI.X, VALI.label(), VALI.query_of_row()
    curves = []
    for arguments in (
        {"valid": VALI},
        {"eval_set": VALI},
        {"eval_set": [VALI]},
        {"eval_set": VALI.to_frame()},
        {"eval_set": [(features, labels)], "eval_qid": [qid]},
        {"eval_set": (features, labels), "eval_qid": qid},
        {"eval_set": (features.tolist(), labels), "eval_qid": [qid]},
        {"eval_set": (features, labels, qid)},
    ):
        learner = LambdaMART(n_estimators=3, random_state=1).fit(TRAIN, **arguments)
        curves.append(learner.record_.curves["valid"])
    assert all(curve == curves[0] for curve in curves)
    two = LambdaMART(n_estimators=3, random_state=1).fit(TRAIN, eval_set=(TRAIN, VALI))
    assert two.record_.curves["valid2"] == curves[0]
    with pytest.raises(TrainingError, match=r"eval_qid has .* for the 1 sets of eval_set: it is a list with one list"):
        LambdaMART().fit(TRAIN, eval_set=[(features, labels)], eval_qid=qid)
    with pytest.raises(TrainingError, match="valid is a list of 1 sets, expected one, or several by name"):
        LambdaMART().fit(TRAIN, valid=[VALI])


# ---------------------------------------------------------------- score
@pytest.mark.parametrize("objective", ["NDCG@10", "MAP", "Lambda(MRR)", "Regression"])
def test_score_does_not_depend_on_the_objective(objective: str) -> None:
    model = LambdaMART(objective, **SMALL).fit(TRAIN)
    assert model.score(TEST) == NDCG(10).mean(model.predict(TEST), TEST)
    assert model.set_params(measure="MAP").score(TEST) == MAP().mean(model.predict(TEST), TEST)


def test_scores_can_be_weighted() -> None:
    model = RankSVM().fit(TRAIN)
    values = NDCG(10).values(model.predict(TEST), TEST)
    weight = np.arange(TEST.n_queries, dtype=float)
    assert model.score(TEST, sample_weight=weight) == pytest.approx(np.average(values, weights=weight))


# ---------------------------------------------------------------- what must not pass in silence
def test_a_constant_model_is_told() -> None:
    data = make_splits(2, n_docs=13, n_features=3, random_state=1)["train"]
    assert data.n_docs == 26
    with pytest.warns(GradrankWarning, match=r"same score: no split leaves 20 documents on both sides of 26"):
        LambdaMART(n_estimators=5, min_child_samples=20).fit(data)
    scores = LambdaMART(n_estimators=20).fit(data).predict(data)  # the default follows the data's size
    assert len(np.unique(scores)) > 5
    assert NDCG(10).mean(scores, data) > 0.9


@pytest.mark.filterwarnings("always::gradrank.errors.NotConvergedWarning")
@pytest.mark.parametrize("learner", [LambdaMART(n_estimators=3), LambdaRank(epochs=3), RankBoost(n_estimators=2)])
def test_a_best_model_that_is_the_last_one_is_told(learner: RankingEstimator) -> None:
    with pytest.warns(NotConvergedWarning, match=rf"best model is the last of .* more {learner.unit}s"):
        learner.fit(TRAIN, valid=VALI)
    assert learner.record_.best == learner.record_.steps


def test_early_stopping_without_validation_data_is_told() -> None:
    with pytest.warns(GradrankWarning, match="early_stopping_rounds needs validation data"):
        MART(n_estimators=3, early_stopping_rounds=2).fit(TRAIN)


def _doubts(train: RankingData, valid: RankingData | None = None, objective: str = "NDCG@10") -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DoubtfulDataWarning)
        LambdaMART(objective, n_estimators=2).fit(train, valid=valid)
    return "\n".join(str(item.message) for item in caught if issubclass(item.category, DoubtfulDataWarning))


def test_doubtful_data_is_told_when_it_is_learned_from() -> None:
    assert _doubts(TRAIN, VALI) == ""
    percent = TRAIN.with_label("label", TRAIN.label() * 25)
    assert "goes up to 100" in _doubts(percent)
    assert _doubts(percent, objective="MAP") == ""  # no gain of 2^100
    assert "below 0" in _doubts(TRAIN.with_label("label", TRAIN.label() - 1))
    leaked = replace(TRAIN, X=np.column_stack([TRAIN.X[:, :5], TRAIN.label()]).astype(np.float32))
    assert "'f6'" in _doubts(leaked)
    assert "relevant" in _doubts(TRAIN, VALI.with_label("label", np.zeros(VALI.n_docs)))


# ---------------------------------------------------------------- bases
def test_a_base_may_be_a_ranker_a_file_or_a_feature(tmp_path: Path) -> None:
    first = MART(n_estimators=5).fit(TRAIN).ranker_
    path = tmp_path / "model.txt"
    first.save(path)
    expected = LambdaSMART(base=first, **SMALL).fit(TRAIN).predict(TEST)
    np.testing.assert_array_equal(LambdaSMART(base=str(path), **SMALL).fit(TRAIN).predict(TEST), expected)
    by_feature = LambdaSMART(base="f2", **SMALL).fit(TRAIN).predict(TEST)
    np.testing.assert_array_equal(LambdaSMART(base=FeatureRanker("f2"), **SMALL).fit(TRAIN).predict(TEST), by_feature)
    with pytest.raises(TrainingError, match=r"base is 'model\.text': there is no such model file, and the data has no"):
        LambdaSMART(base="model.text").fit(TRAIN)


# ---------------------------------------------------------------- importances and pickles
def test_importances_are_shares_and_find_the_feature_that_matters() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    data = RankingData.from_arrays(X, (X[:, 2] > 0).astype(int), qid=np.arange(600) // 10)
    for learner in (LambdaMART(**SMALL), McRank(n_estimators=5), RankSVM(), RankBoost(n_estimators=20)):
        shares = learner.fit(data).feature_importances_
        assert shares.shape == (4,)
        assert shares.sum() == pytest.approx(1.0)
        assert shares[2] > 0.8, type(learner).__name__
    net = LambdaRank(epochs=1).fit(data)
    assert not hasattr(net, "feature_importances_")


@pytest.mark.parametrize("learner", [LambdaMART(**SMALL), LambdaRank(epochs=2), RankSVM(), RankBoost(n_estimators=5)])
def test_fitted_learners_survive_pickle_and_joblib(learner: RankingEstimator, tmp_path: Path) -> None:
    expected = learner.fit(TRAIN, valid=VALI).predict(TEST)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(learner)).predict(TEST), expected)
    joblib.dump(learner, tmp_path / "learner")
    again = joblib.load(tmp_path / "learner")
    np.testing.assert_array_equal(again.predict(TEST), expected)
    assert again.record_.curves == learner.record_.curves


# ---------------------------------------------------------------- what people of other tools write
@pytest.mark.parametrize("kind", [LambdaMART, LambdaRank])
def test_a_measure_itself_is_an_objective_like_its_name(kind) -> None:
    steps = {kind.steps_parameter: 2}
    by_name = kind("MAP(rel=2)", **steps).fit(TRAIN)
    by_value = kind(MAP(rel=2), **steps).fit(TRAIN)
    assert np.array_equal(by_value.predict(TEST), by_name.predict(TEST))
    assert by_value.ranker_.training["objective"] == by_name.ranker_.training["objective"]
    # Steps of gradients want other λ's of a bare measure.
    assert kind is LambdaRank or kind(MAP(), step="gradient")._objective() == kind("MAP", step="gradient")._objective()


@pytest.mark.parametrize("wrong", [["NDCG@10"], {"objective": "lambdarank"}, NDCG, 10])
@pytest.mark.parametrize("kind", [LambdaMART, LambdaRank])
def test_no_objective_and_no_measure_is_one_sentence(kind, wrong) -> None:
    for given in ({"objective": wrong}, {"measure": wrong}):
        with pytest.raises(GradrankError, match="expected a measure"):
            kind(**given).fit(TRAIN)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("lambdarank", "NDCG@10"), ("rank:map", "MAP"), ("rank_xendcg", "XENDCG"), ("YetiRank", "NDCG@10"),
     ("rank:pairwise", "RankNet")],
)  # fmt: skip
def test_objectives_of_other_tools_are_told_what_comes_next(theirs, ours) -> None:
    with pytest.raises(GradrankError, match=f"{theirs}.*such as {ours}$"):
        LambdaMART(theirs).fit(TRAIN)
    LambdaMART(ours)._objective()  # is there


@pytest.mark.parametrize(
    ("word", "hint"),
    [("group", "qid="), ("eval_group", "eval_qid="), ("eval_at", "measure="), ("callbacks", r"LambdaMART\(callbacks="),
     ("early_stopping_rounds", r"LambdaMART\(early_stopping_rounds="), ("num_boost_round", r"\(n_estimators="),
     ("init_score", "base="), ("base_margin", "base="), ("xgb_model", "base="), ("feature_name", "frame"),
     ("group_id", "qid="), ("sampleweight", "did you mean 'sample_weight'")],
)  # fmt: skip
def test_arguments_of_other_tools_fit_are_told_where_they_belong(word, hint) -> None:
    with pytest.raises(TypeError, match=rf"LambdaMART.fit has no argument '{word}'.*{hint}"):
        LambdaMART().fit(TRAIN, **{word: [1]})
    with pytest.raises(TypeError, match=f"RankSVM.fit has no argument '{word}'"):
        RankSVM().fit(TRAIN, **{word: [1]})


def test_a_share_to_hold_out_that_is_not_held_out_is_said() -> None:
    learner = LambdaMART(n_estimators=3, validation_fraction=0.3)
    with pytest.warns(GradrankWarning, match="validation_fraction is not used, because n_estimators is given") as told:
        learner.fit(TRAIN)
    assert Path(told[0].filename) == Path(__file__)
    with pytest.warns(GradrankWarning, match="validation_fraction is not used, because there is validation data"):
        LambdaMART(n_estimators=3, validation_fraction=0.3).fit(TRAIN, valid=VALI)
    with warnings.catch_warnings():
        warnings.simplefilter("error", GradrankWarning)
        LambdaMART(n_estimators=3, validation_fraction=0).fit(TRAIN)
        LambdaMART(n_estimators=3).fit(TRAIN)


@pytest.mark.parametrize(
    "kind", [np.asarray, pd.DataFrame, pl.DataFrame, lambda X: pa.Table.from_pandas(pd.DataFrame(X))]
)
def test_score_without_query_ids_names_the_way_of_scikit_learn(kind) -> None:
    learner = LambdaMART(n_estimators=2).fit(TRAIN.X, TRAIN.label(), TRAIN.query_of_row())
    with pytest.raises(GradrankError, match=r"no query ids.*enable_metadata_routing=True"):
        learner.score(kind(TEST.X), TEST.label())
    with_ids = pd.DataFrame(TEST.X, columns=list(TRAIN.feature_names)).assign(Query_ID=TEST.query_of_row())
    expected = learner.score(TEST.X, TEST.label(), TEST.query_of_row())
    for frame in (with_ids, pl.from_pandas(with_ids), pa.Table.from_pandas(with_ids)):
        assert learner.score(frame, TEST.label()) == expected
