"""Features found by name or place, and the simple rankers by their formulas."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

from gradrank.data.frames import from_frame
from gradrank.data.ranking_data import RankingData
from gradrank.errors import GradrankWarning, ModelError, ScoreError
from gradrank.models.exchange.ubjson import parse_ubjson
from gradrank.models.feature import FeatureRanker
from gradrank.models.linear import LinearRanker
from gradrank.models.ranker import Ranker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.trees.expected_grade import ExpectedGrade
from gradrank.models.weighted_sum import WeightedSum

AB = LinearRanker([1.0, 10.0], feature_names=["a", "b"])


# ---------------------------------------------------------------------- features
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16, bool])
def test_arrays_are_taken_by_place(dtype):
    assert AB.predict(np.array([[1, 0], [1, 1]], dtype=dtype)).tolist() == [1.0, 11.0]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3)), "X has 3 features, the model expects 2"),
        (np.zeros(2), "X has 1 dimensions, expected 2"),
        ([["x", "y"]], "X holds values of type <U1, expected numbers"),
        (csr_matrix(np.zeros((2, 2))), "sparse"),
        (np.zeros((2, 2), dtype="M8[s]"), "X holds values of type datetime64"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(X, message):
    with pytest.raises(ModelError, match=message):
        AB.predict(X)


def test_what_is_masked_is_missing() -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    masked = np.ma.masked_array(values, mask=np.eye(2))
    assert np.array_equal(AB.predict(masked), AB.predict(np.where(np.eye(2), np.nan, values)), equal_nan=True)
    assert not np.array_equal(AB.predict(masked), AB.predict(values))


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "arrow": pa.table,
    "batch": lambda columns: pa.RecordBatch.from_pydict(columns),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_are_taken_by_name(frame):
    columns = {"b": [1.0, 2.0], "other": ["x", "y"], "a": [3, 4]}
    total = WeightedSum([(2.0, AB), (1.0, FeatureRanker("a"))])
    for ranker, expected in ((AB, [13.0, 24.0]), (total, [29.0, 52.0])):
        assert ranker.predict(frame(columns)).tolist() == expected
        # As many columns as the ranker has features are no reason to take them by place.
        assert ranker.predict(frame({name: columns[name] for name in ("b", "a")})).tolist() == expected
    with pytest.raises(ModelError, match="X lacks the model's feature 'b'"):
        AB.predict(frame({"a": [3, 4]}))
    with pytest.raises(ModelError, match="X lacks the model's features 'a', 'b'"):
        AB.predict(frame({"other": ["x", "y"]}))


@pytest.mark.parametrize("frame", [lambda columns: pd.DataFrame(columns, dtype=object), pl.DataFrame, pa.table])
def test_numbers_of_odd_types_are_read_as_training_reads_them(frame):
    columns = {"b": [Decimal("1.5"), Decimal("2.5")], "a": [True, None]}
    assert AB.predict(frame(columns))[0] == 16.0
    data = from_frame(frame({"qid": [1, 1], **columns}))
    assert np.array_equal(AB.predict(data), AB.predict(frame(columns)), equal_nan=True)


def test_a_categorical_column_of_numbers_stands_for_them():
    frame = pd.DataFrame({"a": pd.Categorical([30, 10]), "b": [1.0, 2.0]})
    assert AB.predict(frame).tolist() == [40.0, 30.0]


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_dates_and_text_are_no_numbers(frame):
    for column in ([date(2026, 1, 1), date(2026, 1, 2)], ["1", "2"]):
        with pytest.raises(ModelError, match="column 'a' is not numeric"):
            AB.predict(frame({"a": column, "b": [1.0, 2.0]}))


def test_a_column_that_comes_twice_is_named():
    with pytest.raises(ModelError, match="column 'b' comes twice"):
        AB.predict(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "b"]))


def test_frames_missing_values_and_types():
    nullable = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [1.0, 1.0]})
    assert AB.predict(nullable).tolist() == [11.0, 10.0]
    assert AB.predict(pl.DataFrame({"a": [1, None], "b": [1.0, 1.0]})).tolist() == [11.0, 10.0]
    with pytest.raises(ModelError, match="'b' is not numeric"):
        AB.predict(pd.DataFrame({"a": [1.0], "b": ["x"]}))
    with pytest.raises(ModelError, match="expected numbers"):
        AB.predict(pl.DataFrame({"a": [1.0], "b": ["x"]}))


def data_named(names: list[str] | None, n_features: int = 2) -> RankingData:
    X = np.arange(1.0, 1.0 + 2 * n_features).reshape(2, n_features)
    return RankingData.from_arrays(X, qid=[1, 1], feature_names=names)


def test_ranking_data_is_taken_by_name_or_if_unnamed_by_place():
    assert AB.predict(data_named(["a", "b"])).tolist() == [21.0, 43.0]
    assert AB.predict(data_named(["b", "a"])).tolist() == [12.0, 34.0]
    assert AB.predict(data_named(["b", "z", "a"], 3)).tolist() == [13.0, 46.0]
    with pytest.warns(GradrankWarning, match="have no names.* in their order, 'a', 'b'$"):
        assert AB.predict(data_named(None)).tolist() == [21.0, 43.0]
    # Nothing to say where the model has no names, which a warning here would be an error of.
    assert LinearRanker([1.0, 10.0]).predict(data_named(["p", "q"])).tolist() == [21.0, 43.0]
    with pytest.raises(ModelError, match="lacks the model's feature 'b'"):
        AB.predict(data_named(["a", "z"]))
    with pytest.raises(ModelError, match="X has 3 features, the model expects 4"):
        LinearRanker([1.0, 1.0, 1.0, 1.0]).predict(data_named(None, 3))


def test_feature_names_are_unique():
    with pytest.raises(ModelError, match="'a' is given twice"):
        LinearRanker([1.0, 2.0, 3.0], feature_names=["a", "b", "a"])


# ---------------------------------------------------------------------- rankers
def test_linear_is_its_formula_and_missing_counts_as_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 7)).astype(np.float32)
    weights, mean, scale = rng.normal(size=7), rng.normal(size=7), rng.random(7) + 0.5
    ranker = LinearRanker(weights, 0.25, mean=mean, scale=scale)
    expected = 0.25 + ((X.astype(np.float64) - mean) / scale) @ weights
    assert np.allclose(ranker.predict(X), expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(ranker.predict(X, n_jobs=1), ranker.predict(X[::-1], n_jobs=2)[::-1])
    assert ranker.predict(np.full((1, 7), np.nan)).tolist() == [0.25]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [1.0, np.nan]}, "weights of feature 2 is not a finite number"),
        ({"weights": [[1.0]]}, "weights has shape"),
        ({"weights": [1.0], "bias": np.inf}, "bias is inf"),
        ({"weights": [1.0], "scale": [0.0]}, "scale of feature 1 is not above 0"),
        ({"weights": [1.0], "mean": [0.0, 1.0]}, "mean has shape"),
        ({"weights": [1.0], "feature_names": ["a", "b"]}, "1 weights for 2 features"),
    ],
)
def test_linear_refuses_what_is_no_linear_ranker(arguments, message):
    with pytest.raises(ModelError, match=message):
        LinearRanker(**arguments)


def test_feature_ranker():
    table = np.array([[1.0, 2.0], [3.0, np.nan]])
    assert FeatureRanker("b", feature_names=["a", "b"], missing=-5.0).predict(table).tolist() == [2.0, -5.0]
    assert FeatureRanker("a", -1, feature_names=["a", "b"]).predict(table).tolist() == [-1.0, -3.0]
    with pytest.raises(ModelError, match="no feature 'c'"):
        FeatureRanker("c", feature_names=["a", "b"])
    with pytest.raises(ModelError, match="sign is 0"):
        FeatureRanker("a", 0)


def test_base_and_trees_with_other_features_are_summed_by_name():
    stump = Tree.numerical(split_feature=[1], threshold=[0.5], left=[-1], right=[-2], leaf_value=[0.25, 0.75])
    trees = TreeEnsemble([stump], ["c", "b"])
    both = WeightedSum([(1.0, AB), (2.0, trees)])
    assert both.feature_names == ("a", "b", "c")
    # a + 10 b + 2 · (0.25 if b <= 0.5 else 0.75)
    assert both.predict([[1.0, 0.5, 9.0], [1.0, 1.0, 9.0]]).tolist() == [6.5, 12.5]
    wider = WeightedSum([(1.0, AB)], feature_names=["b", "x", "a"])
    assert wider.predict([[2.0, 100.0, 1.0]]).tolist() == [21.0]
    assert WeightedSum([(0.5, both), (0.5, both)]).predict([[1.0, 1.0, 9.0]]).tolist() == [12.5]


def test_weighted_sums_that_cannot_be():
    with pytest.raises(ModelError, match="at least one"):
        WeightedSum([])
    with pytest.raises(ModelError, match="uses feature 'b'"):
        WeightedSum([(1.0, AB)], feature_names=["a"])
    with pytest.raises(ModelError, match="not a finite number"):
        WeightedSum([(np.nan, AB)])


def test_expected_grade_is_lightgbms_probabilities_times_grades():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = np.clip(np.round(X[:, 0] + 1.5), 0, 3)
    quiet = {"objective": "multiclass", "num_class": 4, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(quiet, lightgbm.Dataset(X, y), 6)
    ranker = ExpectedGrade.from_lightgbm(booster, [0, 1, 3, 7])
    assert np.allclose(ranker.probabilities(X), booster.predict(X), rtol=1e-12)
    assert np.allclose(ranker.predict(X), booster.predict(X) @ [0, 1, 3, 7], rtol=1e-12)
    assert np.allclose(ranker.truncate(2).probabilities(X), booster.predict(X, num_iteration=2), rtol=1e-12)
    assert ExpectedGrade.from_lightgbm(booster).grades.tolist() == [0, 1, 2, 3]


def test_expected_grades_that_cannot_be():
    one = TreeEnsemble([Tree.of(leaf_value=[1000.0])], ["a"])
    assert ExpectedGrade([one, one], [1, 2]).predict([[0.0]]).tolist() == [1.5]  # no overflow
    with pytest.raises(ModelError, match="at least one class"):
        ExpectedGrade([])
    with pytest.raises(ModelError, match="expected one number for each of 1 classes"):
        ExpectedGrade([one], [1, 2])
    with pytest.raises(ModelError, match="different features"):
        ExpectedGrade([one, TreeEnsemble([], ["b"])])


# ---------------------------------------------------------------------- UBJSON
@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"[]", []),
        (b"[#i\x02i\x05T", [5, True]),
        (b"[i\x05I\x01\x00l\x00\x00\x00\x07L\x00\x00\x00\x00\x00\x00\x00\x08]", [5, 256, 7, 8]),
        (b"[d\x3f\x80\x00\x00D\x3f\xe0\x00\x00\x00\x00\x00\x00U\xffZF]", [1.0, 0.5, 255, None, False]),
        (b"[CaHi\x031.5]", ["a", 1.5]),
        (b"{#i\x01i\x01kSi\x02\xc3\xa9", {"k": "é"}),
        (b"{$i#i\x01i\x01k\x03", {"k": 3}),
        (b"[$S#i\x02i\x01ai\x01b", ["a", "b"]),
    ],
)
def test_ubjson_values(content, value):
    assert parse_ubjson(content) == value


@pytest.mark.parametrize("content", [b"", b"[", b"{i\x05ab", b"[$U#i\x05ab", b"?", b"[$U", b"[" * 5000, b"[$U#i\xff"])
def test_damaged_ubjson_is_refused(content):
    with pytest.raises(ModelError, match="UBJSON"):
        parse_ubjson(content)


def test_a_full_disk_is_one_clear_error(tmp_path, monkeypatch):
    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    (tmp_path / "model.json").write_text("old")
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(ModelError, match=r"model\.json: cannot be written: No space left on device"):
        LinearRanker([1.0], feature_names=["f1"]).save(tmp_path / "model.json")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]


@pytest.mark.parametrize(
    ("ranker", "X", "shown"),
    [
        (
            FeatureRanker("a", feature_names=["a", "b"]),
            [[1, 2], [3, 4], [-np.inf, 0]],
            "document 3 gets the score -inf",
        ),
        (LinearRanker([1e300, 1.0], feature_names=["a", "b"]), [[1e300, 0.0]], "document 1 gets the score inf"),
        (
            LinearRanker([1.0, -1.0], feature_names=["a", "b"]),
            [[0, 0], [np.inf, np.inf]],
            "document 2 gets the score nan",
        ),
        (
            WeightedSum([(1.0, FeatureRanker("a")), (-1e10, FeatureRanker("b"))]),
            [[1e300, 1e300]],
            "document 1 gets the score -inf",
        ),
        (TreeEnsemble([Tree.of(leaf_value=[1.5e308])] * 2, ["a", "b"]), [[0, 0]], "document 1 gets the score inf"),
        (
            ExpectedGrade([TreeEnsemble([Tree.of(leaf_value=[1.5e308])] * k, ["a", "b"]) for k in (1, 2)]),
            [[0, 0]],
            "document 1 gets the score inf",
        ),
    ],
)
def test_a_score_that_is_no_finite_number_is_an_error(ranker: Ranker, X: list[list[float]], shown: str) -> None:
    with pytest.raises(ScoreError, match=shown):
        ranker.predict(np.array(X, dtype=np.float64))
    with pytest.raises(ScoreError, match=shown):
        ranker.predict(pd.DataFrame(X, columns=["a", "b"], dtype=np.float64))
