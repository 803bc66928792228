"""Unpacking gzip, xz and Zstandard in small pieces, so that a small file cannot fill the memory.

What grows out of all proportion is refused: text of numbers shrinks to a tenth or a hundredth, while a few bytes of
Zstandard can stand for megabytes of nothing. The environment variable ``GRADRANK_MAX_EXPANSION`` sets another limit.
"""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gradrank.errors import DataError

MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00", ".zst": b"\x28\xb5\x2f\xfd"}
FORMAT_NAME = {".gz": "gzip", ".xz": "xz", ".zst": "Zstandard"}
MAX_EXPANSION = "GRADRANK_MAX_EXPANSION"
"""Environment variable: how many bytes one compressed byte may stand for."""

_MOST_BYTES_PER_BYTE = 1000
_ALWAYS_ALLOWED = 1 << 26
# Zstandard gives all that some bytes stand for at once, 32,768 for each at worst.
_FED_AT_ONCE = 1 << 11
_READ_AT_ONCE = 1 << 18
_MOST_AT_ONCE = 1 << 20
# xz says itself how much memory it needs; its strongest preset takes 65 MB.
_XZ_MEMORY = 1 << 29

Read = Callable[[int], bytes]
Corrupt = (EOFError, zlib.error, lzma.LZMAError)


class ZstdCorrupt(EOFError):
    """Zstandard data that does not decompress."""


def unpacked(read: Read, suffix: str, path: Path, piece_bytes: int = _MOST_AT_ONCE) -> Iterator[bytes]:
    """The content of compressed data, in pieces of about ``piece_bytes``.

    Parameters
    ----------
    read
        Gives the next compressed bytes, at most so many; none at the end.
    suffix
        The compression: ``.gz``, ``.xz`` or ``.zst``.
    path
        What errors name.
    piece_bytes
        How long pieces are; a piece may be longer by what is unpacked at once.

    >>> import gzip, io
    >>> list(unpacked(io.BytesIO(gzip.compress(b"text")).read, ".gz", Path("a.gz"), 2))
    [b'te', b'xt']
    """
    most = _most_bytes_per_byte()
    waiting, n_waiting, produced = [], 0, 0
    packed = _Packed(read)
    try:
        for part in _PARTS[suffix](packed, min(piece_bytes, _MOST_AT_ONCE)):
            produced += len(part)
            if produced > max(_ALWAYS_ALLOWED, most * packed.taken):
                raise DataError(
                    f"unpacks to more than {most:,} times its size, which data does not; if it is meant, set the "
                    f"environment variable {MAX_EXPANSION} to a larger number",
                    path=path,
                )
            waiting.append(part)
            n_waiting += len(part)
            if n_waiting >= piece_bytes:
                yield b"".join(waiting)
                waiting, n_waiting = [], 0
    except Corrupt as error:
        raise DataError(f"the {FORMAT_NAME[suffix]} data is cut short or corrupt: {error}", path=path) from None
    if waiting:
        yield b"".join(waiting)


def _most_bytes_per_byte() -> int:
    given = os.environ.get(MAX_EXPANSION, "").strip()
    if not given:
        return _MOST_BYTES_PER_BYTE
    if not given.isdecimal() or int(given) < 1:
        raise DataError(f"{MAX_EXPANSION} is {given[:40]!r}, expected a whole number of 1 or more")
    return int(given)


class _Packed:
    """Compressed bytes, which can be given back."""

    def __init__(self, read: Read) -> None:
        self._read, self._held, self._place = read, b"", 0
        self.taken = 0

    def next(self) -> bytes:
        """A few bytes more; none at the end."""
        if self._place >= len(self._held):
            self._held, self._place = self._read(_READ_AT_ONCE), 0
        part = self._held[self._place : self._place + _FED_AT_ONCE]
        self._place += len(part)
        self.taken += len(part)
        return part

    def give_back(self, part: bytes) -> None:
        """The last bytes of what :meth:`next` gave are read once more."""
        self._place -= len(part)
        self.taken -= len(part)

    def next_stream(self) -> bool:
        """Whether anything but padding comes."""
        while part := self.next():
            rest = part.lstrip(b"\0")
            if rest:
                self.give_back(rest)
                return True
        return False


def _gzip_parts(packed: _Packed, most: int) -> Iterator[bytes]:
    while packed.next_stream():
        yield from _bounded(zlib.decompressobj(wbits=31), packed, most)


def _xz_parts(packed: _Packed, most: int) -> Iterator[bytes]:
    while packed.next_stream():
        yield from _bounded(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY), packed, most)


def _bounded(stream: Any, packed: _Packed, most: int) -> Iterator[bytes]:
    """The parts of one stream of an unpacker that can be told how much to give at once."""
    while not stream.eof:
        # What was fed but not unpacked, zlib gives back and xz keeps.
        fed = getattr(stream, "unconsumed_tail", b"")
        if not fed and getattr(stream, "needs_input", True):
            fed = packed.next()
            if not fed:
                # zlib may still hold the end of what it was fed.
                part = stream.decompress(b"", most)
                if part:
                    yield part
                    continue
                if stream.eof:
                    break
                raise EOFError("it ends before its end was marked")
        yield stream.decompress(fed, most)
    packed.give_back(stream.unused_data)


def _zstd_parts(packed: _Packed, most: int) -> Iterator[bytes]:
    import zstandard

    unpacker = zstandard.ZstdDecompressor()
    frame: Any = None
    while fed := packed.next():
        frame = unpacker.decompressobj() if frame is None else frame
        try:
            # zstandard's file reader takes a frame that is cut short for a whole one; this object tells.
            part = frame.decompress(fed)
        except zstandard.ZstdError as error:
            raise ZstdCorrupt(str(error)) from None
        if part:
            yield part
        if frame.eof:
            packed.give_back(frame.unused_data)
            frame = None
    if frame is not None:
        raise ZstdCorrupt("the last frame has no end")


_PARTS = {".gz": _gzip_parts, ".xz": _xz_parts, ".zst": _zstd_parts}
