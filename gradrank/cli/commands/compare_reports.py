"""``gradrank compare-reports``: several reports on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes


def compare_reports(
    reports: Annotated[
        list[Path], typer.Argument(metavar="REPORT...", help="HTML files of 'gradrank report', two or more.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")],
    title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "Reports compared",
    quiet: options.Quiet = False,
) -> None:
    """Set several reports beside each other on one HTML page, with tests where they have the same queries."""
    notes = Notes(quiet)
    from gradrank.report import write_report_comparison

    write_report_comparison(output, reports, title=title)
    notes.say(f"wrote {output}")
