"""Files into a project: every form, every fault with its line, nothing half-read."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from gradrank.errors import DataError
from gradrank.labeling.project import importing
from gradrank.labeling.project.assignment import assign
from gradrank.labeling.project.importing import Import, import_files
from gradrank.labeling.project.store import Store, create_project

QUERIES = "q1\twhy is the sky blue\nq2\ttall mountains\tin Asia\n"
DOCUMENTS = "d1\tone\nd2\ttwo\nd3\tthree\n"


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., tuple[Store, Import]]:
    """Writes files, makes a project and imports them."""
    store = create_project(tmp_path / "p.db")

    def run(
        queries: str = QUERIES, documents: str = DOCUMENTS, names: tuple[str, str] = ("q.tsv", "d.tsv"), **more: object
    ) -> tuple[Store, Import]:
        (tmp_path / names[0]).write_text(queries)
        (tmp_path / names[1]).write_text(documents)
        for name in ("runs", "qrels"):
            texts = more.pop(name, [])
            assert isinstance(texts, list)
            paths = [tmp_path / f"{name}{number}.txt" for number in range(len(texts))]
            for path, text in zip(paths, texts, strict=True):
                path.write_text(text)
            more[name] = paths
        found = import_files(store, queries=tmp_path / names[0], documents=[tmp_path / names[1]], **more)  # type: ignore[arg-type]
        return store, found

    return run


def rows(store: Store, sql: str) -> list[tuple[object, ...]]:
    return store.read().execute(sql).fetchall()


def candidates(store: Store, query: str = "q1") -> list[str]:
    sql = (
        "SELECT d.name FROM candidate c JOIN document d ON d.id = c.document JOIN query q ON q.id = c.query "
        "WHERE q.name = ? ORDER BY c.place"
    )
    return [name for (name,) in store.read().execute(sql, (query,))]


TOPICS = """<top>
<num> Number: q1
<title> why is the sky blue

<desc> Description:
Physics,
please.

<narr> Narrative:
More.
</top>
<top>
<num> Number: q2
<title> tall mountains
</top>
"""
XML = """<?xml version="1.0"?>
<topics><topic number="q1"><query>why is the sky blue</query><question>Physics, please.</question></topic>
<topic number="q2"><query>tall mountains</query></topic></topics>
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.tsv", "q1\twhy is the sky blue\tPhysics, please.\nq2\ttall mountains\n"),
        ("q.tsv", "qid\tquery\tdescription\r\nq1\twhy is the sky blue\tPhysics, please.\r\nq2\ttall mountains\t\r\n"),
        ("q.csv", 'id,text,description\nq1,why is the sky blue,"Physics, please."\nq2,tall mountains,\n'),
        (
            "q.jsonl",
            '{"id": "q1", "text": "why is the sky blue", "description": "Physics, please."}\n\n'
            '{"_id": "q2", "query": "tall mountains"}\n',
        ),
        ("q.txt", TOPICS),
        ("q.xml", XML),
        ("q", "\ufeffq1\twhy is the sky blue\tPhysics, please.\nq2\ttall mountains\n"),
    ],
)
def test_forms_of_queries(load: Callable[..., tuple[Store, Import]], name: str, text: str) -> None:
    store, found = load(queries=text, names=(name, "d.tsv"))
    assert found.faults == []
    assert rows(store, "SELECT name, text, description FROM query ORDER BY id") == [
        ("q1", "why is the sky blue", "Physics, please."),
        ("q2", "tall mountains", ""),
    ]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("d.tsv", 'd1\t"quotes" are text\n', "text"),
        ("d.tsv", 'd1\thttps://a.example\tA title\t"quotes" are text\n', "text"),
        ("d.csv", 'docid,title,text\nd1,A title,"""quotes"" are text"\n', "text"),
        ("d.jsonl", json.dumps({"docid": "d1", "title": "A title", "contents": '"quotes" are text'}), "text"),
        ("d.jsonl", json.dumps({"id": "d1", "html": '"quotes" are text'}), "html"),
    ],
)
def test_forms_of_documents(load: Callable[..., tuple[Store, Import]], name: str, text: str, kind: str) -> None:
    store, found = load(documents=text, names=("q.tsv", name))
    assert found.faults == []
    ((document, title, body, stored),) = rows(store, "SELECT name, title, body, kind FROM document")
    assert (document, body, stored) == ("d1", '"quotes" are text', kind)
    assert title in ("", "A title")


