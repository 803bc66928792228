"""``gradrank evaluate`` and ``gradrank compare``: systems by measures, and whether they differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, parse_measures, print_table, print_text
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.score_files import check_names, load_models, load_systems
from gradrank.cli.shared_files import shared_evaluation
from gradrank.cli.workers import Scheduler, Shuffle, Workers, check_workers
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.evaluation import Evaluation


@reads_data
def evaluate(
    data: options.DataFile,
    scores: options.ScoreFiles = None,
    model: options.ModelFiles = None,
    measure: options.MeasureNames = None,
    convention: options.ConventionName = None,
    label: options.LabelFiles = None,
    per_query: Annotated[
        Path | None, typer.Option("--per-query", metavar="FILE", help="Write the values of each query as CSV.")
    ] = None,
    weighted: options.Weighted = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    shuffle: Shuffle = False,
    *,
    reading: Reading,
    show_as: options.ShowAs = options.OutputFormat.table,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Evaluate models, score files or TREC runs by ranking measures.

    With --workers or --scheduler DATA may be a folder or a pattern of files, and the systems are models.
    """
    notes = Notes(quiet)
    if check_workers(workers, scheduler, shuffle=shuffle):
        measures = parse_measures(measure, convention)
        wrong = {"--scores": scores, "--label": label}
        result = shared_evaluation(
            str(data), model, measures, weighted, shuffle, reading, n_jobs, wrong, workers, scheduler, notes
        )
    else:
        result = _evaluation(data, reading, scores, model, measure, convention, label, weighted, n_jobs, notes)
    if per_query is not None:
        result.write_per_query(per_query)
    for note in result.notes():
        notes.say(note)
    if show_as is options.OutputFormat.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json({**result.means(), "queries": len(result.qids)}))
    else:
        print_table(result.table(), show_as)


@reads_data
def compare(
    data: options.DataFile,
    scores: options.ScoreFiles = None,
    model: options.ModelFiles = None,
    measure: options.MeasureNames = None,
    convention: options.ConventionName = None,
    baseline: options.Baseline = None,
    label: options.LabelFiles = None,
    test: Annotated[options.TestChoice, typer.Option("--test", help="Significance test.")] = options.TestChoice.t,
    level: Annotated[float, typer.Option("--level", help="Level of significance.")] = 0.05,
    correction: Annotated[
        options.CorrectionChoice, typer.Option("--correction", help="Correction for the number of rows.")
    ] = options.CorrectionChoice.holm,
    resamples: Annotated[int, typer.Option("--resamples", min=1, help="Permutations or bootstrap resamples.")] = 10_000,
    random_state: options.Seed = 0,
    weighted: options.Weighted = False,
    *,
    reading: Reading,
    show_as: options.ShowAs = options.OutputFormat.table,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare models, score files or TREC runs with one of them, with significance over queries."""
    notes = Notes(quiet)
    if len(scores or ()) + len(model or ()) == 1:
        raise DataError("one system is given, expected two or more to compare (repeat --scores or --model)")
    if not 0 < level < 1:
        raise DataError(f"--level is {level}, expected a number between 0 and 1")
    result = _evaluation(data, reading, scores, model, measure, convention, label, weighted, n_jobs, notes)
    from gradrank.evaluation import compare as compare_systems

    with notes.working("testing"):
        comparison = compare_systems(
            result,
            baseline=baseline,
            test=test.value,
            level=level,
            correction="holm" if correction is options.CorrectionChoice.holm else None,
            resamples=resamples,
            random_state=random_state,
        )
    for note in (*result.notes(), *comparison.notes()):
        notes.say(note)
    if show_as is options.OutputFormat.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json(comparison.to_dict()))
    else:
        print_table(comparison.table(), show_as)


def _evaluation(
    path: Path,
    reading: Reading,
    score_files: list[str] | None,
    model_files: list[str] | None,
    measure_names: list[str] | None,
    convention: str | None,
    labels: list[str] | None,
    weighted: bool,
    n_jobs: int | None,
    notes: Notes,
) -> Evaluation:
    models = load_models(model_files)
    scores = score_files or []
    check_names(scores, list(models))
    if "queries" in (*scores, *models):
        raise DataError("a system named 'queries' clashes with a field of the output; name the file ./queries")
    measures = parse_measures(measure_names, convention)
    from gradrank.evaluation import evaluate as evaluate_systems

    data, systems = load_systems(path, reading, scores, models, labels, notes, n_jobs, features_needed=False)
    with notes.working("evaluating"):
        return evaluate_systems(data, systems, measures, weighted=weighted, n_jobs=n_jobs)
