"""All file formats of ranking data, one entry each: endings, functions, and the options of the reader.

Commands make their options from these declarations, so nothing heavy is imported here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ReaderOption:
    """An option of a format's reader: a keyword argument in Python, a flag on the command line."""

    name: str
    """The keyword argument."""
    flag: str
    """The option on the command line."""
    help: str
    kind: type = str
    """``bool``, ``int``, ``str`` or ``Path``."""
    metavar: str | None = None
    default: Any = None
    """What the reader takes if nothing is given."""
    repeated: bool = False
    """Whether several values may be given."""
    least: int | None = None
    """The lowest number allowed."""
    named: bool = False
    """Whether values are ``NAME`` or ``NAME=COLUMN``."""


STRICT_ORDER = ReaderOption(
    "regroup", "--strict-order", "Refuse data whose rows of a query are not consecutive.", kind=bool, default=True
)
LETOR_OPTIONS = (
    ReaderOption(
        "missing",
        "--missing",
        "Take 'nan' as a missing feature or an unjudged label, instead of refusing it.",
        kind=bool,
        default=False,
    ),
    ReaderOption(
        "absent_missing",
        "--absent-missing",
        "Take a feature that a line leaves out as missing, as XGBoost does, instead of as 0.",
        kind=bool,
        default=False,
    ),
    ReaderOption("zero_based", "--zero-based", "Feature indices start at 0.", kind=bool, default=False),
    ReaderOption("group_file", "--group", "Sizes of consecutive queries, one per line.", kind=Path, metavar="FILE"),
    ReaderOption(
        "n_features",
        "--n-features",
        "Number of features, if files lack the last ones.",
        kind=int,
        metavar="N",
        least=1,
    ),
    ReaderOption(
        "max_features",
        "--max-features",
        "Refuse a higher feature index (100,000 by default).",
        kind=int,
        metavar="N",
        default=100_000,
        least=1,
    ),
    STRICT_ORDER,
)
COLUMN_OPTIONS = (
    ReaderOption("qid", "--qid-column", "Column of query ids, if not 'qid' or 'query_id'.", metavar="COLUMN"),
    ReaderOption(
        "labels",
        "--label-column",
        "Label column, perhaps under another name; the first is the primary one. May be repeated.",
        metavar="NAME[=COLUMN]",
        repeated=True,
        named=True,
    ),
    ReaderOption("docid", "--docid-column", "Column of document ids, if not 'docid'.", metavar="COLUMN"),
    ReaderOption("weight", "--weight-column", "Column of query weights, if not 'weight'.", metavar="COLUMN"),
    ReaderOption(
        "features",
        "--feature-column",
        "Feature column, if not all columns without another role are. May be repeated.",
        metavar="COLUMN",
        repeated=True,
    ),
    ReaderOption(
        "keep",
        "--keep-column",
        "Column that is a feature although its name looks like a label, an id or a weight. May be repeated.",
        metavar="COLUMN",
        default=(),
        repeated=True,
    ),
    ReaderOption(
        "ignore",
        "--ignore-column",
        "Column to leave out. May be repeated.",
        metavar="COLUMN",
        default=(),
        repeated=True,
    ),
    STRICT_ORDER,
)
DELIMITER = ReaderOption(
    "delimiter", "--delimiter", "Character between fields; a comma by default, a tab for .tsv.", metavar="CHAR"
)


@dataclass(frozen=True)
class FileFormat:
    """A file format: its name, the endings of its files, where its functions are, and what its reader can be told."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    """Module of the two functions, imported when one is used."""
    read: str
    write: str
    options: tuple[ReaderOption, ...] = ()
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
    LETOR_OPTIONS,
    compressed=True,
)

# A new format is one entry here.
FORMATS: tuple[FileFormat, ...] = (
    LETOR,
    FileFormat(
        "parquet", (".parquet", ".pq"), "gradrank.data.formats.parquet", "read_parquet", "write_parquet", COLUMN_OPTIONS
    ),
    FileFormat(
        "arrow",
        (".arrow", ".feather", ".ipc"),
        "gradrank.data.formats.arrow",
        "read_arrow",
        "write_arrow",
        COLUMN_OPTIONS,
    ),
    FileFormat(
        "csv",
        (".csv", ".tsv"),
        "gradrank.data.formats.csv",
        "read_csv",
        "write_csv",
        (DELIMITER, *COLUMN_OPTIONS),
        compressed=True,
    ),
    FileFormat("binary", (".gradrank",), "gradrank.data.formats.binary", "open_binary", "write_binary"),
)


def reader_options() -> dict[ReaderOption, list[FileFormat]]:
    """All options of all readers, each with the formats that have it.

    >>> {option.flag: [form.name for form in forms] for option, forms in reader_options().items()}["--strict-order"]
    ['letor', 'parquet', 'arrow', 'csv']
    """
    found: dict[ReaderOption, list[FileFormat]] = {}
    for form in FORMATS:
        for option in form.options:
            found.setdefault(option, []).append(form)
    return found
