"""Thresholds in single precision send no document another way, and what a format cannot hold is named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.errors import GradrankWarning, ModelError
from gradrank.models.exchange.numbering import renumber
from gradrank.models.exchange.plan import LinearPart, Losses, SumPart, parts_of
from gradrank.models.exchange.solr import SLACK, compensated
from gradrank.models.exchange.splits import just_above, largest_at_most, round_down
from gradrank.models.exchange.xgboost_model import largest_below
from gradrank.models.linear import LinearRanker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.models.weighted_sum import WeightedSum
from tests.support.consumers import CONSUMERS
from tests.support.export_matrix import NAMES, booster_trees, kinds

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(FLOATS, SINGLES)
def test_every_single_goes_the_same_way(threshold: float, x: float) -> None:
    bound = round_down(np.array([threshold]))
    single = np.float32(x)
    assert (single <= bound[0]) == (np.float64(single) <= threshold)
    assert (single < just_above(bound)[0]) == (np.float64(single) <= threshold)


@given(SINGLES, FLOATS)
def test_doubles_go_where_their_rounded_values_go(bound: float, x: float) -> None:
    limit = np.array([bound], dtype=np.float32)
    with np.errstate(over="ignore"):
        single = np.float32(x)
    assert (x <= largest_at_most(limit)[0]) == (single <= limit[0])
    assert (x <= largest_below(limit)[0]) == (single < limit[0])


@given(SINGLES)
def test_both_ways_give_the_bound_back(bound: float) -> None:
    limit = np.array([bound], dtype=np.float32)
    assert round_down(largest_at_most(limit))[0] == limit[0]


@given(st.floats(width=32, min_value=0.015625, max_value=1e6), st.booleans())
def test_solrs_slack_is_taken_off_exactly_away_from_zero(size: float, negative: bool) -> None:
    bound = np.array([-size if negative else size], dtype=np.float32)
    written, reached = compensated(bound)
    assert written.dtype == np.float32
    assert (written + SLACK)[0] == reached[0] == bound[0]


@given(SINGLES)
def test_solrs_nearest_threshold_is_the_nearest(bound: float) -> None:
    limit = np.array([bound], dtype=np.float32)
    with np.errstate(over="ignore"):
        written, reached = compensated(limit)
        assert (written + SLACK)[0] == reached[0]
        away = abs(float(reached[0]) - float(limit[0]))
        for step in (-np.inf, np.inf):
            other = np.nextafter(written, np.float32(step)) + SLACK
            assert abs(float(other[0]) - float(limit[0])) >= away


# ---------------------------------------------------------------------- the boundary, with those who read the files
def stump(threshold: float, feature: int = 0, **more: bool) -> Tree:
    return Tree.numerical(
        split_feature=[feature], threshold=[threshold], left=[-1], right=[-2], leaf_value=[1.0, 2.0], **more
    )


@pytest.mark.parametrize("form", ["xgboost", "ltr-plugin", "ranklib", "solr", "solr-9.2", "onnx"])
@pytest.mark.parametrize("threshold", [0.1, 0.25, -3.7, 1 / 3, 1e9 + 0.3])
def test_the_neighbors_of_a_threshold(form: str, threshold: float, tmp_path: Path) -> None:
    ranker = TreeEnsemble([stump(threshold, default_left=threshold >= 0)], ["a"])
    path = tmp_path / ("m.onnx" if form == "onnx" else "m.json")
    ranker.export(path, form)
    at = np.float32(threshold)
    steps = [np.nextafter(at, np.float32(-np.inf)), at, np.nextafter(at, np.float32(np.inf))]
    X = np.array([*steps, 0.0, -0.0, np.nan], dtype=np.float32).reshape(-1, 1)
    np.testing.assert_array_equal(CONSUMERS[form].score(path, X, ["a"]), ranker.predict(X))
    assert ranker.predict(X[:3]).tolist() in ([1.0, 1.0, 2.0], [1.0, 2.0, 2.0])


@pytest.mark.parametrize("form", ["xgboost", "xgboost-ubj", "ltr-plugin", "ranklib", "solr", "onnx"])
def test_float64_features_are_told_by_feature_and_tree(form: str, tmp_path: Path) -> None:
    time = 1.6e9
    ranker = TreeEnsemble([stump(time, 1), stump(time + 1.0, 1)], ["bm25", "time"])
    path = tmp_path / "model"
    with pytest.raises(ModelError) as caught:
        ranker.export(path, form)
    assert "feature 'time' is split at 1600000000.0 (tree 0) and at 1600000001.0 (tree 1)" in str(caught.value)
    assert not list(tmp_path.iterdir())
    with pytest.warns(GradrankWarning, match="'time' is compared in single precision"):
        ranker.export(path, form, approximate=True)
    assert path.exists()


@pytest.mark.parametrize("form", ["ranklib", "solr"])
def test_missing_values_are_told_by_feature_and_tree(form: str, tmp_path: Path) -> None:
    ranker = TreeEnsemble([stump(0.5), stump(0.25, 1, default_left=False)], ["a", "b"])
    with pytest.raises(ModelError, match=f"tree 1 sends a missing 'b' right, {form} reads it as 0 and sends it left"):
        ranker.export(tmp_path / "model", form)
    with pytest.warns(GradrankWarning, match="missing values count as 0"):
        ranker.export(tmp_path / "model", form, approximate=True)
    X = np.array([[np.nan, np.nan], [0.0, 0.0], [1.0, 1.0]], dtype=np.float32)
    scores = CONSUMERS[form].score(tmp_path / "model", X, ["a", "b"])
    assert scores.tolist() == [2.0, 2.0, 4.0]
    assert ranker.predict(X).tolist() == [3.0, 2.0, 4.0]


def test_solr_is_told_where_missing_values_go(tmp_path: Path) -> None:
    ranker = TreeEnsemble([stump(0.5), stump(0.25, 1, default_left=False)], ["a", "b"])
    ranker.export(tmp_path / "m.json", "solr-9.2", name="two stumps")
    model = json.loads((tmp_path / "m.json").read_text())
    assert model["params"]["isNullSameAsZero"] == "false"
    assert [tree["root"]["missing"] for tree in model["params"]["trees"]] == ["left", "right"]
    store = json.loads((tmp_path / "m.features.json").read_text())
    assert [item["params"]["defaultValue"] for item in store] == ["NaN", "NaN"]
    X = np.array([[np.nan, np.nan], [0.0, 0.0], [1.0, 1.0], [np.nan, 0.0], [1.0, np.nan]], dtype=np.float32)
    scores = CONSUMERS["solr-9.2"].score(tmp_path / "m.json", X, ["a", "b"])
    assert scores.tolist() == ranker.predict(X).tolist() == [3.0, 2.0, 4.0, 2.0, 4.0]


def test_the_zero_of_lightgbm_is_told_for_solr(tmp_path: Path) -> None:
    zero = float(np.float32(1e-35))
    ranker = TreeEnsemble([stump(zero)], ["clicks"])
    with pytest.raises(ModelError, match=r"tree 0 splits 'clicks' at 1\.0000000180025095e-35, and solr adds 1e-6"):
        ranker.export(tmp_path / "m.json", "solr")
    with pytest.warns(GradrankWarning, match=r"values above 0\.0 up to 1\.0000000180025095e-35 go the other way"):
        ranker.export(tmp_path / "m.json", "solr", approximate=True)
    X = np.array([[0.0], [-1.0], [1e-34], [1.0]], dtype=np.float32)
    assert CONSUMERS["solr"].score(tmp_path / "m.json", X, ["clicks"]).tolist() == ranker.predict(X).tolist()


def test_categories_and_zeros_that_are_missing_are_told(tmp_path: Path) -> None:
    for form in ("vespa", "xgboost", "ltr-plugin", "elastic", "ranklib", "solr", "onnx", "onnx-double"):
        for approximate in (False, True):
            with pytest.raises(ModelError, match=r"tree \d+ splits 'category' by categories"):
                kinds()["trees, categories"].export(tmp_path / "m", form, approximate=approximate)
    with pytest.raises(ModelError, match=r"tree \d+ sends a '\w+' of 0 (left|right) as missing, not by its threshold"):
        kinds()["trees, 0 is missing"].export(tmp_path / "m", "elastic")


def test_several_numberings_of_categories_are_no_one_model() -> None:
    part = kinds()["trees, categories"]
    both = WeightedSum([(1.0, part), (0.5, booster_trees())], feature_names=NAMES)
    assert len(list(parts_of(both._part(np.arange(6))))) == 2


def test_values_beyond_single_precision_are_refused(tmp_path: Path) -> None:
    huge = Tree.of(leaf_value=[1e300])
    for form in ("xgboost", "ranklib", "solr", "onnx"):
        with pytest.raises(ModelError, match="tree 0 has a value beyond it"):
            TreeEnsemble([huge], ["a"]).export(tmp_path / "m", form)


def test_a_split_of_what_is_there_from_what_is_missing(tmp_path: Path) -> None:
    ranker = TreeEnsemble([stump(np.finfo(np.float64).max, default_left=False)], ["a"])
    X = np.array([[np.nan], [0.0], [1e38], [-1e38]], dtype=np.float32)
    for form in ("xgboost", "xgboost-ubj", "ltr-plugin", "onnx", "elastic", "vespa", "c", "python", "lightgbm"):
        path = tmp_path / f"m.{'ubj' if form == 'xgboost-ubj' else 'json' if form != 'c' else 'c'}"
        ranker.export(path, form)
        assert CONSUMERS[form].score(path, X, ["a"]).tolist() == [2.0, 1.0, 1.0, 1.0], form


def test_deep_trees_are_written_and_read(tmp_path: Path) -> None:
    depth = 3000
    chain = Tree.numerical(
        split_feature=[0] * depth,
        threshold=np.arange(depth) + 0.5,
        left=[~k for k in range(depth)],
        right=[*range(1, depth), ~depth],
        leaf_value=np.arange(depth + 1.0),
    )
    ranker = TreeEnsemble([chain], ["a"])
    X = np.array([[0.0], [2999.0], [1234.0], [5000.0]], dtype=np.float32)
    for form in ("ranklib", "onnx", "xgboost", "elastic", "c"):
        path = tmp_path / f"m.{'c' if form == 'c' else 'json'}"
        ranker.export(path, form)
        if form == "ranklib":
            from gradrank.models.registry import load_ranker

            assert load_ranker(path).predict(X).tolist() == [0.0, 2999.0, 1234.0, 3000.0]
        else:
            assert CONSUMERS[form].score(path, X, ["a"]).tolist() == [0.0, 2999.0, 1234.0, 3000.0]
    ranker.export(tmp_path / "dump.json", "ltr-plugin")
    assert (tmp_path / "dump.json").read_text().count('"children"') == depth


# ---------------------------------------------------------------------- lines
def test_sums_of_lines_are_one_line_for_solr(tmp_path: Path) -> None:
    first = LinearRanker([1.0, 2.0], 0.5, feature_names=["a", "b"])
    both = WeightedSum([(2.0, first), (1.0, LinearRanker([3.0], feature_names=["b"]))])
    notes = both.export(tmp_path / "m.json", "solr", name="both of them")
    assert any("the constant 1.0 is left out" in note for note in notes)
    model = json.loads((tmp_path / "m.json").read_text())
    assert model["params"]["weights"] == {"a": 2.0, "b": 7.0}
    assert model["name"].startswith("both_of_them-")


def test_a_line_with_means_names_the_feature(tmp_path: Path) -> None:
    line = LinearRanker([1.0, 2.0], mean=[0.0, 3.0], scale=[1.0, 2.0], feature_names=["a", "b"])
    with pytest.raises(ModelError, match=r"a missing 'b' adds 3\.0 to the score, solr reads it as 0 and adds 0"):
        line.export(tmp_path / "m.json", "solr")


def test_losses_count_what_is_alike() -> None:
    losses = Losses("solr")
    for number in range(3):
        losses.lose("missing", f"tree {number} is strange", "it is done anyway")
    with pytest.raises(ModelError, match=r"tree 0 is strange \(and 2 more such\); with --approximate it is done"):
        losses.settle(approximate=False)
    assert losses.settle(approximate=True) == ["solr: tree 0 is strange (and 2 more such); it is done anyway"]


def test_parts_of_sums_inside_sums_multiply_weights() -> None:
    line = LinearPart(np.arange(1), np.ones(1), 0.0, np.zeros(1), np.ones(1))
    nested = SumPart(((2.0, SumPart(((3.0, line), (0.5, line)))), (1.0, line)))
    assert [weight for weight, _ in parts_of(nested)] == [6.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("left", "right"), [([1, 0], [1, 0]), ([1, -1, -1], [1, -1, -1]), ([5, -1], [1, -1]), ([-7, -1], [1, -1])]
)
def test_children_that_form_no_tree_are_refused(left: list[int], right: list[int]) -> None:
    is_leaf = [child == -1 for child in left]
    with pytest.raises(ModelError, match="do not form a tree"):
        renumber(left, right, is_leaf, "an XGBoost")
