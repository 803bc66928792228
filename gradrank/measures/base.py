"""What a measure is: an object that prints as its name and computes one value per query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.arrays import number_array
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import MeasureError
from gradrank.measures.conventions import convention
from gradrank.measures.grammar import spelt
from gradrank.measures.parameters import Parameter, parameter
from gradrank.measures.swaps import SwapKernels
from gradrank.ranking import TIE_POLICIES, Ranking, Ties, check_scores, in_data_order, rank
from gradrank.runtime.threads import for_query_blocks

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

NO_WEIGHTS: FloatArray = np.empty(0)
# Kernels hold ranks in 64 bits; no list is longer.
_LARGEST_CUTOFF = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a measure needs to know of the labels, computed once: labels do not change, scores do."""

    gain: FloatArray
    """One number per document (gain, relevant or not, stopping probability, …)."""
    norm: FloatArray
    """One divisor per query."""
    depth: IntArray
    """Number of ranks of each query that count."""
    empty: NDArray[np.bool_]
    """Queries without a relevant document."""
    weight: FloatArray = field(default_factory=lambda: NO_WEIGHTS)
    """One number per rank of each query (a discount), if the measure has such."""
    short: NDArray[np.bool_] | None = None
    """Queries that count 0 because their list is shorter than the cut-off, if the convention says so."""
    option: int = 0
    """A variant of the kernel."""


