"""Click logs: what was shown to users, in which order, and what they clicked.

Three formats are read, plain or compressed:

``jsonl``
    one session per line: ``{"qid": "7", "shown": ["a", "b"], "clicks": ["b"]}``, documents in the order
    in which they were shown and clicks in the order in which they happened; optionally ``"ranker"``, the
    name of the ranker that made the list, and ``"randomized": true``, if the list was shown in random
    order; other keys are ignored. Also the log that ``gradrank serve`` writes, whose lists and clicks are
    lines of their own (:mod:`~gradrank.data.clicks.traffic`);
``csv`` and ``tsv``
    one shown document per row, with a header naming at least the columns ``session``, ``qid``, ``docid``,
    ``position`` (from 1) and ``click`` (0, 1, or the number of the click within the session), optionally
    ``click_time`` (a number or an ISO 8601 time), ``ranker`` and ``randomized`` (0 or 1), the last two
    the same in all rows of a session. Rows may come in any order; a session that holds
    several queries is one session for each. Where neither numbers nor times tell the order of a
    session's clicks, users are taken to click from top to bottom;
``pyclick``
    sessions separated by ``;`` or line ends, ``query <tab> a,b,c : b , a``, as in PyClick's samples of
    the Yandex log.

Users also click what was not in the list (advertisements, other pages). Such clicks are counted but
belong to no document; a session that ends with one has no last click among its documents.
"""

from __future__ import annotations

import io
import json
from array import array
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.interning import Interner
from gradrank.data.clicks.json_lines import CutLines, cut_json_lines
from gradrank.data.clicks.traffic import is_traffic, read_traffic
from gradrank.data.formats.compressed import read_bytes
from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.runtime.files import replacing
from gradrank.runtime.kernels import njit
from gradrank.runtime.warn import warn

FORMATS = ("jsonl", "csv", "tsv", "pyclick")

_COLUMNS = ("session", "qid", "docid", "position", "click")


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Sessions of one query each: documents shown and clicks on them, as columns.

    Session ``s`` showed the impressions ``indptr[s]:indptr[s + 1]``, in order of position. A document
    shown twice in a session counts once, at its first place.

    >>> log = click_log([("q", ["a", "b", "c"], ["c", "a", "x"]), ("q", ["b", "a"], [])])
    >>> log.n_sessions, log.n_impressions, log.n_clicks, log.clicks_not_shown
    (2, 5, 2, 1)
    >>> log.order.tolist(), log.last.tolist()
    ([2, 0, 1, 0, 0], [False, False, False, False, False])
    """

    queries: Strings
    """Distinct query ids."""
    documents: Strings
    """Distinct ids of documents shown or clicked."""
    query: NDArray[np.int32]
    """For each session its query, as a place in ``queries``."""
    indptr: NDArray[np.int64]
    """Session boundaries in the impressions, length sessions + 1."""
    document: NDArray[np.int32]
    """For each impression its document, as a place in ``documents``."""
    position: NDArray[np.int32]
    """For each impression the place at which it was shown, from 1."""
    order: NDArray[np.int32]
    """For each impression which click of its session was the final one on it, from 1; 0 = not clicked."""
    last: NDArray[np.bool_]
    """For each impression whether the session's last click was on it."""
    clicks_not_shown: int
    """Clicks on documents that the session did not show."""
    last_clicks_not_shown: int
    """Sessions whose last click was such a click."""
    shown_again: int
    """Impressions left out because their session had shown the document already."""
    rankers: Strings | None = None
    """Names of the rankers that made the lists, if the log tells them."""
    ranker: NDArray[np.int32] | None = None
    """For each session its ranker, as a place in ``rankers``; −1 = not told."""
    randomized: NDArray[np.bool_] | None = None
    """For each session whether its list was shown in random order, if the log tells."""

    @property
    def n_sessions(self) -> int:
        """Number of sessions."""
        return len(self.query)

    @property
    def n_impressions(self) -> int:
        """Number of documents shown, over all sessions."""
        return len(self.document)

    @property
    def n_clicks(self) -> int:
        """Number of impressions that were clicked, however often."""
        return int(np.count_nonzero(self.order))

    def __repr__(self) -> str:
        return (
            f"ClickLog({self.n_sessions:,} sessions, {len(self.queries):,} queries, {self.n_impressions:,} documents "
            f"shown, {self.n_clicks:,} of them clicked; {self.clicks_not_shown:,} clicks on documents not shown)"
        )


