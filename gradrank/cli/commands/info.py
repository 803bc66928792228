"""``gradrank info``: what is in a data or model file."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data, print_table, print_text
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.data.profile import LabelProfile, Profile
    from gradrank.evaluation.tables import Table
    from gradrank.models.ranker import Ranker

_LONGEST_LIST = 20


class InfoFormat(StrEnum):
    """How what is known of a file goes to standard output."""

    table = "table"
    json = "json"
    md = "md"
    html = "html"


@reads_data
def info(
    data: Annotated[Path, typer.Argument(metavar="FILE", help="Data or model file, known by its suffix or content.")],
    label: options.LabelFiles = None,
    *,
    reading: Reading,
    show_as: Annotated[
        InfoFormat, typer.Option("--format", help="Form of the output; md and html are the card of a model.")
    ] = InfoFormat.table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the card; standard output if none.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Describe data (size, labels, what is likely to go wrong with it) or a model (what it is, how it was trained)."""
    notes = Notes(quiet)
    if output is not None:
        check_writable(output, data)
    if reading.format is None and _is_model(data):
        _model_info(data, show_as, output)
        return
    if show_as in (InfoFormat.md, InfoFormat.html) or output is not None:
        raise DataError("is data: --output and the formats md and html are for cards of models", path=data)
    loaded = load_data(data, notes, reading, label)
    from gradrank.data.profile import profile

    with notes.working("looking at the data"):
        found = profile(loaded)
    if show_as is InfoFormat.json:
        from gradrank.evaluation.tables import to_json

        print_text(to_json({"file": str(data), **found.to_dict()}))
        return
    print_table(_sizes(str(data), found), options.OutputFormat.table)
    for source in found.labels:
        print_table(_label(source), options.OutputFormat.table)
    for warning in found.warnings:
        print_text(f"! {warning}\n")


def _sizes(name: str, found: Profile) -> Table:
    rows = [
        ("queries", f"{found.queries:,}"),
        ("documents", f"{found.documents:,}"),
        (
            "documents per query",
            f"{found.documents_min:,} to {found.documents_max:,}, median {found.documents_median:,g}",
        ),
        ("queries with one document", f"{found.queries_with_one_document:,}"),
        ("features", f"{found.features:,}"),
        ("constant features", _listed(found.constant_features)),
        ("features with missing values", _listed([f"{key} ({count:,})" for key, count in found.missing.items()])),
        ("documents repeated in their query", f"{found.duplicate_documents:,}"),
    ]
    return _facts(name, rows)


def _label(source: LabelProfile) -> Table:
    rows = [("judged documents", f"{source.judged:,}"), ("unjudged documents", f"{source.unjudged:,}")]
    rows += [
        (f"label {value}", f"{count:,} ({count / source.judged:.1%})") for value, count in (source.counts or {}).items()
    ]
    rows += [(f"quantile {share}", f"{value:g}") for share, value in (source.quantiles or {}).items()]
    rows += [
        ("queries without a judged document", f"{source.queries_unjudged:,}"),
        ("queries without a relevant document", f"{source.queries_without_relevant:,}"),
        ("queries with all labels equal", f"{source.queries_all_equal:,}"),
        ("queries sorted by label", f"{source.queries_sorted:,}"),
    ]
    return _facts(f"label {source.name!r}", rows)


def _facts(title: str, rows: list[tuple[str, str]]) -> Table:
    from gradrank.evaluation.tables import Column, Table

    return Table((Column(""), Column("")), tuple(rows), title)


def _listed(names: Any) -> str:
    if not names:
        return "0"
    more = ", …" if len(names) > _LONGEST_LIST else ""
    return f"{len(names):,}: {', '.join(list(names)[:_LONGEST_LIST])}{more}"


# ---------------------------------------------------------------------- models
def _is_model(path: Path) -> bool:
    """Whether a file starts as saved models do.

    JSON and UBJSON start with a brace, LightGBM's text with ``tree``, safetensors with the length of their header;
    the registry knows other tools' beginnings.
    """
    if not path.is_file():
        return False
    from gradrank.models.nets.tensor_file import is_tensor_file

    with open(path, "rb") as file:
        head = file.read(64)
    if is_tensor_file(head, path.stat().st_size):
        return True
    from gradrank.models.exchange.registry import IMPORTS

    start = head.lstrip()
    if start.startswith(b"{") or start.split(b"\n")[0].strip() == b"tree":
        return True
    return any(form.recognized(head) for form in IMPORTS.values())


