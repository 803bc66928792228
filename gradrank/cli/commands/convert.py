"""``gradrank convert``: data from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data
from gradrank.cli.reading import Reading, reads_data
from gradrank.cli.shared_files import shared_convert
from gradrank.cli.streaming import form_of, is_large, is_streamed, source_of, weighs_documents
from gradrank.cli.workers import Scheduler, Workers, check_workers
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData

_TOP_K = "Top-k truth"
_SHOWN_NAMES = 12


@reads_data
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="Data file to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Data file to write.")],
    format_to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="Format of OUT, if its suffix does not tell.")
    ] = None,
    *,
    reading: Reading,
    label: options.LabelFiles = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            "--top-k",
            metavar="K",
            min=1,
            help="Turn the grades into a top-k truth: a random order that respects them; labels K…1 for the top K.",
            rich_help_panel=_TOP_K,
        ),
    ] = None,
    preferences: Annotated[
        Path | None,
        typer.Option(
            "--preferences",
            metavar="FILE",
            help="Take the top-k truth from judgments: lines of query, document, document, winner.",
            rich_help_panel=_TOP_K,
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            "--truth", metavar="FILE", help="Take the top-k truth from a .jsonl file.", rich_help_panel=_TOP_K
        ),
    ] = None,
    random_state: Annotated[
        int, typer.Option("--random-state", "--seed", min=0, help="Of the random order.", rich_help_panel=_TOP_K)
    ] = 0,
    workers: Workers = None,
    scheduler: Scheduler = None,
    quiet: options.Quiet = False,
) -> None:
    """Convert data between LETOR text, Parquet, Arrow, CSV and the memory-mapped binary form.

    IN may be larger than memory.

    An OUT that ends in .jsonl gets the top-k truth alone: one line a query, documents by id.
    With --workers or --scheduler IN may be a folder or a pattern, and OUT is a folder: a file for each, as --to says.
    """
    notes = Notes(quiet)
    if check_workers(workers, scheduler):
        wrong = {"--top-k": top_k, "--preferences": preferences, "--truth": truth, "--label": label}
        shared_convert(source, target, format_to, reading, wrong, workers, scheduler, notes)
        return
    from gradrank.data.formats.registry import LETOR, format_of, write_data

    to_jsonl = format_to is None and ".jsonl" in target.suffixes
    to_letor = not to_jsonl and (format_to or format_of(target).name) == LETOR.name
    if preferences is not None and (top_k is None or truth is not None):
        raise DataError("--preferences goes with --top-k K and without --truth")
    if truth is not None and top_k is not None:
        raise DataError("--truth holds a top-k truth already: leave out --top-k")
    path = Path(source)
    is_pipe = path.exists() and not path.is_file() and not path.is_dir()
    if top_k is None and truth is None and not label and not to_jsonl and not is_pipe:
        form = form_of(path, reading)
        to_binary = (format_to or format_of(target).name) == "binary"
        by_blocks = form.name != "binary" and is_streamed(path, reading)
        # Weights of documents are not read by blocks.
        if by_blocks and (to_binary or is_large(path, reading)) and not weighs_documents(path, reading):
            _convert_by_blocks(path, target, format_to, notes, reading, to_binary=to_binary, to_letor=to_letor)
            return
    data = load_data(path, notes, reading, label)
    if top_k is not None or truth is not None:
        data = _with_truth(data, top_k, preferences, truth, random_state, notes)
    with notes.working(f"writing {target}"):
        if to_jsonl:
            from gradrank.data.formats.topk_files import write_top_k

            write_top_k(data, target)
            return
        write_data(data, target, format=format_to)
    if to_letor:
        _say_lost(data, target, notes)


def _convert_by_blocks(
    source: Path,
    target: Path,
    format_to: str | None,
    notes: Notes,
    reading: Reading,
    *,
    to_binary: bool,
    to_letor: bool,
) -> None:
    """Convert without holding the data: into the binary form, and from there, mapped, into any other."""
    from gradrank.data.formats.binary import open_binary
    from gradrank.data.formats.registry import write_data
    from gradrank.data.streaming.to_binary import convert_to_binary
    from gradrank.runtime.files import temporary_folder

    rows = source_of(source, reading)
    regroup = reading.options.get("regroup", True)
    with notes.progress(f"reading {source}", rows.size) as progress:
        if to_binary:
            if convert_to_binary(rows, target, regroup=regroup, progress=progress):
                notes.say_regrouped(source)
            return
        check_writable(target)
        with temporary_folder(target) as folder:
            between = folder / "data.gradrank"
            if convert_to_binary(rows, between, regroup=regroup, progress=progress):
                notes.say_regrouped(source)
            data = open_binary(between)
            write_data(data, target, format=format_to)
            if to_letor:
                _say_lost(data, target, notes)


def _say_lost(data: RankingData, target: Path, notes: Notes) -> None:
    from gradrank.data.ranking_data import default_feature_names

    lost = [f"label {name!r}" for name in data.label_names[1:]]
    if data.weight is not None:
        lost.append("query weights")
    if data.document_weight is not None:
        lost.append("document weights")
    if lost:
        notes.say(f"{target}: LETOR text has no place for {', '.join(lost)}")
    if set(data.feature_names) != set(default_feature_names(data.n_features)):
        shown = [f"{number} = {name!r}" for number, name in enumerate(data.feature_names[:_SHOWN_NAMES], 1)]
        more = ", …" if data.n_features > _SHOWN_NAMES else ""
        notes.say(f"{target}: LETOR text has no place for names: its features are {', '.join(shown)}{more}")


def _with_truth(
    data: RankingData, top_k: int | None, preferences: Path | None, truth: Path | None, random_state: int, notes: Notes
) -> RankingData:
    """The data with a top-k truth in place of its primary label."""
    import numpy as np

    from gradrank.data.formats.topk_files import read_preferences, read_top_k
    from gradrank.data.ranking_data import PRIMARY_LABEL
    from gradrank.data.topk import is_top_k, top_k_labels, with_preferences, with_truth

    name = data.label_names[0] if data.label_names else PRIMARY_LABEL
    if truth is not None:
        made = with_truth(data, read_top_k(truth), name=name)
    elif preferences is not None:
        assert top_k is not None
        made = with_preferences(data, read_preferences(preferences), top_k, random_state=random_state, name=name)
    else:
        assert top_k is not None
        if is_top_k(data.label(), data.indptr):
            notes.say("the labels are a top-k truth already: its order is kept")
        return data.with_label(name, top_k_labels(data.label(), data.indptr, top_k, random_state))
    unjudged = int(np.isnan(made.label()).sum())
    if unjudged == made.n_docs:
        raise DataError("names no query and document of the data", path=truth or preferences)
    if unjudged:
        notes.say(f"{unjudged:,} of {made.n_docs:,} documents are not in the truth: they are unjudged")
    return made
