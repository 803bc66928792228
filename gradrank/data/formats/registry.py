"""All file formats of ranking data, one line each, and reading and writing by a file's name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradrank.data.formats.columns import read_column
from gradrank.data.formats.compressed import read_bytes, without_compression_suffix
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError


@dataclass(frozen=True)
class FileFormat:
    """A file format: its name, the endings of its files, and where its functions are."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    """Module of the two functions, imported when one is used."""
    read: str
    write: str
    compressed: bool = False
    """Whether ``.gz``, ``.xz`` or ``.zst`` may follow the ending."""

    def function(self, name: str) -> Callable[..., Any]:
        """One of the two functions."""
        function: Callable[..., Any] = getattr(importlib.import_module(self.module), name)
        return function


LETOR = FileFormat(
    "letor",
    (".txt", ".dat", ".letor", ".svm", ".libsvm"),
    "gradrank.data.formats.letor",
    "read_letor",
    "write_letor",
    True,
)

# A new format is one line here.
FORMATS: tuple[FileFormat, ...] = (
    LETOR,
    FileFormat("parquet", (".parquet", ".pq"), "gradrank.data.formats.parquet", "read_parquet", "write_parquet"),
    FileFormat("arrow", (".arrow", ".feather", ".ipc"), "gradrank.data.formats.arrow", "read_arrow", "write_arrow"),
    FileFormat("csv", (".csv", ".tsv"), "gradrank.data.formats.csv", "read_csv", "write_csv", True),
    FileFormat("binary", (".gradrank",), "gradrank.data.formats.binary", "open_binary", "write_binary"),
)


def format_of(path: str | Path) -> FileFormat:
    """The format of a file by the ending of its name; an unknown ending is an error.

    >>> format_of("train.txt.xz").name, format_of("MSLR.parquet").name
    ('letor', 'parquet')
    """
    found = _by_suffix(Path(path))
    if found is None:
        endings = ", ".join(suffix for form in FORMATS for suffix in form.suffixes)
        raise DataError(f"has no known ending; known are {endings}; or name the format", path=path)
    return found


def read_data(
    path: str | Path,
    *,
    format: str | None = None,
    label_files: Mapping[str, str | Path] | None = None,
    **options: Any,
) -> RankingData:
    """Read ranking data in any format, known by the ending of the file's name or given by name.

    An existing text file without a known ending (``rank.train``, ``train``) is read as LETOR.
    ``options`` go to the format's reader. ``label_files`` attaches label columns: for each name a file
    of one number a line, in the order of the data file's rows, where a blank line or ``nan`` is an
    unjudged document; a label of that name in the data is replaced.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "clicks.txt").write_text("3\\n\\n")
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> write_data(data, folder / "train.gradrank")
    >>> data = read_data(folder / "train.gradrank", label_files={"clicks": folder / "clicks.txt"})
    >>> data.label("clicks").tolist()
    [3.0, nan]
    """
    path = Path(path)
    form = _named(format) if format is not None else _readable_format(path)
    reader = form.function(form.read)
    _check_options(form, reader, options, "reading")
    data: RankingData = reader(path, **options)
    for name, file in (label_files or {}).items():
        values = read_column(file, expected=data.n_docs, missing=True, what=f"{name} labels")
        data = data.with_label(name, data.from_input_order(values))
    return data


def write_data(data: RankingData, path: str | Path, *, format: str | None = None, **options: Any) -> None:
    """Write ranking data in the format that the ending of the name tells, or in the one named.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.gradrank"
    >>> write_data(RankingData.from_arrays([[1.0]], [0], qid=["a"]), path)
    >>> read_data(path)
    RankingData(1 queries, 1 documents, 1 features, labels: label)
    """
    form = _named(format) if format is not None else format_of(path)
    writer = form.function(form.write)
    _check_options(form, writer, options, "writing")
    writer(data, path, **options)


def _by_suffix(path: Path) -> FileFormat | None:
    plain = without_compression_suffix(path)
    for form in FORMATS:
        if plain.suffix.lower() in form.suffixes and (form.compressed or plain == path):
            return form
    return None


def _readable_format(path: Path) -> FileFormat:
    if not path.exists():
        raise DataError("there is no such file", path=path)
    found = _by_suffix(path)
    if found is None and path.is_file() and _looks_like_text(path):
        return LETOR
    return found or format_of(path)


def _looks_like_text(path: Path) -> bool:
    return not (read_bytes(path)[:4096] == 0).any()


def _named(name: str) -> FileFormat:
    for form in FORMATS:
        if form.name == name:
            return form
    raise DataError(f"there is no format {name!r}; there are {', '.join(form.name for form in FORMATS)}")


def _check_options(form: FileFormat, function: Callable[..., Any], options: Mapping[str, Any], doing: str) -> None:
    known = _options(function)
    for option in options:
        if option not in known:
            taken = f"takes {', '.join(known)}" if known else "takes no options"
            raise DataError(f"{doing} the format {form.name} does not take the option {option!r}; it {taken}")


def _options(function: Callable[..., Any]) -> list[str]:
    """Names of the options that a reader or writer takes."""
    parameters = inspect.signature(function).parameters.values()
    return [item.name for item in parameters if item.kind is item.KEYWORD_ONLY and not item.name.startswith("_")]
