"""One table structure, shown on a terminal or in a notebook, or written as CSV, JSON or Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Container
from dataclasses import dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gradrank.models.display.markup import strong, table_html
from gradrank.runtime.files import replacing

if TYPE_CHECKING:
    from rich.console import RenderableType

Kind = Literal["text", "count", "number", "signed", "percent", "p", "mean", "interval", "counts"]


@dataclass(frozen=True)
class Column:
    """A column's heading and the kind of its cells, which decides how people see them.

    ``text`` and ``count`` are shown as they are, ``number`` and ``signed`` to four digits, ``percent`` is a
    ratio shown in percent, ``p`` a p-value, ``mean`` a pair (mean, half-width of its interval),
    ``interval`` a pair (low, high), ``counts`` several numbers whose names the heading gives between
    slashes. None and NaN are shown as a dash.
    """

    name: str
    kind: Kind = "text"

    @property
    def record_names(self) -> tuple[str, ...]:
        """Names under which the cells go into CSV and JSON, one for each of their numbers."""
        if self.kind == "mean":
            return (self.name, f"{self.name} ±")
        if self.kind == "interval":
            return (f"{self.name} low", f"{self.name} high")
        if self.kind == "counts":
            return tuple(self.name.split("/"))
        return (self.name,)

    def record_values(self, cell: Any) -> tuple[Any, ...]:
        """The cell's values for CSV and JSON, at full precision."""
        return tuple(cell) if self.kind in ("mean", "interval", "counts") else (cell,)

    def show(self, cell: Any) -> str:
        """The cell as people read it.

        >>> Column("NDCG", "mean").show((0.51234, 0.01))
        '0.5123 ± 0.0100'
        >>> Column("p", "p").show(0.00001)
        '<0.0001'
        """
        if self.kind == "mean":
            mean, half = cell
            return _four(mean) if _missing(mean) or _missing(half) else f"{_four(mean)} ± {_four(half)}"
        if self.kind == "interval":
            low, high = cell
            return "–" if _missing(low) or _missing(high) else f"{low:+.4f} … {high:+.4f}"
        if self.kind == "counts":
            return "/".join(f"{count:,}" for count in cell)
        if _missing(cell):
            return "–"
        if self.kind == "count":
            return f"{cell:,}"
        if self.kind == "number":
            return _four(cell)
        if self.kind == "signed":
            return f"{cell:+.4f}"
        if self.kind == "percent":
            return f"{cell:+.1%}"
        if self.kind == "p":
            return "<0.0001" if cell < 0.0001 else f"{cell:.4f}"
        return str(cell)


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns.

    >>> table = Table((Column("system"), Column("MAP", "number")), (("a", 0.25), ("b", float("nan"))))
    >>> print(table.to_markdown(), end="")
    | system | MAP |
    |---|--:|
    | a | 0.2500 |
    | b | – |
    >>> print(table.to_csv(), end="")
    system,MAP
    a,0.25
    b,
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str | None = None

    def records(self) -> list[dict[str, Any]]:
        """One mapping a row, with values at full precision and None where there is none."""
        names = [name for column in self.columns for name in column.record_names]
        return [dict(zip(names, map(_plain, self._values(row)), strict=True)) for row in self.rows]

    def to_json(self) -> str:
        """A JSON list of records."""
        return to_json(self.records())

    def to_csv(self) -> str:
        """CSV with a heading line, at full precision; empty = no value."""
        text = io.StringIO()
        self._write_csv(text)
        return text.getvalue()

    def write_csv(self, path: str | Path) -> None:
        """Write the CSV to a file."""
        # A file name used as a system's name may hold bytes that are not UTF-8; they are kept as they are.
        with (
            replacing(path) as temporary,
            open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file,
        ):
            self._write_csv(file)

    def to_markdown(self) -> str:
        """A Markdown table, as people read it."""
        lines = [] if self.title is None else [f"**{_escaped(self.title)}**", ""]
        lines.append("| " + " | ".join(_escaped(column.name) for column in self.columns) + " |")
        lines.append("|" + "|".join("---" if column.kind == "text" else "--:" for column in self.columns) + "|")
        lines += ["| " + " | ".join(map(_escaped, self._shown(row))) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"

    def to_html(self, strong_cells: Container[tuple[int, int]] = ()) -> str:
        """The table for a notebook, as people read it.

        Parameters
        ----------
        strong_cells
            Cells to be in bold: pairs of the numbers of their row and column.
        """
        rows = [
            [strong(cell) if (number, column) in strong_cells else cell for column, cell in enumerate(self._shown(row))]
            for number, row in enumerate(self.rows)
        ]
        numeric = [column.kind != "text" for column in self.columns]
        return table_html([column.name for column in self.columns], rows, numeric=numeric, caption=self.title)

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_rich(self) -> RenderableType:
        """A table for the terminal."""
        from rich import box
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_header=any(column.name for column in self.columns),
        )
        for column in self.columns:
            text = column.kind == "text"
            table.add_column(Text(column.name), justify="left" if text else "right", overflow="fold", no_wrap=not text)
        for row in self.rows:
            table.add_row(*map(Text, self._shown(row)))
        # Not Rich's own title, which is folded to the width of the table.
        return table if self.title is None else Group(Text(self.title), table)

    def expanded(self) -> Table:
        """The same cells one below the other, for a terminal that is too narrow for the table.

        >>> Table((Column("system"), Column("MAP", "number")), (("a", 0.25), ("b", 0.5))).expanded().rows
        (('system', 'a'), ('MAP', '0.2500'), ('', ''), ('system', 'b'), ('MAP', '0.5000'))
        """
        rows: list[tuple[str, str]] = []
        for row in self.rows:
            rows += [("", "")] if rows else []
            rows += zip((column.name for column in self.columns), self._shown(row), strict=True)
        return Table((Column(""), Column("")), tuple(rows), self.title)

    def _values(self, row: tuple[Any, ...]) -> list[Any]:
        return [value for column, cell in zip(self.columns, row, strict=True) for value in column.record_values(cell)]

    def _shown(self, row: tuple[Any, ...]) -> list[str]:
        return [column.show(cell) for column, cell in zip(self.columns, row, strict=True)]

    def _write_csv(self, file: Any) -> None:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(name for column in self.columns for name in column.record_names)
        writer.writerows(["" if _missing(value) else value for value in self._values(row)] for row in self.rows)


def to_json(value: Any) -> str:
    """Strict JSON, indented; numbers that JSON cannot hold become null.

    >>> print(to_json({"a": float("nan")}), end="")
    {
      "a": null
    }
    """
    return json.dumps(_plain(value), indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and callable(value.item):
        value = value.item()
    return None if isinstance(value, float) and not isfinite(value) else value


def _missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and isnan(cell))


def _four(number: Any) -> str:
    return "–" if _missing(number) else f"{number:.4f}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
