"""Importing queries, documents and candidates; all faults of the files are found before anything is written."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradrank.errors import DataError
from gradrank.labeling.project.html_nesting import DEEPEST, nesting
from gradrank.labeling.project.source_files import Fault, Row, read_records, read_text, read_topics
from gradrank.labeling.project.store import Store, note

_PART_DOCUMENTS = 10_000
_PART_LETTERS = 8_000_000
# SQLite's waiting looks again after at most 100 ms: a shorter pause could pass unseen.
_PAUSE_SECONDS = 0.11

_QUERY_ID = ("qid", "query_id", "id", "_id", "number", "topic")
_QUERY_TEXT = ("text", "query", "title", "question")
_DESCRIPTION = ("description", "desc", "narrative", "narr", "question", "background")
_QUERY_COLUMNS: dict[int, tuple[str, ...]] = {2: ("id", "text"), 3: ("id", "text", "description")}

_DOCUMENT_ID = ("docid", "doc_id", "docno", "pid", "id", "_id")
_BODY = ("html", "text", "body", "contents", "content", "passage")
_TITLE = ("title", "headline")
_QUERY_OF_DOCUMENT = ("qid", "query_id", "queries")
_DOCUMENT_COLUMNS: dict[int, tuple[str, ...]] = {
    2: ("id", "text"),
    3: ("id", "title", "text"),
    4: ("id", "url", "title", "text"),
}


@dataclass(frozen=True)
class NewQuery:
    """A query to add."""

    name: str
    text: str
    description: str
    path: Path = field(compare=False)
    line: int = field(compare=False)


@dataclass(frozen=True)
class NewDocument:
    """A document to add; ``kind`` is ``text`` or ``html``."""

    name: str
    title: str
    body: str
    kind: str
    path: Path = field(compare=False)
    line: int = field(compare=False)


@dataclass(frozen=True)
class Candidate:
    """Where a document was named as a query's candidate, and how good that source finds it (1 is best)."""

    place: int
    path: Path
    line: int


@dataclass
class Import:
    """What an import adds, and what is wrong with the files."""

    queries: dict[str, NewQuery] = field(default_factory=dict)
    documents: dict[str, NewDocument] = field(default_factory=dict)
    candidates: dict[str, dict[str, Candidate]] = field(default_factory=dict)
    """By query and document."""
    unchanged: int = 0
    """Queries and documents that the project has already."""
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def summary(self) -> dict[str, int]:
        """Counts of what is added."""
        return {
            "queries": len(self.queries),
            "documents": len(self.documents),
            "candidates": sum(len(names) for names in self.candidates.values()),
            "unchanged": self.unchanged,
            "faults": len(self.faults),
        }


def import_files(
    store: Store,
    *,
    queries: str | Path | None = None,
    documents: Sequence[str | Path] = (),
    runs: Sequence[str | Path] = (),
    qrels: Sequence[str | Path] = (),
    depth: int = 50,
    html: bool = False,
    skip_missing: bool = False,
    dry_run: bool = False,
) -> Import:
    """Read files into a project.

    Candidates of a query are the first documents of each run, the documents of the qrels (best grade first), and
    documents whose record names the query. If no query has any, all documents become candidates of all queries when
    they are assigned. Faults are collected, not raised, with their file and line; if there is any, nothing is imported.

    Parameters
    ----------
    store
        the project
    queries, documents
        files of queries and of documents
    runs, qrels
        TREC files that name candidates
    depth
        how many documents of each run become candidates of a query
    html
        whether the texts of the documents are HTML
    skip_missing
        leave out candidates that have no text, instead of refusing them
    dry_run
        only look at the files

    Returns
    -------
    Import
        what is added, and what is wrong with the files

    Examples
    --------
    >>> import tempfile
    >>> from gradrank.labeling.project.store import create_project
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "queries.tsv").write_text("q1\\twhy is the sky blue\\n")
    >>> _ = (folder / "documents.tsv").write_text("d1\\tRayleigh scattering.\\nd2\\n")
    >>> with create_project(folder / "project.db") as store:
    ...     found = import_files(store, queries=folder / "queries.tsv", documents=[folder / "documents.tsv"])
    >>> [fault.line for fault in found.faults], found.summary()["queries"]
    ([2], 1)
    """
    if depth < 1:
        raise DataError(f"depth is {depth}, expected at least 1")
    found = Import()
    if queries is not None:
        _read_queries(Path(queries), found)
    for path in documents:
        _read_documents(Path(path), found, html)
    for path in runs:
        _read_run(Path(path), found, depth)
    for path in qrels:
        _read_qrels(Path(path), found)
    with store.snapshot() as connection:
        _compare(connection, found, skip_missing)
    if not dry_run and not found.faults:
        try:
            _add(store, found)
        except sqlite3.IntegrityError:
            message = "was changed by somebody else meanwhile; import the same files again"
            raise DataError(message, path=store.path) from None
    return found


