"""What may stand in a folder of arrays: which files, of which types and shapes, and what their numbers may be.

The folder comes from outside, and the kernels that work on its arrays trust them: everything is looked at here, once,
before anybody else sees it. Only the features themselves are not read, for the folder is opened at once whatever its
size; any number there is a number, and learners refuse infinite ones when they read them.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import (
    RankingData,
    check_feature_names,
    check_label,
    checked_document_weights,
    checked_query_weights,
    first_repeated,
)
from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.runtime.files import recover_folder
from gradrank.runtime.json_text import parse_json

FORMAT = "gradrank-data"
VERSION = 1
MANIFEST = "manifest.json"

_TYPES = {
    "X": ("<f4", "<f8"),
    "indptr": ("<i8",),
    "label": ("<f4",),
    "weight": ("<f8",),
    "document_weight": ("<f8",),
    "text": ("|u1",),
    "offsets": ("<i8",),
}
"""The types that each kind of file may have."""
_MOST_CLAIMED = 1 << 28
"""Most documents where no file has anything for each of them, so that their number is a mere claim."""


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a folder: a dictionary with lists of the names of features and labels, and a table of arrays."""
    file = path / MANIFEST
    if not path.exists() and not recover_folder(path):
        raise DataError("does not exist", path=path)
    if not file.is_file():
        raise DataError(f"holds no {MANIFEST}, expected a folder written by gradrank", path=path)
    _inside(path, file)
    try:
        manifest = parse_json(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{MANIFEST} cannot be read: {error}", path=path) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{MANIFEST} is not one of {FORMAT}", path=path)
    if manifest.get("version") != VERSION:
        raise DataError(
            f"has format version {str(manifest.get('version'))[:40]}, this gradrank reads version {VERSION}", path=path
        )
    for key in ("features", "labels"):
        names = manifest.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(f"{MANIFEST} has no list of names as {key!r}", path=path)
        twice = first_repeated(names)
        if twice is not None:
            raise DataError(f"{MANIFEST} gives {twice!r} twice among its {key}", path=path)
    if not isinstance(manifest.get("arrays"), dict):
        raise DataError(f"{MANIFEST} has no table of arrays", path=path)
    return manifest


def open_arrays(path: Path, manifest: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Map the files that a manifest names: those of the format and no others."""
    labels = [f"label-{index}" for index in range(len(manifest["labels"]))]
    needed = ["X", "indptr", *labels, "qid.text", "qid.offsets"]
    known = {*needed, "weight", "document_weight", "docid.text", "docid.offsets"}
    entries = manifest["arrays"]
    strange = [name for name in entries if name not in known]
    if strange:
        raise DataError(f"{MANIFEST} names an array {strange[0][:60]!r}, which {FORMAT} does not have", path=path)
    if "docid.text" in entries or "docid.offsets" in entries:
        needed += ["docid.text", "docid.offsets"]
    missing = [name for name in needed if name not in entries]
    if missing:
        raise DataError(f"{MANIFEST} does not name the array {missing[0]!r}", path=path)
    return {name: _open_array(path, name, entry) for name, entry in entries.items()}


def _open_array(path: Path, name: str, entry: object) -> NDArray[Any]:
    file = path / f"{name}.bin"
    kind = "label" if name.startswith("label-") else name.rsplit(".", 1)[-1]
    shape = entry.get("shape") if isinstance(entry, dict) else None
    given = entry.get("dtype") if isinstance(entry, dict) else None
    if given not in _TYPES[kind]:
        raise DataError(
            f"{MANIFEST} says that {name!r} is of type {str(given)[:40]!r}, expected {' or '.join(_TYPES[kind])}",
            path=path,
        )
    dimensions = 2 if kind == "X" else 1
    if (
        not isinstance(shape, list)
        or len(shape) != dimensions
        or not all(type(length) is int and 0 <= length <= np.iinfo(np.int64).max for length in shape)
    ):
        raise DataError(
            f"{MANIFEST} gives {name!r} the shape {str(shape)[:40]}, expected {dimensions} whole numbers", path=path
        )
    dtype = np.dtype(given)
    expected = dtype.itemsize * math.prod(shape)  # Python's numbers do not wrap around
    _inside(path, file)
    try:
        with open(file, "rb", opener=_without_waiting) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DataError("is not an ordinary file", path=file)
            size = status.st_size
            if size != expected:
                raise DataError(f"has {size} bytes, expected {expected}: the file was cut off or changed", path=file)
            # A file of no bytes cannot be mapped.
            if size:
                return np.memmap(stream, dtype=dtype, mode="r", shape=tuple(shape))
            return np.empty(shape, dtype=dtype)
    except (OverflowError, MemoryError):
        raise DataError(f"{MANIFEST} gives {name!r} the shape {shape}, which no array has", path=path) from None
    except OSError as error:
        raise DataError(f"cannot be opened: {error.strerror or error}", path=file) from None


def _without_waiting(name: str, flags: int) -> int:
    # A pipe without a writer would be waited for.
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _inside(path: Path, file: Path) -> None:
    """A file that is a link to somewhere else is not the folder's own: what it shows, nobody meant to give."""
    try:
        elsewhere = file.is_symlink() and file.resolve().parent != path.resolve()
    except (OSError, RuntimeError):
        elsewhere = True
    if elsewhere:
        raise DataError("is a link to a place outside of its folder", path=file)


def open_strings(arrays: Mapping[str, NDArray[Any]], name: str, path: Path) -> Strings:
    """A column of strings, whose offsets are within its text."""
    text, offsets = np.asarray(arrays[f"{name}.text"]), np.asarray(arrays[f"{name}.offsets"])
    if len(offsets) == 0 or offsets[0] < 0 or offsets[-1] > len(text) or not _rises(offsets, strictly=False):
        raise DataError(f"the offsets of {name!r} do not lie within its text", path=path)
    return Strings(text, offsets)


def _rises(numbers: NDArray[np.int64], *, strictly: bool) -> bool:
    """Whether numbers rise; compared, not subtracted, which could wrap around."""
    left, right = numbers[:-1], numbers[1:]
    return bool((left < right if strictly else left <= right).all())


def check_arrays(data: RankingData, path: Path) -> None:
    """Refuse arrays that do not fit together, and labels and weights that are none."""
    n_docs, indptr = len(data.X), data.indptr
    rows = [len(column) for column in data.labels.values()]
    rows += [len(column) for column in (data.docid, data.document_weight) if column is not None]
    per_query = [len(column) for column in (data.qid, data.weight) if column is not None]
    whole = (
        len(indptr) > 1
        and indptr[0] == 0
        and indptr[-1] == n_docs
        and _rises(indptr, strictly=True)
        and all(length == n_docs for length in rows)
        and all(length == len(indptr) - 1 for length in per_query)
    )
    if not whole or (n_docs > _MOST_CLAIMED and not rows and not data.n_features):
        raise DataError("its files do not fit together: numbers of documents or queries differ", path=path)
    try:
        check_feature_names(data.feature_names, data.X.shape[1])
        for name, column in data.labels.items():
            check_label(name, column)
        if data.weight is not None:
            checked_query_weights(data.weight, data.n_queries)
        if data.document_weight is not None:
            checked_document_weights(data.document_weight, data.n_docs)
    except DataError as error:
        raise DataError(error.message, path=path) from None
