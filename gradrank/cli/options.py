"""Arguments and options that several commands share, each defined once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class OutputFormat(StrEnum):
    """How a result goes to standard output."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"


class TableOrJson(StrEnum):
    """How a result without a table's shape goes to standard output."""

    table = "table"
    json = "json"


class TestChoice(StrEnum):
    """Names of the significance tests."""

    t = "t"
    randomization = "randomization"
    bootstrap = "bootstrap"


class CorrectionChoice(StrEnum):
    """Names of the corrections for many tests."""

    holm = "holm"
    none = "none"


class PropensityMethod(StrEnum):
    """Ways to find propensities."""

    auto = "auto"
    randomized = "randomized"
    harvest = "harvest"
    em = "em"
    trust = "trust"


class ClickModelName(StrEnum):
    """How users are taken to look and click."""

    position = "position"
    trust = "trust"
    cascade = "cascade"
    dbn = "dbn"


class NumberOrText:
    """Type of options that take a number or a word; see :func:`number_or_text`."""


def number_or_text(value: int | float | str) -> int | float | str:
    """A whole number, a number, or the text itself.

    >>> number_or_text("10"), number_or_text("0.5"), number_or_text("auto")
    (10, 0.5, 'auto')
    """
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


DataFile = Annotated[Path, typer.Argument(metavar="DATA", help="Data file, read by its suffix or content.")]
ScoreFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--scores",
        metavar="FILE",
        help="A system: one number per line in DATA's row order, or a TREC run. May be repeated.",
    ),
]
ModelFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="[NAME=]MODEL",
        help="A system: a model of gradrank's or another tool's ('gradrank import') that scores DATA. May be repeated.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", metavar="NAME", help="System to compare with; the first one unless given."),
]
MeasureNames = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="MEASURE",
        help="A measure, such as 'NDCG@10' or 'MAP(convention=mslr)'; see 'gradrank measures'. May be repeated.",
    ),
]
ConventionName = Annotated[
    str | None,
    typer.Option(
        "--convention",
        metavar="NAME",
        help="Convention of the measures that name none, such as trec_eval; see 'gradrank measures'.",
    ),
]
LabelFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=FILE",
        help="A further label source: one number per line in DATA's row order. May be repeated.",
    ),
]
LogFile = Annotated[Path, typer.Argument(metavar="LOG", help="Click log: JSON lines, CSV, TSV or PyClick's text.")]
LogFormat = Annotated[str | None, typer.Option("--log-format", metavar="FORMAT", help="jsonl, csv, tsv or pyclick.")]
PropensityFile = Annotated[
    Path | None,
    typer.Option("--propensities", metavar="FILE", help="How likely positions are examined, as propensity writes it."),
]
Confidence = Annotated[float, typer.Option("--confidence", min=0.5, max=0.9999, help="Confidence of the intervals.")]
Weighted = Annotated[bool, typer.Option("--weighted", help="Weigh queries by DATA's query weights.")]
ShowAs = Annotated[OutputFormat, typer.Option("--format", help="Form of the output.")]
Threads = Annotated[
    int | None, typer.Option("--n-jobs", "--threads", min=1, help="Threads to use; all cores by default.")
]
Seed = Annotated[int, typer.Option("--random-state", "--seed", min=0, help="Seed of all randomness.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file: gradrank's, or of another tool; see 'gradrank import'.")
]