# ---------------------------------------------------------------------- reading
def _read_queries(path: Path, found: Import) -> None:
    before = len(found.faults)
    records = read_topics(path, found.faults)
    seen: dict[str, int] = {}
    for record in records if records is not None else read_records(path, _QUERY_COLUMNS, _QUERY_ID, found.faults):
        name = _id_of(record, _QUERY_ID, "query", path, found)
        if name is None:
            continue
        if name in seen:
            found.faults.append(Fault(path, record.line, f"query {name} comes twice, first in line {seen[name]}"))
            continue
        seen[name] = record.line
        text = record.first(_QUERY_TEXT)
        if not text:
            found.faults.append(Fault(path, record.line, f"query {name} has no text ({' or '.join(_QUERY_TEXT)})"))
            continue
        description = record.first([key for key in _DESCRIPTION if record.fields.get(key) != text])
        found.queries[name] = NewQuery(name, text, description, path, record.line)
    if not seen and len(found.faults) == before:
        found.faults.append(Fault(path, None, "holds no query"))


def _read_documents(path: Path, found: Import, html: bool) -> None:
    before = len(found.faults)
    seen = False
    for record in read_records(path, _DOCUMENT_COLUMNS, _DOCUMENT_ID, found.faults, open_ended=True):
        seen = True
        name = _id_of(record, _DOCUMENT_ID, "document", path, found)
        if name is None:
            continue
        title, body = record.first(_TITLE), record.first(_BODY)
        if not title and not body:
            found.faults.append(Fault(path, record.line, f"document {name} has no text ({' or '.join(_BODY)})"))
            continue
        kind = "html" if html or record.first(("html",)) else "text"
        if kind == "html" and (depth := nesting(body)) > DEEPEST:
            message = f"document {name} has elements nested {depth} deep, expected at most {DEEPEST}"
            found.faults.append(Fault(path, record.line, message))
            continue
        document = NewDocument(name, title, body, kind, path, record.line)
        if found.documents.setdefault(name, document) != document:
            found.faults.append(Fault(path, record.line, f"document {name} comes twice, with different texts"))
        for query in record.many(_QUERY_OF_DOCUMENT):
            place = len(found.candidates.get(query, ())) + 1
            _candidate(found, query, name, Candidate(place, path, record.line))
    if not seen and len(found.faults) == before:
        found.faults.append(Fault(path, None, "holds no document"))


def _id_of(record: Row, names: Sequence[str], what: str, path: Path, found: Import) -> str | None:
    name = record.first(names)
    if not name:
        found.faults.append(Fault(path, record.line, f"{what} has no id ({' or '.join(names)})"))
    elif name.split() != [name]:
        found.faults.append(Fault(path, record.line, f"{what} id {name!r} holds a blank, which TREC files cannot hold"))
    else:
        return name
    return None