def _model_info(path: Path, show_as: InfoFormat, output: Path | None) -> None:
    from gradrank.models.display.curves import items, learning_curves
    from gradrank.models.registry import load_ranker

    ranker = load_ranker(path)
    if show_as is not InfoFormat.table:
        _write_card(path, ranker, show_as, output)
        return
    if output is not None:
        raise DataError("--output is for cards: give --format md, html or json as well")
    facts = _model_facts(path, ranker)
    training = ranker.training
    rows = [(key.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
            for key, value in facts.items() if key not in ("file", "features_used")]  # fmt: skip
    rows.append(("features used", _listed(facts["features_used"])))
    rows += [(key, str(training[key])) for key in ("source", "learner", "objective", "measure") if training.get(key)]
    if "best" in training and "grown" in training:
        cut = ", interrupted" if training.get("interrupted") else ""
        rows.append(("best step", f"{_told(training['best'])} of {_told(training['grown'])}{cut}"))
    held = training.get("held_out")
    if isinstance(held, Mapping):
        queries, best = (_told(held.get(key)) for key in ("queries", "best"))
        rows.append(("held out", f"{queries} queries in a first training, best at step {best}"))
    by_data = training.get("by_data")
    if isinstance(by_data, list | tuple) and by_data:
        rows.append(("set by the data", ", ".join(map(str, by_data))))
    rows += [
        (f"{measure} on {name}", _curve(curve))
        for measure, curves in learning_curves(training).items()
        for name, curve in curves.items()
    ]
    rows += [
        (f"effective pairs of {name}", f"{_told(counts[0])} at step 1, last {_told(counts[-1])}")
        for name, counts in items(training.get("effective_pairs"))
        if isinstance(counts, list | tuple) and counts
    ]
    notes = training.get("notes")
    rows += [("note", str(note)) for note in notes] if isinstance(notes, list | tuple) else []
    rows += [(f"training {key}", _told(count)) for key, count in items(training.get("data"))]
    rows += [("training seconds", _told(training["seconds"]))] if "seconds" in training else []
    rows += [(f"version of {key}", str(number)) for key, number in items(training.get("versions"))]
    print_table(_facts(str(path), rows), options.OutputFormat.table)
    parameters = [(key, str(value)) for key, value in items(training.get("parameters")) if value is not None]
    if parameters:
        print_table(_facts("parameters", parameters), options.OutputFormat.table)
    if training.get("command"):
        # Not in the table, which would fold it: it is there to be copied.
        print_text(f"command\n{training['command']}\n")


def _write_card(path: Path, ranker: Ranker, show_as: InfoFormat, output: Path | None) -> None:
    from gradrank.evaluation.tables import to_json
    from gradrank.report.model_card import ModelCard
    from gradrank.runtime.files import replacing

    card = ModelCard(ranker, path)
    if show_as is InfoFormat.json:
        text = to_json(card.to_dict())
    else:
        text = card.to_markdown() if show_as is InfoFormat.md else card.to_html()
    if output is None:
        print_text(text)
        return
    with replacing(output) as temporary:
        temporary.write_bytes(text.encode("utf-8", "replace"))


def _model_facts(path: Path, ranker: Ranker) -> dict[str, Any]:
    return {
        "file": str(path),
        "kind": ranker.kind,
        **ranker.shape(),
        "features": ranker.n_features,
        "features_used": list(ranker.used_features()),
    }


def _told(value: Any) -> str:
    """A fact of a training; files of strangers may hold anything."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _curve(values: list[float]) -> str:
    best = max(range(len(values)), key=lambda step: (values[step] == values[step], values[step]))
    return f"{values[0]:.4f} at step 1, best {values[best]:.4f} at step {best + 1}, last {values[-1]:.4f}"
