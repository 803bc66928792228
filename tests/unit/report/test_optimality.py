"""Pages and pictures of tests of local optimality."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.errors import DataError, MissingExtraError
from gradrank.measures import NDCG
from gradrank.models.linear import LinearRanker
from gradrank.optimality import climb, local_optimality
from gradrank.report.optimality import (
    check_plot_name,
    draw_optimality,
    render_optimality,
    shown_lines,
    weight_rows,
    write_optimality,
)

QUICK = {"epsilon": 0.05, "delta": 0.05}


@pytest.fixture(scope="module")
def data() -> RankingData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    names = ["<b>one</b>", "two", "three"]
    return RankingData.from_arrays(
        X, np.searchsorted([0, 2], X @ [1.0, 2.0, 3.0]), group=np.full(30, 10), feature_names=names
    )


@pytest.fixture(scope="module")
def start(data: RankingData) -> LinearRanker:
    return LinearRanker([1.0, -1.0, 0.5], feature_names=data.feature_names)


def test_the_best_direction_is_shown_first(data, start) -> None:
    result = local_optimality(start, data, NDCG(), **QUICK)
    lines = shown_lines(result)
    best = int(result.changes.mean.max(axis=1).argmax())
    assert lines[0].name == f"direction {best + 1}"
    assert len({line.name for line in lines}) == 4
    for line in lines:
        row = int(line.name.split()[1]) - 1
        np.testing.assert_array_equal(line.values, [result.value, *(result.value + result.changes.mean[row])])


def test_a_passed_test_shows_the_first_directions(data) -> None:
    top = LinearRanker([1.0, 2.0, 3.0], feature_names=data.feature_names)
    result = local_optimality(top, data, NDCG(), **QUICK)
    assert result.local_optimum is True
    assert [line.name for line in shown_lines(result)] == [f"direction {number}" for number in (1, 2, 3, 4)]


def test_weights_are_listed_by_their_best_change(data, start) -> None:
    result = local_optimality(start, data, NDCG(), **QUICK)
    rows = weight_rows(result)
    best = [max(row.up, row.down) for row in rows]
    assert best == sorted(best, reverse=True)
    two = next(row for row in rows if row.name == "two")
    assert (two.up, two.down) == tuple(result.weight_changes.mean[2:4].max(axis=1))


def test_the_picture_holds_the_curves(data, start) -> None:
    result = local_optimality(start, data, NDCG(), **QUICK)
    (axes,) = draw_optimality(result).axes
    for drawn, line in zip(axes.lines, shown_lines(result), strict=False):
        np.testing.assert_array_equal(drawn.get_xdata(), [0.0, *result.steps])
        np.testing.assert_array_equal(drawn.get_ydata(), line.values)
    (shade,) = axes.collections
    heights = shade.get_paths()[0].vertices[:, 1]
    highest, lowest = result.changes.mean.max(initial=0.0), result.changes.mean.min(initial=0.0)
    assert heights.max() == pytest.approx(result.value + highest)
    assert heights.min() == pytest.approx(result.value + lowest)


def test_a_page_of_a_climb_shows_its_way(data, start) -> None:
    found = climb(start, data, NDCG(), most_moves=3, **QUICK)
    page = render_optimality(found, title="<i>", facts={"model": "a&b"})
    assert "Climbing moved the weights 3 times" in page
    assert "<b>one</b>" not in page
    assert "&lt;b&gt;one&lt;/b&gt;" in page
    assert "<i>" not in page
    assert "a&amp;b" in page
    (way,) = re.findall(r'<polyline class="curve style0" points="([^"]*)"/></svg></div>\n<div class="xaxis">[^\n]*\n<div class="xname">moves', page)  # fmt: skip  # noqa: E501
    heights = [float(point.split(",")[1]) for point in way.split()]
    assert len(heights) == 4
    assert heights == sorted(heights, reverse=True)


def test_a_test_that_ended_before_the_weights_lists_none(data, start) -> None:
    def stop(_tried: object) -> None:
        raise KeyboardInterrupt

    result = local_optimality(start, data, NDCG(), callback=stop, **QUICK)
    assert result.directions == 16
    assert 'id="weights"' not in render_optimality(result)


def test_names_that_cannot_be_drawn(tmp_path, monkeypatch, data, start) -> None:
    with pytest.raises(DataError, match=r"the suffix '\.txt' is none of \.html, \.svg, \.png, \.pdf"):
        check_plot_name(tmp_path / "x.txt")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = local_optimality(start, data, NDCG(), **QUICK)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        write_optimality(tmp_path / "x.svg", result)
    assert not list(tmp_path.iterdir())