def test_texts_of_tab_separated_documents_may_hold_tabs(load: Callable[..., tuple[Store, Import]]) -> None:
    store, found = load(documents="d1\tone\nd2\ttwo\twith a tab\nd3\tthree\n")
    assert found.faults == []
    assert rows(store, "SELECT title, body FROM document WHERE name = 'd2'") == [("", "two with a tab")]


def test_a_line_that_lacks_a_column_is_a_fault(load: Callable[..., tuple[Store, Import]]) -> None:
    _, found = load(documents="docid\ttitle\ttext\nd1\tA\tone\nd2\ttwo\n")
    assert [(fault.line, fault.message) for fault in found.faults] == [
        (3, "has 2 fields, expected 3, as the first line has")
    ]


def test_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "d.tsv.xz").write_bytes(lzma.compress(DOCUMENTS.encode()))
    with create_project(tmp_path / "p.db") as store:
        assert import_files(store, documents=[tmp_path / "d.tsv.xz"]).summary()["documents"] == 3


def test_a_run_gives_candidates_by_score(load: Callable[..., tuple[Store, Import]]) -> None:
    run = "q1 Q0 d1 1 1.5 x\nq1 Q0 d2 2 7 x\nq1 Q0 d3 3 7 x\n"
    store, found = load(runs=[run], depth=2)
    # Equal scores as trec_eval: by document, descending; the rank column is not looked at.
    assert candidates(store) == ["d3", "d2"]
    assert any("1 documents below place 2" in note for note in found.notes)


def test_several_runs_are_pooled_by_best_place(load: Callable[..., tuple[Store, Import]]) -> None:
    one = "q1 Q0 d1 1 9 x\nq1 Q0 d2 2 8 x\nq1 Q0 d3 3 7 x\n"
    other = "q1 Q0 d3 1 9 y\n"
    store, _ = load(runs=[one, other])
    assert candidates(store) == ["d1", "d3", "d2"]


def test_qrels_give_candidates_best_first(load: Callable[..., tuple[Store, Import]]) -> None:
    store, _ = load(qrels=["q1 0 d1 0\nq1 0 d2 3\n"])
    assert candidates(store) == ["d2", "d1"]


def test_documents_may_name_their_queries(load: Callable[..., tuple[Store, Import]]) -> None:
    lines = [{"docid": "d1", "text": "x", "qid": "q1"}, {"docid": "d2", "text": "y", "queries": ["q1", "q2"]}]
    store, found = load(documents="\n".join(map(json.dumps, lines)), names=("q.tsv", "d.jsonl"))
    assert found.faults == []
    assert (candidates(store), candidates(store, "q2")) == (["d1", "d2"], ["d2"])


