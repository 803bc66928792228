"""What several commands do: say notes, load data with its label columns, show tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gradrank.cli.options import OutputFormat
from gradrank.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gradrank.data.ranking_data import RankingData
    from gradrank.evaluation.tables import Table


class Notes:
    """Says notes and progress on standard error, so that standard output holds results only."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def say(self, note: str) -> None:
        """Say one note."""
        if not self._quiet:
            typer.echo(f"gradrank: note: {note}", err=True)

    def working(self, what: str) -> AbstractContextManager[Any]:
        """Show what is being done while it lasts, if standard error is a terminal."""
        if self._quiet or not sys.stderr.isatty():
            return nullcontext()
        from rich.console import Console

        return Console(stderr=True).status(what)


def named_files(options: Sequence[str] | None) -> Iterator[tuple[str, Path]]:
    """Take ``NAME=FILE`` options apart.

    >>> list(named_files(["clicks=a=b.txt"]))
    [('clicks', PosixPath('a=b.txt'))]
    """
    seen = set()
    for option in options or ():
        name, equals, file = option.partition("=")
        if not (name and equals and file):
            raise DataError(f"--label is {option!r}, expected NAME=FILE")
        if name in seen:
            raise DataError(f"--label names {name!r} twice")
        seen.add(name)
        yield name, Path(file)


@dataclass(frozen=True)
class Reading:
    """How to read a data file, as the options of a command say."""

    format: str | None = None
    missing: bool = False
    zero_based: bool = False
    group: Path | None = None
    strict_order: bool = False

    def options(self) -> dict[str, Any]:
        """What was asked for, and nothing else: each format takes its own options and refuses others."""
        asked: dict[str, Any] = {}
        if self.missing:
            asked["missing"] = True
        if self.zero_based:
            asked["zero_based"] = True
        if self.group is not None:
            asked["group_file"] = self.group
        if self.strict_order:
            asked["regroup"] = False
        return asked


def load_data(path: Path, notes: Notes, reading: Reading, labels: Sequence[str] | None = None) -> RankingData:
    """Read data with label columns from ``NAME=FILE`` options; say if its rows were regrouped."""
    label_files = dict(named_files(labels))
    from gradrank.data.formats import read_data

    with notes.working(f"reading {path}"):
        data = read_data(path, format=reading.format, label_files=label_files, **reading.options())
    if data.rows is not None:
        notes.say(f"{path}: rows of some queries are not consecutive; they were brought together")
    return data


def first_fields(path: str | Path) -> list[bytes]:
    """The words of a text file's first line that is not blank."""
    from gradrank.data.compressed import read_bytes

    head = read_bytes(path)[: 1 << 16].tobytes().lstrip()
    return head.split(b"\n", 1)[0].split()


def print_table(table: Table, form: OutputFormat) -> None:
    """Print a table on standard output."""
    if form is OutputFormat.csv:
        print_text(table.to_csv())
    elif form is OutputFormat.json:
        print_text(table.to_json())
    elif form is OutputFormat.md:
        print_text(table.to_markdown())
    else:
        from rich.console import Console
        from rich.measure import Measurement

        # Into a file or pipe nothing is folded: whoever reads it there has no width to fit.
        console = Console(width=None if sys.stdout.isatty() else 10_000)
        shown = table.to_rich()
        if Measurement.get(console, console.options.update(width=10_000), shown).minimum > console.width:
            shown = table.expanded().to_rich()
        with console.capture() as captured:
            console.print(shown)
        print_text(captured.get())


def print_text(text: str) -> None:
    """Print text on standard output as it is."""
    sys.stdout.write(text)


def data_suffix(path: Path) -> str:
    """The ending of a data file's name, compression included; ``.txt`` if it has no known one.

    >>> data_suffix(Path("MQ2007.S1.txt.xz")), data_suffix(Path("rank.train"))
    ('.txt.xz', '.txt')
    """
    from gradrank.data.compressed import without_compression_suffix
    from gradrank.data.formats import format_of

    try:
        format_of(path)
    except DataError:
        return ".txt"
    return path.name[len(without_compression_suffix(path).stem) :]


def write_part(data: RankingData, folder: Path, name: str, suffix: str) -> None:
    """Write one part of a data set as ``name`` + ``suffix``.

    LETOR text holds one label; further label sources go beside it as ``name.source.txt``, one number a line.
    """
    from gradrank.data.formats import LETOR, format_of, write_data

    path = folder / f"{name}{suffix}"
    write_data(data, path)
    if format_of(path) is LETOR:
        for source in data.label_names[1:]:
            write_labels(data.label(source), folder / f"{name}.{source}.txt")


def write_labels(labels: NDArray[np.float32], path: Path) -> None:
    """Write a label column, one number a line, each as short as reads back the same float32."""
    from gradrank.data.columns import write_column

    write_column(labels.astype("U").astype("f8"), path)


def make_folder(path: Path) -> None:
    """Make a folder to write to, if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "is a file, expected a folder" if path.is_file() else f"cannot be made: {error.strerror}"
        raise DataError(reason, path=path) from None
