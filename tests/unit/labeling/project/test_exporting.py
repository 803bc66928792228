"""What comes out: labels as the definitions say, files that others read, nothing that a spreadsheet runs."""

from __future__ import annotations

import csv
import json
import secrets
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gradrank.data.formats.letor import write_letor
from gradrank.data.formats.registry import read_data
from gradrank.data.formats.topk_files import read_preferences
from gradrank.data.formats.trec import read_qrels
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.labeling.judgments import Verdict
from gradrank.labeling.project.assignment import void
from gradrank.labeling.project.exporting import (
    export_events,
    export_letor,
    export_preferences,
    export_qrels,
    export_topk,
    safe_cell,
)
from gradrank.labeling.project.importing import import_files
from gradrank.labeling.project.judging import Desk, Vote
from gradrank.labeling.project.results import outcomes, records
from gradrank.labeling.project.store import Store, create_project
from gradrank.labeling.records import Tool


def judge(desk: Desk, number: int, value: Callable[[str], int], limit: int = 100) -> None:
    """Judge by a hidden value: pairs by comparing it, single documents by taking it for the grade."""
    for _ in range(limit):
        work = desk.work(number)
        if work.state.done:
            break
        shown = tuple(work.assignment.numbers[name] for name in work.shown)
        values = [value(name) for name in work.shown]
        grade = None
        if len(values) == 1:
            verdict, grade = Verdict.GRADE, values[0]
        else:
            verdict = [Verdict.TIE, Verdict.FIRST, Verdict.SECOND][(values[0] > values[1]) - (values[0] < values[1])]
        desk.vote(number, Vote(work.seq, secrets.token_urlsafe(16), verdict, shown, grade))


def by_number(name: str) -> int:
    return int(name[1:])


@pytest.fixture
def judged(project: Store) -> Store:
    desk = Desk(project)
    judge(desk, 1, by_number)
    judge(desk, 2, lambda name: min(by_number(name), 5))
    return project


def query_of(store: Store, assignment: int) -> str:
    return Desk(store).work(assignment).assignment.query


def test_topk_lines(judged: Store, tmp_path: Path) -> None:
    assert export_topk(judged, tmp_path / "top.jsonl").rows == 2
    lines = [json.loads(line) for line in (tmp_path / "top.jsonl").read_text().splitlines()]
    tops = {line["query"]: line["top"] for line in lines}
    assert tops[query_of(judged, 1)] == [["d6"], ["d5"], ["d4"]]
    assert [sorted(group) for group in tops[query_of(judged, 2)]] == [["d5", "d6"], ["d4"]]
    assert {line["complete"] for line in lines} == {True}


def test_topk_as_csv_has_places(judged: Store, tmp_path: Path) -> None:
    export_topk(judged, tmp_path / "top.csv")
    with (tmp_path / "top.csv").open(newline="") as file:
        rows = [(row["query"], row["place"], row["document"]) for row in csv.DictReader(file)]
    query = query_of(judged, 2)
    assert sorted(row[1:] for row in rows if row[0] == query) == [("1", "d5"), ("1", "d6"), ("3", "d4")]


def test_qrels_hold_the_position_labels(judged: Store, tmp_path: Path) -> None:
    """k + 1 − π in the top, 0 below; tied documents share their first place."""
    assert export_qrels(judged, tmp_path / "qrels.txt").rows == 12
    grades = read_qrels(tmp_path / "qrels.txt").to_dict()
    assert grades[query_of(judged, 1)] == {"d6": 3, "d5": 2, "d4": 1, "d3": 0, "d2": 0, "d1": 0}
    assert grades[query_of(judged, 2)] == {"d6": 3, "d5": 3, "d4": 1, "d3": 0, "d2": 0, "d1": 0}


