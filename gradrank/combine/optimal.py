"""The exact best combination of two rankers (Wu, Burges, Svore, Gao 2009, section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradrank.combine.curve import Curve, Interval, best_of, curve_of, joined
from gradrank.combine.path import FloatArray, Lines, Path, Progress, TooManyChanges, mean_path
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError, MeasureError
from gradrank.measures import AnyMeasure, as_measure, bind_measures, bound_values, mean_value
from gradrank.models.systems import Data, Documents, System, scores_of

Form = Literal["convex", "additive"]

# Changes held at once, 16 bytes each; sorting and merging need about four times as much.
MOST_CHANGES = 1 << 24
# Intervals tried if rounding makes the best ones' middles rank otherwise than the exact lines do.
_TRIALS = 12
# Where in an interval to try: its middle may be a point at which lines meet.
_FRACTIONS = (0.5, 0.618, 0.382)
_ROUNDING = 1e-10
_CURVE_LENGTH = 1 << 16


@dataclass(frozen=True, eq=False)
class Combination:
    """The best mixture of two rankers that was found."""

    alpha: float
    """Middle of the best interval, or one of the ends; ``inf`` in the additive form = the second ranker alone."""
    interval: tuple[float, float]
    """Where the measure has this value; equal ends = a single point."""
    weights: tuple[float, float]
    """Weights of the two rankers."""
    values: dict[str, float]
    """Mean of the measure (of each part of a graded one), evaluated at ``alpha``."""
    values_of_parts: tuple[dict[str, float], dict[str, float]]
    """The same of the two rankers alone."""
    curve: Curve = field(repr=False)
    """The measure over all α."""

    @property
    def value(self) -> float:
        """Mean of the (first) measure."""
        return next(iter(self.values.values()))


def optimal_combination(
    first: System,
    second: System,
    data: Data,
    measure: AnyMeasure | str,
    *,
    form: Form = "convex",
    low: float = 0.0,
    high: float | None = None,
    also: Sequence[float] = (),
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Combination:
    """The exact best mixture of two systems: the α with the best mean of a measure, over all α there are.

    Scores' lines in α cross at finitely many points, between which no measure changes; all of them are looked at
    (O(documents²) per query). Documents that are tied count by expectation. The value is never below that at either
    end, nor at any α in ``also``. Graded measures are compared part by part.

    Parameters
    ----------
    first, second
        Two systems, as :func:`~gradrank.evaluate` takes them; every score must be a finite number.
    data
        RankingData, a pandas or polars frame, or the path of a data file.
    measure
        The measure, or its name.
    form
        ``convex``: (1 − α)·first + α·second for α in 0…1; ``additive``: first + α·second for any α ≥ 0.
    low, high
        Limits of α; in the additive form there is none above unless given.
    also
        Further values of α to try.
    n_jobs
        Threads to use; all cores by default.
    progress
        Told the share of the work that is done.

    >>> from gradrank import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 6, [1, 0, 0, 0, 1, 0], qid=[1, 1, 1, 2, 2, 2])
    >>> found = optimal_combination([1, 2, 0, 0, 1, 0], [3, 0, 1, 0, 0, 1], data, "MRR")
    >>> found.alpha, found.interval, found.value
    (0.375, (0.25, 0.5), 1.0)
    """
    documents = Documents.of(data, {"first": first, "second": second})
    combiner = Combiner(documents.data, as_measure(measure), n_jobs=n_jobs)
    one, two = (scores_of(system, documents, finite=True, n_jobs=n_jobs) for system in (first, second))
    return combiner.search(one, two, form=form, low=low, high=high, also=also, progress=progress)


class Combiner:
    """A measure bound to data, to search the best combinations of many pairs of score columns.

    Parameters
    ----------
    data
        The documents with their labels; scores stand in their order.
    measure
        What combinations are best for.
    queries
        True or false for each query: limits the search to some of them.
    n_jobs
        Threads to use; all cores by default.
    most_changes
        How many changes of the measure are held at once; longer searches go in pieces.

    >>> from gradrank.measures import MRR
    >>> data = RankingData.from_arrays([[0.0]] * 2, [1, 0], qid=[1, 1])
    >>> Combiner(data, MRR()).search(np.array([0.0, 1.0]), np.array([1.0, 0.0]), form="additive").interval
    (1.0, inf)
    """

    def __init__(
        self,
        data: RankingData,
        measure: AnyMeasure,
        *,
        queries: NDArray[np.bool_] | None = None,
        n_jobs: int | None = None,
        most_changes: int = MOST_CHANGES,
    ) -> None:
        self.measure = measure
        self._parts = measure.parts
        self._names = [str(part) for part in self._parts]
        self._bound = bind_measures(self._parts, data, n_jobs=n_jobs)
        self._data = data
        self._queries = queries
        self._most_changes = most_changes

    def only(self, queries: NDArray[np.bool_] | None) -> Combiner:
        """The same for other queries of the data; what was prepared is shared."""
        other = object.__new__(Combiner)
        other.__dict__.update(self.__dict__, _queries=queries)
        return other

    def among(self, documents: NDArray[np.bool_]) -> Combiner:
        """The same for those of its queries that have any of these documents."""
        queries = np.logical_or.reduceat(documents, self._data.indptr[:-1])
        return self.only(queries if self._queries is None else queries & self._queries)

    def values(self, scores: FloatArray) -> tuple[float, ...]:
        """Mean of each part of the measure for scores."""
        values = bound_values(self._bound, scores)
        chosen = slice(None) if self._queries is None else self._queries
        return tuple(mean_value(values[part][chosen]) for part in self._parts)

    def named(self, values: Sequence[float]) -> dict[str, float]:
        """Values by the name of their measure."""
        return dict(zip(self._names, values, strict=True))

    def best(self, candidates: Sequence[Sequence[float]]) -> int:
        """Number of the best values, the first among equals."""
        return self.measure.best(candidates)

    def better(self, one: Sequence[float], other: Sequence[float]) -> bool:
        """Whether values are better than others by more than rounding."""
        differ = any(abs(a - b) > _ROUNDING for a, b in zip(one, other, strict=True))
        return differ and self.best([other, one]) == 1

    def search(
        self,
        one: FloatArray,
        two: FloatArray,
        *,
        form: Form = "convex",
        low: float = 0.0,
        high: float | None = None,
        also: Sequence[float] = (),
        progress: Progress | None = None,
    ) -> Combination:
        """See :func:`optimal_combination`; scores must be finite."""
        mixing = _Mixing.of(form, low, high)
        lines = Lines(one, two, mixing.convex_path, mixing.low, mixing.high)
        alone = self.values(one), self.values(two)
        if np.isnan(alone[0][0]):
            raise MeasureError(f"{self._names[0]} has no value on this data: no query is judged")
        curve, best = self._curve(lines, progress)
        trials: list[tuple[float, tuple[float, float], tuple[float, ...]]] = []

        def holds(share: float, interval: Interval) -> bool:
            """Whether the combined scores have the values of the interval: rounding may order them otherwise."""
            try_at(mixing.alpha(share), (mixing.alpha(interval.low), mixing.alpha(interval.high)))
            return np.allclose(trials[-1][2], interval.values, rtol=0.0, atol=_ROUNDING, equal_nan=True)

        def try_at(alpha: float, around: tuple[float, float]) -> None:
            # Added up as a weighted sum of rankers does, so that the value is that of the combined ranker.
            first, second = mixing.weights(alpha)
            trials.append((alpha, around, self.values(first * one + second * two)))

        for interval in best:
            width = interval.high - interval.low
            if any(holds(interval.low + fraction * width, interval) for fraction in _FRACTIONS):
                break
        for point in (mixing.alpha(mixing.low), mixing.alpha(mixing.high), *also):
            try_at(point, (point, point))
        alpha, around, values = trials[self.best([values for _, _, values in trials])]
        if mixing.convex_path and form == "additive":
            curve = replace(curve, edges=np.array([mixing.alpha(edge) for edge in curve.edges]))
        return Combination(
            alpha,
            around,
            mixing.weights(alpha),
            self.named(values),
            (self.named(alone[0]), self.named(alone[1])),
            curve,
        )

    def _curve(self, lines: Lines, progress: Progress | None) -> tuple[Curve, list[Interval]]:
        """The whole curve (thinned if it is too long to hold), and its best intervals."""
        curves: list[Curve] = []
        found: list[Interval] = []
        tolerance = self.measure.tolerance
        for low, high, paths in self._pieces(lines, progress):
            curve = curve_of(self._names, paths, low, high)
            found += curve.best_intervals(tolerance, _TRIALS)
            whole = low == lines.low and high == lines.high
            curves.append(curve if whole else curve.thinned(_CURVE_LENGTH))
        if not curves:  # a range of one point
            alone = np.array(self.values(lines.scores(lines.low)))[:, None]
            return Curve(tuple(self._names), np.array([lines.low, lines.high]), alone), []
        return joined(curves), found if len(curves) == 1 else best_of(found, tolerance, _TRIALS)

    def _pieces(self, lines: Lines, progress: Progress | None) -> Iterator[tuple[float, float, list[Path]]]:
        """The range of α in pieces, none with more changes than may be held at once."""
        if not lines.low < lines.high:
            return
        try:
            yield lines.low, lines.high, self._paths(lines, self._most_changes, progress)
            return
        except TooManyChanges as too_many:
            middle = too_many.middle
        if not lines.low < middle < lines.high:
            yield lines.low, lines.high, self._paths(lines, None, progress)
            return
        yield from self._pieces(replace(lines, high=middle), progress)
        yield from self._pieces(replace(lines, low=middle), progress)

    def _paths(self, lines: Lines, limit: int | None, progress: Progress | None) -> list[Path]:
        return [mean_path(bound, lines, queries=self._queries, limit=limit, progress=progress) for bound in self._bound]


@dataclass(frozen=True)
class _Mixing:
    """How α turns into weights, and the range that is searched.

    All α ≥ 0 of the additive form are the shares c = α/(1 + α) of the convex one.
    """

    form: Form
    low: float
    high: float
    unbounded: bool

    @classmethod
    def of(cls, form: Form, low: float, high: float | None) -> _Mixing:
        if form not in ("convex", "additive"):
            raise ValueError(f"form is {form!r}, expected convex or additive")
        if form == "convex":
            high = 1.0 if high is None else high
            if not 0.0 <= low <= high <= 1.0:
                raise DataError(f"the range of α is {low:g}…{high:g}, expected one within 0…1")
            return cls(form, low, high, False)
        if high is None:
            if low != 0.0:
                raise DataError("a range of α with a lower end needs an upper end")
            return cls(form, 0.0, 1.0, True)
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise DataError(f"the range of α is {low:g}…{high:g}, expected two numbers in ascending order")
        return cls(form, low, high, False)

    @property
    def convex_path(self) -> bool:
        return self.form == "convex" or self.unbounded

    def alpha(self, share: float) -> float:
        if not self.unbounded:
            return share
        return share / (1.0 - share) if share < 1.0 else float("inf")

    def weights(self, alpha: float) -> tuple[float, float]:
        if self.form == "convex":
            return 1.0 - alpha, alpha
        return (1.0, alpha) if alpha < float("inf") else (0.0, 1.0)
