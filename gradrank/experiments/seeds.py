"""The same experiment with several seeds, in one result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradrank.evaluation.tables import Column, Table
from gradrank.experiments.claims import joined
from gradrank.experiments.result import Result

_NUMBERS = ("number", "signed", "percent", "count")


def over_seeds(results: Sequence[Result], *, same_queries: bool = False) -> Result:
    """The results of one experiment with different seeds as one: means and standard deviations of all numbers.

    Rows are matched by what stands before their first number. Where a column has words, each is given with the number
    of seeds that it was said with; p-values and intervals of single runs are left to the runs. A table that is drawn as
    lines keeps plain means, where runs have their points at other places those of the places, too. On given data all
    runs have the same queries (``same_queries``).

    >>> table = [Table((Column("system"), Column("MAP", "number")), (("a", value),)) for value in (0.2, 0.4)]
    >>> runs = [Result("x", "X", (table[k],), settings={"random_state": k}) for k in range(2)]
    >>> print(over_seeds(runs).tables[0].to_markdown(), end="")
    **mean ± standard deviation over 2 seeds**
    <BLANKLINE>
    | system | MAP |
    |---|--:|
    | a | 0.3000 ± 0.1414 |
    """
    first = results[0]
    seeds = [result.settings["random_state"] for result in results]
    settings = {**first.settings, "random_state": f"{seeds[0]} to {seeds[-1]}"}
    tables = tuple(_together([result.tables[k] for result in results]) for k in range(_shortest(results)))
    notes = tuple(f"Seed {seed}: {note}" for seed, result in zip(seeds, results, strict=True) for note in result.notes)
    # A run may have nothing to say of a claim.
    alike = [
        [claim for result in results for claim in result.claims if claim.says == says]
        for says in dict.fromkeys(claim.says for result in results for claim in result.claims)
    ]
    claims = tuple(joined(claims, same_queries=same_queries) for claims in alike)
    return replace(first, tables=tables, notes=notes, claims=claims, settings=settings, runs=tuple(results))


def _shortest(results: Sequence[Result]) -> int:
    return min(len(result.tables) for result in results)


def _together(tables: Sequence[Table]) -> Table:
    """One table of the rows that all have."""
    columns = tables[0].columns
    keys = _key_columns(columns)
    lines = all(column.kind in ("number", "count") for column in columns)
    by_key = [_by_key(table, keys) for table in tables]
    kept = [key for key in by_key[0] if all(key in rows for rows in by_key)]
    if lines and not kept and len({len(table.rows) for table in tables}) == 1:
        # Lines whose points each run has at other places: the first points of all are one, and so on.
        keys, by_key = 0, [{(number,): row for number, row in enumerate(table.rows)} for table in tables]
        kept = list(by_key[0])
    shown = [k for k, column in enumerate(columns) if k < keys or column.kind in (*_NUMBERS, "mean", "text")]
    cells = {key: [[rows[key][k] for rows in by_key] for k in shown] for key in kept}
    heads = tuple(_head(columns[k], k < keys, lines) for k in shown)
    rows = tuple(
        tuple(_cell(columns[k], values, k < keys, lines) for k, values in zip(shown, cells[key], strict=True))
        for key in kept
    )
    said = f"means over {len(tables)} seeds" if lines else f"mean ± standard deviation over {len(tables)} seeds"
    title = f"{tables[0].title}; {said}" if tables[0].title else said
    return Table(heads, rows, title)


def _key_columns(columns: Sequence[Column]) -> int:
    """How many columns name a row: the first, and words that follow it."""
    count = 1
    while count < len(columns) and columns[0].kind == "text" and columns[count].kind == "text":
        count += 1
    return count


def _by_key(table: Table, keys: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Rows by what names them; rows of the same name are numbered."""
    seen: Counter[tuple[Any, ...]] = Counter()
    found = {}
    for row in table.rows:
        name = row[:keys]
        found[(*name, seen[name])] = row
        seen[name] += 1
    return found


def _head(column: Column, is_key: bool, lines: bool) -> Column:
    if is_key or column.kind == "text":
        return column
    return Column(column.name, "number" if lines else "mean")


def _cell(column: Column, values: Sequence[Any], is_key: bool, lines: bool) -> Any:
    if is_key:
        return values[0]
    if column.kind == "text":
        return ", ".join(f"{word} ({count})" for word, count in Counter(map(str, values)).items() if word)
    numbers = np.array([_number(column, value) for value in values])
    if lines:
        return float(numbers.mean())
    return float(numbers.mean()), float(numbers.std(ddof=1))


def _number(column: Column, value: Any) -> float:
    if column.kind == "mean":
        value = value[0]
    return float("nan") if value is None else float(value)
