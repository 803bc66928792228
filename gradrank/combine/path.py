"""A measure as a function of the mixing weight α of two rankers: constant between crossings, found exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import walk
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.measures import ERR, MAP, MRR, Bpref, KendallTau
from gradrank.measures.base import BoundMeasure
from gradrank.measures.position import PositionMeasure
from gradrank.measures.swaps import SwapKernels
from gradrank.runtime.threads import for_query_blocks

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Changes = tuple[FloatArray, FloatArray]
_Item = TypeVar("_Item")
Progress = Callable[[float], None]
"""Told the share of the work that is done."""

# Changes that one call of the kernel may write (16 bytes each), and calls between two looks at the memory in use.
_CHUNK = 1 << 19
_WAVE = 16
# A document that is certain to stop the user passes with this chance (log2), so that sums can be taken back.
_LEAST_LOG = -1000.0
# The families of measures that can be followed crossing by crossing; others are evaluated between all crossings.
_WALKS: dict[SwapKernels | None, int] = {
    PositionMeasure.swap: walk.POSITION,
    MAP.swap: walk.AVERAGE_PRECISION,
    MRR.swap: walk.RECIPROCAL_RANK,
    ERR.swap: walk.EXPECTED_RECIPROCAL_RANK,
    Bpref.swap: walk.BPREF,
    KendallTau.swap: walk.KENDALL,
}


@dataclass(frozen=True, eq=False)
class Lines:
    """Two rankers' scores and how they mix: one + α·two, or (1 − α)·one + α·two, for α in low…high.

    >>> Lines(np.array([1.0]), np.array([3.0]), convex=True).scores(0.25).tolist()
    [1.5]
    """

    one: FloatArray
    two: FloatArray
    convex: bool = False
    low: float = 0.0
    high: float = 1.0

    def scores(self, alpha: float) -> FloatArray:
        """The combined scores."""
        if self.convex:
            return (1.0 - alpha) * self.one + alpha * self.two
        return self.one + alpha * self.two


@dataclass(frozen=True, eq=False)
class Path:
    """A function of α that is constant between its steps: ``values[k]`` holds before ``at[k]``, the last one after all.

    >>> path = Path(np.array([0.5]), np.array([1.0, 2.0]))
    >>> path(np.array([0.25, 0.75])).tolist()
    [1.0, 2.0]
    """

    at: FloatArray
    values: FloatArray

    def __call__(self, alpha: FloatArray) -> FloatArray:
        """Values at some α, none of which is a step."""
        return np.asarray(self.values[np.searchsorted(self.at, alpha)])


class TooManyChanges(Exception):
    """More changes than may be held at once; ``middle`` cuts them into about equal halves."""

    def __init__(self, middle: float) -> None:
        super().__init__()
        self.middle = middle


def mean_path(
    bound: BoundMeasure,
    lines: Lines,
    *,
    queries: NDArray[np.bool_] | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """The mean of a measure over the queries (of a choice, if given) for every α strictly between low and high.

    At most ``limit`` changes are held (:class:`TooManyChanges` beyond). The result does not depend on the number of
    threads.

    >>> from gradrank.measures import MRR
    >>> data = RankingData.from_arrays([[0.0]] * 2, [1, 0], qid=[1, 1])
    >>> path = mean_path(MRR().bind(data), Lines(np.array([0.0, 1.0]), np.array([3.0, 0.0]), convex=True))
    >>> path.at.tolist(), path.values.tolist()
    ([0.25], [0.5, 1.0])
    """
    constant, active, count = _fixed_part(bound, queries)
    if count == 0:
        return Path(np.empty(0), np.array([np.nan]))
    form = _WALKS.get(bound.measure.swap)
    if form is None:
        start, changes = _by_definition(bound, lines, active)
    else:
        start, changes = _by_walking(bound, form, lines, active, limit, progress)
    # Sums rather than means: the sum of the first changes that cancel leaves no trace then.
    steps = np.concatenate(([start], changes[1]))
    return Path(changes[0], (constant + np.cumsum(steps)) / count)


def _fixed_part(bound: BoundMeasure, queries: NDArray[np.bool_] | None) -> tuple[float, NDArray[np.bool_], int]:
    """Sum over the queries whose value no order changes, the other queries, and how many have a value at all."""
    prepared = bound.prepared
    chosen = ~bound.skipped if queries is None else ~bound.skipped & queries
    short = np.zeros(len(chosen), dtype=bool) if prepared.short is None else prepared.short
    active = chosen & ~prepared.empty & ~short
    empty = chosen & prepared.empty & ~short
    count = int(active.sum() + (chosen & short).sum())
    constant = 0.0
    if not isinstance(bound.measure.empty, str):
        constant = bound.measure.empty * int(empty.sum())
        count += int(empty.sum())
    return constant, active, count


# ---------------------------------------------------------------------- the fast way
def _by_walking(
    bound: BoundMeasure,
    form: int,
    lines: Lines,
    active: NDArray[np.bool_],
    limit: int | None,
    progress: Progress | None,
) -> tuple[float, Changes]:
    indptr, _, rows = bound.documents()
    prepared, measure = bound.prepared, bound.measure
    gain, one, two = prepared.gain, lines.one, lines.two
    if rows is not None:
        one, two = one[rows], two[rows]
    grouped = measure.ties == "average"
    standing = None if grouped or measure.ties == "file" else _tie_order(bound)
    if standing is not None:
        gain, one, two = gain[standing], one[standing], two[standing]
    share, carry = _shares(form, gain)
    sizes = np.diff(indptr)
    starts = np.zeros(len(sizes))
    if form == walk.KENDALL:
        most = sizes * (sizes - 1) // 2
    else:
        most = np.add.reduceat((share != 0.0).astype(np.int64), indptr[:-1]) * (sizes - 1)
    most = np.where(active, most, 0)

    def walked(first: int, end: int) -> Changes:
        room = int(most[first:end].sum())
        at, change = np.empty(room), np.empty(room)
        if form == walk.KENDALL:
            count = walk.walk_pairs(first, end, indptr, one, two, lines.convex, lines.low, lines.high, grouped, gain,
                                    prepared.norm, prepared.option, active, starts, at, change)  # fmt: skip
        else:
            count = walk.walk_documents(first, end, indptr, one, two, lines.convex, lines.low, lines.high, grouped,
                                        form, share, carry, prepared.weight, prepared.norm, prepared.depth, active,
                                        starts, at, change)  # fmt: skip
        return _sorted_changes(at[:count], change[:count])

    changes = _in_waves(walked, _chunks(most), most, limit, bound.n_jobs, progress)
    return float(starts.sum()), changes


def _tie_order(bound: BoundMeasure) -> IntArray | None:
    """Rows of each query in the order in which the measure's tie policy puts equal scores."""
    if bound.measure.ties == "docid" and bound.data.docid is None:
        return None  # evaluating says so if any documents are tied
    return bound.rank(np.zeros(bound.data.n_docs)).order


