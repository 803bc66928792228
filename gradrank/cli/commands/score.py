"""``gradrank score``: a model's scores of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, print_text
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.shared_files import shared_score
from gradrank.cli.streaming import STANDARD, scores_of_file
from gradrank.cli.workers import Scheduler, Workers, check_workers


@reads_data
def score(
    model: options.ModelFile,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Data file; - is standard input (LETOR text, or CSV).")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is standard output.")
    ] = STANDARD,
    workers: Workers = None,
    scheduler: Scheduler = None,
    *,
    reading: Reading,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Score documents with a model: one number per line, in DATA's row order.

    DATA is read by blocks of rows and may be larger than memory; its rows may come in any order.
    With --workers or --scheduler DATA may be a folder or a pattern, and FILE is a folder: a file of scores for each.
    """
    notes = Notes(quiet)
    if check_workers(workers, scheduler):
        shared_score(model, str(data), output, reading, n_jobs, workers, scheduler, notes)
        return
    if output != STANDARD:
        check_writable(Path(output), model, data)
    from gradrank.data.formats.columns import column_lines, write_column_blocks
    from gradrank.models.registry import load_ranker

    scores = scores_of_file(load_ranker(model), "the model", data, notes, reading, n_jobs)
    if output == STANDARD:
        for block in scores:
            print_text(column_lines(block))
    else:
        write_column_blocks(scores, output)
