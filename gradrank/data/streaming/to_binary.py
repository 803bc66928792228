"""Any file into the binary form, with a block of rows in memory at a time.

Rows are written as they come. If the rows of some query are not consecutive, they are then moved to their places in a
second file: each is read once in order and written once, so that nothing but the queries is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.array_file import ArrayFile, read_only_map
from gradrank.data.formats.binary import new_folder, write_manifest
from gradrank.data.precision import Matrix, row_blocks
from gradrank.data.streaming.queries import QueryRuns
from gradrank.data.streaming.source import Rows, Source, StartAgain, needs_float64
from gradrank.data.strings import Strings
from gradrank.errors import DataError

_ROWS_AT_ONCE = 1 << 16


def convert_to_binary(
    source: Source,
    path: str | Path,
    *,
    regroup: bool = True,
    progress: Callable[[int], None] = lambda done: None,
) -> bool:
    """Write the data of a source as a folder of the binary form, the same bytes as from the whole data in memory.

    Parameters
    ----------
    source
        The rows, in any order of the queries.
    path
        The folder; it appears only when it is complete.
    regroup
        Whether rows of a query that are not consecutive are brought together or refused.
    progress
        Told the number of bytes read.

    Returns
    -------
    bool
        Whether rows had to be brought together.

    >>> import tempfile
    >>> from gradrank.data.formats.binary import open_binary
    >>> from gradrank.data.streaming.letor_source import LetorSource
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("1 qid:a 1:5\\n0 qid:b 1:6\\n0 qid:a 1:7\\n")
    >>> convert_to_binary(LetorSource(folder / "a.txt"), folder / "a.gradrank")
    True
    >>> open_binary(folder / "a.gradrank").X.tolist()
    [[5.0], [7.0], [6.0]]
    """
    path = Path(path)
    with new_folder(path) as folder:
        while True:
            conversion = _Conversion(source, folder, progress)
            try:
                conversion.read()
                interleaved = conversion.finish(regroup)
                source.finish()
                return interleaved
            except StartAgain:
                continue
            finally:
                conversion.close()


class _Conversion:
    """The files of one conversion."""

    def __init__(self, source: Source, folder: Path, progress: Callable[[int], None]) -> None:
        self._source, self._folder, self._progress = source, folder, progress
        self._names = source.feature_names
        self._files: dict[str, ArrayFile] = {}
        self._labels: list[str] = []
        self._runs = QueryRuns(source, folder)

    # ------------------------------------------------------------------ reading
    def read(self) -> None:
        """Write all rows, in their order, in the precision that they need."""
        changed: NDArray[np.bool_] | None = None
        for rows in self._source.rows():
            self._progress(self._source.read_so_far())
            if not self._files:
                self._create(rows)
            self._runs.add(rows)
            self._append(rows)
            if rows.changed is not None:
                changed = rows.changed if changed is None else changed | rows.changed
        if not self._files:
            raise DataError("there are no documents", path=self._source.path)
        if needs_float64(self._source, self._runs.n_docs, len(self._names), changed, self._narrow):
            self._files["X"].restart("<f8")
            for rows in self._source.rows(wide=True):
                self._progress(self._source.read_so_far())
                self._files["X"].append(rows.X)

    def _create(self, rows: Rows) -> None:
        self._labels = list(rows.labels)
        files = [ArrayFile(self._folder, "X", "<f4", (len(self._names),)), ArrayFile(self._folder, "indptr", "<i8")]
        files += [ArrayFile(self._folder, f"label-{index}", "<f4") for index in range(len(self._labels))]
        if rows.weight is not None:
            files.append(ArrayFile(self._folder, "weight", "<f8"))
        for name in ("qid", "docid") if rows.docid is not None else ("qid",):
            files += [ArrayFile(self._folder, f"{name}.text", "|u1"), ArrayFile(self._folder, f"{name}.offsets", "<i8")]
        self._files = {file.name: file for file in files}
        if rows.docid is not None:
            self._files["docid.offsets"].append(np.zeros(1, dtype=np.int64))

    def _append(self, rows: Rows) -> None:
        self._files["X"].append(rows.X)
        for index, name in enumerate(self._labels):
            self._files[f"label-{index}"].append(rows.labels[name])
        if rows.docid is not None:
            self._append_strings("docid", rows.docid)

    def _append_strings(self, name: str, strings: Strings) -> None:
        start = strings.offsets[0]
        self._files[f"{name}.offsets"].append(strings.offsets[1:] - start + self._files[f"{name}.text"].length)
        self._files[f"{name}.text"].append(strings.buffer[start : strings.offsets[-1]])

    def _narrow(self) -> Iterator[Matrix]:
        self._files["X"].flush()
        X: Any = read_only_map(self._files["X"])
        for start, end in row_blocks(*X.shape):
            yield np.array(X[start:end])

    # ------------------------------------------------------------------ queries
    def finish(self, regroup: bool) -> bool:
        """Bring the rows of each query together, and write what is known only now."""
        runs, files = self._runs, self._files
        for file in files.values():
            file.flush()
        if runs.interleaved and not regroup:
            runs.refuse_interleaved()
        if self._source.optional_docids and "docid.text" in files and files["docid.text"].length == 0:
            files.pop("docid.text").remove()
            files.pop("docid.offsets").remove()
        indptr = self._source.query_sizes(runs.n_docs)
        if indptr is None:
            indptr, qid = runs.indptr(), runs.qid()
        else:
            qid = Strings.of(range(1, len(indptr)))
        files["indptr"].append(indptr)
        files["qid.offsets"].append(np.zeros(1, dtype=np.int64))
        self._append_strings("qid", qid)
        if "weight" in files:
            weight = runs.weight()
            assert weight is not None
            files["weight"].append(weight)
        if runs.interleaved:
            self._bring_together()
        interleaved = runs.interleaved
        self.close()
        write_manifest(self._folder, list(self._names), self._labels, files)
        return interleaved

    def _bring_together(self) -> None:
        for name in ("X", *(f"label-{index}" for index in range(len(self._labels)))):
            self._move(self._files[name])
        if "docid.text" in self._files:
            self._move_docids()

    def _move(self, file: ArrayFile) -> None:
        source = read_only_map(file)
        if not source.size:
            return
        with _Replaced(file, source.shape) as target:
            for first, places in self._runs.targets():
                for start in range(0, len(places), _ROWS_AT_ONCE):
                    part = places[start : start + _ROWS_AT_ONCE]
                    target[part] = source[first + start : first + start + len(part)]

    def _move_docids(self) -> None:
        text, offsets = self._files["docid.text"], self._files["docid.offsets"]
        old_text, old = read_only_map(text), read_only_map(offsets)
        # First the lengths go to their places, which gives the offsets; then the text.
        with _Replaced(offsets, old.shape) as new:
            for first, places in self._runs.targets():
                new[places + 1] = np.diff(old[first : first + len(places) + 1])
            total = 0
            for start in range(0, len(new), _ROWS_AT_ONCE):
                part = new[start : start + _ROWS_AT_ONCE]
                part[:] = total + np.cumsum(part)
                total = int(part[-1])
            with _Replaced(text, old_text.shape) as new_text:
                for first, places in self._runs.targets():
                    for start in range(0, len(places), _ROWS_AT_ONCE):
                        part = places[start : start + _ROWS_AT_ONCE]
                        ends = np.array(old[first + start : first + start + len(part) + 1])
                        lengths = np.diff(ends)
                        within = np.arange(ends[-1] - ends[0]) - np.repeat(ends[:-1] - ends[0], lengths)
                        new_text[np.repeat(new[part], lengths) + within] = old_text[ends[0] : ends[-1]]

    def close(self) -> None:
        """Close all files; those that are only needed on the way vanish."""
        # On a full disk closing fails, too; the other files must be closed all the same.
        with ExitStack() as closing:
            closing.callback(self._runs.close)
            for file in self._files.values():
                closing.callback(file.close)


class _Replaced:
    """A memory map of a file's shape to fill, which then takes the file's place."""

    def __init__(self, file: ArrayFile, shape: tuple[int, ...]) -> None:
        self._file = file
        self._new = file.path.with_suffix(".grouped")
        self._map = np.memmap(self._new, dtype=file.dtype, mode="w+", shape=shape)

    def __enter__(self) -> Any:
        return self._map

    def __exit__(self, *error: object) -> None:
        self._map.flush()
        del self._map
        self._file.close()
        self._new.replace(self._file.path)
