"""``gradrank explain``: why one document stands above another."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data, print_table, print_text, with_features
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.evaluation.explanation import Explanation


class ExplanationFormat(StrEnum):
    """Forms of an explanation."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"
    html = "html"


class Against(StrEnum):
    """What a document is set against."""

    next = "next"
    mean = "mean"


class ReferenceChoice(StrEnum):
    """What a feature that is left out counts as."""

    training = "training"
    other = "other"


_SUFFIXES = {f".{form}": form for form in ExplanationFormat if form is not ExplanationFormat.table}


@reads_data
def explain(
    model: options.ModelFile,
    data: options.DataFile,
    query: Annotated[
        str | None, typer.Option("--query", metavar="QID", help="The query; needed if DATA has several.")
    ] = None,
    above: Annotated[
        str | None,
        typer.Option(
            "--above",
            metavar="DOC",
            help="A document of the query: its id, rank:N for a place in the ranking, or row:N for a row of DATA.",
        ),
    ] = None,
    below: Annotated[
        str | None,
        typer.Option("--below", metavar="DOC", help="The one to set it against; its neighbor by default."),
    ] = None,
    against: Annotated[
        Against,
        typer.Option("--against", help="Without --below: against the next in the ranking, or the query's mean."),
    ] = Against.next,
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="Without documents: explain the first N.")] = 10,
    features: Annotated[
        int, typer.Option("--features", metavar="N", min=1, help="Features of each pair to show (table, md, html).")
    ] = 10,
    reference: Annotated[
        ReferenceChoice | None,
        typer.Option(
            "--reference",
            help="What a feature left out of trees counts as: as in the training documents on average (Tree SHAP, the "
            "default where it can be had), or as in the other document.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; its suffix tells the form."),
    ] = None,
    show_as: Annotated[
        ExplanationFormat | None, typer.Option("--format", help="Form of the output; a table by default.")
    ] = None,
    *,
    reading: Reading,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Tell why one document stands above another: what each feature adds to the difference of their scores."""
    notes = Notes(quiet)
    form = _form(show_as, output)
    if output is not None:
        check_writable(output, model, data)
    from gradrank.models.registry import load_ranker, under_names_of

    ranker = load_ranker(model)
    loaded = load_data(data, notes, reading)
    with_features(loaded, data, ranker.feature_names, "the model")
    from gradrank.evaluation.explain import explain as explained

    with notes.working("explaining"):
        found = explained(
            under_names_of(ranker, loaded),
            loaded,
            query,
            above=above,
            below=below,
            against=against.value,
            top=top,
            reference=None if reference is None else reference.value,
            n_jobs=n_jobs,
        )
    for way in found.ways:
        notes.say(way)
    if output is None:
        _print(found, form, features)
        return
    from gradrank.runtime.files import replacing

    text = _text(found, form, features)
    with replacing(output) as temporary:
        temporary.write_bytes(text.encode("utf-8", "replace"))
    notes.say(f"wrote {output}")


def _form(asked: ExplanationFormat | None, output: Path | None) -> ExplanationFormat:
    if asked is not None or output is None:
        return asked or ExplanationFormat.table
    if output.suffix.lower() not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise DataError(f"its suffix tells no form, expected one of {known}, or --format", path=output)
    return _SUFFIXES[output.suffix.lower()]


def _print(found: Explanation, form: ExplanationFormat, features: int) -> None:
    if form is not ExplanationFormat.table:
        print_text(_text(found, form, features))
        return
    for table in found.tables(features) if len(found.contrasts) == 1 else [found.overview()]:
        print_table(table, options.OutputFormat.table)


def _text(found: Explanation, form: ExplanationFormat, features: int) -> str:
    from gradrank.evaluation.tables import to_json

    if form is ExplanationFormat.json:
        return to_json(found.to_dict())
    if form is ExplanationFormat.html:
        return found.to_html(features, page=True)
    if form is ExplanationFormat.csv:
        return found.table().to_csv()
    return "\n".join(table.to_markdown() for table in found.tables(features))
