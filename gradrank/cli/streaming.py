"""Data of any size on the command line: read by blocks of rows, from files and standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gradrank.cli.common import Notes, load_data, named_files, with_features
from gradrank.cli.reading import Reading
from gradrank.data.formats.file_formats import LETOR, FileFormat

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gradrank.data.ranking_data import RankingData
    from gradrank.data.streaming.source import Source
    from gradrank.models.ranker import Ranker

STANDARD = "-"
"""Stands for standard input or output."""
_STANDARD_INPUT = Path("<standard input>")
# Compressed text and Parquet are about so many times smaller than their numbers in memory.
_PACKED = 8


def source_of(path: Path, reading: Reading, *, width: int | None = None, owner: str = "the model") -> Source:
    """The rows of a file, or of standard input."""
    from gradrank.data.formats.registry import format_to_read
    from gradrank.data.streaming.sources import open_source

    if str(path) == STANDARD:
        form = LETOR if reading.format is None else format_to_read(path, reading.format)
        reading.check(form, _STANDARD_INPUT)
        pipe = sys.stdin.buffer
        return open_source(_STANDARD_INPUT, form, reading.options, pipe=pipe, width=width, owner=owner)
    form = form_of(path, reading)
    reading.check(form, path)
    return open_source(path, form, reading.options, width=width, owner=owner)


def form_of(path: Path, reading: Reading) -> FileFormat:
    """The format of a file; what comes through a pipe is LETOR text unless another format is named."""
    from gradrank.data.formats.registry import format_to_read

    is_pipe = path.exists() and not path.is_file() and not path.is_dir()
    return LETOR if is_pipe and reading.format is None else format_to_read(path, reading.format)


def is_streamed(path: Path, reading: Reading) -> bool:
    """Whether a file's format is one that is read by blocks of rows."""
    from gradrank.data.streaming.sources import STREAMED

    return form_of(path, reading).name in STREAMED


def is_large(path: Path, reading: Reading) -> bool:
    """Whether a file is better read by blocks than held: its numbers may take more than a quarter of the memory."""
    from gradrank.data.formats.compressed import without_compression_suffix
    from gradrank.runtime.memory import memory_limit

    form = form_of(path, reading)
    if form.name == "binary" or not is_streamed(path, reading):
        return False  # it is a memory map, or there is no other way
    files = path.rglob("*") if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files if file.is_file())
    packed = form.name == "parquet" or without_compression_suffix(path) != path
    limit = memory_limit()
    return limit is not None and size * (_PACKED if packed else 1) > limit // 4


def weighs_documents(path: Path, reading: Reading) -> bool:
    """Whether a table has a column of weights of documents."""
    roles = getattr(source_of(path, reading), "roles", None)
    return roles is not None and roles.document_weight is not None


def load_labels(path: Path, notes: Notes, reading: Reading, labels: Sequence[str] | None = None) -> RankingData:
    """Read data without its features, with label columns from ``NAME=FILE`` options."""
    from gradrank.data.formats.registry import with_label_files
    from gradrank.data.streaming.labels import read_labels

    if form_of(path, reading).name == "binary" or not is_streamed(path, reading):
        return load_data(path, notes, reading, labels)
    label_files = dict(named_files(labels))
    with notes.working(f"reading {path}"):
        data = read_labels(source_of(path, reading), regroup=reading.options.get("regroup", True))
        data = with_label_files(data, label_files)
    if data.rows is not None:
        notes.say_regrouped(path)
    return data


def joined(blocks: Iterator[NDArray[np.float64]], count: int) -> NDArray[np.float64]:
    """Blocks of scores as one column."""
    import numpy as np

    scores = np.empty(count)
    start = 0
    for block in blocks:
        scores[start : start + len(block)] = block
        start += len(block)
    return scores


def scores_of_file(
    ranker: Ranker, owner: str, path: Path, notes: Notes, reading: Reading, n_jobs: int | None
) -> Iterator[NDArray[np.float64]]:
    """A ranker's scores of a file's documents, in the order of its rows, by blocks."""
    from gradrank.models.streamed_scores import streamed_scores

    if not reading.options.get("regroup", True):
        load_labels(path, notes, reading)  # refuses rows of a query that are not consecutive
    if str(path) != STANDARD and not is_streamed(path, reading):
        data = with_features(load_data(path, notes, reading), path, ranker.feature_names, owner)
        yield ranker.predict(data, n_jobs=n_jobs)
        return
    source = source_of(path, reading, width=ranker.n_features, owner=owner)
    fitted = partial(with_features, path=source.path, names=ranker.feature_names, owner=owner)
    with notes.progress(f"scoring {source.path}", source.size) as progress:
        yield from streamed_scores(ranker, source, fitted=fitted, n_jobs=n_jobs, progress=progress)
