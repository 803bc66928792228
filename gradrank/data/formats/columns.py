"""Files with one number per line: scores, labels, weights, group sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.formats.compressed import open_for_writing, read_bytes
from gradrank.errors import DataError

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_NAN = re.compile(rb"[+-]?nan\Z", re.IGNORECASE)
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?\Z", re.IGNORECASE)
# Without any other character, Python reads exactly the numbers of this format.
_PLAIN = b"0123456789+-.eEnaifNAIFtyTY \t\r\n"
_LONGEST_SHOWN = 40
_LINES_AT_ONCE = 1 << 16


def read_column(
    path: str | Path,
    *,
    expected: int | None = None,
    missing: bool = False,
    allow_neg_inf: bool = False,
    what: str = "scores",
) -> NDArray[np.float64]:
    """Read one number per line, from plain or compressed text.

    Parameters
    ----------
    path
        The file.
    expected
        How many numbers there must be.
    missing
        Take ``nan`` and empty lines as missing (NaN), instead of refusing them. Without it, empty lines at the end of
        the file are ignored.
    allow_neg_inf
        Take ``-inf``, as scores of documents to be ranked last may be.
    what
        What the numbers are, for messages.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "scores.txt"
    >>> write_column([0.5, 2.0], path)
    >>> read_column(path, expected=2).tolist()
    [0.5, 2.0]
    """
    content = read_bytes(path).tobytes().removeprefix(b"\xef\xbb\xbf")
    lines = content.split(b"\n")
    if lines[-1].strip(b" \t\r") == b"":
        lines.pop()
    if not missing:
        while lines and lines[-1].strip(b" \t\r") == b"":
            lines.pop()
    elif b"" in lines or b"\r" in lines:
        lines = [line.strip(b" \t\r") or b"nan" for line in lines]
    values = None if content.translate(None, _PLAIN) else _all_numbers(lines)
    if values is None:
        doubtful = list(range(len(lines)))
        values = np.empty(len(lines))
    else:
        doubtful = np.flatnonzero(np.isinf(values) if missing else ~np.isfinite(values)).tolist()
    for number in doubtful:
        values[number] = _number(lines[number], number + 1, path, missing, allow_neg_inf, what)
    if expected is not None and len(values) != expected:
        raise DataError(f"holds {len(values)} {what}, expected {expected}", path=path)
    if len(values) == 0 and expected is None:
        raise DataError(f"holds no {what}", path=path)
    return values


def _all_numbers(lines: list[bytes]) -> NDArray[np.float64] | None:
    try:
        return np.fromiter(map(float, lines), dtype=np.float64, count=len(lines))
    except ValueError:
        return None


def _number(line: bytes, number: int, path: str | Path, missing: bool, allow_neg_inf: bool, what: str) -> float:
    token = line.strip(b" \t\r")
    if _NUMBER.match(token):
        value = float(token)
        if np.isinf(value):
            raise DataError(f"{_shown(token)} in the {what} is too large", path=path, line=number)
        return value
    if token == b"" or _NAN.match(token):
        if missing:
            return np.nan
        found = "an empty line" if token == b"" else _shown(token)
        raise DataError(f"found {found} in the {what}, expected a number", path=path, line=number)
    if _INFINITE.match(token):
        if allow_neg_inf and token.startswith(b"-"):
            return -np.inf
        raise DataError(f"found {_shown(token)} in the {what}, expected a finite number", path=path, line=number)
    raise DataError(f"found {_shown(token)} in the {what}, expected one number per line", path=path, line=number)


def _shown(token: bytes) -> str:
    characters = token.decode(errors="replace")
    return repr(characters[:_LONGEST_SHOWN] + ("…" if len(characters) > _LONGEST_SHOWN else ""))


def write_column(values: ArrayLike, path: str | Path) -> None:
    """Write one number per line, each as short as reads back exactly.

    Parameters
    ----------
    values
        The numbers.
    path
        The file; compressed if its name ends in ``.gz``, ``.xz`` or ``.zst``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "scores.txt"
    >>> write_column([0.1, float("nan")], path)
    >>> path.read_text()
    '0.1\\nnan\\n'
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise DataError(f"a column has one dimension, not {numbers.ndim}", path=path)
    starts = range(0, len(numbers), _LINES_AT_ONCE)
    write_column_blocks((numbers[start : start + _LINES_AT_ONCE] for start in starts), path)


def write_column_blocks(blocks: Iterable[NDArray[np.float64]], path: str | Path) -> None:
    """Write one number per line, given in blocks; the file appears when all of them are written.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "scores.txt"
    >>> write_column_blocks([np.array([0.5]), np.array([2.0])], path)
    >>> path.read_text()
    '0.5\\n2.0\\n'
    """
    with open_for_writing(path) as file:
        for block in blocks:
            file.write(column_lines(block).encode())


def column_lines(numbers: NDArray[np.float64]) -> str:
    """One number per line, each as short as reads back exactly.

    >>> column_lines(np.array([0.1, 2.0]))
    '0.1\\n2.0\\n'
    """
    return "\n".join([*map(repr, numbers.tolist()), ""])
