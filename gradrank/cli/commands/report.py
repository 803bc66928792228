"""``gradrank report``: one HTML file that shows which system ranks better."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.beside_data import find_beside
from gradrank.cli.common import Notes, parse_measures
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.score_files import check_names, load_models, load_systems
from gradrank.errors import DataError


@reads_data
def report(
    data: options.DataFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")],
    scores: options.ScoreFiles = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="[NAME=]MODEL",
            help="A trained model: a system that scores DATA, shown with its learning curves and feature importances. "
            "If NAME is a file of --scores, the scores are that file's. May be repeated.",
        ),
    ] = None,
    baseline: options.Baseline = None,
    measure: options.MeasureNames = None,
    convention: options.ConventionName = None,
    title: Annotated[str, typer.Option("--title", help="Title of the report.")] = "Ranking report",
    label: options.LabelFiles = None,
    test: Annotated[options.TestChoice, typer.Option("--test", help="Significance test.")] = options.TestChoice.t,
    level: Annotated[float, typer.Option("--level", help="Level of significance.")] = 0.05,
    correction: Annotated[
        options.CorrectionChoice, typer.Option("--correction", help="Correction for the number of tests.")
    ] = options.CorrectionChoice.holm,
    resamples: Annotated[int, typer.Option("--resamples", min=1, help="Permutations or bootstrap resamples.")] = 10_000,
    random_state: options.Seed = 0,
    weighted: options.Weighted = False,
    query_texts: Annotated[
        str | None,
        typer.Option(
            "--query-texts",
            metavar="COLUMN|FILE",
            help="Texts of the queries: a column of DATA, or a file of ids and texts (TSV, CSV or JSON lines).",
        ),
    ] = None,
    document_texts: Annotated[
        str | None,
        typer.Option("--document-texts", metavar="COLUMN|FILE", help="Texts of the documents, likewise."),
    ] = None,
    segments: Annotated[
        list[str] | None,
        typer.Option(
            "--segments",
            metavar="COLUMN|[NAME=]FILE",
            help="Compare within parts of the queries: by a column of DATA with one value per query, or a file of "
            "query ids and values. May be repeated.",
        ),
    ] = None,
    effects: Annotated[
        int,
        typer.Option(
            "--effects",
            metavar="N",
            min=0,
            help="Features of each model to show with what the first measure loses without them and how the mean score "
            "follows them; 0 for none.",
        ),
    ] = 6,
    *,
    reading: Reading,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Write an HTML report: measures, differences with significance, segments, rankings, models and their features."""
    notes = Notes(quiet)
    if not 0 < level < 1:
        raise DataError(f"--level is {level}, expected a number between 0 and 1")
    models = load_models(model)
    # The scores of a model may be given beside it, under its name.
    scoring = {name: ranker for name, ranker in models.items() if name not in (scores or ())}
    check_names(scores or (), list(scoring))
    names = [*(scores or ()), *scoring]
    if baseline is not None and baseline not in names:
        raise DataError(f"--baseline is {baseline!r}, expected one of {', '.join(names)}")
    from gradrank.evaluation import compare, evaluate
    from gradrank.report import write_report

    measures = parse_measures(measure, convention)
    beside, reading = find_beside(data, reading, query_texts, document_texts, segments)
    held, systems = load_systems(data, reading, scores or (), scoring, label, notes, n_jobs)
    with notes.working("evaluating"):
        evaluation = evaluate(held, systems, measures, weighted=weighted, n_jobs=n_jobs)
    comparison = None
    if len(systems) > 1:
        with notes.working("testing"):
            comparison = compare(
                evaluation,
                baseline=baseline,
                test=test.value,
                level=level,
                correction="holm" if correction is options.CorrectionChoice.holm else None,
                resamples=resamples,
                random_state=random_state,
            )
    with notes.working("writing"):
        write_report(
            output,
            title=title,
            evaluation=evaluation,
            comparison=comparison,
            models=models,
            data={data.name: held},
            commands=[shlex.join(["gradrank", *sys.argv[1:]])],
            texts=beside.texts(held.data),
            segments=beside.segments_of(held.data, data),
            scores=None if comparison is None else systems,
            effects=effects,
            n_jobs=n_jobs,
        )
    notes.say(f"wrote {output}")
