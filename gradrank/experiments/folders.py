"""Reading an experiment's data from a folder: train, vali and test files, or LETOR's parts and folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from gradrank.data.formats.compressed import without_compression_suffix
from gradrank.data.formats.registry import read_data
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import letor_folds
from gradrank.errors import DataError


class Fold(NamedTuple):
    """The three sets of one fold."""

    train: RankingData
    valid: RankingData
    test: RankingData


_NAMES = {"train": ("train",), "vali": ("vali", "valid", "validation", "dev"), "test": ("test",)}


Reader = Callable[[Path], RankingData]


def read_splits(folder: str | Path, read: Reader = read_data) -> dict[str, RankingData]:
    """Data sets ``train``, ``vali`` and ``test`` of a folder that holds files of these names."""
    folder = _checked(folder)
    files = _files(folder)
    if not any(name in files for name in _NAMES["train"]) and _has_folds(folder, files):
        # A recipe of one split takes the first fold.
        return dict(zip(_NAMES, read_folds(folder, read, most=1)[0], strict=True))
    sets = {}
    for key, names in _NAMES.items():
        found = next((files[name] for name in names if name in files), None)
        if found is None:
            raise DataError(f"holds no file {' or '.join(names)}, expected train, vali and test", path=folder)
        sets[key] = read(found)
    return sets


def label_files_of(file: Path, patterns: Mapping[str, str]) -> dict[str, Path]:
    """The files of further labels that belong to a data file, from patterns in which ``*`` stands for its name.

    Patterns are taken from the folder of the data file, so that those of parts and folds are found alike.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.clicks.txt").write_text("3")
    >>> label_files_of(folder / "train.txt.xz", {"clicks": "*.clicks.txt"})["clicks"].name
    'train.clicks.txt'
    """
    stem = without_compression_suffix(file).stem
    found = {}
    for name, pattern in patterns.items():
        if "*" not in pattern:
            raise DataError(
                f"the files of label {name!r} are {pattern!r}, expected a * in the place of the data file's name"
            )
        found[name] = file.parent / pattern.replace("*", stem)
        if not found[name].is_file():
            raise DataError(f"is not there; it should hold the label {name!r} of {file}", path=found[name])
    return found


def _has_folds(folder: Path, files: dict[str, Path]) -> bool:
    return "s1" in files or any(path.is_dir() and path.name.lower().startswith("fold") for path in folder.iterdir())


def read_folds(folder: str | Path, read: Reader = read_data, *, most: int | None = None) -> list[Fold]:
    """The folds of a folder: LETOR's parts ``S1`` … ``S5``, folders ``Fold1`` …, or train, vali and test files."""
    folder = _checked(folder)
    files = _files(folder)
    parts = [files[name] for name in (f"s{number}" for number in range(1, 11)) if name in files]
    if len(parts) >= 3:
        return [Fold(*sets) for sets in letor_folds([read(part) for part in parts])][:most]
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and path.name.lower().startswith("fold"))
    if not inner and not files:
        raise DataError(
            "holds no data, expected parts S1 … S5, folders Fold1 … or train, vali, test files", path=folder
        )
    splits = [read_splits(path, read) for path in (inner or [folder])[:most]]
    return [Fold(sets["train"], sets["vali"], sets["test"]) for sets in splits]


def _checked(folder: str | Path) -> Path:
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError("is no folder", path=folder)
    return folder


def _files(folder: Path) -> dict[str, Path]:
    """Files by their names without suffixes, in lower case."""
    return {without_compression_suffix(path).stem.lower(): path for path in sorted(folder.iterdir()) if path.is_file()}