def _shares(form: int, gain: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What each document can add to the measure, and what it counts for those below it."""
    if form == walk.BPREF:
        return (gain == 1.0).astype(np.float64), (gain == 0.0).astype(np.float64)
    if form == walk.EXPECTED_RECIPROCAL_RANK:
        with np.errstate(divide="ignore"):
            return gain, np.maximum(np.log2(1.0 - gain), _LEAST_LOG)
    return gain, gain


def _chunks(most: IntArray) -> list[tuple[int, int]]:
    """Runs of queries that write at most as many changes as one call may; a longer query is a run of its own."""
    chunks = []
    first = 0
    ends = np.cumsum(most)
    while first < len(most):
        before = int(ends[first - 1]) if first else 0
        end = max(first + 1, int(np.searchsorted(ends, before + _CHUNK, side="right")))
        chunks.append((first, end))
        first = end
    return chunks


def _in_waves(
    follow: Callable[[int, int], Changes],
    chunks: Sequence[tuple[int, int]],
    most: IntArray,
    limit: int | None,
    n_jobs: int | None,
    progress: Progress | None,
) -> Changes:
    """All chunks' changes, merged; chunks and the order of merging are the same for any number of threads."""
    cost = [int(most[first:end].sum()) + (end - first) for first, end in chunks]
    done: list[Changes] = []
    for wave in range(0, len(chunks), _WAVE):
        now = slice(wave, wave + _WAVE)
        done.append(_merged(_for_each(lambda chunk: follow(*chunk), chunks[now], cost[now], n_jobs), n_jobs))
        if limit is not None and sum(len(at) for at, _ in done) > limit:
            raise TooManyChanges(float(np.median(_merged(done, n_jobs)[0])))
        if progress is not None:
            progress(sum(cost[: wave + _WAVE]) / sum(cost))
    return _merged(done, n_jobs)


def _for_each(
    function: Callable[[_Item], Changes], items: Sequence[_Item], costs: Sequence[int], n_jobs: int | None
) -> list[Changes]:
    """The function of every item, on several threads."""
    results: dict[int, Changes] = {}

    def work(first: int, end: int) -> None:
        for k in range(first, end):
            results[k] = function(items[k])

    for_query_blocks(work, np.concatenate(([0], np.cumsum(costs))), n_jobs)
    return [results[k] for k in range(len(items))]


def _sorted_changes(at: FloatArray, change: FloatArray) -> Changes:
    out_at, out_change = np.empty(len(at)), np.empty(len(at))
    count = walk.gather(np.argsort(at), at, change, out_at, out_change)
    return out_at[:count].copy(), out_change[:count].copy()


def _merged(lists: Sequence[Changes], n_jobs: int | None) -> Changes:
    """Sorted lists of changes as one, two by two."""
    left = list(lists) or [(np.empty(0), np.empty(0))]
    while len(left) > 1:
        pairs = [left[k : k + 2] for k in range(0, len(left), 2)]
        left = _for_each(_merged_pair, pairs, [sum(len(at) for at, _ in pair) + 1 for pair in pairs], n_jobs)
    return left[0]


def _merged_pair(pair: Sequence[Changes]) -> Changes:
    if len(pair) == 1:
        return pair[0]
    room = len(pair[0][0]) + len(pair[1][0])
    at, change = np.empty(room), np.empty(room)
    count = walk.merge(*pair[0], *pair[1], at, change)
    return at[:count], change[:count]


# ---------------------------------------------------------------------- the definition
def _by_definition(bound: BoundMeasure, lines: Lines, active: NDArray[np.bool_]) -> tuple[float, Changes]:
    """Each query evaluated between all its neighboring crossings: for measures that have no walk, and its oracle."""
    indptr = bound.data.indptr
    start = 0.0
    lists: list[Changes] = []
    for q in np.flatnonzero(active).tolist():
        rows = np.arange(indptr[q], indptr[q + 1])
        one, two = lines.one[rows], lines.two[rows]
        at = _crossings(one, two, lines)
        edges = np.concatenate(([lines.low], at, [lines.high]))
        middle = edges[:-1] + np.diff(edges) / 2.0
        mixed = Lines(one[None, :], two[None, :], lines.convex).scores(middle[:, None])  # type: ignore[arg-type]
        values = bound.measure.values(mixed.ravel(), _repeated(bound.data, rows, len(middle)), n_jobs=1)
        start += float(values[0])
        lists.append((at, np.diff(values)))
    if not lists:
        return 0.0, (np.empty(0), np.empty(0))
    return start, _sorted_changes(*(np.concatenate(parts) for parts in zip(*lists, strict=True)))


def _crossings(one: FloatArray, two: FloatArray, lines: Lines) -> FloatArray:
    first, second = np.triu_indices(len(one), 1)
    gap = one[first] - one[second]
    slope = two[first] - two[second]
    if lines.convex:
        slope = slope - gap
    with np.errstate(divide="ignore", invalid="ignore"):
        at = -gap / slope
    return np.unique(at[(slope != 0.0) & (at > lines.low) & (at < lines.high)])


def _repeated(data: RankingData, rows: IntArray, times: int) -> RankingData:
    return RankingData(
        X=np.empty((len(rows) * times, 0), dtype=np.float32),
        indptr=np.arange(0, len(rows) * times + 1, len(rows)),
        labels={name: np.tile(column[rows], times) for name, column in data.labels.items()},
        qid=Strings.of(range(times)),
        docid=None if data.docid is None else data.docid[np.tile(rows, times)],
    )
