"""Parsing a part of LETOR text: what the kernels leave to Python, and what a part gives besides its numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats import letor_kernel as kernel
from gradrank.data.formats.letor_fault import NOT_UTF8, Fault
from gradrank.data.formats.number_kernel import TOO_LARGE
from gradrank.data.precision import Matrix


@dataclass(frozen=True)
class Rules:
    """What a line may hold."""

    first_index: int
    last_index: int
    wants_qid: bool
    missing: bool


@dataclass(frozen=True)
class Parsed:
    """What one part of the file gave besides features and labels."""

    fault: Fault | None
    columns: int
    """Number of columns needed if there were too few, otherwise 0."""
    highest: int
    """Number of columns up to the last one that some line names."""
    long_numbers: bool
    """Whether there are numbers with so many digits that float32 may not hold them."""
    changed: NDArray[np.bool_]
    """Columns with a number from 2^24 to 2^53, or its negative, that float32 changes."""
    docid: tuple[NDArray[np.uint8], NDArray[np.int64]]
    """Bytes and lengths, one per document; no bytes if no document has an id."""
    qid: tuple[NDArray[np.uint8], NDArray[np.int64]]
    """Bytes and lengths, one per run of documents with the same id."""
    run_rows: NDArray[np.int64]
    run_offsets: NDArray[np.int64]
    """Where in the file each run's id stands."""


def parse_part(
    text: NDArray[np.uint8],
    start: int,
    features: Matrix,
    labels: NDArray[np.float32],
    rules: Rules,
) -> Parsed:
    """Parse the part of the file that starts at ``start`` into its rows of ``features`` and ``labels``."""
    # A copy of its own ends with a newline for certain, and cannot change under the kernel.
    chunk = np.empty(len(text) + 1, dtype=np.uint8)
    chunk[:-1] = text
    chunk[-1] = 10
    n_docs = len(labels)
    docids = np.zeros((n_docs, 2), dtype=np.int64)
    runs = np.empty((n_docs if rules.wants_qid else 0, 3), dtype=np.int64)
    uncertain = np.empty((16, 3), dtype=np.int64)
    changed = np.zeros(features.shape[1], dtype=bool)
    exact = features.dtype == np.float64
    narrow = np.empty((0, 0), np.float32) if exact else features
    wide = features if exact else np.empty((0, 0))
    while True:
        counts = np.zeros(5, dtype=np.int64)
        last_row_of = np.full(features.shape[1], -1, dtype=np.int64)
        code, offset = kernel.parse_lines(
            chunk,
            narrow,
            wide,
            exact,
            labels,
            rules.first_index,
            rules.last_index,
            rules.wants_qid,
            rules.missing,
            last_row_of,
            changed,
            docids,
            runs,
            uncertain,
            counts,
        )
        rows, n_runs, n_uncertain, columns, long_numbers = counts.tolist()
        if n_uncertain <= len(uncertain):
            break
        uncertain = np.empty((n_uncertain, 3), dtype=np.int64)
    if code == kernel.OK and rows != n_docs:
        code, offset = kernel.CHANGED, len(chunk) - 1
    faults = [] if code == kernel.OK else [Fault(code, start + offset)]
    fault = _settle(uncertain[:n_uncertain], chunk, features, labels)
    if fault is not None:
        faults.append(Fault(fault.code, start + fault.offset))
    qid = _gathered(chunk, np.ascontiguousarray(runs[:n_runs, 1:]))
    docid = _gathered(chunk, docids[:rows])
    for (buffer, lengths), spans in ((qid, runs[:n_runs, 1:]), (docid, docids)):
        bad = _first_not_utf8(buffer, lengths)
        if bad is not None:
            faults.append(Fault(NOT_UTF8, start + int(spans[bad, 0])))
    return Parsed(
        fault=min(faults, key=lambda fault: fault.offset, default=None),
        columns=columns,
        highest=int(np.flatnonzero(last_row_of >= 0).max(initial=-1)) + 1,
        long_numbers=bool(long_numbers),
        changed=changed,
        docid=docid,
        qid=qid,
        run_rows=runs[:n_runs, 0].copy(),
        run_offsets=runs[:n_runs, 1] + start,
    )


def _gathered(chunk: NDArray[np.uint8], spans: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes at the spans (start, length), one after the other, and their lengths."""
    lengths = spans[:, 1].copy()
    buffer = np.empty(lengths.sum(), dtype=np.uint8)
    kernel.gather(chunk, spans, buffer)
    return buffer, lengths


_TOKEN = re.compile(rb"[^ \t\r\n#]+")


def _settle(
    uncertain: NDArray[np.int64], chunk: NDArray[np.uint8], features: Matrix, labels: NDArray[np.float32]
) -> Fault | None:
    """Let Python read the numbers that the kernel was not certain of."""
    if len(uncertain) == 0:
        return None
    content = chunk.tobytes()
    for row, column, offset in uncertain.tolist():
        match = _TOKEN.match(content, offset)
        assert match is not None
        value = float(match[0])
        with np.errstate(over="ignore"):
            infinite = np.isinf(np.float32(value))
        if infinite:
            return Fault(TOO_LARGE + (kernel.LABEL if column < 0 else 0), offset)
        if column < 0:
            labels[row] = value
        elif column < features.shape[1]:
            features[row, column] = value
    return None


def _first_not_utf8(buffer: NDArray[np.uint8], lengths: NDArray[np.int64]) -> int | None:
    """Number of the first string that is not UTF-8."""
    if len(buffer) == 0 or buffer.max() < 128:
        return None
    content = buffer.tobytes()
    end = 0
    for number, length in enumerate(lengths.tolist()):
        start, end = end, end + length
        try:
            content[start:end].decode()
        except UnicodeDecodeError:
            return number
    return None