def _read_run(path: Path, found: Import, depth: int) -> None:
    from gradrank.data.formats.trec import read_run

    try:
        scores = read_run(path).to_dict()
    except DataError as error:
        found.faults.append(_fault_of(error, path))
        return
    lines = _lines_of(path, found)
    if lines is None:
        return
    left_out = 0
    for query, documents in scores.items():
        # Equal scores as trec_eval orders them: by document id, descending.
        ranked = sorted(documents, key=lambda name: (documents[name], name), reverse=True)
        left_out += max(0, len(ranked) - depth)
        for place, name in enumerate(ranked[:depth], 1):
            _candidate(found, query, name, Candidate(place, path, lines[query, name]))
    if left_out:
        found.notes.append(f"{path}: {left_out} documents below place {depth} are left out (--depth)")


def _read_qrels(path: Path, found: Import) -> None:
    from gradrank.data.formats.trec import read_qrels

    try:
        grades = read_qrels(path).to_dict()
    except DataError as error:
        found.faults.append(_fault_of(error, path))
        return
    lines = _lines_of(path, found)
    if lines is None:
        return
    for query, documents in grades.items():
        ranked = sorted(documents, key=lambda name: (-documents[name], name))
        for place, name in enumerate(ranked, 1):
            _candidate(found, query, name, Candidate(place, path, lines[query, name]))


def _fault_of(error: DataError, path: Path) -> Fault:
    return Fault(path, error.line, error.message)


def _lines_of(path: Path, found: Import) -> dict[tuple[str, str], int] | None:
    """The line of each query and document, the first and the third field; None and a fault if the file is no text."""
    text = read_text(path, found.faults)
    if text is None:
        return None
    lines = {}
    # As bytes, whose blanks are those that part fields: text has others, which may stand in ids.
    for number, line in enumerate(text.encode().split(b"\n"), 1):
        fields = line.split(maxsplit=3)
        if len(fields) > 2:
            lines[fields[0].decode(), fields[2].decode()] = number
    return lines


def _candidate(found: Import, query: str, document: str, candidate: Candidate) -> None:
    documents = found.candidates.setdefault(query, {})
    if document not in documents or candidate.place < documents[document].place:
        documents[document] = candidate


# ---------------------------------------------------------------------- against the project
def _compare(connection: sqlite3.Connection, found: Import, skip_missing: bool) -> None:
    """Leave out what the project has; refuse what would change it under the judgments."""
    texts = "SELECT text, description FROM query WHERE name = ?"
    for name, query in list(found.queries.items()):
        row = connection.execute(texts, (name,)).fetchone()
        if row is not None:
            del found.queries[name]
            found.unchanged += 1
            if tuple(row) != (query.text, query.description):
                message = f"query {name} is in the project with another text"
                found.faults.append(Fault(query.path, query.line, message))
    bodies = "SELECT title, body, kind FROM document WHERE name = ?"
    known = set()
    for name, document in list(found.documents.items()):
        row = connection.execute(bodies, (name,)).fetchone()
        if row is not None:
            del found.documents[name]
            known.add(name)
            found.unchanged += 1
            if tuple(row) != (document.title, document.body, document.kind):
                message = f"document {name} is in the project with another text"
                found.faults.append(Fault(document.path, document.line, message))
    unknown_queries = [name for name in found.candidates if not _has(connection, "query", name, found.queries)]
    for wanted in unknown_queries:
        del found.candidates[wanted]
    if unknown_queries:
        found.notes.append(
            f"{len(unknown_queries)} queries with candidates are not among the queries, such as {unknown_queries[0]}: "
            "they are left out"
        )
    missing = 0
    for wanted, documents in found.candidates.items():
        for name, where in list(documents.items()):
            if name not in known and not _has(connection, "document", name, found.documents):
                del documents[name]
                missing += 1
                if not skip_missing:
                    message = f"document {name} of query {wanted} has no text among the documents"
                    found.faults.append(Fault(where.path, where.line, message))
        _check_free(connection, wanted, documents, found)
    if missing and skip_missing:
        found.notes.append(f"{missing} candidates without a text are left out")
    if (found.queries or found.documents) and not found.candidates:
        found.notes.append("no candidates are given: if it stays so, every document is judged for every query")


