"""Learning curves and feature importances as the report shows them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradrank.models.display.curves import learning_curves
from gradrank.models.linear import LinearRanker
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.report.models import importance, model_facts, model_views


def ensemble(features: list[int], gains: list[float] | None, n_features: int, **training) -> TreeEnsemble:
    trees = [
        Tree.of(
            split_feature=[feature],
            threshold=[0.0],
            decision=[2],
            left=[-1],
            right=[-2],
            leaf_value=[0.0, 1.0],
            **({} if gains is None else {"split_gain": [gains[place]]}),
        )
        for place, feature in enumerate(features)
    ]
    return TreeEnsemble(trees, [f"f{i}" for i in range(n_features)], training=training)


def points(text: str) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in text.split()]


def test_curves_are_drawn_where_their_values_are() -> None:
    line = [0.2, 0.6, 0.5]
    model = ensemble([0], None, 1, curves={"valid": {"NDCG@10": line}}, best=2)
    (view,) = model_views({"m": model})
    (chart,) = view.charts
    drawn = points(chart.lines[0].points)
    assert [x for x, _ in drawn] == [0.0, 50.0, 100.0]
    low, high = 0.2 - 0.02, 0.6 + 0.02  # 5 % of room on either side
    assert [y for _, y in drawn] == pytest.approx([100 * (high - v) / (high - low) for v in line], abs=0.01)
    assert (chart.chosen.iteration, chart.chosen.at, chart.chosen.value) == (2, 50.0, 0.6)
    assert 100 - chart.chosen.height == pytest.approx(drawn[1][1], abs=0.01)


def test_models_share_the_axis_of_a_measure() -> None:
    low = ensemble([0], None, 1, curves={"valid": {"MAP": [0.1, 0.2]}})
    high = ensemble([0], None, 1, curves={"valid": {"MAP": [0.8, 0.9]}})
    first, second = model_views({"low": low, "high": high})
    assert first.charts[0].y_ticks == second.charts[0].y_ticks
    assert min(y for _, y in points(first.charts[0].lines[0].points)) > max(
        y for _, y in points(second.charts[0].lines[0].points)
    )


def test_validation_comes_before_training_data() -> None:
    curves = {"train": {"MAP": [0.5, 0.9]}, "valid": {"MAP": [0.4, 0.6]}}
    (view,) = model_views({"m": ensemble([0], None, 1, curves=curves, best=1)})
    assert [line.name for line in view.charts[0].lines] == ["valid", "train"]
    assert view.charts[0].chosen.value == 0.4


def test_long_curves_are_thinned_but_keep_their_ends() -> None:
    line = np.linspace(0, 1, 20_000).tolist()
    (view,) = model_views({"m": ensemble([0], None, 1, curves={"valid": {"MAP": line}})})
    drawn = points(view.charts[0].lines[0].points)
    assert len(drawn) <= 400
    assert (drawn[0][0], drawn[-1][0]) == (0.0, 100.0)


@pytest.mark.parametrize(
    "curves",
    [None, "lost", [], {"valid": None}, {"valid": {"MAP": None}}, {"valid": {"MAP": ["x"]}}, {"valid": {"MAP": []}}],
)
def test_damaged_curves_are_left_out(curves) -> None:
    assert learning_curves({"curves": curves}) == {}
    assert model_views({"m": ensemble([0], None, 1, curves=curves, best=1)})[0].charts == ()


def test_values_that_are_missing_leave_a_gap() -> None:
    curves = {"valid": {"MAP": [0.5, "nan", 0.7]}}  # as saved models have them
    (view,) = model_views({"m": ensemble([0], None, 1, curves=curves, best=2)})
    assert len(points(view.charts[0].lines[0].points)) == 2
    assert view.charts[0].chosen.value is None


@pytest.mark.parametrize("best", [None, 0, 4, "3", True, 2.0])
def test_a_best_iteration_that_is_none_is_not_marked(best) -> None:
    model = ensemble([0], None, 1, curves={"valid": {"MAP": [0.1, 0.2, 0.3]}}, best=best)
    assert model_views({"m": model})[0].charts[0].chosen is None


def test_importance_adds_up_gains() -> None:
    found = importance(ensemble([2, 0, 2], [3.0, 2.0, 5.0], 4))
    assert [(feature.name, feature.share, feature.width) for feature in found.top] == [
        ("f2", 0.8, 100.0),
        ("f0", 0.2, 25.0),
    ]
    assert (found.kind, found.used, found.features) == ("gain", 2, 4)
    assert found.rest == pytest.approx(0.0)


def test_two_hundred_features_show_twenty() -> None:
    found = importance(ensemble(list(range(200)), [float(i + 1) for i in range(200)], 200))
    assert [feature.name for feature in found.top] == [f"f{i}" for i in range(199, 179, -1)]
    assert found.rest == pytest.approx(sum(range(1, 181)) / sum(range(1, 201)))


def test_splits_count_where_gains_are_unknown() -> None:
    found = importance(ensemble([1, 1, 0, 1], None, 2))
    assert (found.kind, found.top[0].name, found.top[0].share) == ("split", "f1", 0.75)


def test_models_without_trees_have_no_importance() -> None:
    assert importance(LinearRanker([1.0], feature_names=["a"])) is None
    assert importance(TreeEnsemble([], ["a"])) is None


def test_facts_are_plain_text() -> None:
    training = {
        "objective": "NDCG@10",
        "rate": 0.1,
        "done": True,
        "curves": {},
        "x": None,
        "parameters": {"leaves": 15},
    }
    model = ensemble([0], None, 1, **training)
    assert model_facts(model) == [
        ("kind", "TreeEnsemble"),
        ("features", "1"),
        ("trees", "1"),
        ("leaves", "2"),
        ("objective", "NDCG@10"),
        ("rate", "0.1"),
        ("done", "yes"),
    ]
    assert model_views({"m": model})[0].groups == [("parameters", [("leaves", "15")])]
    assert math.isfinite(model.predict([[1.0]])[0])