@dataclass(frozen=True, repr=False)
class Measure(ABC):
    """A measure of ranking quality; higher is better.

    A measure is a value: equal if it prints equal, usable as a key, spelt the same in Python, on the
    command line, in logs and in column heads. Parameters that are not given come from the convention.

    Parameters
    ----------
    cutoff
        Number of ranks that count; None = all.
    label
        Label source to read; None = the primary one.
    convention
        Tool whose habits give the parameters that are not given: a name of ``CONVENTIONS``.
    ties
        What happens to documents with equal scores: ``average`` (expectation over their orders), ``file``,
        ``pessimistic``, ``optimistic`` or ``docid``.
    empty
        Value of a query without a relevant document, or ``skip`` to leave such queries out.
    unjudged
        Whether documents without a label count as ``nonrelevant``, or are taken out of the list: ``skip``.
    precision
        Floating-point type in which scores are compared: ``double`` or ``single``.

    >>> from gradrank.measures import NDCG
    >>> NDCG(10), NDCG(10, convention="letor4"), NDCG(10, ties="file")
    (NDCG@10, NDCG(convention=letor4)@10, NDCG(ties=file)@10)
    >>> NDCG(10) == NDCG(10, ties="average")
    True
    """

    cutoff: int | None = None
    label: str | None = field(default=None, kw_only=True)
    convention: str = field(default="gradrank", kw_only=True)
    ties: Ties = parameter("what happens to documents with equal scores", *TIE_POLICIES)
    empty: float | str = parameter("value of a query without a relevant document", "skip", low=0.0, high=1.0)
    unjudged: str = parameter(
        "documents without a label count as non-relevant, or are taken out", "nonrelevant", "skip"
    )
    precision: str = parameter("floating-point type in which scores are compared", "double", "single")

    name: ClassVar[str]
    """The name in the grammar, e.g. ``NDCG``."""
    aliases: ClassVar[tuple[str, ...]] = ()
    takes_cutoff: ClassVar[bool] = True
    default_source: ClassVar[str | None] = None
    """Label source that the measure reads if none is given; None = the primary one."""
    swap: ClassVar[SwapKernels | None] = None
    """Fast swap deltas; without them the definition is computed, and the measure cannot be trained for."""
    tolerance: ClassVar[float] = 0.0
    """Differences that do not count when candidates are compared; a graded measure may have one."""

    def __post_init__(self) -> None:
        rules = convention(self.convention)
        if not rules.defines(self.name):
            raise MeasureError(
                f"the convention {self.convention} does not define {self.name}; "
                f"it has {', '.join(rules.measures or ())}"
            )
        if self.cutoff is not None:
            if not self.takes_cutoff:
                raise MeasureError(f"{self.name} takes no cut-off")
            if isinstance(self.cutoff, bool) or not isinstance(self.cutoff, int | np.integer) or self.cutoff < 1:
                raise MeasureError(f"{self.name}: cut-off is {self.cutoff!r}, expected a whole number of 1 or more")
            if self.cutoff > _LARGEST_CUTOFF:
                raise MeasureError(f"{self.name}: cut-off is {self.cutoff}, expected at most {_LARGEST_CUTOFF}")
            object.__setattr__(self, "cutoff", int(self.cutoff))
        if self.label is not None and (not isinstance(self.label, str) or not self.label.isidentifier()):
            raise MeasureError(f"{self.name}: label is {self.label!r}, expected the name of a label source")
        for item, spec in self.parameters().items():
            value = getattr(self, item)
            if value is None:
                value = rules.value(self.name, item, spec.default)
            object.__setattr__(self, item, spec.check(self.name, item, value))

    # ------------------------------------------------------------------ name
    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """The parameters that a convention can give, by name."""
        return {item.name: item.metadata["parameter"] for item in fields(cls) if "parameter" in item.metadata}

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the definition."""
        return (cls.__doc__ or "").strip().split("\n")[0]

    def __str__(self) -> str:
        rules = convention(self.convention)
        given: dict[str, Any] = {}
        if self.convention != "gradrank":
            given["convention"] = self.convention
        if self.label is not None:
            given["label"] = self.label
        for item, spec in self.parameters().items():
            value = getattr(self, item)
            if value != rules.value(self.name, item, spec.default):
                given[item] = value
        inside = ", ".join(f"{key}={spelt(value)}" for key, value in given.items())
        at = "" if self.cutoff is None else f"@{self.cutoff}"
        return self.name + (f"({inside})" if inside else "") + at

    def __repr__(self) -> str:
        return str(self)

    def __matmul__(self, cutoff: int) -> Measure:
        """``NDCG() @ 10`` is ``NDCG(10)``."""
        from dataclasses import replace

        return replace(self, cutoff=cutoff)

    # ------------------------------------------------------------------ facts
    @property
    def parts(self) -> tuple[Measure, ...]:
        """The single measures that this one is made of: itself alone; a graded measure has several."""
        return (self,)

    @property
    def source(self) -> str | None:
        """The label source that the measure reads; None = the primary one."""
        return self.label or self.default_source

    @property
    def sources(self) -> tuple[str | None, ...]:
        """The label sources of all parts, each once."""
        return (self.source,)

    def training_target(self) -> Measure:
        """The measure to train for where this one is the goal: the same without cut-off, unless another serves better.

        Below a cut-off swaps change nothing, so that a learner would be blind there.
        """
        from dataclasses import replace

        return replace(self, cutoff=None)

    def best(self, candidates: ArrayLike) -> int:
        """Number of the best of several candidates, given as rows of one value for each part; the first among equals.

        >>> from gradrank.measures import NDCG
        >>> NDCG(3).best([[0.3], [float("nan")], [0.4], [0.4]])
        2
        """
        return best_candidate(candidates, len(self.parts))

    # ------------------------------------------------------------------ values
    @abstractmethod
    def prepare(self, labels: NDArray[np.float32], indptr: IntArray, n_jobs: int | None = None) -> Prepared:
        """Compute what depends on the labels alone: gains, divisors, how many ranks count.

        Parameters
        ----------
        labels
            The label of each document, NaN = unjudged.
        indptr
            Query q has the documents ``indptr[q]``…``indptr[q + 1]``.
        n_jobs
            Number of threads; None = one per core.
        """

    @abstractmethod
    def kernel(self) -> Callable[..., None]:
        """The compiled loop that writes the values of the queries first…end to ``out``.

        It is called as ``kernel(first, end, indptr, order, tie_end, retrieved, gain, norm, depth, weight, option,
        out)``: what a ``Ranking`` holds, then what ``prepare`` has found.
        """

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundMeasure:
        """Prepare the measure for data, to evaluate many scores on it.

        Parameters
        ----------
        data
            Queries, documents and their labels.
        n_jobs
            Number of threads; None = one per core.
        """
        return BoundMeasure(self, data, n_jobs)

    def values(self, scores: ArrayLike, data: RankingData, *, n_jobs: int | None = None) -> FloatArray:
        """The value of each query; NaN where the convention leaves the query out.

        Parameters
        ----------
        scores
            One score per document, in the order in which the rows of ``data`` were given, as ``predict`` has them;
            −inf = not retrieved.
        data
            Queries, documents and their labels.
        n_jobs
            Number of threads; None = one per core.

        >>> from gradrank.measures import MRR
        >>> data = RankingData.from_arrays([[0.0]] * 4, [0, 1, 0, 0], qid=[1, 1, 2, 2])
        >>> MRR().values([2.0, 1.0, 1.0, 2.0], data).tolist()
        [0.5, 0.0]
        """
        return self.bind(data, n_jobs=n_jobs).values(check_scores(in_data_order(scores, data), data.n_docs))

    def mean(self, scores: ArrayLike, data: RankingData, *, n_jobs: int | None = None) -> float:
        """The mean over the queries that have a value; NaN if none has.

        Parameters
        ----------
        scores, data, n_jobs
            As for :meth:`values`.
        """
        return mean_value(self.values(scores, data, n_jobs=n_jobs))

    # ------------------------------------------------------------------ swap deltas
    def swap_deltas(self, labels: ArrayLike, scores: ArrayLike) -> FloatArray:
        """How the measure of one query changes when two documents swap ranks, for all pairs of documents.

        Entry (i, j) is the value after documents i and j have swapped their ranks, minus the value now.
        Documents with equal scores stand in the given order.

        Parameters
        ----------
        labels
            The label of each document of the query, NaN = unjudged.
        scores
            The score of each document.

        >>> from gradrank.measures import MRR
        >>> MRR().swap_deltas([0, 1], [2.0, 1.0]).tolist()
        [[0.0, 0.5], [0.5, 0.0]]
        """
        if self.swap is None:
            return self.swap_deltas_by_definition(labels, scores)
        label_column, scores = _one_query(labels, scores)
        if self.unjudged == "skip" and np.isnan(label_column).any():
            # Condensed lists: a swap with an unjudged document moves a judged one past others.
            return self.swap_deltas_by_definition(labels, scores)
        order = _file_order(scores)
        n = len(order)
        result = np.zeros((n, n))
        if n < 2 or np.isnan(label_column).all():
            return result
        prepared = self.prepare(label_column[order], np.array([0, n]), 1)
        if bool(prepared.empty[0]) or (prepared.short is not None and bool(prepared.short[0])):
            return result
        by_rank = np.empty((n, n))
        state = self.swap.state(n)
        places = np.arange(n)
        gain, norm, option = prepared.gain, prepared.norm[0], prepared.option
        self.swap.prepare(n, places, places, gain, prepared.weight, norm, prepared.depth[0], option, state)
        for p in range(n):
            self.swap.row(p, 0, n, n, places, places, gain, norm, option, state, by_rank[p])
        result[np.ix_(order, order)] = by_rank
        return result

    def swap_deltas_by_definition(self, labels: ArrayLike, scores: ArrayLike) -> FloatArray:
        """As :meth:`swap_deltas`, slowly: swap two ranks, evaluate again, subtract.

        >>> from gradrank.measures import MRR
        >>> MRR().swap_deltas_by_definition([0, 1], [2.0, 1.0]).tolist()
        [[0.0, 0.5], [0.5, 0.0]]
        """
        label_column, scores = _one_query(labels, scores)
        order = _file_order(scores)
        n = len(order)
        result = np.zeros((n, n))
        standing = np.empty(n)
        standing[order] = np.arange(n, 0, -1)
        first, second = np.triu_indices(n, 1)
        # One query for each swap, and one for the list as it stands.
        trials = np.repeat(standing[None, :], len(first) + 1, axis=0)
        rows = np.arange(len(first))
        trials[rows, first], trials[rows, second] = standing[second], standing[first]
        source = self.source or "label"
        data = RankingData(
            X=np.empty((trials.size, 0), dtype=np.float32),
            indptr=np.arange(0, trials.size + 1, n),
            labels={source: np.tile(label_column, len(trials))},
            qid=Strings.of(range(len(trials))),
        )
        values = np.nan_to_num(self.values(trials.ravel(), data, n_jobs=1))
        result[first, second] = values[:-1] - values[-1]
        return result + result.T


@dataclass(frozen=True, eq=False)
class BoundMeasure:
    """A measure prepared for data: what depends on the labels is computed once, then scores are evaluated often.

    Unlike a measure it takes scores in the data's own order, in which the documents of a query stand together.
    """

    measure: Measure
    data: RankingData
    n_jobs: int | None = None
    prepared: Prepared = field(init=False)
    _judged: NDArray[np.bool_] | None = field(init=False)
    _indptr: IntArray = field(init=False)
    _labels: NDArray[np.float32] = field(init=False)
    _skipped: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        data = self.data
        labels = data.label(self.measure.source)
        indptr = data.indptr
        missing = np.isnan(labels)
        judged: NDArray[np.bool_] | None = None
        skipped = np.zeros(data.n_queries, dtype=bool)
        if missing.any():
            judged_counts = np.add.reduceat(~missing, indptr[:-1])
            skipped = judged_counts == 0
            if self.measure.unjudged == "skip":
                # Condensed lists: rank only the judged documents. A query without any keeps its
                # documents (as nothing may be empty) and is skipped below.
                judged = ~missing | np.repeat(skipped, data.sizes)
                indptr = np.concatenate(([0], np.cumsum(np.add.reduceat(judged.astype(np.int64), indptr[:-1]))))
                labels = labels[judged]
        set_field = object.__setattr__
        set_field(self, "prepared", self.measure.prepare(labels, indptr, self.n_jobs))
        set_field(self, "_judged", judged)
        set_field(self, "_indptr", indptr)
        set_field(self, "_labels", labels)
        set_field(self, "_skipped", skipped)

    @property
    def skipped(self) -> NDArray[np.bool_]:
        """Queries that have no value because no document of theirs is judged."""
        return self._skipped

    def documents(self) -> tuple[IntArray, NDArray[np.float32], IntArray | None]:
        """The documents that take part: query boundaries, labels, and their rows in the data if not all do."""
        return self._indptr, self._labels, None if self._judged is None else np.flatnonzero(self._judged)

    def ranking_key(self) -> tuple[object, ...]:
        """What the ranking depends on: bound measures with equal keys (on the same data) can share one."""
        measure = self.measure
        by_label = measure.ties in ("pessimistic", "optimistic") or self._judged is not None
        return (measure.ties, measure.precision, measure.source if by_label else None, self._judged is not None)

    def rank(self, scores: FloatArray) -> Ranking:
        """The ranking of checked scores under the measure's tie policy."""
        if self._judged is not None:
            scores = scores[self._judged]
        if self.measure.precision == "single":
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        docid = self.data.docid
        if docid is not None and self._judged is not None and self.measure.ties == "docid":
            docid = docid[np.flatnonzero(self._judged)]
        return rank(scores, self._indptr, ties=self.measure.ties, labels=self._labels, docid=docid, n_jobs=self.n_jobs)

    def values(self, scores: ArrayLike, ranking: Ranking | None = None) -> FloatArray:
        """The value of each query; ``ranking`` saves sorting if a measure with the same key has it."""
        if ranking is None:
            ranking = self.rank(check_scores(scores, self.data.n_docs))
        prepared = self.prepared
        out = np.empty(self.data.n_queries)
        kernel = self.measure.kernel()
        order, tie_end, retrieved, indptr = ranking.order, ranking.tie_end, ranking.retrieved, self._indptr

        def work(first: int, end: int) -> None:
            kernel(first, end, indptr, order, tie_end, retrieved, prepared.gain, prepared.norm, prepared.depth,
                   prepared.weight, prepared.option, out)  # fmt: skip

        for_query_blocks(work, indptr, self.n_jobs)
        empty = self.measure.empty
        out[prepared.empty] = np.nan if isinstance(empty, str) else empty
        if prepared.short is not None:
            out[prepared.short] = 0.0
        out[self._skipped] = np.nan
        return out

    def mean(self, scores: ArrayLike) -> float:
        """Mean over the queries that have a value."""
        return mean_value(self.values(scores))


