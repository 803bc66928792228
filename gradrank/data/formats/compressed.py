"""Reading and writing files that may be compressed: gzip, xz or Zstandard."""

from __future__ import annotations

import gzip
import io
import itertools
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import DataError
from gradrank.runtime.files import replacing

_MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00", ".zst": b"\x28\xb5\x2f\xfd"}
# Highly compressible data grows manyfold: little is decompressed at once.
_COMPRESSED_AT_ONCE = 1 << 18
_FORMAT_NAME = {".gz": "gzip", ".xz": "xz", ".zst": "Zstandard"}


def without_compression_suffix(path: str | Path) -> Path:
    """The path without ``.gz``, ``.xz`` or ``.zst``, if it ends so.

    >>> without_compression_suffix("train.txt.xz").name
    'train.txt'
    """
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in _MAGIC else path


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
            if not stat.S_ISREG(status.st_mode):
                return _decompressed(file.read(), path)  # a pipe can be neither mapped nor read twice
            head = file.read(8)
            if _compression(head, path) is not None:
                return _decompressed(head + file.read(), path)
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
    suffix = _compression(head, path)
    try:
        source = _Rejoined(head, file)
        if suffix == ".zst":
            yield from _unzstd_pieces(source, piece_bytes)
            return
        plain: Any = source
        if suffix == ".gz":
            plain = gzip.GzipFile(fileobj=cast(IO[bytes], source))
        elif suffix == ".xz":
            plain = lzma.LZMAFile(cast(IO[bytes], source))  # noqa: SIM115
        with plain:
            while piece := plain.read(piece_bytes):
                yield piece
    except (EOFError, OSError, zlib.error, lzma.LZMAError, _ZstdCorrupt) as error:
        if suffix is None:
            raise
        name = _FORMAT_NAME[suffix]
        raise DataError(f"the {name} data is cut short or corrupt: {error}", path=path) from None


class _Rejoined(io.RawIOBase):
    """A file whose first bytes were read already."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._head, self._file = head, file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            head, self._head = self._head, b""
            return head + self._file.read()
        head, self._head = self._head[:size], self._head[size:]
        return head + (self._file.read(size - len(head)) if len(head) < size else b"")


def _unzstd_pieces(source: _Rejoined, piece_bytes: int) -> Iterator[bytes]:
    import zstandard

    frame, begun = zstandard.ZstdDecompressor().decompressobj(), False
    while content := source.read(min(piece_bytes, _COMPRESSED_AT_ONCE)):
        while content:
            begun = True
            try:
                piece = frame.decompress(content)
            except zstandard.ZstdError as error:
                raise _ZstdCorrupt(str(error)) from None
            if piece:
                yield piece
            content = b""
            if frame.eof:
                content = frame.unused_data
                frame, begun = zstandard.ZstdDecompressor().decompressobj(), False
    if begun:
        raise _ZstdCorrupt("the last frame has no end")


@contextmanager
def open_for_writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file to write bytes, compressed if its name ends in ``.gz``, ``.xz`` or ``.zst``.

    The file appears under its name only when the block has ended well.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.txt.zst"
    >>> with open_for_writing(path) as file:
    ...     _ = file.write(b"text")
    >>> path.read_bytes()[:4] == _MAGIC[".zst"]
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
    for suffix, magic in _MAGIC.items():
        if head.startswith(magic):
            return suffix
    promised = path.suffix.lower()
    if promised in _MAGIC:
        raise DataError(f"is named {promised} but is not {_FORMAT_NAME[promised]} data", path=path)
    return None


def _decompressed(content: bytes, path: Path) -> NDArray[np.uint8]:
    suffix = _compression(content[:8], path)
    try:
        if suffix == ".gz":
            content = gzip.decompress(content)
        elif suffix == ".xz":
            content = lzma.decompress(content)
        elif suffix == ".zst":
            content = _unzstd(content)
    except (EOFError, OSError, zlib.error, lzma.LZMAError, _ZstdCorrupt) as error:
        name = _FORMAT_NAME[suffix or ".gz"]
        raise DataError(f"the {name} data is cut short or corrupt: {error}", path=path) from None
    except MemoryError:
        raise DataError("does not fit into memory when decompressed", path=path) from None
    return np.frombuffer(content, dtype=np.uint8)


class _ZstdCorrupt(Exception):
    """Zstandard data that does not decompress."""


def _unzstd(content: bytes) -> bytes:
    import zstandard

    parts = []
    while content:
        # zstandard's file reader takes a frame that is cut short for a whole one; this object tells.
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            parts.append(frame.decompress(content))
        except zstandard.ZstdError as error:
            raise _ZstdCorrupt(str(error)) from None
        if not frame.eof:
            raise _ZstdCorrupt("the last frame has no end")
        content = frame.unused_data
    return b"".join(parts)
