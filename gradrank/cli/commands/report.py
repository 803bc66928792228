"""``gradrank report``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.commands.evaluate import DEFAULT_MEASURES
from gradrank.cli.common import Notes, Reading
from gradrank.cli.score_files import data_and_scores, is_trec
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.models.ranker import Ranker


def report(
    data: options.DataFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")],
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--scores",
            metavar="FILE",
            help="A system: one number a line in DATA's row order, or a TREC run. May be repeated.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME=FILE",
            help="A trained model: a system that scores DATA, shown with its learning curves and feature importances. "
            "If NAME is a file of --scores, the scores are that file's. May be repeated.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="NAME", help="System to compare with; the first one unless given."),
    ] = None,
    measure: options.MeasureNames = None,
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
    format_from: options.FormatName = None,
    missing: options.Missing = False,
    zero_based: options.ZeroBased = False,
    group: options.Group = None,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Write an HTML report: measures, differences with significance, learning curves, feature importances."""
    notes = Notes(quiet)
    if not 0 < level < 1:
        raise DataError(f"--level is {level}, expected a number between 0 and 1")
    models = _models(model)
    names = list(dict.fromkeys((*(scores or ()), *models)))
    if not names:
        raise DataError("there is nothing to report on: give --scores FILE or --model NAME=FILE")
    if len(set(scores or ())) != len(scores or ()):
        raise DataError("a score file is given twice (--scores)")
    if baseline is not None and baseline not in names:
        raise DataError(f"--baseline is {baseline!r}, expected one of {', '.join(names)}")
    from gradrank.evaluation import compare, evaluate
    from gradrank.measures import parse_measure
    from gradrank.report import write_report

    measures = [parse_measure(name) for name in measure or DEFAULT_MEASURES]
    reading = Reading(format_from, missing, zero_based, group)
    held, systems = _systems(data, reading, scores or (), models, label, notes, n_jobs)
    with notes.working("evaluating"):
        evaluation = evaluate(held, systems, measures, weighted=weighted, n_jobs=n_jobs)
    comparison = None
    if len(systems) > 1:
        with notes.working("testing"):
            comparison = compare(
                evaluation,
                baseline,
                test=test.value,
                level=level,
                correction="holm" if correction is options.CorrectionChoice.holm else None,
                resamples=resamples,
                random_state=random_state,
            )
    write_report(
        output,
        title=title,
        evaluation=evaluation,
        comparison=comparison,
        models=models,
        data={data.name: held},
        commands=[shlex.join(["gradrank", *sys.argv[1:]])],
    )
    notes.say(f"wrote {output}")


def _models(given: Sequence[str] | None) -> dict[str, Ranker]:
    from gradrank.models.registry import load_ranker

    models: dict[str, Ranker] = {}
    for option in given or ():
        name, _, file = option.partition("=")
        if not (name and file):
            raise DataError(f"--model is {option!r}, expected NAME=FILE")
        if name in models:
            raise DataError(f"--model names {name!r} twice")
        models[name] = load_ranker(file)
    return models


def _systems(
    path: Path,
    reading: Reading,
    score_files: Sequence[str],
    models: Mapping[str, Ranker],
    labels: Sequence[str] | None,
    notes: Notes,
    n_jobs: int | None,
) -> tuple[RankingData, dict[str, Any]]:
    """The data, and each system's scores: from its file, or by its model."""
    scoring = {name: model for name, model in models.items() if name not in score_files}
    if scoring and is_trec(path, score_files):
        raise DataError(f"--model {next(iter(scoring))} needs features to score, but DATA is TREC qrels")
    data, found = data_and_scores(path, reading, score_files, labels, notes)
    systems: dict[str, Any] = dict(found)
    for name, model in scoring.items():
        with notes.working(f"scoring by {name}"):
            systems[name] = model.predict(data, n_jobs=n_jobs)
    return data, systems
