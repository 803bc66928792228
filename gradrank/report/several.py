"""Several reports on one page: what each found, their systems together, and tests where queries are the same."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from gradrank.data.strings import Strings
from gradrank.errors import DataError, GradrankError
from gradrank.evaluation import Evaluation
from gradrank.measures import Measure, parse_measure
from gradrank.report.rendering import rendered
from gradrank.report.results import MARKS, PairCell, pair_table
from gradrank.report.summary import FORMAT, MARK, VERSION
from gradrank.runtime.files import replacing
from gradrank.version import __version__

_LEVEL = 0.05


@dataclass(frozen=True)
class MeanOf:
    """A system's mean by a measure, with its interval; NaN where there is none."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ReadSystem:
    """A system of a report."""

    name: str
    means: Mapping[str, MeanOf]
    values: Sequence[float] | None
    """Values per query of the report's first measure, if the report holds them."""


@dataclass(frozen=True, eq=False)
class ReadReport:
    """What a report's page tells of itself."""

    path: Path
    title: str
    date: str
    verdict: str
    data: str
    queries: int
    query_ids: str
    baseline: str | None
    measures: tuple[str, ...]
    systems: tuple[ReadSystem, ...]


@dataclass(frozen=True)
class Same:
    """Systems of several reports over the same queries, each against each."""

    measure: str
    queries: int
    names: tuple[str, ...]
    cells: Mapping[tuple[str, str], PairCell]


def write_report_comparison(
    path: str | Path,
    reports: Sequence[str | Path],
    *,
    title: str = "Reports compared",
    date: datetime | None = None,
) -> None:
    """Write one HTML page that sets several reports beside each other.

    It shows what each report found, all systems with their means and intervals, and, for reports whose queries and
    first measure are the same, every system against every other with significance (paired t-test, Holm's correction).

    Parameters
    ----------
    path
        The file to write.
    reports
        Files that :func:`~gradrank.write_report` wrote, two or more; the page links to them.
    title
        Title of the page.
    date
        Date of the page; now unless given.

    >>> import tempfile
    >>> from gradrank import RankingData, write_report
    >>> folder = Path(tempfile.mkdtemp())
    >>> data = RankingData.from_arrays([[1.0], [2.0]] * 3, [0, 1] * 3, group=[2] * 3)
    >>> write_report(folder / "monday.html", data=data, systems={"old": [2, 1] * 3}, measures="MRR")
    >>> write_report(folder / "tuesday.html", data=data, systems={"new": [1, 2] * 3}, measures="MRR")
    >>> write_report_comparison(folder / "both.html", [folder / "monday.html", folder / "tuesday.html"])
    >>> "Every pair over the same 3 queries" in (folder / "both.html").read_text("utf-8")
    True
    """
    if len(reports) < 2:
        raise DataError(f"there are {len(reports)} reports, expected two or more to compare")
    read = [read_report(report) for report in reports]
    page = render_comparison(read, title=title, folder=Path(path).parent, date=date)
    with replacing(path) as temporary:
        temporary.write_bytes(page.encode("utf-8"))


def render_comparison(reports: Sequence[ReadReport], *, title: str, folder: Path, date: datetime | None = None) -> str:
    """The text of such a page, with links from a folder."""
    reports = _told_apart(reports)
    measures = list(dict.fromkeys(measure for report in reports for measure in report.measures))
    highest = _highest(reports, measures)
    context = {
        "title": title,
        "date": (date or datetime.now(UTC)).replace(microsecond=0),
        "reports": [(report, _link(report.path, folder)) for report in reports],
        "measures": measures,
        "rows": [(report, system) for report in reports for system in report.systems],
        "highest": highest,
        "none": MeanOf(nan, nan, nan),
        "same": same_queries(reports),
        "several_query_sets": len({report.query_ids for report in reports}) > 1,
        "marks": list(MARKS.values()),
        "version": __version__,
    }
    return rendered("several.html", context)