def click_log(sessions: list[tuple[str, list[str], list[str]]]) -> ClickLog:
    """A log from sessions ``(query, shown documents in order, clicked documents in order)``.

    >>> click_log([("q", ["a", "b"], ["b", "b"])])
    ClickLog(1 sessions, 1 queries, 2 documents shown, 1 of them clicked; 0 clicks on documents not shown)
    """
    builder = _Builder()
    for query, shown, clicks in sessions:
        builder.add(query, shown, clicks)
    return builder.log()


def read_click_log(path: str | Path, format: str | None = None) -> ClickLog:
    """Read a click log.

    Parameters
    ----------
    path
        The file, plain or compressed.
    format
        ``jsonl``, ``csv``, ``tsv`` or ``pyclick``; found from name and content if not given.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.txt"
    >>> _ = path.write_text("7\\ta,b : b; 7\\tb,a :;")
    >>> read_click_log(path).n_sessions
    2
    """
    buffer = read_bytes(path)
    if bytes(buffer[:3]) == b"\xef\xbb\xbf":
        buffer = buffer[3:]
    if format is None:
        format = log_format_of(Path(path), bytes(buffer[:65536]))
    if format not in FORMATS:
        raise DataError(f"format {format!r} does not exist, expected one of {', '.join(FORMATS)}", path=path)
    if format == "jsonl":
        log = _read_traffic(path) if is_traffic(bytes(buffer[:4096])) else _read_jsonl(buffer, path)
    elif format == "pyclick":
        log = _read_pyclick(buffer, path)
    else:
        log = _read_rows(buffer, path, "," if format == "csv" else "\t")
    if log.n_sessions == 0:
        raise DataError("holds no session", path=path)
    return log


