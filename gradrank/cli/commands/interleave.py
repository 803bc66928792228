"""``gradrank interleave``: which of two rankers users prefer, from the log of a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, print_table, print_text
from gradrank.errors import DataError


def interleave(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG …", help="JSON lines of shown lists with their teams, and of clicks; several files if rotated."
        ),
    ],
    models: Annotated[
        str | None, typer.Option("--models", metavar="NAME,NAME", help="The two rankers, if the log has several pairs.")
    ] = None,
    level: Annotated[float, typer.Option("--level", min=0.0001, max=0.5, help="Level of significance.")] = 0.05,
    show_as: Annotated[options.TableOrJson, typer.Option("--format", help="Form of the output.")] = (
        options.TableOrJson.table
    ),
    quiet: options.Quiet = False,
) -> None:
    """Tell which of two rankers users prefer, from lists that both share by team draft."""
    notes = Notes(quiet)
    pair = None
    if models is not None:
        first, comma, second = (part.strip() for part in models.partition(","))
        if not (first and comma and second):
            raise DataError(f"--models is {models!r}, expected NAME,NAME")
        pair = (first, second)
    from gradrank.data.clicks.traffic import read_traffic
    from gradrank.evaluation.interleaving import analyze_interleaving
    from gradrank.evaluation.tables import Column, Table, to_json

    with notes.working("reading logs"):
        traffic = read_traffic(*logs)
    for count, what in (
        (traffic.clicks_without_list, "clicks belong to no list of the log and are not counted"),
        (traffic.repeated, "lists came again under the same id; the first of each counts"),
    ):
        if count:
            notes.say(f"{count:,} {what}")
    found = analyze_interleaving(traffic.impressions, pair, level=level)
    if show_as is options.TableOrJson.json:
        print_text(to_json(found.to_dict()))
        return
    notes.say(
        f"{found.lists:,} shared lists, {found.clicked:,} with a click; {found.units:,} votes, "
        f"{found.ties:,} of them tied"
    )
    columns = (Column("ranker"), Column("clicked documents", "count"), Column("wins", "count"))
    rows = tuple(zip(found.models, found.credit, found.wins, strict=True))
    print_table(Table(columns, rows), options.OutputFormat.table)
    verdict = f"users prefer {found.winner}" if found.winner else "no difference is shown"
    print_text(
        f"{found.models[1]} wins {found.preference:.1%} of the decided votes ({found.low:.1%} … {found.high:.1%}), "
        f"sign test p = {found.p:.4f}: {verdict}\n"
    )