def mean_value(values: FloatArray) -> float:
    """Mean of the values that are there; NaN if none is.

    >>> mean_value(np.array([0.0, np.nan, 1.0]))
    0.5
    """
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else float("nan")


def best_candidate(candidates: ArrayLike, parts: int, tolerance: float = 0.0) -> int:
    """Number of the best of several rows of values, the first column deciding before the second and so on.

    Only rows within the tolerance of the best on a column are compared on the next; the last column decides without
    tolerance, and among equals the first row.
    """
    values = np.asarray(candidates, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != parts or len(values) == 0:
        raise MeasureError(f"candidates have shape {values.shape}, expected rows of {parts} values")
    left = np.arange(len(values))
    for tier in range(parts):
        column = values[left, tier]
        slack = tolerance if tier + 1 < parts else 0.0
        left = left[column >= np.nanmax(column) - slack] if not np.isnan(column).all() else left
    return int(left[0])


def relevant(labels: NDArray[np.float32], threshold: float) -> FloatArray:
    """1 for documents whose label reaches the threshold, 0 for others and for unjudged ones.

    >>> relevant(np.array([0, 1, 2, np.nan], dtype=np.float32), 2.0).tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    # The comparison is made in single precision, the type of the labels: 0.1 reaches a threshold of 0.1.
    return (labels >= np.float32(threshold)).astype(np.float64)


def query_sums(values: FloatArray, indptr: IntArray) -> FloatArray:
    """Sum over the documents of each query."""
    result: FloatArray = np.add.reduceat(values, indptr[:-1])
    return result


def cut(cutoff: int | None, indptr: IntArray) -> IntArray:
    """Number of ranks of each query that count under a cut-off."""
    sizes = np.diff(indptr)
    return sizes if cutoff is None else np.minimum(sizes, cutoff)


def _one_query(labels: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.float32], FloatArray]:
    """A query's labels and scores, one of each per document."""
    column = number_array(labels, "the labels", np.float32)
    if column.ndim != 1:
        raise MeasureError(f"the labels have shape {column.shape}, expected one number per document")
    return column, check_scores(scores, len(column))


def _file_order(scores: FloatArray) -> IntArray:
    return np.argsort(-scores, kind="stable")
