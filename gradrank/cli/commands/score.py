"""``gradrank score``: a model's scores of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data, print_text, with_features
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.shared_files import shared_score
from gradrank.cli.workers import Scheduler, Workers, check_workers

_STANDARD_OUTPUT = "-"


@reads_data
def score(
    model: options.ModelFile,
    data: options.DataFile,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is standard output.")
    ] = _STANDARD_OUTPUT,
    workers: Workers = None,
    scheduler: Scheduler = None,
    *,
    reading: Reading,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Score documents with a model: one number per line, in DATA's row order.

    With --workers or --scheduler DATA may be a folder or a pattern, and FILE is a folder: a file of scores for each.
    """
    notes = Notes(quiet)
    if check_workers(workers, scheduler):
        shared_score(model, str(data), output, reading, n_jobs, workers, scheduler, notes)
        return
    if output != _STANDARD_OUTPUT:
        check_writable(Path(output))
    from gradrank.models.registry import load_ranker

    ranker = load_ranker(model)
    loaded = load_data(data, notes, reading)
    loaded = with_features(loaded, data, ranker.feature_names, "the model")
    with notes.working("scoring"):
        scores = ranker.predict(loaded, n_jobs=n_jobs)
    if output == _STANDARD_OUTPUT:
        print_text("".join(f"{value!r}\n" for value in scores.tolist()))
    else:
        from gradrank.data.formats.columns import write_column

        write_column(scores, output)
