"""LETOR text, the common format of ranking data: ``label qid:ID index:value … # comment``.

SVMlight's format with a query id, as LETOR, MSLR-WEB, Yahoo and Istella data come, and LightGBM's
variant without ids and with a file of group sizes beside it.
"""

from __future__ import annotations

import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats import letor_kernel as kernel
from gradrank.data.formats.columns import read_column
from gradrank.data.formats.compressed import read_bytes, without_compression_suffix
from gradrank.data.formats.letor_fault import Fault, raise_fault
from gradrank.data.formats.letor_parse import Parsed, Rules, parse_part
from gradrank.data.formats.letor_write import write_letor
from gradrank.data.precision import Matrix, PrecisionCheck, sampled_rows
from gradrank.data.ranking_data import (
    PRIMARY_LABEL,
    RankingData,
    default_feature_names,
    indptr_of_sizes,
    regroup_runs,
)
from gradrank.data.strings import Strings
from gradrank.errors import DataError, NoDocumentsError
from gradrank.runtime.memory import memory_limit
from gradrank.runtime.threads import thread_count

__all__ = ["read_letor", "width_hint", "write_letor"]

# Small enough to stay in a core's cache between being copied and being parsed.
_CHUNK_BYTES = 1 << 20
# Newlines are searched for in so many bytes at a time; few lines are longer.
_LINE_BYTES = 1 << 14
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SIZE_FILE_SUFFIXES = (".query", ".group")
_STARTS_WITH_QID = re.compile(rb"[ \t\r]*[^ \t\r\n#]+[ \t\r]+qid:")
LARGEST_INDEX = 999_999_999


def read_letor(
    path: str | Path,
    *,
    group_file: str | Path | None = None,
    missing: bool = False,
    absent_missing: bool = False,
    zero_based: bool = False,
    regroup: bool = True,
    n_features: int | None = None,
    max_features: int = 100_000,
    n_jobs: int | None = None,
    _chunk_bytes: int = _CHUNK_BYTES,
) -> RankingData:
    """Read LETOR (SVMlight) text, plain or compressed with gzip, xz or Zstandard.

    One document per line: a number as label, ``qid:`` and the query's id, then features as ``index:value`` in any
    order; a feature that is not there is 0. ``#`` starts a comment; blank lines and lines with only a comment are
    skipped. The document id is what a comment has behind ``docid =`` (or ``docid=``, ``docid:``), or the comment itself
    if it is one single word.

    Parameters
    ----------
    path
        The file.
    group_file
        The sizes of consecutive queries, one per line, for lines without ``qid:``. If it is not given and the lines
        have no ids, ``<path>.query`` or ``<path>.group`` is used.
    missing
        Take ``nan`` as a missing feature or an unjudged label, instead of refusing it.
    absent_missing
        Take a feature that a line leaves out as missing, as XGBoost does, instead of as 0, as LightGBM does.
    zero_based
        Feature indices start at 0, not at 1.
    regroup
        Bring the lines of a query together if they are not (``rows`` of the result then tells where each came from),
        instead of refusing the file.
    n_features
        Number of features, if it is to be more than the file's highest index tells; a higher index is refused.
    max_features
        Refuse a higher feature index, which a broken line could hold.
    n_jobs
        Number of threads; every core if not given.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5 3:1 # docid = a\\n0 qid:7 2:4 # docid = b\\n")
    >>> data = read_letor(path)
    >>> data.X.tolist(), data.label().tolist(), list(data.qid), list(data.docid)
    ([[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]], [2.0, 0.0], ['7'], ['a', 'b'])
    """
    path = Path(path)
    first_index = 0 if zero_based else 1
    limit = max_features if n_features is None else n_features
    if limit < 0:
        raise DataError(f"the number of features is {limit}, expected 0 or more")
    text = read_bytes(path)
    parts = text_parts(text, _chunk_bytes)
    with ThreadPoolExecutor(thread_count(n_jobs), thread_name_prefix="gradrank") as pool:
        scans = list(pool.map(lambda part: kernel.scan_lines(text, *part), parts))
        first_rows = np.concatenate(([0], np.cumsum([rows for rows, _, _ in scans], dtype=np.int64)))
        n_docs = int(first_rows[-1])
        if n_docs == 0:
            raise NoDocumentsError("holds no documents", path=path)
        first_document = next(first for rows, _, first in scans if rows)
        sizes_path = size_file(path, group_file, text, first_document)
        rules = Rules(first_index, min(limit - 1 + first_index, LARGEST_INDEX), sizes_path is None, missing)

        def parse(width: int, dtype: type) -> tuple[Matrix, NDArray[np.float32], list[Parsed]]:
            features = _zeros(n_docs, width, dtype, path)
            labels = np.empty(n_docs, dtype=np.float32)

            def parse_rows(start: int, end: int, first_row: int, end_row: int) -> Parsed:
                if absent_missing:
                    features[first_row:end_row] = np.nan
                return parse_part(text[start:end], start, features[first_row:end_row], labels[first_row:end_row], rules)

            starts, ends = zip(*parts, strict=True)
            return features, labels, list(pool.map(parse_rows, starts, ends, first_rows[:-1], first_rows[1:]))

        highest = min(rules.last_index, max(index for _, index, _ in scans))
        width = max(0, highest + 1 - first_index) if n_features is None else n_features
        features, labels, parsed = parse(width, np.float32)
        needed = max(part.columns for part in parsed)
        if needed > width:  # some line's highest index was not its last
            del features
            width = needed
            features, labels, parsed = parse(width, np.float32)
        for part in parsed:
            if part.fault is not None:
                raise_fault(part.fault, text, path, limit=limit, fixed=n_features is not None)
        absent = np.nan if absent_missing else 0.0
        if any(part.long_numbers for part in parsed) and _needs_float64(
            features, text, parts, first_rows, rules, parsed, absent
        ):
            del features
            features, labels, parsed = parse(width, np.float64)

    docid = _joined([part.docid for part in parsed], n_docs) if any(len(part.docid[0]) for part in parsed) else None
    order = None
    if sizes_path is None:
        indptr, qid, order = _queries(parsed, first_rows, text, path, regroup)
    else:
        indptr = indptr_of_file(sizes_path, n_docs, path)
        qid = Strings.of(range(1, len(indptr)))
    if order is not None:
        features = features[order]
        labels = labels[order]
        docid = None if docid is None else docid[order]
    return RankingData(
        X=features,
        indptr=indptr,
        labels={PRIMARY_LABEL: labels},
        qid=qid,
        docid=docid,
        feature_names=default_feature_names(features.shape[1]),
        rows=order,
    )


