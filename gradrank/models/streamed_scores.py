"""Scores of files of any size: a block of rows at a time, in the order of the rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData, rows_alone
from gradrank.data.streaming.source import Rows, Source, needs_float64
from gradrank.errors import DataError
from gradrank.models.ranker import Ranker

_HEAD_BYTES = 1 << 26
_SCORES_AT_ONCE = 1 << 16


def streamed_scores(
    ranker: Ranker,
    source: Source,
    *,
    fitted: Callable[[RankingData], RankingData] = lambda data: data,
    n_jobs: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
    head_bytes: int = _HEAD_BYTES,
) -> Iterator[NDArray[np.float64]]:
    """Scores in the order of the rows, by blocks, the same as those of the whole data at once.

    Whether features need float64 is known only when all of them were seen. So the scores of a file wait in a temporary
    file until then, and are made anew if need be; nothing is given before the whole file was found to be right. What
    comes through a pipe is scored as it comes: its first bytes (``head_bytes``) decide, and numbers behind them that
    would have decided otherwise are an error.

    Parameters
    ----------
    ranker
        The ranker.
    source
        The rows.
    fitted
        Gives rows the ranker's features, or refuses them.
    n_jobs
        Threads to use; all cores by default.
    progress
        Told the number of bytes read.
    head_bytes
        How much of a pipe is looked at before its first row is scored.

    >>> from pathlib import Path
    >>> from gradrank.data.streaming.sources import DataSource
    >>> from gradrank.models.linear import LinearRanker
    >>> ranker = LinearRanker([2.0], feature_names=["f1"])
    >>> source = DataSource(RankingData.from_arrays([[1.0], [2.0]], qid=[7, 7]), Path("a"))
    >>> [block.tolist() for block in streamed_scores(ranker, source)]
    [[2.0, 4.0]]
    """

    def score(rows: Rows) -> NDArray[np.float64]:
        progress(source.read_so_far())
        return ranker.predict(fitted(rows_alone(rows.X, source.feature_names)), n_jobs=n_jobs)

    if source.again or source.hold_head(head_bytes):
        yield from _of_file(source, score)
    else:
        yield from _of_pipe(source, score, head_bytes)


def _of_file(source: Source, score: Callable[[Rows], NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
    with tempfile.TemporaryFile() as kept:
        n_docs, changed = 0, None
        for rows in source.rows():
            kept.write(score(rows).tobytes())
            n_docs, changed = rows.first + len(rows.X), _joined(changed, rows)
        if _decide(source, n_docs, changed):
            kept.seek(0)
            for rows in source.rows(wide=True):
                kept.write(score(rows).tobytes())
        source.finish()
        kept.seek(0)
        yield from _numbers(kept)


def _of_pipe(
    source: Source, score: Callable[[Rows], NDArray[np.float64]], head_bytes: int
) -> Iterator[NDArray[np.float64]]:
    head = source.of_head()
    n_docs, changed = 0, None
    for rows in head.rows():
        n_docs, changed = rows.first + len(rows.X), _joined(changed, rows)
    wide = _decide(head, n_docs, changed)
    fractions: NDArray[np.bool_] | None = None
    for rows in source.rows(wide=wide):
        yield score(rows)
        changed = _joined(changed, rows)
        here = ((np.rint(rows.X) != rows.X) & ~np.isnan(rows.X)).any(axis=0)
        fractions = here if fractions is None else fractions | here
    if not wide and changed is not None and fractions is not None and (changed & ~fractions).any():
        name = source.feature_names[int(np.flatnonzero(changed & ~fractions)[0])]
        raise DataError(
            f"feature {name!r} holds whole numbers that float32 changes, but none in the first {head_bytes:,} bytes, "
            "which decide how features are read: the scores are not those of the same data in a file, score the file",
            path=source.path,
        )
    source.finish()


def _decide(source: Source, n_docs: int, changed: NDArray[np.bool_] | None) -> bool:
    width = len(source.feature_names)
    return needs_float64(source, n_docs, width, changed, lambda: (rows.X for rows in source.rows()))


def _joined(changed: NDArray[np.bool_] | None, rows: Rows) -> NDArray[np.bool_] | None:
    if rows.changed is None:
        return changed
    return rows.changed if changed is None else changed | rows.changed


def _numbers(file: IO[bytes]) -> Iterator[NDArray[np.float64]]:
    while content := file.read(8 * _SCORES_AT_ONCE):
        scores: NDArray[Any] = np.frombuffer(content, dtype=np.float64)
        yield scores
