"""``gradrank clicks``: click labels from a click log."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data, write_labels
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.data.clicks.labels import ClickLabels


class Method(StrEnum):
    """Names of the click labels."""

    last = "last"
    ctr = "ctr"
    debiased = "debiased"
    examined = "examined"
    cascade = "cascade"
    dbn = "dbn"


class Likeness(StrEnum):
    """What makes queries alike."""

    clicks = "clicks"
    tokens = "tokens"
    edits = "edits"


@reads_data
def clicks(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Click log: JSON lines, CSV, TSV or PyClick's text.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write all labels as tab-separated rows."),
    ] = None,
    join: Annotated[
        Path | None, typer.Option("--join", metavar="DATA", help="Data with document ids to join the labels to.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the joined labels: data with one more label (.parquet, .csv, .gradrank, …), "
            "or else one number per line in DATA's row order.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the label source in joined data.")] = "clicks",
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="Share of last clicks, of clicks, of clicks freed of position bias, clicks per "
            "examined impression (needs --propensities), or by a model of users who read from the top.",
        ),
    ] = Method.last,
    min_impressions: Annotated[
        int, typer.Option("--min-impressions", min=1, help="Documents shown less often get no label.")
    ] = 1,
    prior: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--prior",
            help="Clicked and unclicked sessions added to each document; none if not given, or for "
            "examined those that the log suggests.",
        ),
    ] = None,
    propensities: options.PropensityFile = None,
    similar: Annotated[
        Likeness | None,
        typer.Option("--similar", help="Add clicks of similar queries, alike by co-clicks, words or edits."),
    ] = None,
    similar_threshold: Annotated[
        float, typer.Option("--similar-threshold", min=0.01, max=1, help="Least likeness of similar queries.")
    ] = 0.5,
    log_format: Annotated[
        str | None, typer.Option("--log-format", metavar="FORMAT", help="jsonl, csv, tsv or pyclick.")
    ] = None,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
) -> None:
    """Make click labels from a click log, and join them to data."""
    notes = Notes(quiet)
    if (join is None) != (out is None):
        raise DataError("--join and --out are given together: the data to join to, and the file to write")
    if output is None and out is None:
        raise DataError("there is nothing to write: give -o FILE, or --join DATA with --out FILE")
    from gradrank.data.clicks.label_files import write_click_labels
    from gradrank.data.clicks.propensity_files import read_propensities
    from gradrank.data.clicks.streaming import stream_click_labels

    if (method is Method.examined) != (propensities is not None):
        raise DataError("--method examined and --propensities FILE go together")
    if output is not None:
        check_writable(output)
    if out is not None and not out.is_dir():  # a folder may be data in binary form, to be replaced
        check_writable(out)
    known = None if propensities is None else read_propensities(propensities)
    with notes.working(f"reading {log}"):
        read = stream_click_labels(
            log, method.value, format=log_format, min_impressions=min_impressions, prior=prior, propensities=known
        )
    labels = read.labels
    notes.say(f"{log}: {_count(read.sessions, 'session')}, {read.impressions:,} documents shown, "
              f"{read.clicks:,} clicked")  # fmt: skip
    if read.clicks_not_shown:
        notes.say(f"{log}: {_count(read.clicks_not_shown, 'click')} on documents not shown are not counted")
    if similar is not None:
        from gradrank.data.clicks.similar import with_similar_queries

        with notes.working("looking for similar queries"):
            found = with_similar_queries(
                labels, similar.value, threshold=similar_threshold, min_impressions=min_impressions
            )
        labels = found.labels
        notes.say(
            f"{_count(found.pairs, 'pair')} of similar queries: {found.labels_won:,} labels won beside "
            f"{found.labels_before:,}, {found.labels_changed:,} changed, in {found.queries_helped:,} queries"
        )
    if labels.examination is not None and not labels.examination.converged:
        notes.say("the position-based model has not converged; its labels may still move")
    # The join first: data that does not fit is found before anything is written.
    if join is not None and out is not None:
        _join(labels, join, out, name, reading, notes)
    if output is not None:
        write_click_labels(labels, output)


def _join(labels: ClickLabels, path: Path, out: Path, name: str, reading: Reading, notes: Notes) -> None:
    from gradrank.data.clicks.joining import join_clicks
    from gradrank.data.formats.registry import LETOR, format_of, write_data

    data, counts = join_clicks(load_data(path, notes, reading), labels, name)
    try:
        holds_labels = format_of(out) is not LETOR
    except DataError:
        holds_labels = False
    if holds_labels:
        write_data(data, out)
    else:
        write_labels(data.in_input_order(data.label(name)), out)
    notes.say(
        f"{path}: {counts.documents_matched:,} of {data.n_docs:,} documents matched "
        f"({counts.documents_labeled:,} have a label), {counts.queries_matched:,} of {data.n_queries:,} queries; "
        f"{_count(counts.rows_unused, 'row')} of click labels unused"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
