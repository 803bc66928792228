"""The errors a user can cause, each said in one sentence.

Every error that bad input can raise derives from :class:`GradrankError`; the command line turns it
into one line on standard error and exit code 2. Anything else that escapes is a fault of ours.
"""

from __future__ import annotations

from pathlib import Path


class GradrankError(Exception):
    """Base of all errors that wrong input, not a fault of gradrank, can cause.

    >>> from gradrank import parse_measure
    >>> try:
    ...     parse_measure("NDGC@10")
    ... except GradrankError as error:
    ...     print(str(error)[:45])
    there is no measure 'NDGC'; did you mean NDCG
    """


class DataError(GradrankError, ValueError):
    """Data that cannot be read or does not fit: says what was found, what was expected, and where.

    >>> print(DataError("label is 'x', expected a number", path="train.txt", line=3))
    train.txt:3: label is 'x', expected a number
    """

    def __init__(self, message: str, *, path: str | Path | None = None, line: int | None = None) -> None:
        self.path = None if path is None else str(path)
        self.line = line
        where = "" if self.path is None else self.path + (f":{line}" if line is not None else "") + ": "
        super().__init__(where + message)


class MeasureError(GradrankError, ValueError):
    """A measure that does not exist, is misspelt, or does not fit the labels it is given."""


class MissingExtraError(GradrankError, ImportError):
    """An optional package is needed for what was asked; says how to install it.

    >>> print(MissingExtraError("pyarrow", "parquet"))
    this needs the package pyarrow: pip install 'gradrank[parquet]'
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package}: pip install 'gradrank[{extra}]'")
