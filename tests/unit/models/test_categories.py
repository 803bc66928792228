"""Categorical columns of frames: a loaded LightGBM model scores them as LightGBM itself does."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest

from gradrank.data.ranking_data import RankingData
from gradrank.errors import FeatureMismatch, ModelError
from gradrank.models.features import feature_matrix
from gradrank.models.registry import load_ranker
from gradrank.models.trees.ensemble import TreeEnsemble
from gradrank.models.trees.expected_grade import ExpectedGrade
from gradrank.models.trees.merge import merged
from gradrank.models.weighted_sum import WeightedSum

N = 300
SETTINGS = {"verbose": -1, "num_threads": 1, "min_data_per_group": 1, "min_data_in_leaf": 2, "cat_smooth": 0.1}


def frame(random_state: int, *, ordered: bool = False, cities=("Köln", "New York", "Ulm")) -> pd.DataFrame:
    rng = np.random.default_rng(random_state)
    columns = {
        "age": rng.normal(size=N),
        "city": pd.Categorical(rng.choice(cities, N)),
        "floor": pd.Categorical(rng.choice([10, 20, 30], N)),
        "open": pd.Categorical(rng.random(N) < 0.5),
    }
    if ordered:
        columns["size"] = pd.Categorical(rng.choice(["S", "M", "L"], N), categories=["S", "M", "L"], ordered=True)
    table = pd.DataFrame(columns)
    table.loc[rng.random(N) < 0.1, "city"] = None
    return table


def target(table: pd.DataFrame) -> np.ndarray:
    values = table["age"] + 2.0 * (table["city"] == "Ulm") + (table["floor"] == 20) - 3.0 * table["open"].astype(bool)
    return values.to_numpy(dtype=float) + (3.0 * (table["size"] == "M") if "size" in table else 0.0)


def trained(table: pd.DataFrame, **parameters) -> lightgbm.Booster:
    return lightgbm.train(SETTINGS | parameters, lightgbm.Dataset(table, target(table)), 12)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("way", ["booster", "text file", "our file"])
def test_frames_score_as_lightgbm_scores_them(tmp_path, way, ordered):
    booster = trained(frame(0, ordered=ordered))
    model = TreeEnsemble.from_lightgbm(booster)
    if way == "text file":
        booster.save_model(tmp_path / "model.txt")
        model = load_ranker(tmp_path / "model.txt")
    if way == "our file":
        model.save(tmp_path / "model.json")
        model = load_ranker(tmp_path / "model.json")
    assert set(model.used_features()) >= {"age", "city", "floor", "open"}
    for held in (frame(0, ordered=ordered), frame(1, ordered=ordered, cities=("Ulm", "Bonn"))):
        expected = booster.predict(held)
        assert model.predict(held).tobytes() == expected.tobytes()
        # By name: the order of the columns and what else is there do not matter.
        mixed = held.assign(other="x")[["other", *reversed(held.columns)]]
        assert model.predict(mixed).tobytes() == expected.tobytes()


def test_values_that_are_text_or_numbers_are_known_without_a_categorical_type():
    table = frame(0)
    booster = trained(table)
    model = TreeEnsemble.from_lightgbm(booster)
    expected = booster.predict(table)
    plain = pd.DataFrame({
        "age": table["age"], "city": table["city"].astype(object), "floor": table["floor"].astype(int),
        "open": table["open"].astype(bool),
    })  # fmt: skip
    assert model.predict(plain).tolist() == expected.tolist()
    cities = [None if pd.isna(city) else city for city in table["city"]]
    for kind in (pl.Utf8, pl.Categorical):
        other = pl.DataFrame(
            {
                "age": table["age"].to_numpy(),
                "city": pl.Series(cities, dtype=kind),
                "floor": table["floor"].tolist(),
                "open": table["open"].tolist(),
            }
        )
        assert model.predict(other).tolist() == expected.tolist()
    with pytest.raises(ModelError, match="column 'city' holds numbers, the model knows its values as 'Köln'"):
        model.predict(plain.assign(city=1.0))


def test_a_model_that_does_not_tell_its_categorical_columns_needs_as_many():
    model = TreeEnsemble.from_lightgbm(trained(frame(0, ordered=True)))
    held = frame(1, ordered=True)
    held["city"] = held["city"].astype(object)
    with pytest.raises(ModelError, match="X has 3 categorical columns, the model was trained with 4"):
        model.predict(held)


def test_arrays_and_ranking_data_hold_codes():
    table = frame(0)[["age", "city"]]
    booster = lightgbm.train(SETTINGS, lightgbm.Dataset(table, target(frame(0))), 12)
    model = TreeEnsemble.from_lightgbm(booster)
    codes = np.column_stack([table["age"], table["city"].cat.codes.replace(-1, np.nan)])
    assert model.predict(codes).tolist() == booster.predict(table).tolist()
    data = RankingData.from_arrays(codes, qid=np.zeros(N), feature_names=["age", "city"])
    assert model.predict(data).tolist() == model.predict(data.X).tolist()


def test_ranking_data_whose_numbers_may_be_values_or_codes_is_refused():
    model = TreeEnsemble.from_lightgbm(trained(frame(0)))
    data = RankingData.from_arrays(np.zeros((2, 4)), qid=[1, 1], feature_names=["age", "city", "floor", "open"])
    for ranker in (model, WeightedSum([(1.0, model)])):
        with pytest.raises(ModelError, match="feature 'floor' has the categories 10, 20, 30"):
            ranker.predict(data)


def test_our_text_gives_lightgbm_the_categories_back():
    table, held = frame(0), frame(1, cities=("Ulm", "Bonn"))
    booster = trained(table)
    text = TreeEnsemble.from_lightgbm(booster).to_lightgbm_text()
    again = lightgbm.Booster(model_str=text)
    assert again.pandas_categorical == booster.pandas_categorical
    assert again.predict(held).tobytes() == booster.predict(held).tobytes()
    assert TreeEnsemble.from_lightgbm(text).categories == TreeEnsemble.from_lightgbm(booster).categories


def test_sums_and_cut_models_keep_the_categories():
    one, two = trained(frame(0)), trained(frame(5, cities=("Bonn", "Ulm", "Aachen")))
    held = frame(1, cities=("Ulm", "Bonn"))
    both = WeightedSum([(1.0, TreeEnsemble.from_lightgbm(one)), (0.5, TreeEnsemble.from_lightgbm(two))])
    expected = one.predict(held) + 0.5 * two.predict(held)
    assert both.predict(held).tolist() == expected.tolist()
    assert merged(both).predict(held).tolist() == expected.tolist()
    cut = TreeEnsemble.from_lightgbm(one).truncate(3)
    assert cut.predict(held).tolist() == one.predict(held, num_iteration=3).tolist()


def test_several_classes_over_categorical_columns():
    table = frame(0)
    grades = np.clip(np.round(target(table)), 0, 2)
    booster = lightgbm.train(SETTINGS | {"objective": "multiclass", "num_class": 3}, lightgbm.Dataset(table, grades), 5)
    held = frame(1, cities=("Ulm", "Bonn"))
    assert np.allclose(ExpectedGrade.from_lightgbm(booster).probabilities(held), booster.predict(held), rtol=1e-12)


def test_damaged_categories_are_refused():
    text = trained(frame(0)).model_to_string()
    line = next(line for line in text.splitlines() if line.startswith("pandas_categorical:"))
    for damaged in ("pandas_categorical:[[1,", "pandas_categorical:[3]"):
        with pytest.raises(ModelError, match="damaged categories"):
            TreeEnsemble.from_lightgbm(text.replace(line, damaged))
    assert json.loads(line.partition(":")[2])[1] == [10, 20, 30]


def test_names_with_spaces_are_found_under_lightgbms_spelling():
    X = np.random.default_rng(0).normal(size=(100, 2))
    table = pd.DataFrame(X, columns=["body length", "title"])
    booster = lightgbm.train(SETTINGS, lightgbm.Dataset(table, X[:, 0]), 3)
    model = TreeEnsemble.from_lightgbm(booster)
    assert model.feature_names == ("body_length", "title")
    assert model.predict(table[["title", "body length"]]).tolist() == booster.predict(table).tolist()
    data = RankingData.from_arrays(X[:, ::-1], qid=[1] * 100, feature_names=["title", "body length"])
    assert model.predict(data).tolist() == model.predict(data.X[:, ::-1]).tolist()


def test_a_mismatch_tells_its_facts():
    with pytest.raises(FeatureMismatch) as found:
        feature_matrix(pd.DataFrame({"a": [1.0]}), ["a", "b", "c"])
    assert found.value.missing == ("b", "c")
    assert found.value.said_of("the base ranker") == "lacks the base ranker's features 'b', 'c'"
    many = FeatureMismatch(missing=[f"x{i}" for i in range(7)])
    assert str(many) == "X lacks the model's features 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more"
