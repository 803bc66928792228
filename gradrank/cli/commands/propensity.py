"""``gradrank propensity``: how likely users examine each position, from a click log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, print_table

if TYPE_CHECKING:
    from gradrank.data.clicks.propensity import Propensities
    from gradrank.data.clicks.sessions import HeldOut
    from gradrank.evaluation.tables import Table


def propensity(
    log: options.LogFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write them as JSON, for other commands.")
    ] = None,
    method: Annotated[
        options.PropensityMethod,
        typer.Option(
            "--method", help="From lists in random order, from lists of several rankers, or by a click model."
        ),
    ] = options.PropensityMethod.auto,
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
    from gradrank.data.clicks.propensity import estimate_propensities, write_propensities
    from gradrank.data.clicks.readers import read_click_log
    from gradrank.data.clicks.sessions import held_out_likelihood

    with notes.working(f"reading {log}"):
        sessions = read_click_log(log, log_format)
    with notes.working("estimating propensities"):
        found = estimate_propensities(sessions, method.value, confidence=confidence, random_state=random_state)
        held_out = held_out_likelihood(sessions, method=found.method, random_state=random_state)
    say_propensities(found, notes)
    say_likelihood(held_out, notes)
    if output is not None:
        write_propensities(found, output)
    print_table(propensity_table(found), show_as)


def propensity_table(found: Propensities) -> Table:
    """Propensities with their intervals, as people read them."""
    from gradrank.evaluation.tables import Column, Table

    columns = (
        Column("position", "count"),
        Column("examined", "number"),
        Column("low", "number"),
        Column("high", "number"),
    )
    rows = zip(
        found.position.tolist(), found.probability.tolist(), found.low.tolist(), found.high.tolist(), strict=True
    )
    return Table(columns, tuple(rows))


def say_propensities(found: Propensities, notes: Notes) -> None:
    """What the propensities rest on, and where the log does not tell."""
    import numpy as np

    what = {
        "randomized": "sessions in random order",
        "harvest": "documents that different rankers showed at different positions",
        "em": "documents shown at several positions, for whatever reason; lists in random order or of named rankers "
        "would be safer",
    }
    if found.method in what:
        notes.say(f"propensities by method {found.method}, from {found.compared:,} {what[found.method]}")
    unknown = found.position[np.isnan(found.probability)]
    if len(unknown):
        shown = ", ".join(map(str, unknown[:12].tolist()))
        notes.say(f"the log does not tell the propensity of {len(unknown)} positions: {shown}")


def say_likelihood(held_out: HeldOut, notes: Notes) -> None:
    """How well the position-based and a naive model foretell clicks that they have not seen."""
    better = "better" if held_out.position_based > held_out.naive else "NOT better"
    notes.say(
        f"log likelihood of {held_out.impressions:,} held-out impressions: {held_out.position_based:.5f} with "
        f"positions, {held_out.naive:.5f} without (naive): positions foretell clicks {better}"
    )
