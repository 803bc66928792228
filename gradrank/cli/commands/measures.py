"""``gradrank measures``: the measures, their parameters and conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli.common import print_table, print_text
from gradrank.cli.options import OutputFormat, TableOrJson

if TYPE_CHECKING:
    from gradrank.evaluation.tables import Table


def measures(
    name: Annotated[
        str | None, typer.Argument(metavar="[MEASURE]", help="Show one measure's parameters and conventions.")
    ] = None,
    show_as: Annotated[TableOrJson, typer.Option("--format", help="Form of the output.")] = TableOrJson.table,
) -> None:
    """List the measures and the conventions they know."""
    tables = {"measures": _measures(), "conventions": _conventions()} if name is None else _one(name)
    if show_as is TableOrJson.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json({key: table.records() for key, table in tables.items()}))
    else:
        for table in tables.values():
            print_table(table, OutputFormat.table)


def _measures() -> Table:
    from gradrank.evaluation.tables import Column, Table
    from gradrank.measures import REGISTRY, Graded
    from gradrank.measures.grammar import TREC_EVAL_NAMES

    theirs = {kind: ", ".join(name for name, meant in TREC_EVAL_NAMES.items() if meant == kind) for kind in REGISTRY}
    rows: list[tuple[Any, ...]] = [
        (
            kind.name,
            ", ".join(kind.aliases),
            theirs[kind.name],
            "@k" if kind.takes_cutoff else "",
            ", ".join(kind.parameters()),
            kind.summary(),
        )
        for kind in REGISTRY.values()
    ]
    graded = (Graded.__doc__ or "").strip().split("\n")[0]
    rows.append(("Graded", "", "", "", "tolerance", graded))
    columns = tuple(map(Column, ("measure", "also", "trec_eval's name", "cut-off", "parameters", "meaning")))
    return Table(columns, tuple(rows), title="Measures, as in NDCG(convention=letor4)@10")


def _conventions() -> Table:
    from gradrank.evaluation.tables import Column, Table
    from gradrank.measures import CONVENTIONS

    rows = tuple((item.name, ", ".join(item.measures or ("all",)), item.summary) for item in CONVENTIONS.values())
    return Table(tuple(map(Column, ("convention", "measures", "meaning"))), rows, title="Conventions")


def _one(text: str) -> dict[str, Table]:
    from gradrank.errors import MeasureError
    from gradrank.evaluation.tables import Column, Table
    from gradrank.measures import CONVENTIONS, parse_measure

    measure = parse_measure(text)
    if len(measure.parts) > 1:
        raise MeasureError(f"{measure} is its parts; ask for one of {', '.join(map(str, measure.parts))}")
    measure = measure.parts[0]
    tools = [item.name for item in CONVENTIONS.values() if item.defines(measure.name)]
    rows = tuple(
        (
            key,
            spec.expected,
            spec.doc,
            *(_value(CONVENTIONS[tool].value(measure.name, key, spec.default)) for tool in tools),
        )
        for key, spec in measure.parameters().items()
    )
    columns = tuple(map(Column, ("parameter", "values", "meaning", *tools)))
    return {measure.name: Table(columns, rows, title=f"{measure.name}: {measure.summary()}")}


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
