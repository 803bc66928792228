"""Data at addresses that Arrow can read, such as ``s3://bucket/train``: what is there, and a local copy of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from gradrank.data.formats.binary_layout import MANIFEST
from gradrank.data.formats.compressed import without_compression_suffix
from gradrank.data.formats.file_formats import FORMATS
from gradrank.errors import DataError, MissingExtraError

_SUFFIXES = tuple(suffix for form in FORMATS for suffix in form.suffixes)
# Options of the file system, such as ?region=eu-central-1; a ? in a pattern stands for a letter.
_OPTIONS = re.compile(r"\?\w+=[^?]*$")
_BLOCK = 1 << 24


def list_address(address: str) -> list[tuple[str, int]]:
    """The data files at an address, in order of their names, with their sizes in bytes.

    Parameters
    ----------
    address
        A file, a folder or a pattern; options of the file system may follow, as in ``s3://bucket/train?region=eu-west-1``.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("xy"), (folder / "_done").write_text("")
    >>> [(path.removeprefix(f"file://{folder}"), size) for path, size in list_address(f"file://{folder}")]
    [('/a.txt', 2)]
    """
    from pyarrow import fs

    options = _options(address)
    bare = address.removesuffix(options)
    # The part before the first * is a folder that can be listed.
    star = next((at for at, letter in enumerate(bare) if letter in "*?["), None)
    base = bare if star is None else bare[:star].rpartition("/")[0]
    system, place = _file_system(base + options)
    try:
        info = system.get_file_info(place)
        if info.type == fs.FileType.File:
            entries = [info]
        else:
            entries = [item for item in system.get_file_info(fs.FileSelector(place, recursive=True)) if item.is_file]
    except FileNotFoundError:
        entries = []
    except OSError as error:
        raise DataError(f"cannot be listed: {error}", path=address) from None
    files = _wholes([(item.path, item.size or 0) for item in entries])
    if star is None:
        found = [(path, size) for path, size in files if is_data(PurePosixPath(path)) or path == place]
    else:
        wanted = place + bare[len(base) :]
        found = [(path, size) for path, size in files if fnmatchcase(path, wanted)]
    if not found:
        raise DataError("there is no such file", path=address)
    start = f"{urlsplit(address).scheme}://"
    return [(f"{start}{path}{options}", size) for path, size in sorted(found)]


def fetch(address: str, folder: Path) -> Path:
    """A local copy of a file, or of data in our own form, which is a folder."""
    from pyarrow import fs

    system, place = _file_system(address)
    local = folder / PurePosixPath(place).name
    try:
        if system.get_file_info(place).type != fs.FileType.Directory:
            _copy(system, place, local)
        else:
            local.mkdir()
            for item in system.get_file_info(fs.FileSelector(place)):
                _copy(system, item.path, local / item.base_name)
    except OSError as error:
        raise DataError(f"cannot be read: {error}", path=address) from None
    return local


def is_data(path: PurePath) -> bool:
    """Whether a file is data by its name.

    >>> is_data(Path("part-1.txt.gz")), is_data(Path("_SUCCESS")), is_data(Path("readme.md"))
    (True, False, False)
    """
    if path.name.startswith((".", "_")):
        return False
    return without_compression_suffix(Path(path)).suffix.lower() in _SUFFIXES


def _options(address: str) -> str:
    found = _OPTIONS.search(address)
    return found[0] if found else ""


def _wholes(entries: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Files, where those of our own form count as one; without what is hidden."""
    own = {path.rpartition("/")[0] for path, _ in entries if path.endswith(f"/{MANIFEST}")}
    found: dict[str, int] = {}
    for path, size in entries:
        parent = path.rpartition("/")[0]
        whole = parent if parent in own else path
        if not any(part.startswith((".", "_")) for part in PurePosixPath(whole).parts):
            found[whole] = found.get(whole, 0) + size
    return list(found.items())


def _copy(system: Any, place: str, local: Path) -> None:
    with system.open_input_stream(place) as source, open(local, "wb") as target:
        while block := source.read(_BLOCK):
            target.write(block)


def _file_system(address: str) -> tuple[Any, str]:
    try:
        from pyarrow import fs
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    parts = urlsplit(address)
    if parts.password is not None:
        shown = address.replace(f"{parts.username}:{parts.password}@", "")
        raise DataError(
            "was given with a password, which errors and logs would show: give it by the environment, as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            path=shown,
        )
    try:
        system, place = fs.FileSystem.from_uri(address)
    except (OSError, ValueError) as error:
        raise DataError(f"is no address that can be read: {error}", path=address) from None
    return system, place
