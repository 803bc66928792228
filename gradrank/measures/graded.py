"""Graded measures: several measures compared one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from gradrank.errors import MeasureError
from gradrank.measures.base import Measure, best_candidate
from gradrank.measures.grammar import spelt


@dataclass(frozen=True, repr=False)
class Graded:
    """Measures compared one after the other: a later one decides only where all earlier are equal (Svore et al. 2011).

    Parameters
    ----------
    parts
        The measures, the most important first.
    tolerance
        Two values count as equal if they differ by at most this.

    >>> from gradrank.measures import CNDCG, NDCG
    >>> graded = Graded((NDCG(3), CNDCG(3)), tolerance=0.01)
    >>> graded
    Graded(NDCG@3, CNDCG@3, tolerance=0.01)
    >>> graded.compare((0.500, 0.9), (0.505, 0.2))
    1
    """

    parts: tuple[Measure, ...]
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if not self.parts:
            raise MeasureError("Graded needs at least one measure")
        if not (isinstance(self.tolerance, int | float) and 0.0 <= self.tolerance < float("inf")):
            raise MeasureError(f"Graded: tolerance is {self.tolerance!r}, expected a number of 0 or more")

    def __str__(self) -> str:
        inside = ", ".join(str(part) for part in self.parts)
        return f"Graded({inside})" if self.tolerance == 0 else f"Graded({inside}, tolerance={spelt(self.tolerance)})"

    def __repr__(self) -> str:
        return str(self)

    @property
    def sources(self) -> tuple[str | None, ...]:
        """The label sources of all parts, each once; None = the primary one."""
        return tuple(dict.fromkeys(part.source for part in self.parts))

    def compare(self, one: Sequence[float], other: Sequence[float]) -> int:
        """1 if ``one`` is better, −1 if ``other`` is, 0 if all parts are equal within the tolerance."""
        for a, b in zip(one, other, strict=True):
            if abs(a - b) > self.tolerance:
                return 1 if a > b else -1
        return 0

    def best(self, candidates: ArrayLike) -> int:
        """Number of the best of several candidates, given as rows of one value for each part.

        Pairwise comparison with a tolerance is not transitive, so the choice is made tier by tier: keep the candidates
        within the tolerance of the best on the first measure, of those the ones within it on the second, and so on; the
        last measure decides without tolerance, and among equals the first candidate.

        >>> from gradrank.measures import CNDCG, NDCG
        >>> Graded((NDCG(3), CNDCG(3)), tolerance=0.01).best([[0.50, 0.1], [0.495, 0.3], [0.4, 0.9]])
        1
        """
        return best_candidate(candidates, len(self.parts), self.tolerance)


AnyMeasure = Measure | Graded


def single_measures(measures: AnyMeasure | Iterable[AnyMeasure]) -> tuple[Measure, ...]:
    """Every single measure once, graded ones as their parts.

    >>> from gradrank.measures import MAP, NDCG
    >>> single_measures([Graded((NDCG(3), MAP())), NDCG(3), NDCG(5)])
    (NDCG@3, MAP, NDCG@5)
    """
    given = (measures,) if isinstance(measures, Measure | Graded) else measures
    return tuple(dict.fromkeys(part for measure in given for part in measure.parts))