def width_hint(found: int, expected: int, *, perhaps_from_zero: bool = True) -> str:
    """What to do about text with fewer features than a model has, as the end of a sentence.

    >>> width_hint(45, 46)[:61]
    ' (--zero-based if the model counts features of such files fro'
    >>> width_hint(40, 46), width_hint(47, 46)
    (' (if its last ones are all 0, --n-features 46 reads them so)', '')
    """
    if found >= expected:
        return ""
    last = f"if its last ones are all 0, --n-features {expected} reads them so"
    if found == expected - 1 and perhaps_from_zero:
        # A feature with number 0, which such files lack, is in every model that those tools trained on them.
        return f" (--zero-based if the model counts features of such files from 0, as LightGBM and XGBoost do; {last})"
    return f" ({last})"


def text_parts(text: NDArray[np.uint8], chunk_bytes: int, *, starts_file: bool = True) -> list[tuple[int, int]]:
    """Cut the text behind newlines into parts of about equal size; the mark that may start a file is left out."""
    parts = []
    start = len(_BYTE_ORDER_MARK) if starts_file and text[:3].tobytes() == _BYTE_ORDER_MARK else 0
    while start < len(text):
        end = _behind_newline(text, min(start + chunk_bytes, len(text)) - 1)
        parts.append((start, end))
        start = end
    return parts


def _behind_newline(text: NDArray[np.uint8], position: int) -> int:
    """The position behind the first newline at or after a position, or the text's end."""
    for start in range(position, len(text), _LINE_BYTES):
        found = text[start : start + _LINE_BYTES].tobytes().find(b"\n")
        if found >= 0:
            return start + found + 1
    return len(text)


def _zeros(n_docs: int, n_features: int, dtype: type, path: Path) -> Matrix:
    needed = n_docs * n_features * np.dtype(dtype).itemsize
    available = memory_limit()
    try:
        if available is None or needed <= available:
            # Zeroed by the system page by page when first touched, by the thread that parses into it.
            return np.zeros((n_docs, n_features), dtype=dtype)
    except MemoryError:
        pass
    raise DataError(
        f"{n_docs:,} documents with {n_features:,} features (the highest index found) need {needed / 1e9:,.1f} GB, "
        f"more than the memory there is{'' if available is None else f' ({available / 1e9:,.1f} GB)'}; gradrank "
        "convert turns it into the binary form (.gradrank), which is not held in memory",
        path=path,
    )


