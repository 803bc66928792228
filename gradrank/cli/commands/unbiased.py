"""``gradrank unbiased``: a ranker from clicks, freed of position bias, and a naive one beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.commands.propensity import propensity_table, say_likelihood, say_propensities
from gradrank.cli.common import Notes, check_writable, load_data, parse_measures, print_table
from gradrank.cli.parameters import parsed, takes_parameters
from gradrank.cli.reading import Reading, reads_data
from gradrank.learners.trees.parameters import TreeParameters

_OWN = ("base", "diagnostics", "checkpoint", "checkpoint_every", "positions", "early_stopping_rounds", "train_measure")


@takes_parameters(TreeParameters, without=_OWN)
@reads_data
def unbiased(
    log: options.LogFile,
    data: Annotated[
        Path, typer.Option("--train", metavar="DATA", help="Features of the documents, with document ids.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")],
    naive: Annotated[Path | None, typer.Option("--naive", metavar="MODEL", help="Write the naive ranker, too.")] = None,
    judged: Annotated[
        Path | None, typer.Option("--judged", metavar="DATA", help="Judged data on which both rankers are evaluated.")
    ] = None,
    measure: options.MeasureNames = None,
    propensities: options.PropensityFile = None,
    method: Annotated[
        options.PropensityMethod, typer.Option("--method", help="How propensities are found, if they are not given.")
    ] = options.PropensityMethod.auto,
    objective: Annotated[
        str | None,
        typer.Option("--objective", metavar="OBJECTIVE", help="What training improves; reads the label source clicks."),
    ] = None,
    log_format: options.LogFormat = None,
    *,
    reading: Reading,
    show_as: options.ShowAs = options.OutputFormat.table,
    random_state: options.Seed = 0,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
    **parameters: Any,
) -> None:
    """Train a ranker on clicks freed of position bias, and a naive one beside it."""
    notes = Notes(quiet)
    for path in (output, naive):
        if path is not None:
            check_writable(path)
    from gradrank.data.clicks.propensity import read_propensities
    from gradrank.data.clicks.readers import read_click_log
    from gradrank.selection.unbiased import OBJECTIVE, train_on_clicks

    measures = parse_measures(measure or ["NDCG@10"])
    known = None if propensities is None else read_propensities(propensities)
    with notes.working(f"reading {log}"):
        sessions = read_click_log(log, log_format)
    loaded = load_data(data, notes, reading)
    test = None if judged is None else load_data(judged, notes, reading)
    result = train_on_clicks(
        loaded, sessions, propensities=known, method=method.value, objective=objective or OBJECTIVE,
        parameters=parsed(parameters), random_state=random_state, n_jobs=n_jobs, say=notes.say,
    )  # fmt: skip
    say_propensities(result.propensities, notes)
    say_likelihood(result.held_out, notes)
    notes.say(f"the model of what attracts is worth {result.strength:.1f} examined impressions per document")
    result.unbiased.save(output)
    if naive is not None:
        result.naive.save(naive)
    if test is None:
        print_table(propensity_table(result.propensities), show_as)
        return
    from gradrank.evaluation.compare import compare

    systems = {"naive": result.naive, "unbiased": result.unbiased}
    print_table(compare(test, systems, measures, baseline="naive", n_jobs=n_jobs).table(), show_as)
