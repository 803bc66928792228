"""What several commands do: say notes, load data with its label columns, show tables."""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import typer

from gradrank.cli.options import NumberOrText, OutputFormat
from gradrank.cli.reading import Reading
from gradrank.errors import DataError, GradrankWarning
from gradrank.runtime.files import is_special
from gradrank.runtime.first_use import on_compiling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gradrank.data.ranking_data import RankingData
    from gradrank.evaluation.tables import Table
    from gradrank.measures import AnyMeasure


class Notes:
    """Says notes and progress on standard error, so that standard output holds results only."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        # What the library warns of is a note here; the group of commands restores the way warnings are shown.
        warnings.simplefilter("always", GradrankWarning)
        warnings.showwarning = self._show_warning
        if not quiet and sys.stderr.isatty():
            on_compiling(lambda: self.say("compiling kernels for their first use here; they are kept"))

    def say(self, note: str) -> None:
        """Say one note."""
        if not self._quiet:
            typer.echo(f"gradrank: note: {note}", err=True)

    def say_regrouped(self, path: Path) -> None:
        """Say that rows were moved."""
        self.say(f"{path}: rows of some queries are not consecutive; they were brought together")

    def _show_warning(self, message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, GradrankWarning):
            self.say(str(message))
        else:
            sys.stderr.write(warnings.formatwarning(message, category, *place[:2]))

    def working(self, what: str) -> AbstractContextManager[Any]:
        """Show what is being done while it lasts, if standard error is a terminal."""
        if self._quiet or not sys.stderr.isatty():
            return nullcontext()
        from rich.console import Console

        return Console(stderr=True).status(what)

    @contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Show how far a file was read, if standard error is a terminal; gives what is to be told the bytes so far."""
        if self._quiet or not sys.stderr.isatty():
            yield lambda done: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task(what, total=total)
            yield lambda done: shown.update(task, completed=done)


def named_files(options: Sequence[str] | None, flag: str = "--label") -> Iterator[tuple[str, Path]]:
    """Take ``NAME=FILE`` options apart.

    >>> list(named_files(["clicks=a=b.txt"]))
    [('clicks', PosixPath('a=b.txt'))]
    """
    seen = set()
    for option in options or ():
        name, equals, file = option.partition("=")
        if not (name and equals and file):
            raise DataError(f"{flag} is {option!r}, expected NAME=FILE")
        if name in seen:
            raise DataError(f"{flag} names {name!r} twice")
        seen.add(name)
        yield name, Path(file)


def load_data(
    path: Path, notes: Notes, reading: Reading, labels: Sequence[str] | None = None, flag: str = "--label"
) -> RankingData:
    """Read data with label columns from ``NAME=FILE`` options; say if its rows were regrouped."""
    label_files = dict(named_files(labels, flag))
    from gradrank.data.formats import registry

    reading.check(registry.format_to_read(path, reading.format), path)
    with notes.working(f"reading {path}"):
        data = registry.read_data(path, format=reading.format, label_files=label_files, **reading.options)
    if data.rows is not None:
        notes.say_regrouped(path)
    return data


def with_features(
    data: RankingData, path: Path, names: Sequence[str], owner: str, *, is_model: bool = True
) -> RankingData:
    """The data with the features that ``owner``, a model or a file, has, found by name; if it lacks some, an error.

    Names that only number the features tell nothing: then there must be equally many.
    """
    from gradrank.data.formats.letor import width_hint
    from gradrank.data.ranking_data import default_feature_names
    from gradrank.errors import FeatureMismatch
    from gradrank.models.features import feature_matrix

    if data.feature_names == tuple(names):
        return data
    numbered = data.feature_names == default_feature_names(data.n_features)
    if numbered and data.n_features != len(names):
        mismatch = FeatureMismatch(found=data.n_features, expected=len(names))
        hint = width_hint(data.n_features, len(names), perhaps_from_zero=is_model)
        raise DataError(f"{mismatch.said_of(owner)}{hint}", path=path)
    try:
        matrix = feature_matrix(data, names)
    except FeatureMismatch as error:
        raise DataError(error.said_of(owner), path=path) from None
    return replace(data, X=matrix, feature_names=tuple(names))


def parse_measures(names: Sequence[str] | None, convention: str | None = None) -> list[AnyMeasure]:
    """Measures by name, or the usual ones; those that name no convention have the one given.

    Of the usual measures, those that the convention lacks are left out.
    """
    from gradrank.measures import DEFAULT_MEASURES, Measure, parse_measure
    from gradrank.measures.conventions import convention as convention_of

    if names:
        return [parse_measure(name, convention=convention) for name in names]
    usual = [parse_measure(name) for name in DEFAULT_MEASURES]
    if convention is None:
        return usual
    rules = convention_of(convention)
    defined = [str(item) for item in usual if isinstance(item, Measure) and rules.defines(item.name)]
    return [parse_measure(name, convention=convention) for name in defined]


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
    from gradrank.data.formats.compressed import without_compression_suffix
    from gradrank.data.formats.registry import format_of

    try:
        format_of(path)
    except DataError:
        return ".txt"
    return path.name[len(without_compression_suffix(path).stem) :]


