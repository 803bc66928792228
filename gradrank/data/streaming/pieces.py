"""Text in pieces that end behind a newline, from files, compressed files and pipes."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats.compressed import read_pieces
from gradrank.errors import DataError

_PIECE_BYTES = 1 << 23
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextPieces:
    """A text that is read piece by piece, several times if it is a file; a pipe is read once.

    Parameters
    ----------
    path
        The file, and the name of it in messages.
    pipe
        What is read instead, once.
    piece_bytes
        About how many bytes a piece has.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = path.write_text("one\\ntwo\\nthree")
    >>> [piece.tobytes() for piece in TextPieces(path, piece_bytes=5)]
    [b'one\\n', b'two\\n', b'three']
    """

    def __init__(self, path: Path, pipe: IO[bytes] | None = None, *, piece_bytes: int | None = None) -> None:
        self.path = path
        self._pipe = pipe
        self._piece_bytes = _PIECE_BYTES if piece_bytes is None else piece_bytes
        self._head: list[bytes] = []
        self._rest: Iterator[bytes] | None = None
        self.size: int | None = None
        """Bytes of the file as it lies on disk; None for a pipe."""
        self.read = 0
        """Bytes of it that were read so far in the pass that is under way."""
        if pipe is None:
            try:
                status = os.stat(path)
                if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                    self._pipe = path.open("rb")
                else:
                    self.size = status.st_size
            except FileNotFoundError:
                raise DataError("there is no such file", path=path) from None
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror or error}", path=path) from None

    @property
    def again(self) -> bool:
        """Whether the text can be read a second time."""
        return self._pipe is None

    def hold_head(self, most_bytes: int) -> bool:
        """Keep the first bytes of a pipe, so that they can be read twice; whether that is all there is.

        Then the pipe is as good as a file.
        """
        assert self._pipe is not None
        if self._rest is None:
            self._rest = read_pieces(self._pipe, self.path, self._piece_bytes)
        held = sum(map(len, self._head))
        for piece in self._rest:
            self._head.append(piece)
            held += len(piece)
            if held > most_bytes:
                return False
        self._pipe = None
        return True

    def head_alone(self) -> TextPieces:
        """The lines that are held of a pipe, as a text of its own."""
        head = b"".join(self._head)
        found = TextPieces(self.path, io.BytesIO())
        found._pipe = None
        found._head = [head[: head.rfind(b"\n") + 1]]
        found._rest = iter(())
        return found

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        self.read = 0
        rest = b""
        first = True
        for piece in self._raw():
            text = rest + piece
            if first:
                if len(text) < len(_BYTE_ORDER_MARK):
                    rest = text
                    continue
                text, first = text.removeprefix(_BYTE_ORDER_MARK), False
            end = text.rfind(b"\n") + 1
            rest = text[end:]
            if end:
                yield np.frombuffer(text, dtype=np.uint8, count=end)
        if rest:
            yield np.frombuffer(rest.removeprefix(_BYTE_ORDER_MARK) if first else rest, dtype=np.uint8)

    def _raw(self) -> Iterator[bytes]:
        if self._rest is not None:
            yield from self._head
            yield from self._rest
            return
        try:
            if self._pipe is not None:
                yield from read_pieces(self._pipe, self.path, self._piece_bytes)
                return
            with self.path.open("rb") as file:
                for piece in read_pieces(file, self.path, self._piece_bytes):
                    self.read = file.tell()
                    yield piece
        except IsADirectoryError:
            raise DataError("is a folder, expected a file", path=self.path) from None
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}", path=self.path) from None