def log_format_of(path: Path, head: bytes) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    for suffix, format in {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv"}.items():
        if suffix in suffixes:
            return format
    text = head.lstrip()
    if text.startswith(b"{"):
        return "jsonl"
    header = text.split(b"\n", 1)[0]
    for separator, format in ((b"\t", "tsv"), (b",", "csv")):
        if b"docid" in [name.strip().strip(b'"') for name in header.split(separator)]:
            return format
    return "pyclick"


# ---------------------------------------------------------------------- sessions as lists
class _Builder:
    """Collects sessions given as Python strings."""

    def __init__(self) -> None:
        self.queries: dict[str, int] = {}
        self.documents: dict[str, int] = {}
        self.query = array("i")
        self.shown = array("i")
        self.shown_ends = array("q", [0])
        self.clicks = array("i")
        self.click_ends = array("q", [0])
        self.rankers: dict[str, int] = {}
        self.ranker = array("i")
        self.randomized = array("b")

    def add(
        self, query: str, shown: list[str], clicks: list[str], ranker: str | None = None, randomized: bool | None = None
    ) -> None:
        documents = self.documents
        self.ranker.append(-1 if ranker is None else self.rankers.setdefault(ranker, len(self.rankers)))
        self.randomized.append(-1 if randomized is None else randomized)
        self.query.append(self.queries.setdefault(query, len(self.queries)))
        self.shown.extend([documents.setdefault(document, len(documents)) for document in shown])
        self.shown_ends.append(len(self.shown))
        self.clicks.extend([documents.setdefault(document, len(documents)) for document in clicks])
        self.click_ends.append(len(self.clicks))

    def log(self) -> ClickLog:
        shown_indptr = np.array(self.shown_ends, dtype=np.int64)
        randomized = np.array(self.randomized, dtype=np.int8)
        log = _log_of_lists(
            Strings.of(self.queries),
            Strings.of(self.documents),
            np.array(self.query, dtype=np.int32),
            np.array(self.shown, dtype=np.int32),
            shown_indptr,
            _places(shown_indptr),
            np.array(self.clicks, dtype=np.int32),
            np.array(self.click_ends, dtype=np.int64),
        )
        if self.rankers:
            log = replace(log, rankers=Strings.of(self.rankers), ranker=np.array(self.ranker, dtype=np.int32))
        return replace(log, randomized=randomized > 0) if (randomized >= 0).any() else log


def _places(indptr: NDArray[np.int64]) -> NDArray[np.int32]:
    return (np.arange(indptr[-1]) - np.repeat(indptr[:-1], np.diff(indptr)) + 1).astype(np.int32)


def _log_of_lists(
    queries: Strings,
    documents: Strings,
    query: NDArray[np.int32],
    shown: NDArray[np.int32],
    shown_indptr: NDArray[np.int64],
    position: NDArray[np.int32],
    clicks: NDArray[np.int32],
    click_indptr: NDArray[np.int64],
) -> ClickLog:
    keep = np.ones(len(shown), dtype=bool)
    order = np.zeros(len(shown), dtype=np.int32)
    last = np.zeros(len(shown), dtype=bool)
    not_shown, last_not_shown, again = match_clicks(
        shown, shown_indptr, clicks, click_indptr, np.full(len(documents), -1), keep, order, last
    )
    indptr = shown_indptr
    if again:
        indptr = np.concatenate(([0], np.cumsum(keep)))[shown_indptr]
        shown, position, order, last = shown[keep], position[keep], order[keep], last[keep]
    return ClickLog(
        queries=queries,
        documents=documents,
        query=query,
        indptr=indptr,
        document=shown,
        position=position,
        order=order,
        last=last,
        clicks_not_shown=int(not_shown),
        last_clicks_not_shown=int(last_not_shown),
        shown_again=int(again),
    )


@njit(cache=True, nogil=True)
def match_clicks(
    shown: NDArray[np.int32],
    shown_indptr: NDArray[np.int64],
    clicks: NDArray[np.int32],
    click_indptr: NDArray[np.int64],
    place: NDArray[np.int64],
    keep: NDArray[np.bool_],
    order: NDArray[np.int32],
    last: NDArray[np.bool_],
) -> tuple[int, int, int]:
    not_shown = 0
    last_not_shown = 0
    again = 0
    for session in range(len(shown_indptr) - 1):
        start = shown_indptr[session]
        # place[d] is the latest impression of document d; it is of this session if not before its start.
        for i in range(start, shown_indptr[session + 1]):
            if place[shown[i]] >= start:
                again += 1
                keep[i] = False
            else:
                place[shown[i]] = i
        first_click = click_indptr[session]
        end_click = click_indptr[session + 1]
        for k in range(first_click, end_click):
            i = place[clicks[k]]
            if i >= start:
                order[i] = k - first_click + 1
                last[i] = k == end_click - 1
            else:
                not_shown += 1
                last_not_shown += k == end_click - 1
    return not_shown, last_not_shown, again


def write_click_log(log: ClickLog, path: str | Path) -> None:
    """Write a log as JSON lines, one session each.

    Clicks on documents that were not shown are not known any more, and a document clicked twice is written once.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> write_click_log(click_log([("q", ["a", "b"], ["b", "a"])]), path)
    >>> path.read_text()
    '{"qid": "q", "shown": ["a", "b"], "clicks": ["b", "a"]}\\n'
    """
    queries, documents = ([json.dumps(text) for text in column] for column in (log.queries, log.documents))
    rankers = [] if log.rankers is None else [json.dumps(name) for name in log.rankers]
    position, shown, order = log.position.tolist(), log.document.tolist(), log.order.tolist()
    ends = log.indptr.tolist()
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for session, query in enumerate(log.query.tolist()):
            start, end = ends[session], ends[session + 1]
            if position[end - 1] != end - start:
                raise DataError(
                    f"session {session + 1} has gaps in its positions, which JSON lines cannot hold", path=path
                )
            clicked = sorted((order[i], documents[shown[i]]) for i in range(start, end) if order[i])
            line = f'{{"qid": {queries[query]}, "shown": [{", ".join(documents[d] for d in shown[start:end])}], '
            line += f'"clicks": [{", ".join(name for _, name in clicked)}]'
            if log.ranker is not None and log.ranker[session] >= 0:
                line += f', "ranker": {rankers[log.ranker[session]]}'
            if log.randomized is not None:
                line += f', "randomized": {"true" if log.randomized[session] else "false"}'
            file.write(line + "}\n")


# ---------------------------------------------------------------------- strings to codes
def intern(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Strings]:
    """Number the distinct strings among ``buffer[starts[i]:ends[i]]`` by first appearance.

    >>> column = Strings.of(["b", "a", "b"])
    >>> codes, distinct = intern(column.buffer, column.offsets[:-1], column.offsets[1:])
    >>> codes.tolist(), list(distinct)
    ([0, 1, 0], ['b', 'a'])
    """
    names = Interner()
    codes = names.add(np.ascontiguousarray(buffer), starts, ends)
    return codes, names.strings()


def line_of(buffer: NDArray[np.uint8], offset: int) -> int:
    """Number of the line, from 1, that a byte is on."""
    return int(np.count_nonzero(buffer[:offset] == 10)) + 1


def text_of(buffer: NDArray[np.uint8], start: int, end: int) -> str:
    """The bytes of a field as text, shortened for a message."""
    return bytes(buffer[start : min(end, start + 60)]).decode(errors="replace")


# ---------------------------------------------------------------------- jsonl
def _read_jsonl(buffer: NDArray[np.uint8], path: str | Path) -> ClickLog:
    cut = cut_json_lines(buffer)
    return _parse_jsonl(buffer, path) if cut is None else _log_of_lines(buffer, cut)


def _log_of_lines(buffer: NDArray[np.uint8], cut: CutLines) -> ClickLog:
    query, queries = intern(buffer, *cut.query)
    n_shown = cut.shown.shape[1]
    codes, documents = intern(buffer, *np.concatenate((cut.shown, cut.clicks), axis=1))
    log = _log_of_lists(
        queries,
        documents,
        query,
        codes[:n_shown],
        cut.shown_indptr,
        _places(cut.shown_indptr),
        codes[n_shown:],
        cut.click_indptr,
    )
    named = cut.ranker[1] > cut.ranker[0]
    if named.any():
        ranker = np.full(len(named), -1, dtype=np.int32)
        ranker[named], rankers = intern(buffer, *cut.ranker[:, named])
        log = replace(log, rankers=rankers, ranker=ranker)
    return replace(log, randomized=cut.randomized > 0) if (cut.randomized >= 0).any() else log


def _parse_jsonl(buffer: NDArray[np.uint8], path: str | Path) -> ClickLog:
    """Line by line with Python's reader of JSON."""
    builder = _Builder()
    for number, line in enumerate(io.BytesIO(buffer.tobytes()), 1):
        if line.isspace():
            continue
        try:
            session = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"is not JSON: {error}", path=path, line=number) from None
        if not isinstance(session, dict):
            raise DataError(f"holds {line.strip()[:60]!r}, expected an object {{…}}", path=path, line=number)
        query = _identifier(session.get("qid"), "qid", path, number)
        lists = []
        for key in ("shown", "clicks"):
            values = session.get(key)
            if not isinstance(values, list):
                raise DataError(f"{key!r} is {values!r}, expected a list of document ids", path=path, line=number)
            lists.append([_identifier(value, key, path, number) for value in values])
        if not lists[0]:
            raise DataError("'shown' is empty, expected at least one document", path=path, line=number)
        ranker, randomized = session.get("ranker"), session.get("randomized")
        if randomized is not None and not isinstance(randomized, bool):
            raise DataError(f"'randomized' is {randomized!r}, expected true or false", path=path, line=number)
        ranker = None if ranker is None else _identifier(ranker, "ranker", path, number)
        builder.add(query, lists[0], lists[1], ranker, randomized)
    return builder.log()