def test_several_assessors_are_added_up(make_project: Callable[..., Store], tmp_path: Path) -> None:
    """Borda: 6 5 4 and 4 6 3 give d6 3+2, d5 2, d4 1+3, d3 1; so d6, d4, d5."""
    store = make_project(assessors=2, overlap=2)
    desk = Desk(store)
    first, second = (
        number for (number,) in store.read().execute("SELECT id FROM assignment WHERE query = 1 ORDER BY id")
    )
    judge(desk, first, by_number)
    judge(desk, second, lambda name: {"d4": 9, "d6": 8, "d3": 7}.get(name, 0))
    export_qrels(store, tmp_path / "qrels.txt")
    assert read_qrels(tmp_path / "qrels.txt").to_dict() == {
        "q1": {"d6": 3, "d4": 2, "d5": 1, "d1": 0, "d2": 0, "d3": 0}
    }


def test_grades_are_the_lower_median(make_project: Callable[..., Store], tmp_path: Path) -> None:
    store = make_project(assessors=2, overlap=2, strategies=("grades",))
    desk = Desk(store)
    numbers = [number for (number,) in store.read().execute("SELECT id FROM assignment WHERE query = 1 ORDER BY id")]
    judge(desk, numbers[0], lambda name: by_number(name) % 5)
    judge(desk, numbers[1], lambda name: 4)
    export_qrels(store, tmp_path / "qrels.txt", tool=Tool.GRADES)
    assert read_qrels(tmp_path / "qrels.txt").to_dict()["q1"] == {f"d{n}": n % 5 for n in range(1, 7)}
    assert export_qrels(store, tmp_path / "none.txt", tool=Tool.PREFERENCES).notes == (
        "no assignment is finished: there are no labels yet",
    )


def test_void_and_unfinished_work_is_left_out(judged: Store, tmp_path: Path) -> None:
    void(judged, 1, "wrong")
    assert export_qrels(judged, tmp_path / "qrels.txt").rows == 6
    assert export_topk(judged, tmp_path / "top.jsonl").rows == 1
    assert {line.split()[0] for line in _preferences(judged, tmp_path)} == {query_of(judged, 2)}
    # The canonical export has everything, with the reason.
    export_events(judged, tmp_path / "events.jsonl")
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert {event["void"] for event in events if event["assignment"] == 1} == {"wrong"}


def test_unfinished_work_on_request(project: Store, tmp_path: Path) -> None:
    judge(Desk(project), 1, by_number, limit=2)
    assert export_topk(project, tmp_path / "top.jsonl").rows == 0
    assert export_topk(project, tmp_path / "top.jsonl", unfinished=True).rows == 1
    assert json.loads((tmp_path / "top.jsonl").read_text())["complete"] is False


def _preferences(store: Store, folder: Path) -> list[str]:
    export_preferences(store, folder / "preferences.txt")
    return (folder / "preferences.txt").read_text().splitlines()


def test_preferences_that_stand(judged: Store, tmp_path: Path) -> None:
    desk = Desk(judged)
    before = _preferences(judged, tmp_path)
    assert len(before) == sum(desk.work(number).state.asked for number in (1, 2))
    for line in before:
        query, a, b, winner = line.split()
        values = [min(by_number(name), 5) if query == query_of(judged, 2) else by_number(name) for name in (a, b)]
        assert winner == (a if values[0] > values[1] else b if values[0] < values[1] else "tie")
    work = desk.work(1)
    desk.vote(1, Vote(work.seq, secrets.token_urlsafe(16), Verdict.UNDO))
    assert len(_preferences(judged, tmp_path)) == len(before) - 1


def test_preferences_read_back_with_their_ties(judged: Store, tmp_path: Path) -> None:
    sql = "SELECT verdict, count(*) FROM event WHERE verdict IN ('a', 'b', 'tie') GROUP BY verdict"
    given = dict(judged.read().execute(sql).fetchall())
    assert given["tie"] > 0
    _preferences(judged, tmp_path)
    read = read_preferences(tmp_path / "preferences.txt")
    assert sum(map(len, read.values())) == given["a"] + given["b"]
    assert all(by_number(winner) > by_number(loser) for pairs in read.values() for winner, loser in pairs)