def write_part(data: RankingData, folder: Path, name: str, suffix: str) -> None:
    """Write one part of a data set as ``name`` + ``suffix``.

    LETOR text holds one label; further label sources go beside it as ``name.source.txt``, one number per line.
    """
    from gradrank.data.formats.registry import LETOR, format_of, write_data

    path = folder / f"{name}{suffix}"
    write_data(data, path)
    if format_of(path) is LETOR:
        for source in data.label_names[1:]:
            write_labels(data.label(source), folder / f"{name}.{source}.txt")


def write_labels(labels: NDArray[np.float32], path: Path) -> None:
    """Write a label column, one number per line, each as short as reads back the same float32."""
    from gradrank.data.formats.columns import write_column

    write_column(labels.astype("U").astype("f8"), path)


def make_folder(path: Path) -> None:
    """Make a folder to write to, if it is not there; one that is there must take files."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "is a file, expected a folder" if path.is_file() else f"cannot be made: {error.strerror}"
        raise DataError(reason, path=path) from None
    _try_to_write_in(path, path)


def check_writable(path: Path, *inputs: Path | None) -> None:
    """Find out that a file cannot be written, or is one of those that are read, before the work for it begins."""
    for read in inputs:
        if read is not None and path.exists() and read.exists() and path.samefile(read):
            raise DataError("is read by this command and cannot be its output as well", path=path)
    if path.is_dir():
        raise DataError("is a folder, expected a file to write", path=path)
    if is_special(path):
        if not os.access(path, os.W_OK):
            raise DataError("cannot be written: Permission denied", path=path)
        return
    _try_to_write_in(path.parent, path)


def check_log(path: Path) -> None:
    """Find out that lines cannot be appended to a file; one that is there may lie in a folder that takes no others."""
    if not path.is_file():
        check_writable(path)
    elif not os.access(path, os.W_OK):
        raise DataError("cannot be written: Permission denied", path=path)


def _try_to_write_in(folder: Path, path: Path) -> None:
    """Make a file without a name in a folder; if that fails, it is said of a path."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=path) from None


# ---------------------------------------------------------------------- options from a file
def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Callback of ``--config``: a TOML file's values stand in for options that the command line does not give.

    Keys are the options' names, with ``-`` or ``_``; a table of ``KEY = VALUE`` may stand for repeated KEY=VALUE.
    """
    if path is None:
        return None
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError("there is no such file", path=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise DataError("is not TOML: it is not UTF-8 text", path=path) from None
    except ValueError as error:  # also of a number with thousands of digits
        raise DataError(f"is not TOML: {error}", path=path) from None
    except RecursionError:
        raise DataError("is not TOML that can be read: it is nested too deeply", path=path) from None
    known = {
        flag[2:]: option
        for option in context.command.params
        for flag in option.opts
        if flag.startswith("--") and flag not in ("--config", "--help")
    }
    hints = get_type_hints(inspect.unwrap(context.command.callback or read_config))
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        option = known.get(key.replace("_", "-"))
        if option is None or option.name is None:
            raise DataError(f"{key!r} is not an option; there are {', '.join(sorted(known))}", path=path)
        if option.name in defaults:
            raise DataError(f"{key!r} is given twice", path=path)
        defaults[option.name] = _config_value(option, hints[option.name], key, value, path)
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


_CONFIG_TYPES: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a string"),
    NumberOrText: ((int, float, str), "a number or a string"),
}


def _config_value(option: Any, hint: Any, key: str, value: Any, path: Path) -> Any:
    """A value of the file, checked against the type hint of the option's parameter."""
    words = _plain_types(hint)
    many = list in words
    if many and isinstance(value, dict) and "=" in (option.metavar or ""):
        return [f"{name}={str(item).lower() if isinstance(item, bool) else item}" for name, item in value.items()]
    # Paths and choices are strings in TOML.
    types, expected = next((_CONFIG_TYPES[kind] for kind in words if kind in _CONFIG_TYPES), _CONFIG_TYPES[str])
    items = value if many and isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, types) or (isinstance(item, bool) and bool not in types):
            shown = f"{expected}, or a list of them" if many else expected
            raise DataError(f"{key} is {item!r}, expected {shown}", path=path)
    return items if many else value


def _plain_types(hint: Any) -> list[Any]:
    """The classes in a type hint, from the outside in.

    >>> _plain_types(list[int] | None)
    [<class 'list'>, <class 'int'>, <class 'NoneType'>]
    """
    inner = [kind for part in get_args(hint) for kind in _plain_types(part)]
    outer = get_origin(hint) or hint
    return [outer, *inner] if outer in (list, dict) or not inner else inner
