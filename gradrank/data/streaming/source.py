"""Data as blocks of rows in the order of the file, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gradrank.data.precision import Matrix, PrecisionCheck, sampled_rows
from gradrank.data.strings import Strings
from gradrank.errors import DataError

Spans = Sequence[tuple[int, int]]
"""First row and end of parts of the data."""


class StartAgain(Exception):
    """Rows that were given so far are not what they should be: there are more features. The next pass has them all."""


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of a file, as many as are held at once."""

    first: int
    """Number of the first row."""
    X: Matrix
    """Their features; no columns if features were not asked for."""
    changed: NDArray[np.bool_] | None = None
    """Features with a whole number that float32 changes; None if all numbers are so short that float32 is enough."""
    labels: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    run_rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Where in the block each run of equal query ids begins."""
    run_ids: Strings | None = None
    """The id of each run; None if the queries are given by sizes."""
    docid: Strings | None = None
    weight: NDArray[np.float64] | None = None


class Source(ABC):
    """Data that is read by blocks of rows; several times, unless it comes through a pipe."""

    path: Path
    again: bool = True
    """Whether the data can be read a second time."""
    optional_docids: bool = False
    """Whether empty document ids stand for none."""
    size: int | None = None
    """Bytes to read in one pass, if known."""

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; may need a look at all of the data."""

    @abstractmethod
    def rows(self, *, wide: bool = False, features: bool = True, only: Spans | None = None) -> Iterator[Rows]:
        """Blocks of rows from the first row on.

        Parameters
        ----------
        wide
            Features in float64, not float32.
        features
            Whether features are wanted at all.
        only
            Leave out blocks without a row of these parts.

        Raises
        ------
        StartAgain
            If rows given already lack features, which is found out on the way.
        """

    def read_so_far(self) -> int:
        """Bytes read in the pass that is under way."""
        return 0

    def query_sizes(self, n_docs: int) -> NDArray[np.int64] | None:
        """Query boundaries, where the file tells sizes instead of ids."""
        return None

    def comes_again(self, row: int, qid: str) -> NoReturn:
        """Refuse a query whose rows are not consecutive; ``row`` is where it comes again."""
        raise DataError(f"rows of query {qid} are not consecutive: it comes again at row {row + 1}", path=self.path)

    def hold_head(self, most_bytes: int) -> bool:
        """Keep the first bytes of a pipe, so that they can be read twice; whether that is all there is."""
        raise NotImplementedError

    def of_head(self) -> Source:
        """The rows that are held of a pipe, as data of its own."""
        raise NotImplementedError

    def finish(self) -> None:  # noqa: B027
        """Say what is to be said of the data once it was read."""

    def checked_weight(self, message: str) -> NoReturn:
        """Refuse a weight."""
        raise DataError(message, path=self.path)


def needs_float64(
    source: Source,
    n_docs: int,
    n_features: int,
    changed: NDArray[np.bool_] | None,
    narrow: Callable[[], Iterable[Matrix]],
) -> bool:
    """Whether the features need float64, by the rule of :mod:`gradrank.data.precision`, after one pass in float32.

    Parameters
    ----------
    source
        Read once more, where the rule looks at rows in full.
    n_docs, n_features
        Numbers of rows and features.
    changed
        Features with a whole number that float32 changes, over all blocks; None if no block had long numbers.
    narrow
        Makes all features in float32, by blocks.
    """
    if changed is None:
        return False
    check = PrecisionCheck(n_docs, n_features)
    check.changed |= changed
    for rows in source.rows(wide=True, only=sampled_rows(n_docs)):
        if rows.changed is not None:
            check.look(rows.first, np.asarray(rows.X, dtype=np.float64))
    return check.needs_float64(narrow())


def overlaps(first: int, end: int, only: Spans | None) -> bool:
    """Whether rows ``first`` to ``end`` have one in common with the parts that are wanted.

    >>> overlaps(10, 20, [(0, 10), (19, 30)]), overlaps(10, 20, [(0, 10)]), overlaps(10, 20, None)
    (True, False, True)
    """
    return only is None or any(start < end and first < stop for start, stop in only)
