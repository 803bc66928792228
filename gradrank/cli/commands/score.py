"""``gradrank score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, Reading, check_writable, load_data, print_text, with_features

_STANDARD_OUTPUT = "-"


def score(
    model: options.ModelFile,
    data: options.DataFile,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is standard output.")
    ] = _STANDARD_OUTPUT,
    format_from: options.FormatName = None,
    missing: options.Missing = False,
    zero_based: options.ZeroBased = False,
    group: options.Group = None,
    n_features: options.FeatureCount = None,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Score documents with a model: one number a line, in DATA's row order."""
    notes = Notes(quiet)
    if output != _STANDARD_OUTPUT:
        check_writable(Path(output))
    from gradrank.models.registry import load_ranker

    ranker = load_ranker(model)
    loaded = load_data(data, notes, Reading(format_from, missing, zero_based, group, n_features=n_features))
    loaded = with_features(loaded, data, ranker.feature_names, "the model")
    with notes.working("scoring"):
        scores = ranker.predict(loaded, n_jobs=n_jobs)
    if output == _STANDARD_OUTPUT:
        print_text("".join(f"{value!r}\n" for value in scores.tolist()))
    else:
        from gradrank.data.formats.columns import write_column

        write_column(scores, output)
