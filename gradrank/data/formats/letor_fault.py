"""What is said about a fault in LETOR text: file, line, what was found, what was expected."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gradrank.data.formats import letor_kernel as kernel
from gradrank.data.formats.number_kernel import NAN, NO_NUMBER, TOO_LARGE
from gradrank.errors import DataError

NOT_UTF8 = 101

_LONGEST_SHOWN = 40
_LONGEST_TOKEN = 4096
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
_COUNTED_AT_ONCE = 1 << 20  # comparing makes an array as long as the text


@dataclass(frozen=True)
class Fault:
    """The kind of a fault, one of the codes of the kernels, and its place in the file."""

    code: int
    offset: int


def raise_fault(
    fault: Fault, text: NDArray[np.uint8], path: Path, *, limit: int = 0, fixed: bool = False, lines_before: int = 0
) -> NoReturn:
    """Raise the error that a fault stands for.

    ``limit`` is the number of features allowed; ``fixed`` tells that it was given as the exact number. ``lines_before``
    is the number of lines in front of the text, if it is part of a file.
    """
    newlines = lines_before
    for start in range(0, fault.offset, _COUNTED_AT_ONCE):
        newlines += int(np.count_nonzero(text[start : min(start + _COUNTED_AT_ONCE, fault.offset)] == 10))
    raise DataError(_message(fault, text, limit, fixed), path=path, line=newlines + 1)


def shown(token: bytes) -> str:
    """A token as it may stand in a message: in quotes, not too long, nothing unprintable.

    >>> shown(b"a\\x00b"), shown(b"x" * 100)
    ("'a\\\\x00b'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'")
    """
    characters = token.decode(errors="replace")
    return repr(characters[:_LONGEST_SHOWN] + ("…" if len(characters) > _LONGEST_SHOWN else ""))


def _token(text: NDArray[np.uint8], offset: int) -> tuple[bytes, bytes]:
    """What stands before the offset in its token, and the token."""
    before = text[max(0, offset - _LONGEST_TOKEN) : offset].tobytes()
    lead = re.split(rb"[ \t\r\n#]", before)[-1]
    rest = re.split(rb"[ \t\r\n#]", text[offset : offset + _LONGEST_TOKEN].tobytes(), maxsplit=1)[0]
    return lead, lead + rest


def _message(fault: Fault, text: NDArray[np.uint8], limit: int, fixed: bool) -> str:
    code = fault.code
    lead, token = _token(text, fault.offset)
    found = shown(token)
    binary = "; this looks like a binary file" if b"\0" in token else ""
    infinite = _INFINITE.fullmatch(token.removeprefix(lead)) is not None
    if code == kernel.LABEL + NO_NUMBER:
        if infinite:
            return f"label is {found}, expected a finite number"
        return f"label is {found}, expected a number{binary}"
    if code == kernel.LABEL + NAN:
        return f"label is {found}; to take it as unjudged, read with --missing (missing=True in Python)"
    if code == kernel.LABEL + TOO_LARGE:
        return f"label {found} is too large for float32"
    if code == NO_NUMBER:
        if token == lead:
            return f"{found} has no value; the line may be cut short"
        if infinite:
            return f"the value in {found} is infinite, expected a finite number"
        return f"the value in {found} is not a number{binary}"
    if code == NAN:
        return (
            f"the value in {found} is not a number; to take it as missing, read with --missing (missing=True in Python)"
        )
    if code == TOO_LARGE:
        return f"the value in {found} is too large for float32"
    if code == kernel.NO_QID:
        where = f"found {found}" if token else "found nothing"
        return (
            f"there is no query id: {where} behind the label, expected qid:ID "
            "(or a file with group sizes, named as this one with .query behind it)"
        )
    if code == kernel.UNEXPECTED_QID:
        return f"found {found}, but the queries are given by group sizes; expected lines without query ids"
    if code == kernel.EMPTY_QID:
        return "the query id behind 'qid:' is empty"
    if code == kernel.BAD_QID:
        return f"the query id in {found} holds a control character{binary}"
    if code == kernel.SIGN_IN_QID:
        return (
            f"the query id in {found} has a '#' directly behind it, which starts a comment: ids cannot hold it, and a "
            "comment needs a blank before it"
        )
    if code == kernel.NO_COLON:
        return f"found {found} without a colon, expected index:value; the line may be cut short"
    if code == kernel.BAD_INDEX:
        return f"found {found}, expected index:value with a whole number as feature index{binary}"
    if code == kernel.INDEX_ZERO:
        hint = "if indices start at 0, read with --zero-based (zero_based=True in Python)"
        return f"feature index 0 in {found}, expected 1 or more; {hint}"
    if code == kernel.INDEX_TOO_LARGE:
        option = "n_features" if fixed else "max_features"
        return f"the feature index in {found} is too high: {option} allows {limit} features"
    if code == kernel.TWICE:
        return f"the feature of {found} is given twice in this line"
    if code == kernel.COMES_AGAIN:
        return f"query {shown(token.removeprefix(b'qid:'))} comes again after other queries; its lines are not together"
    if code == NOT_UTF8:
        return f"the id in {found} is not UTF-8 text"
    return "the file changed while it was read"
