"""``gradrank unbiased``: a ranker from clicks, freed of position bias, and a naive one beside it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.commands.propensity import propensity_table, say_likelihood, say_propensities
from gradrank.cli.common import Notes, check_writable, load_data, parse_measures, print_table
from gradrank.cli.parameters import parsed, takes_parameters
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.training import check_algorithm
from gradrank.errors import DataError
from gradrank.learners.nets.parameters import NetParameters
from gradrank.learners.trees.parameters import TreeParameters

if TYPE_CHECKING:
    from gradrank.evaluation.tables import Table
    from gradrank.selection.two_towers import TowerTraining
    from gradrank.selection.unbiased import ClickTraining

_OWN = ("base", "diagnostics", "checkpoint", "checkpoint_every", "positions", "early_stopping_rounds", "train_measure")


class Learner(StrEnum):
    """What learns from the clicks."""

    trees = "trees"
    two_towers = "two-towers"


@takes_parameters(TreeParameters, NetParameters, without=_OWN)
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
    learner: Annotated[
        Learner,
        typer.Option(
            "--learner",
            help="Boosted trees on labels that the click model corrects, or a net with a second tower for positions.",
        ),
    ] = Learner.trees,
    click_model: Annotated[
        options.ClickModelName,
        typer.Option("--click-model", help="How users are taken to look and click (trees)."),
    ] = options.ClickModelName.position,
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
    given = parsed(parameters)
    check_algorithm("lambdamart" if learner is Learner.trees else "lambdarank", given)
    if learner is Learner.two_towers and (
        propensities is not None
        or objective is not None
        or method is not options.PropensityMethod.auto
        or click_model is not options.ClickModelName.position
    ):
        raise DataError("--propensities, --method, --click-model and --objective are for --learner trees")
    from gradrank.data.clicks.propensity_files import read_propensities
    from gradrank.data.clicks.readers import read_click_log

    measures = parse_measures(measure or ["NDCG@10"])
    known = None if propensities is None else read_propensities(propensities)
    with notes.working(f"reading {log}"):
        sessions = read_click_log(log, log_format)
    loaded = load_data(data, notes, reading)
    test = None if judged is None else load_data(judged, notes, reading)
    result: ClickTraining | TowerTraining
    if learner is Learner.trees:
        from gradrank.selection.unbiased import OBJECTIVE, train_on_clicks

        result = train_on_clicks(
            loaded, sessions, click_model=click_model.value, propensities=known, method=method.value,
            objective=objective or OBJECTIVE, parameters=given, random_state=random_state, n_jobs=n_jobs, say=notes.say,
        )  # fmt: skip
        table = _say_model(result, loaded.n_docs, notes)
    else:
        from gradrank.selection.two_towers import train_two_towers

        result = train_two_towers(
            loaded, sessions, parameters=given, random_state=random_state, n_jobs=n_jobs, say=notes.say
        )
        table = _term_table(result)
    say_likelihood(result.held_out, notes)
    result.unbiased.save(output)
    if naive is not None:
        result.naive.save(naive)
    if test is None:
        if table is not None:
            print_table(table, show_as)
        return
    from gradrank.evaluation.compare import compare

    systems = {"naive": result.naive, "unbiased": result.unbiased}
    print_table(compare(test, systems, measures, baseline="naive", n_jobs=n_jobs).table(), show_as)


def _say_model(result: ClickTraining, n_docs: int, notes: Notes) -> Table | None:
    """What the click model found, and how many labels rest on clicks."""
    from gradrank.data.clicks.propensity import Propensities

    notes.say(
        f"{result.labeled:,} of {n_docs:,} documents have labels from their own clicks; the others have what a model "
        "of the features says"
    )
    if isinstance(result.model, Propensities):
        say_propensities(result.model, notes)
        return propensity_table(result.model)
    if not result.model.converged:
        notes.say(f"the click model {result.model.kind} has not converged; its labels may still move")
    return None


def _term_table(result: TowerTraining) -> Table:
    """What each position adds, as people read it."""
    from gradrank.evaluation.tables import Column, Table

    columns = (Column("position", "count"), Column("log-odds", "number"))
    return Table(columns, tuple(result.position_terms.items()))
