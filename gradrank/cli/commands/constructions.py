"""``gradrank constructions``: the λ constructions of a measure, compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, load_data, print_table, print_text, with_features
from gradrank.cli.interruption import EXIT_INTERRUPTED
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError


@reads_data
def constructions(
    train_file: Annotated[Path | None, typer.Option("--train", metavar="FILE", help="Data to learn from.")] = None,
    valid_file: Annotated[
        Path | None, typer.Option("--valid", metavar="FILE", help="Data to choose each model and to compare on.")
    ] = None,
    measure: Annotated[
        str, typer.Option("--measure", "-m", metavar="MEASURE", help="The measure to learn for.")
    ] = "MAP",
    algorithm: Annotated[
        str,
        typer.Option("--algorithm", metavar="NAME", help="lambdamart or lambdarank."),
    ] = "lambdamart",
    construction: Annotated[
        list[str] | None,
        typer.Option("--construction", metavar="NAME", help="Only this one; repeatable; e.g. 'local-cost(reach=3)'."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", metavar="KEY=VALUE", help="A parameter of the learner, such as n_estimators=100."),
    ] = None,
    label: options.LabelFiles = None,
    valid_label: Annotated[
        list[str] | None, typer.Option("--valid-label", metavar="NAME=FILE", help="The same for --valid.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the constructions and end.")] = False,
    *,
    reading: Reading,
    random_state: options.Seed = 0,
    n_jobs: options.Threads = None,
    show_as: options.ShowAs = options.OutputFormat.table,
    quiet: options.Quiet = False,
) -> None:
    """Compare the λ constructions of a measure on validation data."""
    if list_all:
        _list(show_as)
        return
    if train_file is None or valid_file is None:
        raise DataError("--train FILE and --valid FILE are needed (--list shows the constructions)")
    notes = Notes(quiet)
    # What the options say is checked before data is read, which may take long.
    from gradrank.experiments.constructions import check_study, study_constructions

    parameters = _parameters(parameter)
    check_study(measure, construction, algorithm, parameters)
    train = load_data(train_file, notes, reading, label)
    valid = load_data(valid_file, notes, reading, valid_label, "--valid-label")
    valid = with_features(valid, valid_file, train.feature_names, str(train_file), is_model=False)
    with notes.working("training"):
        study = study_constructions(
            train,
            valid,
            measure,
            constructions=construction,
            algorithm=algorithm,
            parameters=parameters,
            random_state=random_state,
            n_jobs=n_jobs,
            said=lambda name, value: notes.say(f"{name}: {measure} {value:.4f}"),
        )
    for note in (*study.evaluation.notes(), *(study.comparison.notes() if study.comparison else ())):
        notes.say(note)
    if show_as is options.OutputFormat.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json(study.to_dict()))
    else:
        print_table(study.table(), show_as)
    if study.interrupted:
        notes.say("interrupted: these are the constructions that were done")
        raise typer.Exit(EXIT_INTERRUPTED)


def _list(show_as: options.OutputFormat) -> None:
    from dataclasses import fields

    from gradrank.evaluation.tables import Column, Table
    from gradrank.objectives import CONSTRUCTIONS

    rows = tuple(
        (
            name,
            ", ".join(f"{item.name}={item.default:g}" for item in fields(kind)),
            "yes" if kind.usable_curvature else "no",
            kind.summary().rstrip("."),
        )
        for name, kind in CONSTRUCTIONS.items()
    )
    columns = (Column("construction"), Column("options"), Column("Newton steps"), Column("λ's"))
    print_table(Table(columns, rows), show_as)


def _parameters(pairs: Sequence[str] | None) -> dict[str, Any]:
    words = {"true": True, "false": False, "none": None}
    found: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise DataError(f"--parameter is {pair!r}, expected KEY=VALUE")
        found[key] = words[value.lower()] if value.lower() in words else options.number_or_text(value)
    return found