def _needs_float64(
    narrow: Matrix,
    text: NDArray[np.uint8],
    parts: list[tuple[int, int]],
    first_rows: NDArray[np.int64],
    rules: Rules,
    parsed: list[Parsed],
    absent: float,
) -> bool:
    """Whether float32 loses too much; only the parts with the rows that are looked at are read once more."""
    n_docs, n_features = narrow.shape
    check = PrecisionCheck(n_docs, n_features)
    for part in parsed:
        check.changed |= part.changed
    for start, end in sampled_rows(n_docs):
        first, last = (np.searchsorted(first_rows, [start, end - 1], side="right") - 1).tolist()
        for number in range(first, last + 1):
            row, end_row = int(first_rows[number]), min(int(first_rows[number + 1]), end)
            features = np.full((end_row - row, n_features), absent)
            # Reading stops where there is no more room, which is where the rows that are looked at end.
            parse_part(text[slice(*parts[number])], 0, features, np.empty(len(features), dtype=np.float32), rules)
            skipped = max(0, start - row)
            check.look(row + skipped, features[skipped:])
    return check.needs_float64(narrow)


def _joined(pieces: list[tuple[NDArray[np.uint8], NDArray[np.int64]]], count: int) -> Strings:
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.concatenate([lengths for _, lengths in pieces]), out=offsets[1:])
    return Strings(np.concatenate([buffer for buffer, _ in pieces]), offsets)


def _queries(
    parsed: list[Parsed], first_rows: NDArray[np.int64], text: NDArray[np.uint8], path: Path, regroup: bool
) -> tuple[NDArray[np.int64], Strings, NDArray[np.int64] | None]:
    """Query boundaries, query ids, and the row order if rows have to move."""
    n_docs = int(first_rows[-1])
    starts = np.concatenate([part.run_rows + row for part, row in zip(parsed, first_rows[:-1], strict=True)])
    ids = _joined([part.qid for part in parsed], len(starts))
    # Numbers rise with first appearance: a run whose number is not the highest yet continues a query,
    # one directly before it (cut by the end of a part) or an earlier one.
    numbers = _numbered(ids)
    first = np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=-1))
    again = np.flatnonzero(np.diff(numbers) < 0)
    if len(again) == 0:
        return np.append(starts[first], n_docs), ids[first], None
    run = int(again[0]) + 1
    if not regroup:
        offset = int(np.concatenate([part.run_offsets for part in parsed])[run])
        raise_fault(Fault(kernel.COMES_AGAIN, offset), text, path)
    order, indptr, first_runs = regroup_runs(starts, n_docs, first, numbers)
    return indptr, ids[first_runs], order


def _numbered(ids: Strings) -> NDArray[np.int64]:
    """For each string the number of its value, values numbered as they first appear."""
    content = ids.buffer.tobytes()
    values = [content[start:end] for start, end in itertools.pairwise(ids.offsets.tolist())]
    number_of = dict(zip(dict.fromkeys(values), itertools.count(), strict=False))
    if len(number_of) == len(values):
        return np.arange(len(values))
    return np.array([number_of[value] for value in values], dtype=np.int64)


def size_file(path: Path, group_file: str | Path | None, text: NDArray[np.uint8], first_document: int) -> Path | None:
    """The file with the queries' sizes, or None if the lines hold query ids."""
    if group_file is not None:
        return Path(group_file)
    if _STARTS_WITH_QID.match(text[first_document : first_document + 65536].tobytes()):
        return None
    for base in dict.fromkeys((path, without_compression_suffix(path))):
        for suffix in _SIZE_FILE_SUFFIXES:
            candidate = base.with_name(base.name + suffix)
            if candidate.is_file():
                return candidate
    return None


def indptr_of_file(sizes_path: Path, n_docs: int, path: Path) -> NDArray[np.int64]:
    sizes = read_column(sizes_path, what="group sizes")
    bad = np.flatnonzero((sizes != np.floor(sizes)) | (sizes < 1) | (sizes > n_docs))
    if len(bad):
        line = int(bad[0]) + 1
        raise DataError(
            f"group size is {sizes[bad[0]]:.15g}, expected a whole number from 1 to the number of documents "
            f"({n_docs}) in {path}",
            path=sizes_path,
            line=line,
        )
    if int(sizes.sum()) != n_docs:
        raise DataError(
            f"the group sizes add up to {int(sizes.sum())}, but {path} holds {n_docs} documents", path=sizes_path
        )
    return indptr_of_sizes(sizes, n_docs)
