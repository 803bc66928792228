"""Changed files that a labeling project is made of: all faults are listed, or what is imported can be shown."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from unittest.mock import patch

from gradrank.errors import DataError
from gradrank.labeling.judgments import Verdict
from gradrank.labeling.project import importing
from gradrank.labeling.project.assignment import assign
from gradrank.labeling.project.backup import restore
from gradrank.labeling.project.board import board
from gradrank.labeling.project.exporting import export_events, export_topk
from gradrank.labeling.project.importing import import_files
from gradrank.labeling.project.judging import Desk, Vote
from gradrank.labeling.project.store import Store, create_project
from gradrank.labeling.web.documents import document_html
from tests.fuzz.data import change_lines
from tests.fuzz.mutations import changed, either
from tests.fuzz.targets import Target

QUERIES = {
    "q.tsv": b"q1\twhy is the sky blue\tphysics\nq2\ttall mountains\n",
    "q.csv": b'id,text\nq1,"why, is the sky blue"\nq2,tall mountains\n',
    "q.jsonl": b'{"id": "q1", "text": "blue sky"}\n{"_id": 2, "query": "x", "narrative": "y"}\n',
    "q.xml": b"<top>\n<num> Number: 401\n<title> sky\n<desc> Description:\nwhy\n</top>\n<top><num>2<title>y</top>\n",
}
DOCUMENTS = {
    "d.tsv": b"d1\ttext one\nd2\ttitle\twith\ttabs\nd3\tx\n",
    "d.jsonl": b'{"id": "d1", "html": "<p>one<ul><li>x"}\n{"docno": "d2", "title": "t", "body": "b", "qid": "q1"}\n',
}
_PLAIN_QUERIES, _PLAIN_DOCUMENTS = QUERIES["q.tsv"], b"d1\tone\nd2\ttwo\nd9\tnine\n"


@cache
def empty_project() -> bytes:
    """A project without anything, as bytes: making one takes longer than reading a file."""
    path = Path(mkdtemp()) / "p.db"
    create_project(path, title="Test").close()
    return path.read_bytes()


def imported(name: str, kind: str) -> Callable[[bytes, Path], None]:
    """Imports a changed file with others that are whole, and looks at what came of it."""

    def attempt(content: bytes, folder: Path) -> None:
        place = folder / "label"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        files = {"queries": place / "q.tsv", "documents": place / "d.tsv"}
        files["queries"].write_bytes(_PLAIN_QUERIES)
        files["documents"].write_bytes(_PLAIN_DOCUMENTS)
        files[kind] = place / name
        files[kind].write_bytes(content)
        more = {kind: [files[kind]]} if kind in ("runs", "qrels") else {}
        (place / "p.db").write_bytes(empty_project())
        with Store(place / "p.db") as store:
            given = {"queries": files["queries"], "documents": [files["documents"]], **more}
            tried = import_files(store, **given, dry_run=True)
            with patch.object(importing.time, "sleep", new=lambda _: None):  # nobody votes meanwhile
                found = import_files(store, **given)
            assert [str(fault) for fault in tried.faults] == [str(fault) for fault in found.faults]
            for fault in found.faults:
                assert str(fault).startswith(str(place))
                assert "\n" not in str(fault)
            if found.faults:
                raise DataError(str(found.faults[0])[:1000])
            for _, body, form in store.read().execute("SELECT name, body, kind FROM document"):
                assert isinstance(document_html(body, form, "sky"), str)

    return attempt


@cache
def judged_project() -> bytes:
    """A project with some work done."""
    folder = Path(mkdtemp())
    (folder / "q.tsv").write_bytes(_PLAIN_QUERIES)
    (folder / "d.tsv").write_bytes(_PLAIN_DOCUMENTS)
    with create_project(folder / "p.db", title="Test") as store:
        import_files(store, queries=folder / "q.tsv", documents=[folder / "d.tsv"])
        assign(store, assessors=2, k=2)
        desk = Desk(store)
        for number in range(2):
            work = desk.work(1)
            shown = tuple(work.assignment.numbers[name] for name in work.shown)
            desk.vote(1, Vote(work.seq, f"token-{number}", Verdict.FIRST, shown))
    return (folder / "p.db").read_bytes()


def restored(content: bytes, folder: Path) -> None:
    """Restores a changed backup, and reads all of it."""
    place = folder / "restored"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "copy.db").write_bytes(content)
    restore(place / "copy.db", place / "p.db")
    with Store(place / "p.db") as store:
        assert board(Desk(store)).to_dict()
        export_events(store, place / "events.jsonl")
        export_topk(store, place / "top.jsonl", unfinished=True)


def targets() -> list[Target]:
    """One for every form of file."""
    lines = either(changed, change_lines)

    def target(name: str, content: bytes, kind: str) -> Target:
        way = lines if name.endswith("jsonl") else changed
        return Target(f"labeling/{name}", lambda: {"file": content}, imported(name, kind), way)

    return [
        *(target(name, content, "queries") for name, content in QUERIES.items()),
        *(target(name, content, "documents") for name, content in DOCUMENTS.items()),
        target("run", b"q1 Q0 d1 1 12.5 mine\nq2 Q0 d2 2 -3e2 mine\n", "runs"),
        target("qrels", b"q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n", "qrels"),
        Target("labeling/backup", lambda: {"file": judged_project()}, restored),
    ]
