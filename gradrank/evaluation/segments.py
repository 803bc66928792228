"""Comparisons within segments of the queries: markets, lengths, head and tail, each with its own significance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import DataError
from gradrank.evaluation.compare import (
    CORRECTION_NAMES,
    TEST_NAMES,
    Comparison,
    ComparisonRow,
    TestName,
    compare,
    verdict_of,
)
from gradrank.evaluation.significance import holm
from gradrank.evaluation.tables import Column, Table
from gradrank.measures import Measure

MOST_SEGMENTS = 20
"""Further segments, the smallest ones, are put together."""
OTHERS = "all others"
UNKNOWN = "unknown"
_MOST_NUMBERS = 8
_QUANTILES = 4


@dataclass(frozen=True, repr=False)
class SegmentComparison:
    """Each system against the baseline by one measure within each segment."""

    name: str
    """What the queries are divided by."""
    measure: Measure
    baseline: str
    level: float
    rows: tuple[tuple[str, int, ComparisonRow], ...]
    """Segment, number of its queries, and the comparison within; p corrected by Holm over all rows."""

    def table(self) -> Table:
        """One row per system and segment."""
        columns = (
            Column("system"),
            Column(self.name),
            Column("queries", "count"),
            Column(self.baseline, "number"),
            Column(str(self.measure), "number"),
            Column("difference", "signed"),
            Column(f"{100 * (1 - self.level):.6g} % interval", "interval"),
            Column("p", "p"),
            Column("verdict"),
        )
        rows = tuple(
            (row.system, segment, queries, row.baseline_mean, row.mean, row.test.difference,
             (row.test.low, row.test.high), row.p_corrected, row.verdict)
            for segment, queries, row in self.rows
        )  # fmt: skip
        test = TEST_NAMES[self.rows[0][2].test.test]
        title = f"{self.measure} against {self.baseline} by {self.name}; {test} with {CORRECTION_NAMES['holm']}"
        return Table(columns, rows, title)

    def __repr__(self) -> str:
        table = self.table()
        return f"SegmentComparison: {table.title}\n{replace(table, title=None).to_markdown()}".rstrip()

    def _repr_html_(self) -> str:
        return self.table().to_html()


def compare_segments(
    comparison: Comparison, values: Mapping[str, Any] | Sequence[Any], *, name: str = "segment"
) -> SegmentComparison:
    """Compare the systems of a comparison within segments of the queries, by its first measure.

    Segments are the values; numbers of more than 8 values are cut into quarters of the queries. Each segment is tested
    by itself, by the comparison's test, and the p-values are corrected for all segments and systems (Holm): with twenty
    markets, one is "significant" by chance alone.

    Parameters
    ----------
    comparison
        What :func:`~gradrank.compare` gave.
    values
        The segment of each query: by query id, or one for each query in the evaluation's order. None, NaN and queries
        that are not there are "unknown".
    name
        What the queries are divided by, such as ``market``.

    >>> import numpy as np
    >>> from gradrank import RankingData, compare
    >>> data = RankingData.from_arrays(np.zeros((24, 1)), [0, 1] * 12, group=[2] * 12)
    >>> found = compare(data, {"old": [1, 0] * 12, "new": [0, 1] * 6 + [1, 0] * 6}, "MRR")
    >>> parts = compare_segments(found, ["de"] * 6 + ["fr"] * 6, name="market")
    >>> [(segment, queries, row.test.difference) for segment, queries, row in parts.rows]
    [('de', 6, 0.5), ('fr', 6, 0.0)]
    """
    evaluation = comparison.evaluation
    if evaluation is None or not comparison.rows:
        raise DataError("the comparison does not hold the evaluation that it tested")
    qids = evaluation.qids.to_list()
    if isinstance(values, Mapping):
        by_id = {str(qid): value for qid, value in values.items()}
        given = [by_id.get(qid) for qid in qids]
        if all(value is None for value in given):
            raise DataError(f"none of the queries has a {name}: their ids are {', '.join(qids[:3])}, …")
    else:
        given = list(values)
        if len(given) != len(qids):
            raise DataError(f"there are {len(given)} values of {name} for {len(qids)} queries")
    segments = segment_names(given)
    measure = evaluation.measures[0]
    found: list[tuple[str, int, ComparisonRow]] = []
    for segment in segments.ordered:
        inside = np.flatnonzero(segments.of_query == segment)
        part = replace(
            evaluation,
            qids=evaluation.qids[inside],
            measures=(measure,),
            values={system: {measure: held[measure][inside]} for system, held in evaluation.values.items()},
            weights=None if evaluation.weights is None else evaluation.weights[inside],
        )
        rows = compare(
            part,
            baseline=comparison.baseline,
            test=cast(TestName, comparison.rows[0].test.test),
            level=comparison.level,
            correction=None,
        ).rows
        found += [(segment, len(inside), row) for row in rows]
    # System by system, as all other tables have them.
    found.sort(key=lambda item: evaluation.systems.index(item[2].system))
    corrected = holm([row.test.p for _, _, row in found]).tolist()
    corrected_rows = tuple(
        (segment, queries, replace(row, p_corrected=p, verdict=verdict_of(row.test.difference, p, comparison.level)))
        for (segment, queries, row), p in zip(found, corrected, strict=True)
    )
    return SegmentComparison(name, measure, comparison.baseline, comparison.level, corrected_rows)


@dataclass(frozen=True, eq=False)
class Segments:
    """The segment of each query, and all of them in order."""

    of_query: NDArray[np.object_]
    ordered: list[str]


def segment_names(values: Sequence[Any]) -> Segments:
    """Segments from values: text as it is, numbers of many values in quarters, what is missing as unknown.

    >>> segment_names(["b", "a", None]).ordered
    ['a', 'b', 'unknown']
    >>> segment_names([3, 3.0, 10]).ordered
    ['3', '10']
    >>> segment_names(range(1, 101)).ordered
    ['1 to 25', '26 to 50', '51 to 75', '76 to 100']
    """
    known = [value for value in values if not _is_missing(value)]
    numbers = _numbers(known)
    if numbers is None:
        names = [UNKNOWN if _is_missing(value) else str(value) for value in values]
        order = sorted(set(names) - {UNKNOWN})
    else:
        all_numbers = iter(numbers.tolist())
        names, order = _number_segments([None if _is_missing(v) else next(all_numbers) for v in values], numbers)
    counts = {name: names.count(name) for name in order} if len(order) > MOST_SEGMENTS else {}
    if counts:
        largest = set(sorted(order, key=lambda name: -counts[name])[: MOST_SEGMENTS - 1])
        names = [name if name in largest or name == UNKNOWN else OTHERS for name in names]
        order = [name for name in order if name in largest] + [OTHERS]
    order += [UNKNOWN] if UNKNOWN in names else []
    return Segments(np.array(names, dtype=object), order)


def _number_segments(values: Sequence[float | None], known: NDArray[np.float64]) -> tuple[list[str], list[str]]:
    distinct = np.unique(known)
    if len(distinct) <= _MOST_NUMBERS:
        names = {value: f"{value:.6g}" for value in distinct.tolist()}
        return [UNKNOWN if v is None else names[v] for v in values], list(names.values())
    cuts = np.unique(np.quantile(known, np.linspace(0, 1, _QUANTILES + 1)[1:-1], method="higher"))
    place = np.searchsorted(cuts, known, side="left" if len(cuts) == 0 else "right")
    order = []
    for number in range(len(cuts) + 1):
        inside = known[place == number]
        order.append(f"{inside.min():.6g} to {inside.max():.6g}" if len(inside) else "")
    names_of = iter(order[int(number)] for number in place)
    return [UNKNOWN if v is None else next(names_of) for v in values], [name for name in order if name]


def _numbers(values: Sequence[Any]) -> NDArray[np.float64] | None:
    """All values as numbers, if they are; words from a file may be."""
    try:
        numbers = np.array([float(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and isnan(value))
