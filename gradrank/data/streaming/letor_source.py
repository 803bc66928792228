"""LETOR text by blocks of rows, plain or compressed, from files and pipes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats import letor_kernel as kernel
from gradrank.data.formats.letor import LARGEST_INDEX, indptr_of_file, size_file, text_parts, width_hint
from gradrank.data.formats.letor_fault import Fault, raise_fault
from gradrank.data.formats.letor_parse import Parsed, Rules, parse_part
from gradrank.data.ranking_data import PRIMARY_LABEL, default_feature_names
from gradrank.data.streaming.pieces import TextPieces
from gradrank.data.streaming.source import Rows, Source, Spans, StartAgain, overlaps
from gradrank.data.strings import Strings
from gradrank.errors import DataError, FeatureMismatch
from gradrank.runtime.threads import thread_count

_PART_BYTES = 1 << 20


@dataclass(frozen=True)
class _Part:
    """A part of the text that is parsed as one."""

    text: NDArray[np.uint8]
    first_row: int
    n_rows: int
    lines_before: int


class LetorSource(Source):
    """LETOR text by blocks of rows; options are those of :func:`gradrank.data.formats.letor.read_letor`.

    Parameters
    ----------
    path
        The file, or the name of the pipe in messages.
    pipe
        What is read instead of the file, once.
    width
        Number of features, if it is known from elsewhere, as of a model: another number is refused.
    owner
        Who has this number of features, in messages.
    group_file, missing, absent_missing, zero_based, n_features, max_features, n_jobs
        See :func:`gradrank.data.formats.letor.read_letor`.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5 3:1\\n0 qid:7 2:4\\n")
    >>> [(rows.first, rows.X.tolist()) for rows in LetorSource(path).rows()]
    [(0, [[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]])]
    """

    optional_docids = True

    def __init__(
        self,
        path: Path,
        pipe: IO[bytes] | None = None,
        *,
        width: int | None = None,
        owner: str = "the model",
        group_file: str | Path | None = None,
        missing: bool = False,
        absent_missing: bool = False,
        zero_based: bool = False,
        n_features: int | None = None,
        max_features: int = 100_000,
        n_jobs: int | None = None,
    ) -> None:
        self.path = path
        self.pieces = TextPieces(path, pipe)
        self.size = self.pieces.size
        self._owner = owner
        self._fixed = width if n_features is None else n_features
        if width is not None and n_features is not None and n_features != width:
            raise DataError(FeatureMismatch(found=n_features, expected=width).said_of(owner), path=path)
        self._model_width = width
        self._given = n_features
        self._limit = max_features if n_features is None else n_features
        self._group_file, self._missing, self._first_index = group_file, missing, 0 if zero_based else 1
        self._absent = np.nan if absent_missing else 0.0
        self._n_jobs = n_jobs
        self._sizes: Path | None = None
        self._rules: Rules | None = None
        self._width: int | None = self._fixed
        self._part_rows: list[int] = []
        self._complete = True

    @property
    def again(self) -> bool:  # type: ignore[override]
        """Whether the text can be read a second time."""
        return self.pieces.again

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``f1``, ``f2``, … up to the highest index, for which the ends of all lines are looked at."""
        return default_feature_names(self._known_width())

    def read_so_far(self) -> int:
        """See Source.read_so_far."""
        return self.pieces.read

    def hold_head(self, most_bytes: int) -> bool:
        """See Source.hold_head."""
        return self.pieces.hold_head(most_bytes)

    def of_head(self) -> LetorSource:
        """See Source.of_head."""
        head = copy(self)
        head.pieces = self.pieces.head_alone()
        head._complete = False
        return head

    def _known_width(self) -> int:
        if self._width is None:
            highest = max((kernel.scan_lines(text, 0, len(text))[1] for text in self.pieces), default=-1)
            last = min(self._limit - 1 + self._first_index, LARGEST_INDEX)
            self._width = max(0, min(last, highest) + 1 - self._first_index)
        return self._width

    def rows(self, *, wide: bool = False, features: bool = True, only: Spans | None = None) -> Iterator[Rows]:
        """See Source.rows; a line that cannot be read is an error that names it."""
        width = self._known_width() if features or self._fixed is not None else 0
        highest = n_docs = 0
        for part, X, labels, parsed in self._parsed(width, wide, only):
            if parsed.fault is not None:
                limit, fixed = self._limit, self._given is not None
                raise_fault(
                    parsed.fault, part.text, self.path, limit=limit, fixed=fixed, lines_before=part.lines_before
                )
            if parsed.columns > width and features:
                if self._model_width is not None:
                    self._mismatch(parsed.columns)
                # Some line's highest index is not its last, so that the ends of the lines did not tell.
                self._width = parsed.columns
                raise StartAgain
            highest, n_docs = max(highest, parsed.highest), part.first_row + part.n_rows
            yield Rows(
                first=part.first_row,
                X=X if features else X[:, :0],
                changed=parsed.changed if parsed.long_numbers or wide else None,
                labels={PRIMARY_LABEL: labels},
                run_rows=parsed.run_rows,
                run_ids=None if self._sizes is not None else _strings(*parsed.qid),
                docid=_strings(*parsed.docid),
            )
        if n_docs == 0 and only is None:
            raise DataError("holds no documents", path=self.path)
        whole = only is None and self._complete
        if whole and self._model_width is not None and self._given is None and highest < self._model_width:
            self._mismatch(highest)

    def _mismatch(self, found: int) -> NoReturn:
        assert self._model_width is not None
        mismatch = FeatureMismatch(found=found, expected=self._model_width)
        hint = width_hint(found, self._model_width, perhaps_from_zero=self._first_index == 1)
        raise DataError(f"{mismatch.said_of(self._owner)}{hint}", path=self.path)

    def _parsed(
        self, width: int, wide: bool, only: Spans | None
    ) -> Iterator[tuple[_Part, NDArray[np.float32], NDArray[np.float32], Parsed]]:
        """Parts of the text, parsed on several threads, in order."""

        def parse(part: _Part) -> tuple[_Part, NDArray[np.float32], NDArray[np.float32], Parsed]:
            assert self._rules is not None
            X = np.full((part.n_rows, width), self._absent, dtype=np.float64 if wide else np.float32)
            labels = np.empty(part.n_rows, dtype=np.float32)
            return part, X, labels, parse_part(part.text, 0, X, labels, self._rules)

        n_jobs = thread_count(self._n_jobs)
        waiting: deque[Future[tuple[_Part, NDArray[np.float32], NDArray[np.float32], Parsed]]] = deque()
        with ThreadPoolExecutor(n_jobs, thread_name_prefix="gradrank") as pool:
            for part in self._parts(only):
                waiting.append(pool.submit(parse, part))
                if len(waiting) > 2 * n_jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _parts(self, only: Spans | None) -> Iterator[_Part]:
        counted = self._part_rows if only is not None else []
        first_row = lines = number = 0
        found: list[int] = []
        for text in self.pieces:
            for start, end in text_parts(text, _PART_BYTES, starts_file=False):
                part = text[start:end]
                if only is not None and number < len(counted):
                    n_rows, first = counted[number], 0
                else:
                    n_rows, _, first = kernel.scan_lines(part, 0, len(part))
                if self._rules is None and n_rows:
                    self._settle_rules(part, first)
                if n_rows and overlaps(first_row, first_row + n_rows, only):
                    yield _Part(part, first_row, n_rows, lines)
                # Lines are counted for messages: those without a document count as well.
                lines += int(np.count_nonzero(part == 10))
                first_row += n_rows
                number += 1
                found.append(n_rows)
        if only is None:
            self._part_rows = found

    def _settle_rules(self, text: NDArray[np.uint8], first_document: int) -> None:
        self._sizes = size_file(self.path, self._group_file, text, first_document)
        last = min(self._limit - 1 + self._first_index, LARGEST_INDEX)
        self._rules = Rules(self._first_index, last, self._sizes is None, self._missing)

    def query_sizes(self, n_docs: int) -> NDArray[np.int64] | None:
        """See Source.query_sizes."""
        return None if self._sizes is None else indptr_of_file(self._sizes, n_docs, self.path)

    def comes_again(self, row: int, qid: str) -> NoReturn:
        """See Source.comes_again; names the line."""
        for part, _, _, parsed in self._parsed(0, False, [(row, row + 1)]):
            places = np.flatnonzero(parsed.run_rows <= row - part.first_row)
            if len(places) and part.first_row <= row < part.first_row + part.n_rows:
                fault = Fault(kernel.COMES_AGAIN, int(parsed.run_offsets[places[-1]]))
                raise_fault(fault, part.text, self.path, lines_before=part.lines_before)
        super().comes_again(row, qid)


def _strings(buffer: NDArray[np.uint8], lengths: NDArray[np.int64]) -> Strings:
    return Strings(buffer, np.concatenate(([0], np.cumsum(lengths))).astype(np.int64))