def same_queries(reports: Sequence[ReadReport]) -> list[Same]:
    """For each set of queries and first measure that several reports share: all their systems against each other."""
    groups: dict[tuple[str, str], list[ReadReport]] = {}
    for report in reports:
        groups.setdefault((report.query_ids, report.measures[0]), []).append(report)
    found = []
    for (_, name), members in groups.items():
        values: dict[str, list[float]] = {}
        for report in members:
            for system in report.systems:
                if system.values is None:
                    continue
                held = [nan if value is None else value for value in system.values]
                # The same baseline in two reports is one system.
                if system.name in values and np.array_equal(values[system.name], held, equal_nan=True):
                    continue
                values[system.name if system.name not in values else _distinct(system.name, report, values)] = held
        if len(members) < 2 or len(values) < 2:
            continue
        measure = _measure(name, members[0].path)
        evaluation = Evaluation(
            Strings.of(range(members[0].queries)),
            (measure,),
            {system: {measure: np.array(held, dtype=np.float64)} for system, held in values.items()},
            {},
        )
        cells = pair_table(evaluation, _LEVEL, least=2)
        if cells is not None:
            found.append(Same(name, members[0].queries, evaluation.systems, cells))
    return found


def _told_apart(reports: Sequence[ReadReport]) -> list[ReadReport]:
    """Reports of the same title get the names of their files to it; most reports have the title that is the default."""
    titles = Counter(report.title for report in reports)
    files = Counter(report.path.name for report in reports)
    return [
        report
        if titles[report.title] == 1
        else replace(
            report, title=f"{report.title} ({report.path.name if files[report.path.name] == 1 else report.path})"
        )
        for report in reports
    ]


def _distinct(name: str, report: ReadReport, taken: Mapping[str, Any]) -> str:
    candidate = f"{name} ({report.path.name})"
    number = 2
    while candidate in taken:
        candidate = f"{name} ({report.path.name}, {number})"
        number += 1
    return candidate


def _highest(reports: Sequence[ReadReport], measures: Sequence[str]) -> dict[tuple[str, str], float]:
    """The highest mean of each measure among reports with the same queries."""
    found: dict[tuple[str, str], float] = {}
    for report in reports:
        for system in report.systems:
            for measure in measures:
                mean = system.means.get(measure)
                if mean is not None and mean.mean == mean.mean:
                    key = (report.query_ids, measure)
                    found[key] = max(found.get(key, -np.inf), mean.mean)
    return found


def _link(path: Path, folder: Path) -> str:
    # A name such as "javascript:x" must stay a file's.
    relative = os.path.relpath(path, folder)
    return "./" + quote(Path(relative).as_posix(), safe="/")


def _measure(name: str, path: Path) -> Measure:
    try:
        return parse_measure(name).parts[0]
    except GradrankError as error:
        raise DataError(f"tells of a measure that is none: {error}", path=path) from None


# ---------------------------------------------------------------------- reading
def read_report(path: str | Path) -> ReadReport:
    """What a page that :func:`~gradrank.write_report` wrote tells of itself."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError("there is no such file", path=path) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise DataError(f"cannot be read: {reason}", path=path) from None
    start = text.rfind(MARK)
    if start < 0:
        raise DataError("is not a report that gradrank wrote, or one of an older version: write it again", path=path)
    end = text.find("</script>", start)
    try:
        value = json.loads(text[start + len(MARK) : end] if end > 0 else "")
    except (ValueError, RecursionError):
        raise DataError("is a report that is damaged: what it tells of itself is not JSON", path=path) from None
    if not isinstance(value, dict) or value.get("format") != FORMAT or value.get("version") != VERSION:
        raise DataError(f"is a report of another version, expected {VERSION}: write it again", path=path)
    try:
        return _of_summary(value, path)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise DataError("is a report that is damaged: what it tells of itself is not whole", path=path) from None


def _of_summary(value: Mapping[str, Any], path: Path) -> ReadReport:
    measures = tuple(str(measure) for measure in value["measures"])
    queries = int(value["queries"])
    systems = []
    for system in value["systems"]:
        means = {
            measure: MeanOf(*(nan if number is None else float(number) for number in three))
            for measure, three in zip(measures, system["means"], strict=True)
        }
        values = system["values"]
        if values is not None:
            values = [nan if number is None else float(number) for number in values]
            if len(values) != queries:
                raise ValueError
        systems.append(ReadSystem(str(system["name"]), means, values))
    if not measures or not systems:
        raise ValueError
    return ReadReport(
        path,
        str(value["title"]),
        str(value["date"])[:16].replace("T", " "),
        str(value["verdict"]),
        ", ".join(map(str, value["data"])),
        queries,
        str(value["query_ids"]),
        None if value["baseline"] is None else str(value["baseline"]),
        measures,
        tuple(systems),
    )
