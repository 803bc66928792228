"""``gradrank profile``: how data is spread, to compare live data with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable, load_data
from gradrank.cli.reading import Reading, reads_data


@reads_data
def profile(
    data: options.DataFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Profile to write, as JSON.")],
    bins: Annotated[int, typer.Option("--bins", min=2, max=1000, help="Bins of a feature of many values.")] = 10,
    most_documents: Annotated[
        int, typer.Option("--max-documents", min=1, help="Of more documents a random sample is looked at.")
    ] = 100_000,
    random_state: options.Seed = 0,
    label: options.LabelFiles = None,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
) -> None:
    """Keep how the features and labels of DATA are spread, for 'gradrank check'. Models of 'gradrank train' have it."""
    notes = Notes(quiet)
    check_writable(output, data)
    loaded = load_data(data, notes, reading, label)
    from gradrank.data.feature_profile import profile_features

    with notes.working("looking at the data"):
        found = profile_features(loaded, bins=bins, most_documents=most_documents, random_state=random_state)
    found.save(output)
    notes.say(f"wrote {output}: {len(found.features):,} features of {found.looked_at:,} documents")
