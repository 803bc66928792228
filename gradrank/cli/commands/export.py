"""``gradrank export``: a model in another tool's format."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable
from gradrank.models.exchange.registry import EXPORTS


def export(
    model: options.ModelFile,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="Format of FILE: " + "; ".join(f"{name} ({form.title})" for name, form in EXPORTS.items()) + ".",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")],
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Where the format cannot hold something, such as missing values, do the nearest thing and say what.",
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the model in FILE; MODEL's file name by default."),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a model for another tool: LightGBM, XGBoost, search engines, ONNX, C, Python.

    What the format cannot hold is an error that names feature and tree, before anything is written.
    """
    notes = Notes(quiet)
    check_writable(output, model)
    from gradrank.models.exchange.export import export_ranker
    from gradrank.models.registry import load_ranker

    ranker = load_ranker(model)
    sha256 = hashlib.sha256(model.read_bytes()).hexdigest()
    with notes.working(f"writing {output}"):
        said = export_ranker(ranker, output, to, approximate=approximate, name=name or model.name, sha256=sha256)
    for note in said:
        notes.say(note)
