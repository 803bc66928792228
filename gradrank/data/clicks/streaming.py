"""Click labels of logs that do not fit into memory: read block by block, counted per query and document.

What is kept are the distinct ids, and a few sums for each query and document that was shown; sessions come and go. The
labels ``last``, ``ctr`` and ``examined`` need no more. Sessions that show the same list are counted together
(``list_counts.py``), as long as lists repeat. A log is read so if it is a plain file of JSON lines of the
usual kind or PyClick's text; others are read whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.click_log import match_clicks
from gradrank.data.clicks.interning import Interner, PairSums
from gradrank.data.clicks.json_lines import CutLines, cut_json_lines
from gradrank.data.clicks.labels import ClickLabels, check_method, click_labels, credited, labels_of_counts
from gradrank.data.clicks.list_counts import ListCounts
from gradrank.data.clicks.propensity import Propensities
from gradrank.data.clicks.pyclick import cut_pyclick
from gradrank.data.clicks.readers import log_format_of, read_click_log
from gradrank.errors import DataError

_BLOCK = 1 << 23  # bytes
# Places of lists that are counted by list; then they are added to the documents, which takes memory for each place.
_PLACES = 1 << 21
STREAMED = ("last", "ctr", "examined")
"""Methods that can be counted block by block."""
_COMPRESSED = (".gz", ".xz", ".zst", ".bz2", ".lzma")


@dataclass(frozen=True, eq=False)
class StreamedLabels:
    """Labels, and what the log holds."""

    labels: ClickLabels
    sessions: int
    impressions: int
    clicks: int
    clicks_not_shown: int
    whole: bool
    """Whether the log had to be read whole."""


def stream_click_labels(
    path: str | Path,
    method: str = "last",
    *,
    format: str | None = None,
    min_impressions: int = 1,
    prior: tuple[float, float] | None = None,
    propensities: Propensities | None = None,
    block: int = _BLOCK,
) -> StreamedLabels:
    """As ``click_labels(read_click_log(path), …)``, in memory that goes with the documents and not with the sessions.

    Parameters
    ----------
    path, format
        The log; see :func:`gradrank.data.clicks.readers.read_click_log`.
    method, min_impressions, prior, propensities
        See :func:`gradrank.data.clicks.labels.click_labels`.
    block
        Bytes that are read at a time.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> _ = path.write_text('{"qid": "7", "shown": ["a", "b"], "clicks": ["b"]}\\n' * 3)
    >>> found = stream_click_labels(path, "ctr")
    >>> found.sessions, found.labels.label.tolist()
    (3, [0.0, 1.0])
    """
    check_method(method, prior, propensities)
    counts = None
    if method in STREAMED and Path(path).suffix.lower() not in _COMPRESSED and Path(path).is_file():
        counts = _counted(Path(path), format, propensities, block)
    if counts is None:
        log = read_click_log(path, format)
        labels = click_labels(log, method, min_impressions=min_impressions, prior=prior, propensities=propensities)
        return StreamedLabels(labels, log.n_sessions, log.n_impressions, log.n_clicks, log.clicks_not_shown, True)
    if not counts.sessions:
        raise DataError("holds no session", path=path)
    query, document = counts.sums.pairs()
    # By query and document, as click_labels has them.
    order = np.lexsort((document, query))
    labels = labels_of_counts(
        counts.queries.strings(), counts.documents.strings(), query[order], document[order],
        counts.sums.values()[order], method, min_impressions=min_impressions, prior=prior,
    )  # fmt: skip
    sums = labels.impressions.sum(), labels.clicks.sum()
    return StreamedLabels(labels, counts.sessions, int(sums[0]), int(sums[1]), counts.clicks_not_shown, False)


class _Counts:
    """What has been counted so far."""

    def __init__(self, propensities: Propensities | None) -> None:
        self.queries, self.documents = Interner(), Interner()
        self.propensities = propensities
        # Impressions, clicks, last clicks; and examined impressions, their clicks, sums of squares.
        self.sums = PairSums(3 if propensities is None else 6)
        self.sessions = 0
        self.clicks_not_shown = 0
        self._lists: ListCounts | None = ListCounts()

    def add(self, buffer: NDArray[np.uint8], cut: CutLines) -> None:
        query = self.queries.add(buffer, *cut.query)
        self.sessions += len(query)
        if self._lists is None:
            self._add_one_by_one(buffer, query, cut)
            return
        self.clicks_not_shown += self._lists.add(buffer, query, cut, self.documents)
        if self._lists.places > _PLACES:
            repeated = self._lists.repeated
            self.finish()
            if not repeated:
                self._lists = None

    def finish(self) -> None:
        """Add what was counted by list to the sums of documents."""
        if self._lists is None:
            return
        found, self._lists = self._lists.impressions(), ListCounts()
        values = np.empty((len(found.query), 3 if self.propensities is None else 6))
        values[:, 0], values[:, 1], values[:, 2] = found.impressions, found.clicks, found.last_clicks
        if self.propensities is not None:
            # All impressions unclicked, and what clicks add to that.
            shown = credited(self.propensities, found.place, np.zeros(len(found.query), dtype=bool))
            clicked = credited(self.propensities, found.place, np.ones(len(found.query), dtype=bool))
            values[:, 3], values[:, 5] = found.impressions * shown[0], found.impressions * shown[2]
            values[:, 4] = found.impressions * shown[1] + found.clicks * (clicked[1] - shown[1])
        self.sums.add(found.query, found.document, values)

    def _add_one_by_one(self, buffer: NDArray[np.uint8], query: NDArray[np.int32], cut: CutLines) -> None:
        shown, clicks = (self.documents.add(buffer, *spans) for spans in (cut.shown, cut.clicks))
        keep, last = np.ones(len(shown), dtype=bool), np.zeros(len(shown), dtype=bool)
        order = np.zeros(len(shown), dtype=np.int32)
        missed, _, again = match_clicks(
            shown, cut.shown_indptr, clicks, cut.click_indptr, np.full(len(self.documents), -1), keep, order, last
        )
        of_query = np.repeat(query, np.diff(cut.shown_indptr))
        values = np.ones((len(shown), 3 if self.propensities is None else 6))
        clicked = order > 0
        values[:, 1], values[:, 2] = clicked, last
        if self.propensities is not None:
            place = np.arange(len(shown)) - np.repeat(cut.shown_indptr[:-1], np.diff(cut.shown_indptr)) + 1
            values[:, 3], values[:, 4], values[:, 5] = credited(self.propensities, place, clicked)
        if again:
            of_query, shown, values = of_query[keep], shown[keep], values[keep]
        self.sums.add(of_query, shown, values)
        self.clicks_not_shown += int(missed)


def _counted(path: Path, format: str | None, propensities: Propensities | None, block: int) -> _Counts | None:
    """Counts of all blocks; None if some block is not of the usual kind."""
    with path.open("rb") as file:
        head = file.read(65536)
    format = format or log_format_of(path, head.removeprefix(b"\xef\xbb\xbf"))
    if format not in ("jsonl", "pyclick"):
        return None
    counts, lines = _Counts(propensities), 0
    for buffer in _blocks(path, block):
        cut = cut_json_lines(buffer) if format == "jsonl" else cut_pyclick(buffer, path, lines)
        if cut is None:
            return None
        counts.add(buffer, cut)
        if format == "pyclick":
            lines += int(np.count_nonzero(buffer == 10))
    counts.finish()
    return counts


def _blocks(path: Path, size: int) -> Iterator[NDArray[np.uint8]]:
    """The bytes of a file, cut behind line ends."""
    with path.open("rb") as file:
        rest = b""
        first = True
        while True:
            read = file.read(size)
            if first:
                read, first = read.removeprefix(b"\xef\xbb\xbf"), False
            if not read:
                break
            end = read.rfind(b"\n") + 1
            if not end:
                rest += read
                continue
            yield np.frombuffer(rest + read[:end], dtype=np.uint8)
            rest = read[end:]
        if rest:
            yield np.frombuffer(rest, dtype=np.uint8)
