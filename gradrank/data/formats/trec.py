"""TREC's files: qrels (judgments) and runs (ranked results), and ranking data made of both.

A qrels line is ``query iteration document grade``, a run line is ``query Q0 document rank score tag``.
As in trec_eval, a run's order is that of its scores; its rank column is not looked at. Fields are
separated by blanks or tabs, and files may be compressed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.formats.compressed import open_for_writing, read_bytes
from gradrank.data.ranking_data import PRIMARY_LABEL, RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError

NOT_RETRIEVED = -np.inf
"""The score of a document that a run did not retrieve."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_IS_BLANK = np.isin(np.arange(256), np.frombuffer(b" \t\n\r\v\f", dtype=np.uint8))


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgments: query ``q`` owns rows ``indptr[q]:indptr[q + 1]`` of ``docid`` and ``label``."""

    qid: Strings
    indptr: NDArray[np.int64]
    docid: Strings
    label: NDArray[np.float32]

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Grades by query and document."""
        return _to_dict(self.qid, self.indptr, self.docid, self.label)

    def __repr__(self) -> str:
        return f"Qrels({len(self.qid):,} queries, {len(self.docid):,} judgments)"


@dataclass(frozen=True, eq=False)
class Run:
    """Retrieved documents: query ``q`` owns rows ``indptr[q]:indptr[q + 1]`` of ``docid`` and ``score``."""

    qid: Strings
    indptr: NDArray[np.int64]
    docid: Strings
    score: NDArray[np.float64]
    tag: str

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Scores by query and document."""
        return _to_dict(self.qid, self.indptr, self.docid, self.score)

    def __repr__(self) -> str:
        return f"Run({self.tag!r}, {len(self.qid):,} queries, {len(self.docid):,} documents)"


class Coverage(NamedTuple):
    """How the queries of a run meet those of the qrels."""

    shared: int
    """Queries in both."""
    missing: int
    """Queries of the qrels that the run lacks: evaluated with nothing retrieved."""
    ignored: int
    """Queries of the run that are not in the qrels: left out."""


# ---------------------------------------------------------------------- reading
def read_qrels(path: str | Path) -> Qrels:
    """Read TREC qrels; grades may be any finite numbers, negative ones included.

    Parameters
    ----------
    path
        The file, plain or compressed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> _ = path.write_text("q1 0 d1 2\\nq1 0 d2 -1\\n")
    >>> read_qrels(path).to_dict()
    {'q1': {'d1': 2.0, 'd2': -1.0}}
    """
    lines = _read_lines(path, ("query", "iteration", "document", "grade"))
    qid, indptr, docid, label = _grouped(lines, lines.numbers(3))
    return Qrels(qid, indptr, docid, label.astype(np.float32))


def read_run(path: str | Path) -> Run:
    """Read a TREC run: one score for each retrieved document of each query.

    Parameters
    ----------
    path
        The file, plain or compressed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.txt"
    >>> _ = path.write_text("q1 Q0 d2 1 7.5 bm25\\nq1 Q0 d1 2 3.25 bm25\\n")
    >>> run = read_run(path)
    >>> run.tag, run.to_dict()
    ('bm25', {'q1': {'d2': 7.5, 'd1': 3.25}})
    """
    lines = _read_lines(path, ("query", "Q0", "document", "rank", "score", "tag"))
    qid, indptr, docid, score = _grouped(lines, lines.numbers(4))
    return Run(qid, indptr, docid, score, lines.token(0, 5).decode(errors="replace"))


# ---------------------------------------------------------------------- joining
def trec_data(qrels: Qrels, runs: Mapping[str, Run]) -> RankingData:
    """Ranking data of the qrels' queries: every document that is judged or that a run retrieved.

    Each run is a feature, its score, NaN where it did not retrieve the document. The label is NaN for
    a document that was retrieved but not judged. A query of the qrels that a run lacks is kept, with
    nothing retrieved; a query that only a run has is ignored; :func:`query_coverage` counts both. In a
    query, judged documents come first, in the order of the qrels.

    Parameters
    ----------
    qrels
        The judgments.
    runs
        Runs by name.

    Examples
    --------
    >>> qrels = Qrels(Strings.of(["q"]), np.array([0, 1]), Strings.of(["d1"]), np.array([1], np.float32))
    >>> run = Run(Strings.of(["q"]), np.array([0, 1]), Strings.of(["d2"]), np.array([7.5]), "bm25")
    >>> data = trec_data(qrels, {"bm25": run})
    >>> list(data.docid), data.label().tolist(), data.X.tolist()
    (['d1', 'd2'], [1.0, nan], [[nan], [7.5]])
    """
    for name, run in runs.items():
        if query_coverage(qrels, run).shared == 0:
            raise DataError(
                f"run {name!r} and the qrels share no query: the run has {run.qid[0]!r}, the qrels have "
                f"{qrels.qid[0]!r}"
            )
    queries, documents = _Codes(), _Codes()
    keys = [_keys(queries.add(_tokens(qrels.qid)), qrels.indptr, documents.add(_tokens(qrels.docid)))]
    values: list[NDArray[np.float64]] = [qrels.label.astype(np.float64)]
    for run in runs.values():
        query = queries.find(_tokens(run.qid))
        kept = np.repeat(query >= 0, np.diff(run.indptr))
        keys.append(_keys(query, run.indptr, documents.add(_tokens(run.docid)))[kept])
        values.append(run.score[kept])
    unique, first, inverse = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
    order = np.lexsort((first, unique >> 32))
    row_of_unique = np.empty(len(unique), dtype=np.int64)
    row_of_unique[order] = np.arange(len(unique))
    rows = np.split(row_of_unique[inverse.reshape(-1)], np.cumsum([len(part) for part in keys])[:-1])
    columns = np.full((len(unique), 1 + len(runs)), np.nan, dtype=np.float32)
    with np.errstate(over="ignore"):  # what float32 cannot hold is found and named by from_arrays
        for column, (part, numbers) in enumerate(zip(rows, values, strict=True)):
            columns[part, column] = numbers
    data = RankingData.from_arrays(
        np.ascontiguousarray(columns[:, 1:]),
        {PRIMARY_LABEL: np.ascontiguousarray(columns[:, 0])},
        group=np.bincount(unique >> 32, minlength=len(qrels.qid)),
        feature_names=list(runs),
    )
    names = documents.tokens()
    docid = _strings([names[code] for code in (unique[order] & 0xFFFFFFFF).tolist()])
    return replace(data, qid=qrels.qid, docid=docid)


def run_scores(data: RankingData, run: Run) -> NDArray[np.float64]:
    """A run's score for each document, in the order in which they were given; −∞ where it was not retrieved.

    Queries of the run that the data lacks are ignored. A document that the data lacks is an error, for
    without it the ranking is another one: make the data with this run among its runs.

    >>> data = RankingData.from_arrays([[0.0], [0.0]], [1, 0], qid=["q", "q"], docid=["d1", "d2"])
    >>> run = Run(Strings.of(["q"]), np.array([0, 1]), Strings.of(["d2"]), np.array([7.5]), "bm25")
    >>> run_scores(data, run).tolist()
    [-inf, 7.5]
    """
    queries, documents = _Codes(), _Codes()
    keys = _keys(queries.add(_tokens(data.qid)), data.indptr, documents.add(_tokens(_docids(data))))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(repeated):
        row = int(order[repeated[0] + 1])
        raise DataError(
            f"document {_docids(data)[row]} comes twice in query {data.qid[data.query_of_row()[row]]}, "
            "so a run's score for it has no single place"
        )
    query = np.repeat(queries.find(_tokens(run.qid)), np.diff(run.indptr))
    document = documents.find(_tokens(run.docid))
    wanted = (query << 32) | document
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    found = (query >= 0) & (document >= 0) & (ordered[place] == wanted)
    lost = np.flatnonzero((query >= 0) & ~found)
    if len(lost):
        row = int(lost[0])
        number = int(np.searchsorted(run.indptr, row, side="right")) - 1
        raise DataError(
            f"run {run.tag!r} retrieves document {run.docid[row]} for query {run.qid[number]}, which the data lacks "
            f"({len(lost)} such documents): make the data with this run among its runs"
        )
    scores = np.full(data.n_docs, NOT_RETRIEVED)
    scores[order[place[found]]] = run.score[found]
    return data.in_input_order(scores)


def query_coverage(qrels: Qrels, run: Run) -> Coverage:
    """Count the queries that the qrels and a run share, and those that only one has.

    >>> qrels = Qrels(Strings.of(["a", "b"]), np.array([0, 1, 2]), Strings.of("xy"), np.ones(2, np.float32))
    >>> run = Run(Strings.of(["b"]), np.array([0, 1]), Strings.of(["z"]), np.array([7.5]), "bm25")
    >>> query_coverage(qrels, run)
    Coverage(shared=1, missing=1, ignored=0)
    """
    judged, retrieved = set(_tokens(qrels.qid)), set(_tokens(run.qid))
    return Coverage(len(judged & retrieved), len(judged - retrieved), len(retrieved - judged))


# ---------------------------------------------------------------------- writing
def write_qrels(data: RankingData, path: str | Path, *, label: str | None = None) -> None:
    """Write the judged documents of a label source (the primary one if none is named) as qrels.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> write_qrels(RankingData.from_arrays([[0.0]], [2], qid=["q"], docid=["d"]), path)
    >>> path.read_text()
    'q 0 d 2\\n'
    """
    grades = data.label(label)
    queries, documents = _writable(data)
    judged = np.flatnonzero(~np.isnan(grades))
    # Shortest text that reads back as the same float32; whole grades without a point, as trec_eval wants.
    texts = [str(grade).removesuffix(".0").encode() for grade in grades[judged]]
    query = data.query_of_row()[judged].tolist()
    with open_for_writing(path) as file:
        file.writelines(
            b"%s 0 %s %s\n" % (queries[q], documents[row], text)
            for q, row, text in zip(query, judged.tolist(), texts, strict=True)
        )


def write_run(data: RankingData, scores: ArrayLike, path: str | Path, *, tag: str = "gradrank") -> None:
    """Write scores as a run, best first; equal scores by document id, descending, as trec_eval breaks ties.

    Documents with score −∞ were not retrieved and are left out.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.txt"
    >>> data = RankingData.from_arrays([[0.0], [0.0]], qid=["q", "q"], docid=["d1", "d2"])
    >>> write_run(data, [0.5, 0.5], path, tag="best")
    >>> path.read_text().splitlines()
    ['q Q0 d2 1 0.5 best', 'q Q0 d1 2 0.5 best']
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (data.n_docs,):
        raise DataError(f"scores have shape {values.shape}, expected one for each of {data.n_docs} documents")
    wrong = np.flatnonzero(np.isnan(values) | (values == np.inf))
    if len(wrong):
        raise DataError(f"score of document {wrong[0] + 1} is {values[wrong[0]]}, expected a number or -inf")
    if not tag or len(tag.split()) != 1 or tag != tag.strip():
        raise DataError(f"tag is {tag!r}, expected one word")
    queries, documents = _writable(data)
    query = data.query_of_row()
    order = np.lexsort((-values, query))
    order = order[values[order] > NOT_RETRIEVED]
    _break_ties(order, query, values, documents)
    sizes = np.bincount(query[order], minlength=data.n_queries)
    ranks = np.arange(1, len(order) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    suffix = tag.encode()
    with open_for_writing(path) as file:
        file.writelines(
            b"%s Q0 %s %d %s %s\n" % (queries[q], documents[row], rank, repr(score).encode(), suffix)
            for q, row, rank, score in zip(
                query[order].tolist(), order.tolist(), ranks.tolist(), values[order].tolist(), strict=True
            )
        )


def _break_ties(
    order: NDArray[np.int64], query: NDArray[np.int64], values: NDArray[np.float64], documents: Sequence[bytes]
) -> None:
    """Put runs of equal scores in a query into descending order of document ids, in place."""
    same = (query[order[1:]] == query[order[:-1]]) & (values[order[1:]] == values[order[:-1]])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    for start, end in zip(edges[0::2].tolist(), (edges[1::2] + 1).tolist(), strict=True):
        order[start:end] = sorted(order[start:end].tolist(), key=documents.__getitem__, reverse=True)


def _docids(data: RankingData) -> Strings:
    if data.docid is None:
        raise DataError("this data has no document ids, which TREC files need")
    return data.docid


def _writable(data: RankingData) -> tuple[list[bytes], list[bytes]]:
    """Query and document ids, checked to be single words."""
    columns = []
    for what, strings in (("query id", data.qid), ("document id", _docids(data))):
        tokens = _tokens(strings)
        if np.diff(strings.offsets).min() == 0 or _IS_BLANK[strings.buffer].any():
            for token in tokens:
                if len(token.split()) != 1 or token != token.strip():
                    raise DataError(f"{what} {token.decode(errors='replace')!r} is not one word, as TREC files need")
        columns.append(tokens)
    return columns[0], columns[1]


# ---------------------------------------------------------------------- lines
@dataclass(frozen=True, eq=False)
class _Lines:
    """The fields of a file: ``text[starts[i, j]:ends[i, j]]`` is field ``j`` of row ``i``."""

    path: str | Path
    names: tuple[str, ...]
    text: bytes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    line: NDArray[np.int64]
    """Line number of each row, from 1."""

    def token(self, row: int, column: int) -> bytes:
        return self.text[self.starts[row, column] : self.ends[row, column]]

    def column(self, column: int) -> list[bytes]:
        text = self.text
        spans = zip(self.starts[:, column].tolist(), self.ends[:, column].tolist(), strict=True)
        return [text[start:end] for start, end in spans]

    def numbers(self, column: int) -> NDArray[np.float64]:
        tokens = self.column(column)
        try:
            values = np.array(list(map(float, tokens)))
        except ValueError:
            values = np.array([_number(token) for token in tokens])
        # Python takes 1_000 for a number, these files do not have it.
        if b"_" in b"".join(tokens):
            values[[b"_" in token for token in tokens]] = np.nan
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            shown = tokens[wrong[0]].decode(errors="replace")
            self.refuse(int(wrong[0]), f"{self.names[column]} is {shown!r}, expected a finite number")
        return values

    def refuse(self, row: int, message: str) -> NoReturn:
        raise DataError(message, path=self.path, line=int(self.line[row]))


def _number(token: bytes) -> float:
    try:
        return float(token)
    except ValueError:
        return np.nan


def _read_lines(path: str | Path, names: tuple[str, ...]) -> _Lines:
    content = read_bytes(path)
    if content[:3].tobytes() == _BYTE_ORDER_MARK:
        content = content[3:]
    width = len(names)
    blank = np.ones(len(content) + 2, dtype=bool)
    blank[1:-1] = _IS_BLANK[content]
    edges = np.flatnonzero(blank[1:] != blank[:-1])
    starts, ends = edges[0::2], edges[1::2]
    if len(starts) == 0:
        raise DataError(f"is empty, expected lines of {width} fields: {' '.join(names)}", path=path)
    newlines = np.flatnonzero(content == ord("\n"))
    if len(starts) % width == 0:
        first, last = (np.searchsorted(newlines, starts[field::width]) for field in (0, width - 1))
        if np.array_equal(first, last) and (np.diff(first) > 0).all():
            shape = (-1, width)
            return _Lines(path, names, content.tobytes(), starts.reshape(shape), ends.reshape(shape), first + 1)
    counts = np.bincount(np.searchsorted(newlines, starts))
    line = int(np.flatnonzero((counts != 0) & (counts != width))[0])
    raise DataError(f"has {counts[line]} fields, expected {width}: {' '.join(names)}", path=path, line=line + 1)


def _grouped(
    lines: _Lines, values: NDArray[np.float64]
) -> tuple[Strings, NDArray[np.int64], Strings, NDArray[np.float64]]:
    """Bring rows together by query, in order of first appearance; refuse a document that comes twice.

    In both formats the query is the first field and the document the third.
    """
    firsts = _run_starts(lines)
    codes = _Codes()
    query = np.repeat(codes.add([lines.token(row, 0) for row in firsts.tolist()]), np.diff(firsts, append=len(values)))
    rows = np.argsort(query, kind="stable")
    documents = lines.column(2)
    if (np.diff(query) < 0).any():
        documents, values = [documents[row] for row in rows.tolist()], values[rows]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(query)))).astype(np.int64)
    for start, end in pairwise(indptr.tolist()):
        if len(set(documents[start:end])) < end - start:
            _refuse_repeated(lines, documents[start:end], rows[start:end])
    return _strings(codes.tokens()), indptr, _strings(documents), values


