"""``gradrank propensity``: how likely users examine each position, from a click log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, print_table

if TYPE_CHECKING:
    from gradrank.data.clicks.click_models import HeldOut
    from gradrank.data.clicks.propensity import Propensities
    from gradrank.evaluation.tables import Table


def propensity(
    log: options.LogFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write them as JSON, for other commands.")
    ] = None,
    method: Annotated[
        options.PropensityMethod,
        typer.Option(
            "--method",
            help="From lists in random order, from lists of several rankers, by a click model, or by one with clicks "
            "for trust in the top positions.",
        ),
    ] = options.PropensityMethod.auto,
    compare: Annotated[
        bool, typer.Option("--compare", help="Say how well every click model foretells held-out clicks.")
    ] = False,
    confidence: options.Confidence = 0.95,
    log_format: options.LogFormat = None,
    show_as: options.ShowAs = options.OutputFormat.table,
    random_state: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Estimate how likely users examine each position, from documents that were shown at several."""
    notes = Notes(quiet)
    if output is not None:
        check_writable(output)
    from gradrank.data.clicks.click_models import CLICK_MODELS, held_out_likelihood
    from gradrank.data.clicks.propensity import estimate_propensities
    from gradrank.data.clicks.propensity_files import write_propensities
    from gradrank.data.clicks.readers import read_click_log

    with notes.working(f"reading {log}"):
        sessions = read_click_log(log, log_format)
    with notes.working("estimating propensities"):
        found = estimate_propensities(sessions, method.value, confidence=confidence, random_state=random_state)
        own = "trust" if found.method == "trust" else "position"
        how = "auto" if found.method == "trust" else found.method
        models = tuple(CLICK_MODELS) if compare else (own,)
        held_out = held_out_likelihood(sessions, models=models, method=how, random_state=random_state)
    say_propensities(found, notes)
    say_likelihood(held_out, notes)
    if output is not None:
        write_propensities(found, output)
    print_table(propensity_table(found), show_as)


def propensity_table(found: Propensities) -> Table:
    """Propensities with their intervals, as people read them."""
    from gradrank.evaluation.tables import Column, Table

    columns = [
        Column("position", "count"),
        Column("examined", "number"),
        Column("low", "number"),
        Column("high", "number"),
    ]
    values = [found.position, found.probability, found.low, found.high]
    if found.false_clicks is not None:
        columns.append(Column("false clicks", "number"))
        values.append(found.false_clicks)
    return Table(tuple(columns), tuple(zip(*(column.tolist() for column in values), strict=True)))


def say_propensities(found: Propensities, notes: Notes) -> None:
    """What the propensities rest on, and where the log does not tell."""
    import numpy as np

    what = {
        "randomized": "sessions in random order",
        "harvest": "documents that different rankers showed at different positions",
        "em": "documents shown at several positions, for whatever reason; lists in random order or of named rankers "
        "would be safer",
        "trust": "documents shown at several positions; false clicks are those that trust in a position explains",
    }
    if found.method in what:
        notes.say(f"propensities by method {found.method}, from {found.compared:,} {what[found.method]}")
    unknown = found.position[np.isnan(found.probability)]
    if len(unknown):
        shown = ", ".join(map(str, unknown[:12].tolist()))
        notes.say(f"the log does not tell the propensity of {len(unknown)} positions: {shown}")


def say_likelihood(held_out: HeldOut, notes: Notes) -> None:
    """How well click models foretell clicks that they have not seen, and whether the best beats the naive one."""
    values = ", ".join(f"{value:.5f} {name}" for name, value in held_out.values.items())
    best = held_out.best
    verdict = "positions foretell clicks NOT better" if best == "naive" else f"{best} foretells clicks best"
    notes.say(f"log likelihood of {held_out.impressions:,} held-out impressions: {values}: {verdict}")
