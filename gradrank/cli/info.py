"""``gradrank info``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, Reading, load_data, print_table, print_text

if TYPE_CHECKING:
    from gradrank.data.profile import LabelProfile, Profile
    from gradrank.evaluation.tables import Table

_LONGEST_LIST = 20


def info(
    data: options.DataFile,
    label: options.LabelFiles = None,
    format_from: options.FormatName = None,
    missing: options.Missing = False,
    zero_based: options.ZeroBased = False,
    group: options.Group = None,
    show_as: Annotated[
        options.TableOrJson, typer.Option("--format", help="Form of the output.")
    ] = options.TableOrJson.table,
    quiet: options.Quiet = False,
) -> None:
    """Describe data: its size, its labels, and what is likely to go wrong with it."""
    notes = Notes(quiet)
    loaded = load_data(data, notes, Reading(format_from, missing, zero_based, group), label)
    from gradrank.data.profile import profile

    with notes.working("looking at the data"):
        found = profile(loaded)
    if show_as is options.TableOrJson.json:
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
            "documents a query",
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
