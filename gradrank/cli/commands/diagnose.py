"""``gradrank diagnose``: how a model was trained."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, print_table, print_text
from gradrank.errors import DataError

_PAGES = (".html", ".htm")


class Image(StrEnum):
    """Kinds of image files."""

    svg = "svg"
    png = "png"
    pdf = "pdf"


def diagnose(
    model: options.ModelFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PAGE|FOLDER", help="An HTML page, or a folder for one image per figure."
        ),
    ] = None,
    image: Annotated[Image, typer.Option("--image", help="Kind of the images in a folder.")] = Image.svg,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the output.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
) -> None:
    """Show how a model was trained: measures, λ's by label and tier, changes of rank, forces and weights.

    What happens to λ's and ranks is known of models that were trained with --diagnostics.
    """
    notes = Notes(quiet)
    from gradrank.models.registry import load_ranker

    training = load_ranker(model).training
    diagnosed = "diagnostics" in training
    if output is not None:
        from gradrank.report.diagnostics import diagnostic_sections
        from gradrank.report.figures import write_folder, write_page

        sections = diagnostic_sections(training)
        if not sections:
            raise DataError("tells nothing of its training: train it with gradrank, with --diagnostics N", path=model)
        if output.suffix.lower() in _PAGES:
            objective = f"Trained for {training['objective']}." if "objective" in training else ""
            write_page(output, f"Training of {model}", sections, [objective] if objective else [])
            notes.say(f"wrote {output}")
        else:
            written = write_folder(output, sections, f".{image.value}")
            notes.say(f"wrote {', '.join(str(path) for path in written)}")
    if not diagnosed:
        if output is None:
            raise DataError("was trained without --diagnostics N: nothing was recorded", path=model)
        notes.say(f"{model} was trained without --diagnostics N: λ's and changes of rank were not recorded")
    if show_as is options.TableOrJson.json:
        from gradrank.evaluation.tables import to_json
        from gradrank.models.ranker import plain

        print_text(to_json(plain(training.get("diagnostics", {}))))
    elif diagnosed:
        from gradrank.report.diagnostics import diagnostic_table

        print_table(diagnostic_table(training), options.OutputFormat.table)
