"""``gradrank convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, Reading, load_data


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Data file to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Data file to write.")],
    format_from: options.FormatName = None,
    format_to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="Format of OUT, if its suffix does not tell.")
    ] = None,
    missing: options.Missing = False,
    zero_based: options.ZeroBased = False,
    group: options.Group = None,
    strict_order: Annotated[
        bool, typer.Option("--strict-order", help="Refuse data whose rows of a query are not consecutive.")
    ] = False,
    label: options.LabelFiles = None,
    quiet: options.Quiet = False,
) -> None:
    """Convert data between LETOR text, Parquet, Arrow, CSV and the memory-mapped binary form."""
    notes = Notes(quiet)
    from gradrank.data.formats import LETOR, format_of, write_data

    to_letor = (format_to or format_of(target).name) == LETOR.name
    data = load_data(source, notes, Reading(format_from, missing, zero_based, group, strict_order), label)
    with notes.working(f"writing {target}"):
        write_data(data, target, format=format_to)
    if to_letor:
        lost = [f"label {name!r}" for name in data.label_names[1:]]
        if data.weight is not None:
            lost.append("query weights")
        if lost:
            notes.say(f"{target}: LETOR text has no place for {', '.join(lost)}")
