"""Writing LETOR text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.compressed import open_for_writing
from gradrank.data.formats.letor_fault import shown
from gradrank.data.formats.number_kernel import LONGEST_NUMBER, write_float32, write_whole
from gradrank.data.precision import Matrix
from gradrank.data.ranking_data import RankingData, check_features, default_feature_names
from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import thread_count

_BLOCK_BYTES = 1 << 22
_LONGEST_INDEX = 10
_BLANKS = np.frombuffer(b" \t\r\n", dtype=np.uint8)
_NOT_IN_QID = np.concatenate((np.arange(33, dtype=np.uint8), np.frombuffer(b"#", dtype=np.uint8)))


def write_letor(data: RankingData, path: str | Path, *, label: str | None = None) -> None:
    """Write data as LETOR text; compressed if the name ends in ``.gz``, ``.xz`` or ``.zst``.

    Every number is written as short as it reads back exactly, whole numbers with all their digits. All features are
    written, or only those that are not 0 if more than half of them are 0 — then the first line still names the last
    feature, so that the number of features is kept. Missing features and unjudged labels are written as ``nan``;
    document ids as ``#docid = ID``. The format has no place for weights, feature names and further label columns:
    features are numbered as they stand, but those that are named f1, f2 … fn keep their numbers in whatever order.

    Parameters
    ----------
    data
        What to write.
    path
        The file; it appears only when it is complete.
    label
        Which label column; the primary one if not given. Data without any is written as unjudged.

    Examples
    --------
    >>> import tempfile
    >>> data = RankingData.from_arrays([[0.5, 1], [3, 0]], [2, 0], qid=["a", "a"], docid=["x", "y"])
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> write_letor(data, path)
    >>> print(path.read_text(), end="")
    2 qid:a 1:0.5 2:1 #docid = x
    0 qid:a 1:3 2:0 #docid = y
    """
    places = numbered_places(data.feature_names)
    has_labels = bool(data.labels) or label is not None
    labels = data.label(label) if has_labels else np.full(data.n_docs, np.nan, dtype=np.float32)
    _check_ids(data, path)
    filled = sum(int(np.count_nonzero(data.X[first:end])) for first, end in _blocks(data))
    sparse = 2 * filled < data.X.size
    query_of_row = data.query_of_row()

    def text_of(rows: tuple[int, int]) -> memoryview | bytes:
        first, end = rows
        # Features of a memory map were not looked at: numbers that are infinite would be written as others.
        check_features(data.X[first:end], first)
        features = data.X[first:end] if places is None else data.X[first:end, places]
        qid = data.qid[query_of_row[first:end]]
        docid = Strings.of([""] * (end - first)) if data.docid is None else data.docid[first:end]
        if data.X.dtype != np.float32:
            return _double_lines(features, labels[first:end], qid, docid, sparse, first == 0)
        room = (end - first) * _line_room(data.n_features) + len(qid.buffer) + len(docid.buffer)
        out = np.empty(room, dtype=np.uint8)
        length = _write_lines(
            out,
            np.ascontiguousarray(features),
            np.ascontiguousarray(labels[first:end], dtype=np.float32),
            qid.buffer,
            qid.offsets,
            docid.buffer,
            docid.offsets,
            sparse,
            first == 0,
        )
        return out[:length].data

    n_jobs = thread_count()
    with open_for_writing(path) as file, ThreadPoolExecutor(n_jobs, thread_name_prefix="gradrank") as pool:
        waiting: deque[Future[memoryview | bytes]] = deque()
        for rows in _blocks(data):
            waiting.append(pool.submit(text_of, rows))
            # Not all at once: what waits to be written is held in memory.
            if len(waiting) > 2 * n_jobs:
                file.write(waiting.popleft().result())
        while waiting:
            file.write(waiting.popleft().result())


def numbered_places(names: Sequence[str]) -> NDArray[np.int64] | None:
    """The columns by number if their names are f1 to fn in another order than this; None otherwise.

    LETOR text is read under these names: in any other order a model would be given one feature for another.

    >>> numbered_places(["f2", "f3", "f1"]).tolist(), numbered_places(["f1", "f2"]), numbered_places(["b", "a"])
    ([2, 0, 1], None, None)
    """
    expected = default_feature_names(len(names))
    place = {name: index for index, name in enumerate(names)}
    if tuple(names) == expected or set(place) != set(expected):
        return None
    return np.array([place[name] for name in expected], dtype=np.int64)


def _line_room(n_features: int) -> int:
    """Bytes that a line may need, without its ids."""
    return len("qid:  #docid = \n") + LONGEST_NUMBER + n_features * (LONGEST_NUMBER + _LONGEST_INDEX + len(" :"))


def _blocks(data: RankingData) -> Iterator[tuple[int, int]]:
    step = max(1, _BLOCK_BYTES // _line_room(data.n_features))
    for first in range(0, data.n_docs, step):
        yield first, min(first + step, data.n_docs)


def _check_ids(data: RankingData, path: str | Path) -> None:
    """Refuse ids that would read back as something else."""
    if (np.diff(data.qid.offsets) == 0).any():
        raise DataError("a query has an empty id, which LETOR text cannot hold", path=path)
    for ids, forbidden, what in ((data.qid, _NOT_IN_QID, "query"), (data.docid, _BLANKS, "document")):
        if ids is None:
            continue
        bad = np.flatnonzero(np.isin(ids.buffer, forbidden))
        if len(bad):
            number = int(np.searchsorted(ids.offsets, bad[0], side="right")) - 1
            raise DataError(
                f"{what} id {shown(ids[number].encode())} holds a blank or a sign with another meaning in LETOR text",
                path=path,
            )


_BEFORE_DOCID = np.frombuffer(b" #docid = ", dtype=np.uint8)
_BEFORE_QID = np.frombuffer(b" qid:", dtype=np.uint8)


def _double_lines(
    features: Matrix, labels: NDArray[np.float32], qid: Strings, docid: Strings, sparse: bool, starts_file: bool
) -> bytes:
    """Documents with features in float64 as lines of text, by Python, which writes doubles as short as possible."""
    lines = []
    last = features.shape[1] - 1
    for row, (values, query, name) in enumerate(zip(features.tolist(), qid, docid, strict=True)):
        words = [f"{labels[row]}".removesuffix(".0"), f"qid:{query}"]
        for column, value in enumerate(values):
            needed = not sparse or value != 0.0 or str(value)[0] == "-" or (starts_file and row == 0 and column == last)
            if needed:
                words.append(f"{column + 1}:{value!r}".removesuffix(".0"))
        if name:
            words.append(f"#docid = {name}")
        lines.append(" ".join(words))
    return "\n".join([*lines, ""]).encode()


@njit(cache=True, nogil=True)
def _copy(out: NDArray[np.uint8], position: int, source: NDArray[np.uint8], start: int, end: int) -> int:
    for offset in range(end - start):
        out[position + offset] = source[start + offset]
    return position + end - start


@njit(cache=True, nogil=True)
def _write_lines(
    out: NDArray[np.uint8],
    features: NDArray[np.float32],
    labels: NDArray[np.float32],
    qid: NDArray[np.uint8],
    qid_offsets: NDArray[np.int64],
    docid: NDArray[np.uint8],
    docid_offsets: NDArray[np.int64],
    sparse: bool,
    starts_file: bool,
) -> int:
    """Write documents as lines of text; gives the number of bytes."""
    position = 0
    last = features.shape[1] - 1
    for row in range(len(labels)):
        position = write_float32(out, position, labels[row])
        position = _copy(out, position, _BEFORE_QID, 0, len(_BEFORE_QID))
        position = _copy(out, position, qid, qid_offsets[row], qid_offsets[row + 1])
        for column in range(last + 1):
            value = features[row, column]
            if sparse and value == 0 and not np.signbit(value) and not (starts_file and row == 0 and column == last):
                continue
            out[position] = 32
            position = write_whole(out, position + 1, column + 1)
            out[position] = 58
            position = write_float32(out, position + 1, value)
        if docid_offsets[row + 1] > docid_offsets[row]:
            position = _copy(out, position, _BEFORE_DOCID, 0, len(_BEFORE_DOCID))
            position = _copy(out, position, docid, docid_offsets[row], docid_offsets[row + 1])
        out[position] = 10
        position += 1
    return position
