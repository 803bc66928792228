"""Results of a project as files: events, ordered top k, preferences, qrels, LETOR text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradrank.data.formats.compressed import open_for_writing, without_compression_suffix
from gradrank.errors import DataError
from gradrank.labeling.judgments import PREFERENCES, Verdict, standing
from gradrank.labeling.project.judging import load_history
from gradrank.labeling.project.results import findings, labels_by_query
from gradrank.labeling.project.store import Store
from gradrank.labeling.records import Tool

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Exported:
    """How many rows were written, and what should be known about them."""

    rows: int
    notes: tuple[str, ...] = ()


def export_events(store: Store, path: str | Path) -> Exported:
    """Every event as it was given: JSON lines, or CSV if the name ends so. The complete and canonical export."""
    rows = store.read().execute(
        "SELECT e.assignment, e.seq, u.name AS assessor, q.name AS query, a.strategy, a.k, a.seed, e.verdict, "
        'f.name AS first, s.name AS second, CASE WHEN e.first_left = 0 THEN s.name ELSE f.name END AS "left", '
        'CASE WHEN e.first_left = 0 THEN f.name ELSE s.name END AS "right", e.grade, e.comment, e.shown_at, e.at, '
        "e.active_seconds, v.reason AS void FROM event e JOIN assignment a ON a.id = e.assignment "
        "JOIN assessor u ON u.id = a.assessor JOIN query q ON q.id = a.query "
        "LEFT JOIN document f ON f.id = e.first LEFT JOIN document s ON s.id = e.second "
        "LEFT JOIN void v ON v.assignment = a.id ORDER BY e.assignment, e.seq"
    )
    names = [column[0] for column in rows.description]
    return Exported(_write_rows(path, names, (dict(zip(names, row, strict=True)) for row in rows)))


def export_topk(store: Store, path: str | Path, *, unfinished: bool = False) -> Exported:
    """The ordered top k of each assessor and query with its tie groups: JSON lines, or CSV with a place per row.

    Only finished work, unless ``unfinished`` asks for the rest too.
    """
    found = findings(store, unfinished=unfinished)
    if _is_csv(path):
        names = ["query", "assessor", "strategy", "place", "document"]
        rows: Iterator[dict[str, Any]] = (
            dict(zip(names, (item.query, item.assessor, item.strategy, place, name), strict=True))
            for item in found
            for place, group in _places(item.state.top)
            for name in group
        )
        return Exported(_write_rows(path, names, rows))
    lines = (
        {
            "query": item.query,
            "assessor": item.assessor,
            "strategy": item.strategy,
            "k": item.k,
            "top": item.state.top,
            "tied_out": item.state.tied_out,
            "bad": item.state.bad,
            "grades": dict(item.state.grades),
            "judgments": item.state.asked,
            "complete": item.state.done,
        }
        for item in found
    )
    return Exported(_write_rows(path, [], lines))


def export_preferences(store: Store, path: str | Path) -> Exported:
    """The preferences that stand: lines ``query a b winner``, ``tie`` for a tie; CSV names the assessor too.

    The lines are those that :func:`gradrank.data.formats.topk_files.read_preferences` reads.
    """
    names = ["query", "a", "b", "winner", "assessor"]

    def preferences() -> Iterator[dict[str, Any]]:
        with store.snapshot() as connection:
            rows = connection.execute(
                "SELECT a.id, q.name, u.name, max(e.seq) FROM assignment a JOIN query q ON q.id = a.query "
                "JOIN assessor u ON u.id = a.assessor JOIN event e ON e.assignment = a.id "
                "WHERE a.id NOT IN (SELECT assignment FROM void) GROUP BY a.id ORDER BY a.query, a.id"
            ).fetchall()
            for number, query, assessor, count in rows:
                for judgment in standing(load_history(connection, number, count)):
                    if judgment.verdict in PREFERENCES:
                        winner = {Verdict.FIRST: judgment.first, Verdict.SECOND: judgment.second}
                        values = (query, judgment.first, judgment.second, winner.get(judgment.verdict, "tie"), assessor)
                        yield dict(zip(names, values, strict=True))

    if _is_csv(path):
        return Exported(_write_rows(path, names, preferences()))
    return Exported(_write_lines(path, (" ".join(str(row[name]) for name in names[:4]) for row in preferences())))


def export_qrels(store: Store, path: str | Path, *, tool: Tool | None = None) -> Exported:
    """TREC qrels, one label for each document of each query from all its assessors (see :func:`labels_by_query`)."""
    labels = labels_by_query(findings(store), tool)
    lines = (f"{query} 0 {name} {label:.0f}" for query, given in labels.items() for name, label in given.items())
    return Exported(_write_lines(path, lines), _notes(labels))


def export_letor(
    store: Store, path: str | Path, features: str | Path, *, tool: Tool | None = None, **reading: Any
) -> Exported:
    """A feature file's rows that have a label, with that label; rows are found by query and document id.

    The features may be in any form that :func:`gradrank.read_data` reads, with document ids.
    """
    import numpy as np

    from gradrank.data.formats.letor_write import write_letor
    from gradrank.data.formats.registry import read_data
    from gradrank.data.ranking_data import RankingData

    labels = labels_by_query(findings(store), tool)
    data = read_data(features, **reading)
    if data.docid is None:
        raise DataError("has no document ids, so labels cannot be joined to it", path=features)
    query_of_row = data.query_of_row()
    given = [labels.get(query, {}) for query in data.qid]
    values = np.array([given[q].get(name, np.nan) for q, name in zip(query_of_row, data.docid, strict=True)], "f4")
    rows = np.flatnonzero(~np.isnan(values))
    wanted = sum(map(len, labels.values()))
    if not len(rows):
        raise DataError(f"shares no document with the {wanted} labels of the project", path=features)
    names = list(data.docid)
    joined = RankingData.from_arrays(
        np.ascontiguousarray(data.X[rows]),
        values[rows],
        qid=[data.qid[int(q)] for q in query_of_row[rows]],
        docid=[names[row] for row in rows],
        feature_names=data.feature_names,
    )
    write_letor(joined, path)
    notes = list(_notes(labels))
    if len(rows) < wanted:
        notes.append(f"{wanted - len(rows)} of {wanted} labeled documents have no features")
    if len(rows) < data.n_docs:
        notes.append(f"{data.n_docs - len(rows)} of {data.n_docs} rows of {features} have no label and are left out")
    return Exported(len(rows), tuple(notes))


EXPORTS: Mapping[str, Callable[..., Exported]] = {
    "topk": export_topk,
    "qrels": export_qrels,
    "letor": export_letor,
    "events": export_events,
    "preferences": export_preferences,
}
"""Exports by name."""


def _notes(labels: Mapping[str, object]) -> tuple[str, ...]:
    return () if labels else ("no assignment is finished: there are no labels yet",)


def _places(top: Sequence[Sequence[str]]) -> Iterator[tuple[int, Sequence[str]]]:
    place = 1
    for group in top:
        yield place, group
        place += len(group)


# ---------------------------------------------------------------------- files
def _is_csv(path: str | Path) -> bool:
    return without_compression_suffix(path).suffix.lower() == ".csv"


def _write_rows(path: str | Path, names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> int:
    if not _is_csv(path):
        return _write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))
    return _write_lines(path, _csv_lines(names, rows)) - 1


def _csv_lines(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    yield ",".join(names)
    for row in rows:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="").writerow([safe_cell(row[name]) for name in names])
        yield buffer.getvalue()


def safe_cell(value: object) -> object:
    """A value that a spreadsheet cannot take for a formula: such text gets an apostrophe, numbers stay.

    >>> safe_cell("=1+1"), safe_cell(-1.5), safe_cell("d1")
    ("'=1+1", -1.5, 'd1')
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _write_lines(path: str | Path, lines: Iterable[str]) -> int:
    count = 0
    with open_for_writing(path) as file:
        for line in lines:
            file.write(line.encode() + b"\n")
            count += 1
    return count