def _has(
    connection: sqlite3.Connection, table: str, name: str, added: dict[str, NewQuery] | dict[str, NewDocument]
) -> bool:
    return name in added or connection.execute(f"SELECT 1 FROM {table} WHERE name = ?", (name,)).fetchone() is not None


def _check_free(connection: sqlite3.Connection, query: str, documents: dict[str, Candidate], found: Import) -> None:
    """Drop candidates that the query has; more for a query that is being judged would change what was asked."""
    row = connection.execute("SELECT id FROM query WHERE name = ?", (query,)).fetchone()
    if row is None:
        return
    sql = "SELECT d.name FROM candidate c JOIN document d ON d.id = c.document WHERE c.query = ?"
    for (name,) in connection.execute(sql, row):
        documents.pop(name, None)
    if documents and connection.execute("SELECT 1 FROM assignment WHERE query = ?", row).fetchone():
        first = next(iter(documents.values()))
        message = f"query {query} is assigned: its candidates can no longer change ({len(documents)} are new)"
        found.faults.append(Fault(first.path, first.line, message))


def _add(store: Store, found: Import) -> None:
    """Write documents in short transactions, so that votes get in between; then the queries, which make them count.

    What a crash leaves are documents that no query has yet; the same import again adds the rest.
    """
    for documents in _parts(list(found.documents.values())):
        with store.write() as connection:
            connection.executemany(
                "INSERT INTO document (name, title, body, kind) VALUES (?, ?, ?, ?)",
                ((item.name, item.title, item.body, item.kind) for item in documents),
            )
        time.sleep(_PAUSE_SECONDS)
    with store.write() as connection:
        connection.executemany(
            "INSERT INTO query (name, text, description) VALUES (?, ?, ?)",
            ((query.name, query.text, query.description) for query in found.queries.values()),
        )
        for query, documents_of_query in found.candidates.items():
            # Somebody may have assigned the query since it was compared.
            _check_free(connection, query, documents_of_query, found)
        if found.faults:
            raise sqlite3.IntegrityError
        _add_candidates(connection, found)
        counts = ", ".join(f"{count} {name}" for name, count in found.summary().items() if count)
        note(connection, store.clock(), "import", counts or "nothing new")


def _parts(documents: Sequence[NewDocument]) -> Iterator[Sequence[NewDocument]]:
    """Documents by the thousand, or fewer if they are long."""
    begin = size = 0
    for position, document in enumerate(documents):
        size += len(document.title) + len(document.body)
        if size >= _PART_LETTERS or position + 1 - begin >= _PART_DOCUMENTS:
            yield documents[begin : position + 1]
            begin, size = position + 1, 0
    if begin < len(documents):
        yield documents[begin:]


def _add_candidates(connection: sqlite3.Connection, found: Import) -> None:
    for query, documents in found.candidates.items():
        (number,) = connection.execute("SELECT id FROM query WHERE name = ?", (query,)).fetchone()
        (last,) = connection.execute(
            "SELECT coalesce(max(place), 0) FROM candidate WHERE query = ?", (number,)
        ).fetchone()
        connection.executemany(
            "INSERT INTO candidate (query, place, document) SELECT ?, ?, id FROM document WHERE name = ?",
            ((number, last + place, name) for place, name in enumerate(_best_first(documents), 1)),
        )


def _best_first(documents: dict[str, Candidate]) -> list[str]:
    """Several sources are pooled: each document at the best place that any of them gives it."""
    return sorted(documents, key=lambda name: documents[name].place)
