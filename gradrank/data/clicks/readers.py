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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import ClickLog, SessionsBuilder, click_log, log_of_lists, places_in_lists
from gradrank.data.clicks.interning import intern
from gradrank.data.clicks.json_lines import CutLines, cut_json_lines
from gradrank.data.clicks.log_rows import read_log_rows
from gradrank.data.clicks.pyclick import cut_pyclick
from gradrank.data.clicks.traffic import is_traffic, read_traffic
from gradrank.data.formats.compressed import read_bytes
from gradrank.errors import DataError
from gradrank.runtime.warn import warn

FORMATS = ("jsonl", "csv", "tsv", "pyclick")


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
        log = _log_of_lines(buffer, cut_pyclick(buffer, path))
    else:
        log = read_log_rows(buffer, path, "," if format == "csv" else "\t")
    if log.n_sessions == 0:
        raise DataError("holds no session", path=path)
    return log


def log_format_of(path: Path, head: bytes) -> str:
    """The format of a log, by the name of its file or its first bytes."""
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


# ---------------------------------------------------------------------- jsonl
def _read_jsonl(buffer: NDArray[np.uint8], path: str | Path) -> ClickLog:
    cut = cut_json_lines(buffer)
    return _parse_jsonl(buffer, path) if cut is None else _log_of_lines(buffer, cut)


def _log_of_lines(buffer: NDArray[np.uint8], cut: CutLines) -> ClickLog:
    query, queries = intern(buffer, *cut.query)
    n_shown = cut.shown.shape[1]
    codes, documents = intern(buffer, *np.concatenate((cut.shown, cut.clicks), axis=1))
    log = log_of_lists(
        queries,
        documents,
        query,
        codes[:n_shown],
        cut.shown_indptr,
        places_in_lists(cut.shown_indptr),
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
    builder = SessionsBuilder()
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
