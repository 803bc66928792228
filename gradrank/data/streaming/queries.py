"""Runs of rows of one query, met block by block, as queries: who they are, and where their rows go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.array_file import ArrayFile, read_only_map
from gradrank.data.streaming.source import Rows, Source
from gradrank.data.strings import Strings

_RUNS_AT_ONCE = 1 << 20


class QueryRuns:
    """Numbers queries as they first appear; runs are kept in files, for there may be as many as rows.

    Parameters
    ----------
    source
        Where the rows come from, for messages.
    folder
        Where the files are.
    """

    def __init__(self, source: Source, folder: Path) -> None:
        self._source = source
        self._starts = ArrayFile(folder, "runs.start", "<i8")
        self._numbers = ArrayFile(folder, "runs.query", "<i8")
        self._number_of: dict[bytes, int] = {}
        self._weights: list[float] = []
        self._last = -1
        self.n_docs = 0
        self.interleaved = False
        """Whether rows of some query are not consecutive."""
        self._again: tuple[int, int] | None = None

    def add(self, rows: Rows) -> None:
        """Take in the next block of rows."""
        n_rows = len(rows.X)
        if rows.run_ids is not None:
            starts, numbers = [], []
            content = rows.run_ids.buffer.tobytes()
            ends = rows.run_ids.offsets.tolist()
            for run, start in enumerate(rows.run_rows.tolist()):
                number = self._number_of.setdefault(content[ends[run] : ends[run + 1]], len(self._number_of))
                if number == self._last:
                    continue  # a run that was cut by the end of a block
                if number < self._last and self._again is None:
                    self.interleaved, self._again = True, (rows.first + start, number)
                self._last = number if self._again is None else -1
                starts.append(rows.first + start)
                numbers.append(number)
            self._starts.append(np.array(starts, dtype=np.int64))
            self._numbers.append(np.array(numbers, dtype=np.int64))
            if rows.weight is not None:
                self._add_weights(rows, n_rows)
        self.n_docs = rows.first + n_rows

    def _add_weights(self, rows: Rows, n_rows: int) -> None:
        """The weight of a query is that of its first row, and all its rows have it."""
        assert rows.run_ids is not None
        assert rows.weight is not None
        content = rows.run_ids.buffer.tobytes()
        ends = rows.run_ids.offsets.tolist()
        edges = [*rows.run_rows.tolist(), n_rows]
        for run, start in enumerate(edges[:-1]):
            qid = content[ends[run] : ends[run + 1]]
            number = self._number_of[qid]
            given = rows.weight[start : edges[run + 1]]
            if number == len(self._weights):
                self._weights.append(float(given[0]))
            first = self._weights[number]
            wrong = np.flatnonzero((given != first) | ~np.isfinite(given) | (given < 0))
            if len(wrong):
                usual = np.isfinite(first) and first >= 0
                expected = f"{first:g} as in its first row" if usual else "a number of 0 or more"
                said = f"the weight of query {qid.decode(errors='replace')} is {given[wrong[0]]:g} in one row"
                self._source.checked_weight(f"{said}, expected {expected}")

    def refuse_interleaved(self) -> None:
        """Refuse rows of a query that are not consecutive."""
        if self._again is not None:
            row, number = self._again
            self._source.comes_again(row, self.qid()[number])

    def qid(self) -> Strings:
        """The ids of the queries, as they first appear."""
        content = list(self._number_of)
        offsets = np.zeros(len(content) + 1, dtype=np.int64)
        np.cumsum([len(item) for item in content], out=offsets[1:])
        return Strings(np.frombuffer(b"".join(content), dtype=np.uint8), offsets)

    def weight(self) -> NDArray[np.float64] | None:
        """The weights of the queries, if they have any."""
        return np.array(self._weights) if self._weights else None

    def indptr(self) -> NDArray[np.int64]:
        """Query boundaries, the rows of a query brought together."""
        sizes = np.zeros(len(self._number_of), dtype=np.int64)
        for starts, numbers, ends in self._runs():
            np.add.at(sizes, numbers, ends - starts)
        return np.concatenate(([0], np.cumsum(sizes)))

    def targets(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """First row and new places of blocks of consecutive rows; the rows of a query come together, in order."""
        free = self.indptr()[:-1]
        for starts, numbers, ends in self._runs():
            sizes = ends - starts
            # Within the block, runs of a query follow each other: each begins where the one before it ends.
            order = np.argsort(numbers, kind="stable")
            before = np.cumsum(sizes[order]) - sizes[order]
            is_first = np.diff(numbers[order], prepend=-1) != 0
            of_query = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
            place = np.empty(len(order), dtype=np.int64)
            place[order] = free[numbers[order]] + before - before[of_query]
            np.add.at(free, numbers, sizes)
            yield from _row_blocks(starts, sizes, place)

    def _runs(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Blocks of runs: their first rows, query numbers and ends."""
        self._starts.flush()
        self._numbers.flush()
        starts, numbers = read_only_map(self._starts), read_only_map(self._numbers)
        for first in range(0, len(starts), _RUNS_AT_ONCE):
            part = np.array(starts[first : first + _RUNS_AT_ONCE + 1])
            count = min(_RUNS_AT_ONCE, len(starts) - first)
            ends = part[1:] if len(part) > count else np.append(part[1:], self.n_docs)
            yield part[:count], np.array(numbers[first : first + count]), ends

    def close(self) -> None:
        """Close and remove the files."""
        self._starts.remove()
        self._numbers.remove()


def _row_blocks(
    starts: NDArray[np.int64], sizes: NDArray[np.int64], place: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """New places of rows, from those of their runs, for about a million rows at a time."""
    edges = np.concatenate(([0], np.cumsum(sizes)))
    first = 0
    while first < len(starts):
        end = max(first + 1, int(np.searchsorted(edges, edges[first] + _RUNS_AT_ONCE, side="right")) - 1)
        within = np.arange(edges[end] - edges[first]) - np.repeat(edges[first:end] - edges[first], sizes[first:end])
        yield int(starts[first]), np.repeat(place[first:end], sizes[first:end]) + within
        first = end
