"""``gradrank importance``: which features a model looks at."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, load_data, print_table, with_features
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError, GradrankError

if TYPE_CHECKING:
    from gradrank.evaluation.tables import Table
    from gradrank.measures import Measure
    from gradrank.models.ranker import Ranker

_DEFAULT_MEASURE = "NDCG@10"


class Kind(StrEnum):
    """Kinds of importance."""

    gain = "gain"
    splits = "split"
    permutation = "permutation"


@reads_data
def importance(
    model: options.ModelFile,
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind", help="Summed gain of a feature's splits, their number, or what the measure loses without it."
        ),
    ] = Kind.gain,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="permutation: data with labels to measure on.")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option("--measure", "-m", metavar="MEASURE", help="permutation: the measure; the model's by default."),
    ] = None,
    convention: options.ConventionName = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="permutation: shuffles per feature.")] = 5,
    top: Annotated[int | None, typer.Option("--top", metavar="N", min=1, help="Show only the first N.")] = None,
    label: options.LabelFiles = None,
    *,
    reading: Reading,
    show_as: options.ShowAs = options.OutputFormat.table,
    random_state: options.Seed = 0,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """List a model's features by importance."""
    notes = Notes(quiet)
    if kind is Kind.permutation and data is None:
        raise DataError("--kind permutation needs data to measure on: give --data FILE")
    if data is None and reading.words():
        raise DataError(f"{reading.words()[0]} says how to read data: give --data FILE")
    if kind is not Kind.permutation and (data is not None or measure is not None or convention is not None):
        raise DataError(f"--data, --measure and --convention go with --kind permutation, not with {kind}")
    from gradrank.models.registry import load_ranker

    ranker = load_ranker(model)
    if data is None:
        print_table(_by_splits(ranker, model, kind, top), show_as)
        return
    chosen = _measure(ranker, measure, convention)
    loaded = load_data(data, notes, reading, label)
    loaded = with_features(loaded, data, ranker.feature_names, "the model")
    from gradrank.evaluation.importance import permutation_importance

    with notes.working("shuffling features"):
        try:
            found = permutation_importance(
                ranker, loaded, chosen, repeats=repeats, random_state=random_state, n_jobs=n_jobs
            )
        except GradrankError as error:
            raise DataError(str(error), path=data) from None
    table = found.table()
    print_table(replace(table, rows=table.rows[:top], title=f"{model}: {table.title}"), show_as)


def _by_splits(ranker: Ranker, model: Path, kind: Kind, top: int | None) -> Table:
    try:
        values = ranker.feature_importance("gain" if kind is Kind.gain else "split")
    except GradrankError as error:
        raise DataError(f"{error} (--kind permutation works for all)", path=model) from None
    total = float(values.sum())
    numbers = values.tolist() if kind is Kind.gain else [int(value) for value in values]
    rows = [
        (name, value, value / total if total else 0.0)
        for name, value in zip(ranker.feature_names, numbers, strict=True)
    ]
    columns = [("feature", "text"), (str(kind), "number" if kind is Kind.gain else "count"), ("share", "number")]
    return _table(columns, rows, f"{model}: importance by {kind}", top)


def _table(columns: list[tuple[str, Any]], rows: list[tuple[Any, ...]], title: str, top: int | None) -> Table:
    from gradrank.evaluation.tables import Column, Table

    rows = sorted(rows, key=lambda row: -row[1])[:top]
    return Table(tuple(Column(name, kind) for name, kind in columns), tuple(rows), title)


def _measure(ranker: Ranker, name: str | None, convention: str | None) -> Measure:
    from gradrank.measures import parse_measure

    named = str(ranker.training.get("measure") or _DEFAULT_MEASURE) if name is None else name
    # The first part of a graded measure is what it is chosen by; the others only settle ties.
    return parse_measure(named, convention=convention).parts[0]
