"""Data of any size on the command line: read by blocks of rows, from files and standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gradrank.cli.common import Notes, with_features
from gradrank.cli.reading import Reading
from gradrank.data.formats.file_formats import LETOR, FileFormat

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gradrank.data.streaming.source import Source
    from gradrank.models.ranker import Ranker

STANDARD = "-"
"""Stands for standard input or output."""
_STANDARD_INPUT = Path("<standard input>")


def source_of(path: Path, reading: Reading, *, width: int | None = None, owner: str = "the model") -> Source:
    """The rows of a file, or of standard input."""
    from gradrank.data.formats.registry import format_to_read
    from gradrank.data.streaming.sources import open_source

    if str(path) == STANDARD:
        form = LETOR if reading.format is None else format_to_read(path, reading.format)
        reading.check(form, _STANDARD_INPUT)
        pipe = sys.stdin.buffer
        return open_source(_STANDARD_INPUT, form, reading.options, pipe=pipe, width=width, owner=owner)
    form = _form_of(path, reading)
    reading.check(form, path)
    return open_source(path, form, reading.options, width=width, owner=owner)


def _form_of(path: Path, reading: Reading) -> FileFormat:
    from gradrank.data.formats.registry import format_to_read

    is_pipe = path.exists() and not path.is_file() and not path.is_dir()
    return LETOR if is_pipe and reading.format is None else format_to_read(path, reading.format)


def scores_of_file(
    ranker: Ranker, owner: str, path: Path, notes: Notes, reading: Reading, n_jobs: int | None
) -> Iterator[NDArray[np.float64]]:
    """A ranker's scores of a file's documents, in the order of its rows, by blocks."""
    from gradrank.models.streamed_scores import streamed_scores

    source = source_of(path, reading, width=ranker.n_features, owner=owner)
    fitted = partial(with_features, path=source.path, names=ranker.feature_names, owner=owner)
    with notes.progress(f"scoring {source.path}", source.size) as progress:
        yield from streamed_scores(ranker, source, fitted=fitted, n_jobs=n_jobs, progress=progress)
