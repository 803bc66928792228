"""Reading and writing files that may be compressed: gzip, xz or Zstandard."""

from __future__ import annotations

import gzip
import itertools
import lzma
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.unpacking import FORMAT_NAME, MAGIC, unpacked
from gradrank.errors import DataError
from gradrank.runtime.files import replacing
from gradrank.runtime.memory import memory_limit

_PIECE_BYTES = 1 << 20


def without_compression_suffix(path: str | Path) -> Path:
    """The path without ``.gz``, ``.xz`` or ``.zst``, if it ends so.

    >>> without_compression_suffix("train.txt.xz").name
    'train.txt'
    """
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in MAGIC else path


def read_bytes(path: str | Path) -> NDArray[np.uint8]:
    """The content of a file as bytes, decompressed if it is compressed; read-only.

    An ordinary file is mapped into memory, not copied. Compression is known by the first bytes
    of the file; a name that promises compressed content where there is none is an error.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.gz"
    >>> with open_for_writing(path) as file:
    ...     _ = file.write(b"text")
    >>> read_bytes(path).tobytes()
    b'text'
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            head = file.read(8)
            # A pipe can be neither mapped nor read twice.
            if _compression(head, path) is not None or not stat.S_ISREG(status.st_mode):
                return _held(_Rejoined(head, file), path)
            if status.st_size == 0:
                return np.frombuffer(b"", dtype=np.uint8)
            return np.memmap(file, dtype=np.uint8, mode="r").view(np.ndarray)
    except IsADirectoryError:
        raise DataError("is a folder, expected a file", path=path) from None
    except FileNotFoundError:
        raise DataError("there is no such file", path=path) from None
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from None


def read_head(path: str | Path, count: int) -> bytes:
    """The first bytes of a file's content, decompressed if it is compressed; of a pipe none, for they would be lost.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.gz"
    >>> _ = path.write_bytes(gzip.compress(b"text"))
    >>> read_head(path, 2)
    b'te'
    """
    path = Path(path)
    if not path.is_file():
        return b"" if path.exists() and not path.is_dir() else read_bytes(path)[:count].tobytes()
    try:
        with path.open("rb") as file:
            return b"".join(itertools.islice(read_pieces(file, path, count), 1))[:count]
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path=path) from None


def read_pieces(file: IO[bytes], path: Path, piece_bytes: int = 1 << 23) -> Iterator[bytes]:
    """The content of an open file in pieces, decompressed if it is compressed; no more than a piece is held.

    >>> import io
    >>> list(read_pieces(io.BytesIO(gzip.compress(b"text")), Path("a.gz"), 2))
    [b'te', b'xt']
    """
    head = file.read(8)
    suffix, source = _compression(head, path), _Rejoined(head, file)
    if suffix is not None:
        yield from unpacked(source.read, suffix, path, piece_bytes)
        return
    while piece := source.read(piece_bytes):
        yield piece


class _Rejoined:
    """A file whose first bytes were read already."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self.head = head
        self._head, self._file = head, file

    def read(self, size: int) -> bytes:
        """The next bytes, at most so many; none at the end."""
        head, self._head = self._head[:size], self._head[size:]
        return head + (self._file.read(size - len(head)) if len(head) < size else b"")


def _held(source: _Rejoined, path: Path) -> NDArray[np.uint8]:
    """All content of a source, decompressed if it is compressed."""
    suffix, limit = _compression(source.head, path), memory_limit()
    content = bytearray()
    pieces = iter(lambda: source.read(_PIECE_BYTES), b"") if suffix is None else unpacked(source.read, suffix, path)
    try:
        for piece in pieces:
            content += piece
            if limit is not None and len(content) > limit:
                raise MemoryError
    except MemoryError:
        content.clear()
        raise DataError(
            "does not fit into memory" + (" when decompressed" if suffix is not None else ""), path=path
        ) from None
    result = np.frombuffer(content, dtype=np.uint8)
    result.flags.writeable = False
    return result


@contextmanager
def open_for_writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file to write bytes, compressed if its name ends in ``.gz``, ``.xz`` or ``.zst``.

    The file appears under its name only when the block has ended well.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.txt.zst"
    >>> with open_for_writing(path) as file:
    ...     _ = file.write(b"text")
    >>> path.read_bytes()[:4] == MAGIC[".zst"]
    True
    """
    path = Path(path)
    with replacing(path) as temporary:
        try:
            with ExitStack() as stack:
                plain = stack.enter_context(temporary.open("wb"))
                yield stack.enter_context(_compressor(plain, path.suffix.lower()))
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror or error}", path=path) from None


def _compressor(file: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        # No name and no time inside, so that equal content gives equal files.
        return cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6))
    if suffix == ".xz":
        return cast(IO[bytes], lzma.LZMAFile(file, "wb"))
    if suffix == ".zst":
        import zstandard

        writer: Any = zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)
        return cast(IO[bytes], writer)
    return file


def _compression(head: bytes, path: Path) -> str | None:
    """The compression of a file by its first bytes, as a suffix."""
    for suffix, magic in MAGIC.items():
        if head.startswith(magic):
            return suffix
    promised = path.suffix.lower()
    if promised in MAGIC:
        raise DataError(f"is named {promised} but is not {FORMAT_NAME[promised]} data", path=path)
    return None