def _identifier(value: Any, key: str, path: str | Path, line: int) -> str:
    # JSON can spell half a character, which no file of ids can hold.
    if isinstance(value, str) and value and not any("\ud800" <= character <= "\udfff" for character in value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise DataError(f"{key!r} holds {value!r}, expected an id (a string or a whole number)", path=path, line=line)


def _read_traffic(path: str | Path) -> ClickLog:
    traffic = read_traffic(path)
    if traffic.clicks_without_list:
        count = traffic.clicks_without_list
        warn(f"{path}: {count:,} {'click is' if count == 1 else 'clicks are'} on lists that are not in the log")
    return click_log(traffic.sessions())


# ---------------------------------------------------------------------- pyclick
_PYCLICK_ERRORS = {
    1: "has no tab after the query",
    2: "has no ' :' between the documents shown and the clicks",
    3: "has an empty id among the documents shown, expected ids separated by commas",
    4: "has an empty id among the clicks, expected ids separated by commas",
    5: "has an empty query",
}


def _read_pyclick(buffer: NDArray[np.uint8], path: str | Path) -> ClickLog:
    return _log_of_lines(buffer, cut_pyclick(buffer, path))


def cut_pyclick(buffer: NDArray[np.uint8], path: str | Path, lines_before: int = 0) -> CutLines:
    """The ids of all sessions of PyClick's text, as places in the buffer.

    >>> cut = cut_pyclick(np.frombuffer(b"7\\ta,b : b", dtype=np.uint8), "log.txt")
    >>> cut.shown.T.tolist()
    [[2, 3], [4, 5]]
    """
    buffer = np.ascontiguousarray(buffer)
    sessions = int(np.count_nonzero((buffer == ord(";")) | (buffer == 10))) + 1
    ids = int(np.count_nonzero(buffer == ord(","))) + sessions
    query = np.empty((2, sessions), dtype=np.int64)
    shown = np.empty((2, ids), dtype=np.int64)
    clicks = np.empty((2, ids), dtype=np.int64)
    shown_indptr = np.zeros(sessions + 1, dtype=np.int64)
    click_indptr = np.zeros(sessions + 1, dtype=np.int64)
    count, error, offset = _scan_pyclick(buffer, query, shown, shown_indptr, clicks, click_indptr)
    if error:
        end = offset + 60
        found = text_of(buffer, offset, end).split("\n")[0].split(";")[0]
        line = lines_before + line_of(buffer, offset)
        raise DataError(f"session {found!r} {_PYCLICK_ERRORS[error]}", path=path, line=line)
    shown_indptr, click_indptr = shown_indptr[: count + 1], click_indptr[: count + 1]
    return CutLines(
        query[:, :count],
        shown[:, : shown_indptr[-1]],
        shown_indptr,
        clicks[:, : click_indptr[-1]],
        click_indptr,
        np.zeros((2, count), dtype=np.int64),
        np.full(count, -1, dtype=np.int8),
    )


@njit(cache=True, nogil=True)
def _scan_pyclick(
    buffer: NDArray[np.uint8],
    query: NDArray[np.int64],
    shown: NDArray[np.int64],
    shown_indptr: NDArray[np.int64],
    clicks: NDArray[np.int64],
    click_indptr: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Cut sessions into ids: number of sessions, error number, and where it is."""
    tab, newline, space, carriage, colon, semicolon = 9, 10, 32, 13, 58, 59
    n = len(buffer)
    count = 0
    i = 0
    while i < n:
        byte = buffer[i]
        if byte in (newline, space, carriage, semicolon, tab):
            i += 1
            continue
        start = i
        end = i
        while end < n and buffer[end] != newline and buffer[end] != semicolon:
            end += 1
        tab_at = start
        while tab_at < end and buffer[tab_at] != tab:
            tab_at += 1
        if tab_at == end:
            return count, 1, start
        # Only a colon after a space separates: ids may be URLs.
        colon_at = tab_at + 1
        while colon_at < end and not (
            buffer[colon_at] == colon and (buffer[colon_at - 1] == space or buffer[colon_at - 1] == tab)
        ):
            colon_at += 1
        if colon_at >= end:
            return count, 2, start
        query[0, count], query[1, count] = _trimmed(buffer, start, tab_at)
        if query[0, count] == query[1, count]:
            return count, 5, start
        n_shown = _cut_list(buffer, tab_at + 1, colon_at, shown, shown_indptr[count])
        if n_shown <= shown_indptr[count]:
            return count, 3, start
        n_clicks = _cut_list(buffer, colon_at + 1, end, clicks, click_indptr[count])
        if n_clicks < 0:
            return count, 4, start
        count += 1
        shown_indptr[count] = n_shown
        click_indptr[count] = n_clicks
        i = end
    return count, 0, 0


@njit(cache=True, nogil=True)
def _trimmed(
    buffer: NDArray[np.uint8],
    start: int,
    end: int,
) -> tuple[int, int]:
    while start < end and (buffer[start] == 32 or buffer[start] == 9 or buffer[start] == 13):
        start += 1
    while end > start and (buffer[end - 1] == 32 or buffer[end - 1] == 9 or buffer[end - 1] == 13):
        end -= 1
    return start, end


@njit(cache=True, nogil=True)
def _cut_list(
    buffer: NDArray[np.uint8],
    start: int,
    end: int,
    ids: NDArray[np.int64],
    count: int,
) -> int:
    """Append the ids of a comma-separated list; −1 for an empty id, none for an empty list."""
    start, end = _trimmed(buffer, start, end)
    if start == end:
        return count
    begin = start
    for i in range(start, end + 1):
        if i == end or buffer[i] == 44:
            ids[0, count], ids[1, count] = _trimmed(buffer, begin, i)
            if ids[0, count] == ids[1, count]:
                return -1
            count += 1
            begin = i + 1
    return count


# ---------------------------------------------------------------------- csv and tsv
@dataclass(frozen=True, eq=False)
class Rows:
    """The fields of a file of rows, as places in its bytes."""

    buffer: NDArray[np.uint8]
    path: str | Path
    columns: dict[str, int]
    """Places of the wanted columns in ``starts`` and ``ends``."""
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    """Field boundaries, columns × rows."""

    def codes(self, column: str) -> tuple[NDArray[np.int32], Strings]:
        """A column as numbered distinct strings; an empty field is an error."""
        starts, ends = self.starts[self.columns[column]], self.ends[self.columns[column]]
        empty = np.flatnonzero(starts == ends)
        if len(empty):
            self.fail(column, int(empty[0]), "an id")
        return intern(self.buffer, starts, ends)

    def numbers(self, column: str) -> NDArray[np.int64]:
        """A column of whole numbers of 0 or more."""
        place = self.columns[column]
        values = np.empty(self.starts.shape[1], dtype=np.int64)
        bad = _whole_numbers(self.buffer, self.starts[place], self.ends[place], values)
        if bad >= 0:
            self.fail(column, int(bad), "a whole number of 0 or more")
        return values

    def text(self, column: str, row: int) -> str:
        """One field."""
        place = self.columns[column]
        return bytes(self.buffer[self.starts[place, row] : self.ends[place, row]]).decode(errors="replace")

    def fail(self, column: str, row: int, expected: str) -> NoReturn:
        """Raise the error that names file, line, what was found and what was expected."""
        start = int(self.starts[self.columns[column], row])
        raise DataError(
            f"{column} is {self.text(column, row)[:60]!r}, expected {expected}",
            path=self.path,
            line=line_of(self.buffer, start),
        )


def read_rows(
    buffer: NDArray[np.uint8], path: str | Path, separator: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Rows:
    """Cut a file with a header line into the fields of the wanted columns.

    >>> text = np.frombuffer(b"qid,docid\\n7,a\\n", dtype=np.uint8)
    >>> read_rows(text, "log.csv", ",", ("docid",)).text("docid", 0)
    'a'
    """
    buffer = np.ascontiguousarray(buffer)
    newlines = np.flatnonzero(buffer[: 1 << 20] == 10)
    header_end = int(newlines[0]) if len(newlines) else len(buffer)
    header = buffer[:header_end].tobytes().decode(errors="replace")
    names = [name.strip().strip('"') for name in header.split(separator)]
    missing = [name for name in needed if name not in names]
    if missing:
        raise DataError(
            f"header names {', '.join(map(repr, names))[:200]}, expected also {', '.join(map(repr, missing))}",
            path=path,
            line=1,
        )
    wanted = [name for name in (*needed, *optional) if name in names]
    slots = np.full(len(names), -1)
    for slot, name in enumerate(wanted):
        slots[names.index(name)] = slot
    lines = int(np.count_nonzero(buffer[header_end:] == 10)) + 1
    starts = np.empty((len(wanted), lines), dtype=np.int64)
    ends = np.empty((len(wanted), lines), dtype=np.int64)
    count, offset, fields = _cut_rows(buffer, header_end, ord(separator), slots, starts, ends)
    if fields >= 0:
        raise DataError(
            f"row has {fields} fields, expected {len(names)} as in the header"
            if fields > 0
            else "a quoted field does not end at the next quotation mark on its line",
            path=path,
            line=line_of(buffer, offset),
        )
    columns = {name: slot for slot, name in enumerate(wanted)}
    return Rows(buffer, path, columns, starts[:, :count], ends[:, :count])


@njit(cache=True, nogil=True)
def _cut_rows(
    buffer: NDArray[np.uint8],
    begin: int,
    separator: int,
    slots: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Cut rows into fields: number of rows and −1, or the place and field count of a bad row."""
    n = len(buffer)
    count = 0
    i = begin
    while i < n:
        if buffer[i] == 10 or buffer[i] == 13:
            i += 1
            continue
        row_start = i
        column = 0
        while True:
            # Quotation marks enclose a field only in comma-separated files.
            if separator == 44 and i < n and buffer[i] == 34:
                start = i + 1
                end = start
                while end < n and buffer[end] != 34 and buffer[end] != 10:
                    end += 1
                i = end + 1
                if end >= n or buffer[end] != 34:
                    return count, row_start, 0
                if i < n and buffer[i] != separator and buffer[i] != 10 and buffer[i] != 13:
                    return count, row_start, 0
                if i < n and buffer[i] == 13:
                    i += 1
            else:
                start = i
                while i < n and buffer[i] != separator and buffer[i] != 10:
                    i += 1
                end = i
                if end > start and buffer[end - 1] == 13:
                    end -= 1
            if column < len(slots) and slots[column] >= 0:
                starts[slots[column], count] = start
                ends[slots[column], count] = end
            column += 1
            if i < n and buffer[i] == separator:
                i += 1
            else:
                break
        if column != len(slots):
            return count, row_start, column
        count += 1
    return count, 0, -1


@njit(cache=True, nogil=True)
def _whole_numbers(
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    values: NDArray[np.int64],
) -> int:
    for row in range(len(starts)):
        start, end = _trimmed(buffer, starts[row], ends[row])
        if start == end or end - start > 18:
            return row
        value = np.int64(0)
        for k in range(start, end):
            digit = np.int64(buffer[k]) - 48
            if digit < 0 or digit > 9:
                return row
            value = value * 10 + digit
        values[row] = value
    return -1


def _read_rows(buffer: NDArray[np.uint8], path: str | Path, separator: str) -> ClickLog:
    rows = read_rows(buffer, path, separator, _COLUMNS, ("click_time", "ranker", "randomized"))
    session, _ = rows.codes("session")
    query, queries = rows.codes("qid")
    document, documents = rows.codes("docid")
    position = rows.numbers("position")
    if len(position) and position.min() < 1:
        rows.fail("position", int(position.argmin()), "a whole number of 1 or more")
    if len(position) and position.max() > np.iinfo(np.int32).max:
        rows.fail("position", int(position.argmax()), "a whole number below 2^31")
    click = rows.numbers("click")
    # A session with several queries is one session for each: number the pairs by first appearance.
    _, first, group = np.unique(session.astype(np.int64) * len(queries) + query, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    number = np.empty(len(first), dtype=np.int64)
    number[by_appearance] = np.arange(len(first))
    group = number[group.reshape(-1)]
    shown = np.lexsort((position, group))
    clicked = np.flatnonzero(click)
    when = click[clicked].astype(np.float64)
    if "click_time" in rows.columns:
        when = np.array([_time(rows, row) for row in clicked.tolist()], dtype=np.float64)
    clicked = clicked[np.lexsort((position[clicked], when, group[clicked]))]
    log = _log_of_lists(
        queries,
        documents,
        query[first[by_appearance]],
        document[shown],
        np.concatenate(([0], np.cumsum(np.bincount(group, minlength=len(first))))),
        position[shown].astype(np.int32),
        document[clicked],
        np.concatenate(([0], np.cumsum(np.bincount(group[clicked], minlength=len(first))))),
    )
    if "ranker" in rows.columns:
        ranker, rankers = rows.codes("ranker")
        log = replace(log, rankers=rankers, ranker=_of_session(rows, "ranker", ranker, group, first[by_appearance]))
    if "randomized" in rows.columns:
        flag = rows.numbers("randomized")
        if len(flag) and flag.max() > 1:
            rows.fail("randomized", int(flag.argmax()), "0 or 1")
        randomized = _of_session(rows, "randomized", flag, group, first[by_appearance])
        log = replace(log, randomized=randomized.astype(bool))
    return log


def _of_session(
    rows: Rows, column: str, values: NDArray[Any], group: NDArray[np.int64], first: NDArray[np.int64]
) -> NDArray[Any]:
    """What a column says of each session, the same in all of its rows."""
    wrong = np.flatnonzero(values != values[first][group])
    if len(wrong):
        rows.fail(column, int(wrong[0]), f"{rows.text(column, int(first[group[wrong[0]]]))!r} as before in its session")
    return np.asarray(values[first])


def _time(rows: Rows, row: int) -> float:
    text = rows.text("click_time", row).strip()
    try:
        time = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            rows.fail("click_time", row, "a number or an ISO 8601 time")
        # Without a zone read as UTC, so that the hour a local clock repeats in autumn stays in order.
        time = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not np.isfinite(time):
        rows.fail("click_time", row, "a number or an ISO 8601 time")
    return time