def test_letor_labels_join_by_query_and_document(judged: Store, tmp_path: Path) -> None:
    names = ["d6", "d1", "d9", "d5", "d6"]
    one, two = query_of(judged, 1), query_of(judged, 2)
    features = RankingData.from_arrays(
        np.arange(10, dtype="f4").reshape(5, 2), [0] * 5, qid=[one, one, one, two, "other"], docid=names
    )
    write_letor(features, tmp_path / "features.txt")
    done = export_letor(judged, tmp_path / "train.txt", tmp_path / "features.txt")
    data = read_data(tmp_path / "train.txt")
    assert list(zip(data.docid, data.label().tolist(), data.X.tolist(), strict=True)) == [
        ("d6", 3.0, [0.0, 1.0]),
        ("d1", 0.0, [2.0, 3.0]),
        ("d5", 3.0, [6.0, 7.0]),
    ]
    assert list(data.qid) == [one, two]
    assert done.rows == 3
    assert len(done.notes) == 2


def test_letor_without_ids_or_common_documents(judged: Store, tmp_path: Path) -> None:
    write_letor(RankingData.from_arrays([[1.0]], [0], qid=["q1"]), tmp_path / "features.txt")
    with pytest.raises(DataError, match="has no document ids"):
        export_letor(judged, tmp_path / "out.txt", tmp_path / "features.txt")
    write_letor(RankingData.from_arrays([[1.0]], [0], qid=["q1"], docid=["zzz"]), tmp_path / "features.txt")
    with pytest.raises(DataError, match="shares no document"):
        export_letor(judged, tmp_path / "out.txt", tmp_path / "features.txt")
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_spreadsheets_get_no_formulas(start: str) -> None:
    assert safe_cell(f"{start}cmd|' /C calc'!A0") == f"'{start}cmd|' /C calc'!A0"
    assert safe_cell(-5) == -5


def test_comments_are_safe_in_csv_and_whole_in_json(project: Store, tmp_path: Path) -> None:
    desk = Desk(project)
    work = desk.work(1)
    shown = tuple(work.assignment.numbers[name] for name in work.shown)
    comment = '=HYPERLINK("http://evil.example","x"),\n"quoted"'
    desk.vote(1, Vote(1, "token-token", Verdict.TIE, shown, comment=comment))
    export_events(project, tmp_path / "events.csv")
    with (tmp_path / "events.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["comment"] == "'" + comment
    assert (row["left"], row["right"]) == work.shown
    export_events(project, tmp_path / "events.jsonl")
    assert json.loads((tmp_path / "events.jsonl").read_text())["comment"] == comment


def test_records_and_outcomes_for_the_report(judged: Store) -> None:
    found = outcomes(judged)
    assert [(item.tool, item.k, item.complete, len(item.documents)) for item in found] == [
        (Tool.PREFERENCES, 3, True, 6)
    ] * 2
    events = records(judged)
    assert len(events) == sum(Desk(judged).work(number).state.asked for number in (1, 2))
    assert all(event.first_left in (True, False) for event in events)


def test_a_query_with_one_document_needs_no_judgment(tmp_path: Path) -> None:
    from gradrank.labeling.project.assignment import assign

    (tmp_path / "q.tsv").write_text("q1\tx\n")
    (tmp_path / "d.tsv").write_text("d1\ty\n")
    with create_project(tmp_path / "p.db") as store:
        import_files(store, queries=tmp_path / "q.tsv", documents=[tmp_path / "d.tsv"])
        assign(store, assessors=1, k=3)
        assert Desk(store).next_of(1) is None
        export_qrels(store, tmp_path / "qrels.txt")
    assert (tmp_path / "qrels.txt").read_text() == "q1 0 d1 3\n"