def _run_starts(lines: _Lines) -> NDArray[np.int64]:
    """Rows whose query differs from that of the row before."""
    starts, lengths = lines.starts[:, 0], lines.ends[:, 0] - lines.starts[:, 0]
    text = np.frombuffer(lines.text, dtype=np.uint8)
    differs = np.ones(len(starts), dtype=bool)
    differs[1:] = lengths[1:] != lengths[:-1]
    rows, offset = np.flatnonzero(~differs), 0
    while len(rows):
        equal = text[starts[rows] + offset] == text[starts[rows - 1] + offset]
        differs[rows[~equal]] = True
        offset += 1
        rows = rows[equal & (lengths[rows] > offset)]
    return np.flatnonzero(differs)


def _refuse_repeated(lines: _Lines, documents: Sequence[bytes], rows: NDArray[np.int64]) -> NoReturn:
    seen: dict[bytes, int] = {}
    for document, row in zip(documents, rows.tolist(), strict=True):
        if document in seen:
            query = lines.token(row, 0).decode(errors="replace")
            shown = document.decode(errors="replace")
            lines.refuse(
                row, f"document {shown} of query {query} comes twice, first in line {lines.line[seen[document]]}"
            )
        seen[document] = row
    raise AssertionError("a document comes twice")


# ---------------------------------------------------------------------- ids
class _Codes:
    """Numbers for distinct tokens, in order of first appearance."""

    def __init__(self) -> None:
        self._codes: dict[bytes, int] = {}

    def add(self, tokens: Iterable[bytes]) -> NDArray[np.int64]:
        """The tokens' numbers; new tokens get new ones."""
        codes = self._codes
        return np.array([codes.setdefault(token, len(codes)) for token in tokens], dtype=np.int64)

    def find(self, tokens: Iterable[bytes]) -> NDArray[np.int64]:
        """The tokens' numbers, −1 for those unknown."""
        codes = self._codes
        return np.array([codes.get(token, -1) for token in tokens], dtype=np.int64)

    def tokens(self) -> list[bytes]:
        return list(self._codes)


def _keys(query: NDArray[np.int64], indptr: NDArray[np.int64], document: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each (query, document) pair, ordered by query."""
    return (np.repeat(query, np.diff(indptr)) << 32) | document


def _tokens(strings: Strings) -> list[bytes]:
    text = np.asarray(strings.buffer).tobytes()
    offsets = np.asarray(strings.offsets).tolist()
    return [text[start:end] for start, end in pairwise(offsets)]


def _strings(tokens: Sequence[bytes]) -> Strings:
    offsets = np.zeros(len(tokens) + 1, dtype=np.int64)
    np.cumsum([len(token) for token in tokens], out=offsets[1:])
    return Strings(np.frombuffer(b"".join(tokens), dtype=np.uint8), offsets)


def _to_dict(
    qid: Strings, indptr: NDArray[np.int64], docid: Strings, values: NDArray[np.floating]
) -> dict[str, dict[str, float]]:
    documents, numbers, bounds = list(docid), values.tolist(), indptr.tolist()
    return {
        query: dict(zip(documents[start:end], numbers[start:end], strict=True))
        for query, (start, end) in zip(qid, pairwise(bounds), strict=True)
    }
