"""``gradrank label simulate``: how many judgments a labeling strategy takes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, print_table, print_text
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.labeling.analysis.report import LabelingReport


class SimulatedStrategy(StrEnum):
    """Names of the strategies whose number of judgments depends on the answers."""

    tournament = "tournament"
    heap = "heap"
    heap_infer = "heap-infer"
    insertion = "insertion"


def simulate(
    strategy: Annotated[
        SimulatedStrategy, typer.Option("--strategy", help="How the top k is found.")
    ] = SimulatedStrategy.tournament,
    n: Annotated[int, typer.Option("--n", min=1, max=1_000_000, help="Documents per query.")] = 50,
    k: Annotated[int, typer.Option("--k", min=1, help="How many of the best are wanted in order.")] = 10,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Queries to simulate.")] = 200,
    levels: Annotated[
        int | None, typer.Option("--levels", min=1, help="Grades of documents; equal ones are ties. Default: none are.")
    ] = None,
    noise: Annotated[
        float, typer.Option("--noise", min=0.0, help="Scale of wrong answers in ranks (or levels); 0 = none.")
    ] = 0.0,
    prior_tau: Annotated[
        float | None,
        typer.Option("--prior-tau", min=0.0, max=1.0, help="insertion: Kendall's tau of the prior order [0.64]."),
    ] = None,
    study: Annotated[
        bool,
        typer.Option(
            "--study",
            help="Simulate two tools and five assessors who differ as the paper's did; show the report. "
            "--runs is the number of queries.",
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="With --study: also write the report as a page.")
    ] = None,
    seed: options.Seed = 0,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the output.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
) -> None:
    """How many judgments a strategy takes, with simulated assessors."""
    notes = Notes(quiet)
    if study:
        for flag, value in (("--levels", levels), ("--noise", noise or None), ("--prior-tau", prior_tau)):
            if value is not None:
                raise DataError(f"{flag} does not go with --study, whose assessors have their own noise and ties")
        _study(strategy.value, n, k, runs, seed, html, show_as, notes)
        return
    if html is not None:
        raise DataError("--html needs --study")
    if prior_tau is not None and strategy is not SimulatedStrategy.insertion:
        raise DataError(f"--prior-tau is for the strategy insertion; {strategy.value} uses no prior order")
    from gradrank.labeling.analysis.simulate import simulate_counts

    with notes.working("simulating"):
        counts = simulate_counts(
            strategy.value, n=n, k=k, runs=runs, seed=seed, levels=levels, noise=noise, prior_tau=prior_tau
        )
    found = counts.to_dict()
    if counts.prior_tau is not None and prior_tau is None:
        notes.say(f"the documents come in an order with Kendall's tau {counts.prior_tau} (--prior-tau)")
    if show_as is options.TableOrJson.json:
        print_text(_json(found))
        return
    from gradrank.evaluation.tables import Column, Table

    columns = (
        Column("strategy"),
        Column("n", "count"),
        Column("k", "count"),
        Column("mean judgments", "number"),
        Column("min", "count"),
        Column("p95", "count"),
        Column("max", "count"),
        Column("exact top k", "number"),
        Column("overlap@k", "number"),
    )
    keys = ("mean_judgments", "min_judgments", "p95_judgments", "max_judgments", "exact_top_k", "overlap_at_k")
    row = (found["strategy"], n, k, *(found[key] for key in keys))
    print_table(Table(columns, (row,), title=f"{runs:,} simulated queries"), options.OutputFormat.table)


def _study(
    name: str, n: int, k: int, queries: int, seed: int, html: Path | None, show_as: options.TableOrJson, notes: Notes
) -> None:
    if html is not None:
        check_writable(html)
    from gradrank.labeling.analysis.report import labeling_report
    from gradrank.labeling.analysis.simulate import simulate_study

    with notes.working("simulating"):
        made = simulate_study(queries=queries, n=n, k=k, name=name, seed=seed)
        report = labeling_report(made.records, made.outcomes, seed=seed)
    if html is not None:
        from gradrank.runtime.files import replacing

        with replacing(html) as temporary:
            temporary.write_text(report.to_html("Simulated labeling study"), encoding="utf-8")
    if show_as is options.TableOrJson.json:
        print_text(_json(report.to_dict()))
    else:
        for table in _tables(report):
            print_table(table, options.OutputFormat.table)


def _tables(report: LabelingReport) -> list[Any]:
    """Tables 1 to 3 of the paper, and the tests between the tools."""
    from gradrank.evaluation.tables import Column, Table
    from gradrank.labeling.analysis.agreement import RELATIONS
    from gradrank.labeling.analysis.report import TOOL_NAMES

    cost = Table(
        (
            Column("tool"),
            Column("strategy"),
            Column("s per judgment", "number"),
            Column("judgments per query", "number"),
            Column("min per query", "number"),
            Column("complexity"),
        ),
        tuple(
            (
                TOOL_NAMES[row.tool],
                row.strategy,
                row.seconds_per_judgment,
                row.judgments_per_query,
                row.minutes_per_query,
                row.complexity,
            )
            for row in report.efficiency
        ),
        title="Time and judgments",
    )
    agreements = [
        Table(
            (Column(""), *(Column(relation, "number") for relation in RELATIONS)),
            tuple((relation, *row) for relation, row in zip(RELATIONS, found.rows().tolist(), strict=True)),
            title=f"{TOOL_NAMES[found.tool]}: agreement {found.overall():.1%}, "
            f"without ties {found.overall(ties=False):.1%}",
        )
        for found in report.agreements
        if found.scope == "all"
    ]
    tests = Table(
        (
            Column("pairs"),
            Column("ties"),
            Column("difference", "signed"),
            Column("chi-square", "number"),
            Column("p of chi-square", "p"),
            Column("p over queries", "p"),
        ),
        tuple(
            (
                row.scope,
                "counted" if row.ties else "left out",
                row.permutation.difference,
                row.chi_square.statistic,
                row.chi_square.p,
                row.permutation.p,
            )
            for row in report.comparisons
        ),
        title="Difference between the tools",
    )
    return [cost, *agreements, tests]


def _json(value: Any) -> str:
    from gradrank.evaluation.tables import to_json

    return to_json(value)
