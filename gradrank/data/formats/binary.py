"""Our own folder of arrays, ``NAME.gradrank``: opened at once, whatever its size.

==================  ==========================================================================
``manifest.json``   format name and version, sizes, names, and each file's type and shape
``X.bin``           features, float32 or float64, row by row; opened as a memory map
``indptr.bin``      query boundaries, int64
``label-N.bin``     label column ``N``, float32
``weight.bin``      query weights, float64, if any
``document_weight.bin``  document weights, float64, if any
``qid.*.bin``       query ids: UTF-8 text (``text``) and the int64 offsets into it (``offsets``)
``docid.*.bin``     document ids likewise, if any
==================  ==========================================================================

All numbers are little-endian without headers. The folder appears whole or not at all, and a file that
was cut off later is noticed by its size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from gradrank.data.formats.array_file import ArrayFile
from gradrank.data.formats.binary_layout import (
    FORMAT,
    MANIFEST,
    VERSION,
    check_arrays,
    open_arrays,
    open_strings,
    read_manifest,
)
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import check_joinable
from gradrank.errors import DataError
from gradrank.runtime.files import replacing_folder


def write_binary(data: RankingData, path: str | Path) -> None:
    """Write data as a folder; a memory-mapped ``X`` is copied by blocks, never held whole.

    Parameters
    ----------
    data
        What to write.
    path
        The folder; it appears only when it is complete.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.gradrank"
    >>> write_binary(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"]), path)
    >>> sorted(file.name for file in path.iterdir())[:3]
    ['X.bin', 'indptr.bin', 'label-0.bin']
    """
    write_binary_blocks([data], path)


def write_binary_blocks(blocks: Iterable[RankingData], path: str | Path) -> None:
    """Write data larger than memory, given as blocks of whole queries, one block at a time.

    All blocks have the same features and labels, and no query comes in two of them. Features are float64 in the file if
    they are so in one of the blocks.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.gradrank"
    >>> blocks = (RankingData.from_arrays([[float(i)], [0.5]], [0, 1], qid=[i, i]) for i in range(3))
    >>> write_binary_blocks(blocks, path)
    >>> open_binary(path)
    RankingData(3 queries, 6 documents, 1 features, labels: label)
    """
    path = Path(path)
    with new_folder(path) as folder:
        _write_folder(blocks, folder, path)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of ``path`` when it is complete; other files there are not lost."""
    if path.is_dir() and not (path / MANIFEST).exists() and any(path.iterdir()):
        raise DataError("is a folder of other files, which would be lost", path=path)
    with replacing_folder(path) as folder:
        try:
            yield folder
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror or error}", path=path) from None


def open_binary(path: str | Path) -> RankingData:
    """Open a folder written by :func:`write_binary`; ``X``, labels and ids are read-only memory maps.

    Parameters
    ----------
    path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.gradrank"
    >>> write_binary(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"]), path)
    >>> data = open_binary(path)
    >>> type(data.X).__name__, data.label().tolist()
    ('memmap', [0.0, 1.0])
    """
    path = Path(path)
    manifest = read_manifest(path)
    arrays = open_arrays(path, manifest)
    data = RankingData(
        X=arrays["X"],
        indptr=np.array(arrays["indptr"]),
        labels={label: np.asarray(arrays[f"label-{index}"]) for index, label in enumerate(manifest["labels"])},
        qid=open_strings(arrays, "qid", path),
        docid=open_strings(arrays, "docid", path) if "docid.text" in arrays else None,
        weight=np.asarray(arrays["weight"]) if "weight" in arrays else None,
        document_weight=np.asarray(arrays["document_weight"]) if "document_weight" in arrays else None,
        feature_names=tuple(manifest["features"]),
    )
    check_arrays(data, path)
    return data


# ---------------------------------------------------------------------- writing
def _write_folder(blocks: Iterable[RankingData], folder: Path, path: Path) -> None:
    first: RankingData | None = None
    files: dict[str, ArrayFile] = {}
    seen: set[str] = set()
    try:
        for number, block in enumerate(blocks, start=1):
            if first is None:
                first = block.take_queries([0])  # all that is compared; the block itself may go
                files = _create_files(block, folder)
            check_joinable(first, block, f"block {number}", seen)
            _append_block(files, first, block)
        if first is None:
            raise DataError("there are no documents to write", path=path)
    finally:
        # On a full disk closing fails, too; the other files must be closed all the same.
        with ExitStack() as closing:
            for file in files.values():
                closing.callback(file.close)
    write_manifest(folder, list(first.feature_names), list(first.labels), files)


def write_manifest(folder: Path, features: list[str], labels: list[str], files: Mapping[str, ArrayFile]) -> None:
    """Write what the files of a folder are."""
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "queries": files["qid.offsets"].length - 1,
        "documents": files["X"].length,
        "features": features,
        "labels": labels,
        "arrays": {name: file.entry() for name, file in files.items()},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _create_files(block: RankingData, folder: Path) -> dict[str, ArrayFile]:
    files = [ArrayFile(folder, "X", _feature_type(block), (block.n_features,)), ArrayFile(folder, "indptr", "<i8")]
    files += [ArrayFile(folder, f"label-{index}", "<f4") for index in range(len(block.labels))]
    if block.weight is not None:
        files.append(ArrayFile(folder, "weight", "<f8"))
    if block.document_weight is not None:
        files.append(ArrayFile(folder, "document_weight", "<f8"))
    for name in ("qid", "docid") if block.docid is not None else ("qid",):
        files += [ArrayFile(folder, f"{name}.text", "|u1"), ArrayFile(folder, f"{name}.offsets", "<i8")]
    result = {file.name: file for file in files}
    for name in ("indptr", "qid.offsets", "docid.offsets"):
        if name in result:
            result[name].append(np.zeros(1, dtype=np.int64))
    return result


def _feature_type(block: RankingData) -> str:
    return "<f8" if block.X.dtype == np.float64 else "<f4"


def _append_block(files: Mapping[str, ArrayFile], first: RankingData, block: RankingData) -> None:
    files["indptr"].append(block.indptr[1:] + files["X"].length)
    if np.dtype(_feature_type(block)).itemsize > files["X"].dtype.itemsize:
        files["X"].widen(_feature_type(block))
    files["X"].append(block.X)
    for index, name in enumerate(first.labels):
        files[f"label-{index}"].append(block.labels[name])
    if block.weight is not None:
        files["weight"].append(block.weight)
    if block.document_weight is not None:
        files["document_weight"].append(block.document_weight)
    for name, strings in (("qid", block.qid), ("docid", block.docid)):
        if strings is not None:
            start = strings.offsets[0]
            files[f"{name}.offsets"].append(strings.offsets[1:] - start + files[f"{name}.text"].length)
            files[f"{name}.text"].append(strings.buffer[start : strings.offsets[-1]])
