"""``gradrank split``: data cut into folds or shares of queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, data_suffix, load_data, make_folder, write_part
from gradrank.cli.reading import Reading, reads_data
from gradrank.errors import DataError

_NAMES = {1: ("sample",), 2: ("train", "test"), 3: ("train", "vali", "test")}


@reads_data
def split(
    data: options.DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder to write to; made if missing.")],
    folds: Annotated[
        int | None,
        typer.Option("--folds", metavar="K", min=3, help="K folds of train, vali and test, rotated as LETOR does."),
    ] = None,
    fractions: Annotated[
        str | None,
        typer.Option(
            "--fractions",
            metavar="A,B,…",
            help="Shares of the queries: one (sample), two (train, test) or three (train, vali, test).",
        ),
    ] = None,
    label: options.LabelFiles = None,
    *,
    reading: Reading,
    random_state: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Cut data by query at random, into folds or by shares."""
    notes = Notes(quiet)
    if (folds is None) == (fractions is None):
        raise DataError("give --folds or --fractions, one of the two")
    shares = [] if fractions is None else _shares(fractions)
    whole = load_data(data, notes, reading, label)
    from gradrank.data.splits import k_folds, letor_folds, split_queries

    suffix = data_suffix(data)
    if folds is None:
        parts = split_queries(whole, shares, random_state)
        make_folder(out)
        for name, part in zip(_NAMES[len(shares)], parts, strict=True):
            write_part(part, out, name, suffix)
        return
    tests = [test for _, test in k_folds(whole, folds, random_state)]
    for number, fold in enumerate(letor_folds(tests), start=1):
        folder = out / f"Fold{number}"
        with notes.working(f"writing {folder}"):
            make_folder(folder)
            for name, part in zip(_NAMES[3], fold, strict=True):
                write_part(part, folder, name, suffix)


def _shares(fractions: str) -> list[float]:
    try:
        shares = [float(share) for share in fractions.split(",")]
    except ValueError:
        raise DataError(f"--fractions is {fractions!r}, expected numbers with commas between") from None
    if len(shares) not in _NAMES:
        raise DataError(f"--fractions has {len(shares)} numbers, expected one to three")
    return shares
