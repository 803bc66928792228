"""A table as lines: its first column from left to right, the others as heights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradrank.evaluation.tables import Table
from gradrank.report.figures import line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def can_be_drawn(table: Table) -> bool:
    """Whether a table is a set of lines: only numbers, over two or more places of the first column.

    >>> from gradrank.evaluation.tables import Column
    >>> can_be_drawn(Table((Column("β", "number"), Column("MAP", "number")), ((0.0, 0.1), (1.0, 0.2))))
    True
    """
    return (
        len(table.columns) > 1
        and len(table.rows) > 1
        and all(column.kind in ("number", "count") for column in table.columns)
    )


def draw_tables(tables: tuple[Table, ...]) -> Figure:
    """One panel for each table that can be drawn."""
    drawn = [table for table in tables if can_be_drawn(table)]
    figure, axes = new_figure(len(drawn), width=5.0, height=3.6, across=2)
    for axis, table in zip(axes, drawn, strict=True):
        across = [row[0] for row in table.rows]
        for number, column in enumerate(table.columns[1:]):
            heights = [row[number + 1] for row in table.rows]
            axis.plot(across, heights, label=column.name, **line_style(number))
        axis.set_xlabel(table.columns[0].name)
        axis.set_title(table.title or "", fontsize=10)
        # Below the panel: inside it, lines that fill it would run through the legend.
        axis.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    return figure
