"""Reading and writing ranking data in the format that a file's name tells."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gradrank.data.formats.columns import read_column
from gradrank.data.formats.compressed import read_head, without_compression_suffix
from gradrank.data.formats.file_formats import FORMATS as FORMATS
from gradrank.data.formats.file_formats import LETOR as LETOR
from gradrank.data.formats.file_formats import FileFormat
from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.runtime.suggestions import did_you_mean


def format_of(path: str | Path) -> FileFormat:
    """The format of a file by the ending of its name; an unknown ending is an error.

    >>> format_of("train.txt.xz").name, format_of("MSLR.parquet").name
    ('letor', 'parquet')
    """
    found = _by_suffix(Path(path))
    if found is None:
        endings = ", ".join(suffix for form in FORMATS for suffix in form.suffixes)
        raise DataError(f"has no known ending; known are {endings}; or name the format", path=path)
    return found


def read_data(
    path: str | Path,
    *,
    format: str | None = None,
    label_files: Mapping[str, str | Path] | None = None,
    **options: Any,
) -> RankingData:
    """Read ranking data in any format, known by the ending of the file's name or given by name.

    Parameters
    ----------
    path
        The file; a text file without a known ending (``rank.train``, ``train``) is read as LETOR.
    format
        Name of the format (``letor``, ``parquet``, ``arrow``, ``csv``, ``binary``), if the ending does not tell.
    label_files
        Further label sources: for each name a file of one number per line, in the order of the data file's rows, where
        a blank line or ``nan`` is an unjudged document; a label of that name in the data is replaced.
    options
        Options of the format's reader: ``missing``, ``zero_based``, ``group_file``, ``n_features`` … of
        :func:`~gradrank.data.formats.letor.read_letor`; ``qid``, ``labels``, ``features``, ``ignore`` … of tables, as
        :func:`~gradrank.data.frames.from_frame` has them.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "clicks.txt").write_text("3\\n\\n")
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> write_data(data, folder / "train.gradrank")
    >>> data = read_data(folder / "train.gradrank", label_files={"clicks": folder / "clicks.txt"})
    >>> data.label("clicks").tolist()
    [3.0, nan]
    """
    path = Path(path)
    form = format_to_read(path, format)
    reader = form.function(form.read)
    _check_options(form, [option.name for option in form.options] + _exempt(reader), options, "reading")
    data: RankingData = reader(path, **options)
    return with_label_files(data, label_files or {})


def with_label_files(data: RankingData, files: Mapping[str, str | Path]) -> RankingData:
    """The data with further label sources, each from a file of one number per line in the order of the input's rows."""
    for name, file in files.items():
        values = read_column(file, expected=data.n_docs, missing=True, what=f"{name} labels")
        data = data.with_label(name, data.from_input_order(values))
    return data


@takes_frames("data")
def write_data(data: RankingData, path: str | Path, *, format: str | None = None, **options: Any) -> None:
    """Write ranking data in the format that the ending of the name tells, or in the one named.

    Parameters
    ----------
    data
        The data.
    path
        The file; it appears only when it is complete.
    format
        Name of the format, if the ending does not tell.
    options
        Options of the format's writer: ``label`` (LETOR text: which label column), ``delimiter`` (CSV).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.gradrank"
    >>> write_data(RankingData.from_arrays([[1.0]], [0], qid=["a"]), path)
    >>> read_data(path)
    RankingData(1 queries, 1 documents, 1 features, labels: label)
    """
    form = _named(format) if format is not None else format_of(path)
    writer = form.function(form.write)
    _check_options(form, _keywords(writer), options, "writing")
    writer(data, path, **options)


def _by_suffix(path: Path) -> FileFormat | None:
    plain = without_compression_suffix(path)
    for form in FORMATS:
        if plain.suffix.lower() in form.suffixes and (form.compressed or plain == path):
            return form
    return None


def format_to_read(path: str | Path, format: str | None = None) -> FileFormat:
    """The format of a file that is there: the one named, or by its ending, or LETOR for any other text.

    >>> format_to_read("rank.train", "csv").name
    'csv'
    """
    path = Path(path)
    if format is not None:
        return _named(format)
    if not path.exists():
        raise DataError("there is no such file", path=path)
    found = _by_suffix(path)
    if found is None and path.is_file() and _looks_like_text(path):
        return LETOR
    return found or format_of(path)


def _looks_like_text(path: Path) -> bool:
    return b"\0" not in read_head(path, 4096)


def _named(name: str) -> FileFormat:
    for form in FORMATS:
        if form.name == name:
            return form
    raise DataError(f"there is no format {name!r}; there are {', '.join(form.name for form in FORMATS)}")


def _check_options(form: FileFormat, known: Iterable[str], options: Mapping[str, Any], doing: str) -> None:
    known = list(known)
    for option in options:
        if option not in known:
            taken = f"takes {', '.join(known)}" if known else "takes no options"
            hint = did_you_mean(option, known)
            raise DataError(f"{doing} the format {form.name} does not take the option {option!r}; it {taken}{hint}")


def _keywords(function: Any) -> list[str]:
    """Names of the keyword arguments that a reader or writer takes."""
    parameters = inspect.signature(function).parameters.values()
    return [item.name for item in parameters if item.kind is item.KEYWORD_ONLY and not item.name.startswith("_")]


def _exempt(reader: Any) -> list[str]:
    """Arguments that have nothing to do with the format, and no option of their own on the command line."""
    return [name for name in ("n_jobs",) if name in _keywords(reader)]