@pytest.mark.parametrize(
    ("changes", "file", "line", "message"),
    [
        ({"queries": "q1\tblue\nq2\n"}, "q.tsv", 2, "has 1 field, expected 2 (id, text) or 3"),
        ({"queries": "q1\tblue\nq1\tred\n"}, "q.tsv", 2, "query q1 comes twice, first in line 1"),
        ({"queries": "q1\tblue\nq 2\tred\n"}, "q.tsv", 2, "holds a blank"),
        ({"queries": "q1\t \n"}, "q.tsv", 1, "query q1 has no text"),
        ({"queries": ""}, "q.tsv", None, "holds no query"),
        ({"documents": "d1\tone\nd1\tanother\n"}, "d.tsv", 2, "comes twice, with different texts"),
        ({"documents": "d1\tone\n\td2\n"}, "d.tsv", 2, "document has no id"),
        ({"documents": '{"id": "d1"}\n', "names": ("q.tsv", "d.jsonl")}, "d.jsonl", 1, "document d1 has no text"),
        ({"documents": '{"id": \n', "names": ("q.tsv", "d.jsonl")}, "d.jsonl", 1, "is not JSON"),
        ({"documents": "[1]\n", "names": ("q.tsv", "d.jsonl")}, "d.jsonl", 1, "expected an object"),
        ({"documents": 'id,text\nd1,"open\n', "names": ("q.tsv", "d.csv")}, "d.csv", 2, "is not CSV"),
        (
            {"documents": '{"id": "d1", "text": "a\\ud800b"}\n', "names": ("q.tsv", "d.jsonl")},
            "d.jsonl",
            1,
            r"holds \ud800, half of a character",
        ),
        (
            {"documents": '{"id": "d1", "text": ' + "[" * 100_000 + "\n", "names": ("q.tsv", "d.jsonl")},
            "d.jsonl",
            1,
            "nested too deeply",
        ),
        ({"queries": "<top" * 200_000, "names": ("q.txt", "d.tsv")}, "q.txt", 1, "holds no <top> or <topic>"),
        ({"documents": "d1\t" + "<div>" * 70_000 + "\n", "html": True}, "d.tsv", 1, "nested 70000 deep"),
        ({"runs": ["q1 Q0 d1 1 9 x\nq1 Q0 d9 2 8 x\n"]}, "runs0.txt", 2, "document d9 of query q1 has no text"),
        ({"runs": ["q1 Q0 d1 1 nine x\n"]}, "runs0.txt", 1, "score is 'nine'"),
        ({"qrels": ["q1 0 d1\n"]}, "qrels0.txt", 1, "has 3 fields, expected 4"),
    ],
)
def test_faults_name_file_and_line_and_nothing_is_imported(
    load: Callable[..., tuple[Store, Import]],
    changes: dict[str, object],
    file: str,
    line: int | None,
    message: str,
) -> None:
    store, found = load(**changes)
    fault = found.faults[0]
    assert (fault.path.name, fault.line) == (file, line)
    assert message in fault.message
    assert rows(store, "SELECT count(*) FROM query") == [(0,)]
    assert rows(store, "SELECT count(*) FROM document") == [(0,)]


def test_all_faults_are_found_at_once(load: Callable[..., tuple[Store, Import]]) -> None:
    _, found = load(queries="q1\nq2\tred\nq2\tblue\n", documents="d1\n")
    assert [(fault.path.name, fault.line) for fault in found.faults] == [("q.tsv", 1), ("q.tsv", 3), ("d.tsv", 1)]


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "d.tsv").write_bytes(b"d1\tone\nd2\t\xff\n")
    with create_project(tmp_path / "p.db") as store:
        (fault,) = import_files(store, documents=[tmp_path / "d.tsv"]).faults
    assert (fault.line, fault.message) == (2, "is not UTF-8 text")


@pytest.mark.parametrize(("kind", "line"), [("runs", b"q1 Q0 d1 1 9 t\xff\n"), ("qrels", b"q1 \xff d1 2\n")])
def test_candidates_in_files_that_are_not_utf8(kind: str, line: bytes, tmp_path: Path) -> None:
    (tmp_path / "candidates").write_bytes(line)
    with create_project(tmp_path / "p.db") as store:
        (fault,) = import_files(store, **{kind: [tmp_path / "candidates"]}).faults
    assert (fault.path.name, fault.line, fault.message) == ("candidates", 1, "is not UTF-8 text")


@pytest.mark.parametrize("blank", ["\u00a0", "\u2028", "\x1f", "\x85"])
def test_ids_of_candidates_may_hold_what_only_unicode_calls_a_blank(
    blank: str, load: Callable[..., tuple[Store, Import]]
) -> None:
    _, found = load(runs=[f"q1 Q0 d1{blank}x 1 9 t\n"])
    (fault,) = found.faults
    assert (fault.path.name, fault.line) == ("runs0.txt", 1)
    assert "has no text" in fault.message


def test_a_dry_run_changes_nothing(load: Callable[..., tuple[Store, Import]]) -> None:
    store, found = load(dry_run=True)
    assert found.summary() == {"queries": 2, "documents": 3, "candidates": 0, "unchanged": 0, "faults": 0}
    assert rows(store, "SELECT count(*) FROM query") == [(0,)]


