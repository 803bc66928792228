"""Tables drawn as lines."""

from __future__ import annotations

import pytest

from gradrank.evaluation.tables import Column, Table
from gradrank.report.lines import draw_tables


def curve(title: str) -> Table:
    columns = (Column("β", "number"), Column("MAP", "number"), Column("NDCG", "number"))
    return Table(columns, ((0.0, 0.1, 0.4), (0.5, 0.3, 0.5), (1.0, 0.2, 0.3)), title)


def test_panels_stand_in_rows_of_two_with_what_the_table_says() -> None:
    words = Table((Column("ranker"), Column("MAP", "number")), (("a", 0.1), ("b", 0.2)), "not drawn")
    figure = draw_tables((curve("one"), words, curve("two"), curve("three")))
    assert [axis.get_title() for axis in figure.axes] == ["one", "two", "three"]
    assert [axis.get_subplotspec().rowspan.start for axis in figure.axes] == [0, 0, 1]
    lines = figure.axes[0].get_lines()
    assert [line.get_label() for line in lines] == ["MAP", "NDCG"]
    assert lines[1].get_xydata().tolist() == [[0.0, 0.4], [0.5, 0.5], [1.0, 0.3]]


@pytest.mark.parametrize("panels", [1, 2, 6])
def test_legends_and_panels_do_not_cover_each_other(panels: int) -> None:
    figure = draw_tables(tuple(curve(str(number)) for number in range(panels)))
    figure.draw_without_rendering()
    inside = [axis.get_window_extent() for axis in figure.axes]
    for axis in figure.axes:
        legend = axis.get_legend().get_window_extent()
        assert legend.y0 >= 0
        assert not any(legend.overlaps(panel) for panel in inside)