def test_candidates_without_text_can_be_left_out(load: Callable[..., tuple[Store, Import]]) -> None:
    store, found = load(runs=["q1 Q0 d1 1 9 x\nq1 Q0 d9 2 8 x\nq7 Q0 d1 1 9 x\n"], skip_missing=True)
    assert (found.faults, candidates(store)) == ([], ["d1"])
    assert any("1 candidates without a text" in note for note in found.notes)
    assert any("such as q7" in note for note in found.notes)


def test_importing_the_same_again_changes_nothing(load: Callable[..., tuple[Store, Import]]) -> None:
    load()
    store, again = load()
    assert again.summary() == {"queries": 0, "documents": 0, "candidates": 0, "unchanged": 5, "faults": 0}
    assert rows(store, "SELECT count(*) FROM document") == [(3,)]


def test_texts_do_not_change_under_the_judgments(load: Callable[..., tuple[Store, Import]]) -> None:
    load()
    _, found = load(queries="q1\tanother text\n", documents="d1\tone\nd2\tanother text\n")
    assert [(fault.path.name, fault.line) for fault in found.faults] == [("q.tsv", 1), ("d.tsv", 2)]


def test_candidates_of_an_assigned_query_are_fixed(load: Callable[..., tuple[Store, Import]]) -> None:
    store, _ = load(runs=["q1 Q0 d1 1 9 x\nq2 Q0 d1 1 9 x\n"])
    assign(store, assessors=1)
    _, found = load(runs=["q1 Q0 d1 1 9 x\nq1 Q0 d2 2 8 x\n"])
    assert [(fault.path.name, fault.line) for fault in found.faults] == [("runs0.txt", 2)]
    assert "query q1 is assigned" in found.faults[0].message


def test_depth_must_be_positive(load: Callable[..., tuple[Store, Import]]) -> None:
    with pytest.raises(DataError, match="depth is 0"):
        load(depth=0)


def test_pages_that_never_close_their_paragraphs_are_taken(load: Callable[..., tuple[Store, Import]]) -> None:
    page = (
        "<table>" + "<tr><td>a<td>b<br>" * 1000 + "</table>" + "<p>c<ul>" + "<li>d" * 1000 + "</ul><!-- " + "<b>" * 999
    )
    _store, found = load(documents=f"d1\t{page}\nd2\tA smile: \N{GRINNING FACE}\n", html=True)
    assert found.faults == []


def test_whole_characters_written_in_halves_are_taken(load: Callable[..., tuple[Store, Import]]) -> None:
    store, found = load(documents='{"id": "d1", "text": "\\ud83d\\ude00"}\n', names=("q.tsv", "d.jsonl"))
    assert found.faults == []
    assert rows(store, "SELECT body FROM document") == [("\N{GRINNING FACE}",)]


def test_votes_get_in_between_the_parts_of_an_import(
    load: Callable[..., tuple[Store, Import]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stores: list[Store] = []
    counts: list[int] = []

    def write_meanwhile(_seconds: float) -> None:
        (path,) = {store.path for store in stores}
        with Store(path, busy_seconds=0) as other:
            other.set_setting("title", f"part {len(counts)}")
            counts.append(other.read().execute("SELECT count(*) FROM document").fetchone()[0])

    stores.append(load()[0])
    monkeypatch.setattr(importing, "_PART_DOCUMENTS", 2)
    monkeypatch.setattr(importing.time, "sleep", write_meanwhile)
    _store, found = load(documents=DOCUMENTS + "".join(f"e{number}\ttext\n" for number in range(5)))
    assert found.faults == []
    assert counts == [5, 7, 8]


def test_a_query_assigned_while_documents_are_read_keeps_its_candidates(
    load: Callable[..., tuple[Store, Import]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _found = load(runs=["q1 Q0 d1 1 9 x\nq1 Q0 d2 2 8 x\n"])
    monkeypatch.setattr(importing.time, "sleep", lambda _seconds: assign(store, assessors=1, k=1))
    with pytest.raises(DataError, match="import the same files again"):
        load(documents=f"{DOCUMENTS}d4\tfour\n", runs=["q1 Q0 d4 1 9 x\n"])
    assert candidates(store) == ["d1", "d2"]
