"""Weights for a sum of many rankers: exact search one weight at a time, or Powell's method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gradrank.combine.optimal import Combiner
from gradrank.combine.path import FloatArray
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.measures import AnyMeasure, as_measure
from gradrank.models.features import made_up
from gradrank.models.ranker import Ranker
from gradrank.models.registry import under_names_of
from gradrank.models.systems import Data, Documents, System, as_ranker, scores_of
from gradrank.models.weighted_sum import WeightedSum

Method = Literal["exact", "powell"]
RoundProgress = Callable[[int, float], None]
"""Told the number of searches so far and the value of the (first) measure."""

# A search over coordinates ends long before; this only guards against gains by rounding for ever.
_MOST_ROUNDS = 100


@dataclass(frozen=True)
class Weighting:
    """Weights of a sum of rankers, and what they are worth."""

    weights: tuple[float, ...]
    values: dict[str, float]
    """Mean of the measure (of each part of a graded one)."""
    values_of_parts: tuple[dict[str, float], ...]
    """The same of each ranker alone."""
    rounds: int = 0
    """How often all weights were gone through."""

    @property
    def value(self) -> float:
        """Mean of the (first) measure."""
        return next(iter(self.values.values()))


def search_weights(
    systems: Sequence[System],
    data: Data,
    measure: AnyMeasure | str,
    *,
    method: Method = "exact",
    convex: bool = False,
    n_jobs: int | None = None,
    progress: RoundProgress | None = None,
) -> Weighting:
    """Weights of 0 or more for several systems, for the best mean of a measure.

    The result is never worse than any of the systems alone.

    Parameters
    ----------
    systems
        Two or more systems, as :func:`~gradrank.evaluate` takes them; every score must be a finite number.
    data
        RankingData, a pandas or polars frame, or the path of a data file.
    measure
        The measure, or its name.
    method
        ``exact``: one weight after the other gets its exact optimum with the others fixed, until none improves the
        measure; it never gets worse on the way, and starts from the best single system or from the sum of all (each
        divided by its spread within queries), whichever is better. ``powell``: Powell's method (SciPy) on the first
        measure, from the sum of all, the baseline in Wu et al. 2009.
    convex
        Whether weights add up to 1; otherwise the first one that is not 0 is 1.
    n_jobs
        Threads to use; all cores by default.
    progress
        Told the number of searches so far and the value of the (first) measure.

    >>> from gradrank import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 6, [1, 0, 0, 0, 1, 0], qid=[1, 1, 1, 2, 2, 2])
    >>> found = search_weights([[1, 2, 0, 0, 1, 0], [3, 0, 1, 0, 0, 1], [0, 0, 0, 0, 0, 0]], data, "MRR")
    >>> found.value, [part["MRR"] for part in found.values_of_parts[:2]]
    (1.0, [0.75, 0.7083333333333333])
    """
    if len(systems) < 2:
        raise DataError(f"{len(systems)} ranker is given, expected two or more to combine")
    held, scores = _columns(systems, data, n_jobs)
    combiner = Combiner(held, as_measure(measure), n_jobs=n_jobs)
    alone = [combiner.values(column) for column in scores]
    spreads = np.array([spread_within_queries(column, held) for column in scores])
    starts = [*np.diag(1.0 / spreads), 1.0 / spreads]
    values = [*alone, combiner.values(added_up(starts[-1], scores))]
    weights = np.asarray(starts[combiner.best(values)])
    rounds = 0
    if method == "exact":
        weights, rounds = _by_coordinates(combiner, scores, weights, spreads, progress)
    else:
        weights = _by_powell(combiner, scores, weights, spreads, progress)
    weights = _tidy(combiner, scores, weights, convex)
    return Weighting(
        tuple(weights.tolist()),
        combiner.named(combiner.values(added_up(weights, scores))),
        tuple(combiner.named(part) for part in alone),
        rounds,
    )


def given_weights(
    systems: Sequence[System], weights: Sequence[float], data: Data, measure: AnyMeasure | str
) -> Weighting:
    """What given weights of several systems are worth.

    Parameters
    ----------
    systems, data, measure
        As :func:`search_weights` takes them.
    weights
        One finite number for each system.

    >>> from gradrank import RankingData
    >>> data = RankingData.from_arrays([[0.0]] * 2, [1, 0], qid=[1, 1])
    >>> given_weights([[0, 1], [1, 0]], [1.0, 2.0], data, "MRR").value
    1.0
    """
    if len(weights) != len(systems):
        raise DataError(f"there are {len(weights)} weights for {len(systems)} rankers")
    if not np.isfinite(weights).all():
        raise DataError("a weight is not a finite number")
    held, scores = _columns(systems, data, None)
    combiner = Combiner(held, as_measure(measure))
    return Weighting(
        tuple(map(float, weights)),
        combiner.named(combiner.values(added_up(np.asarray(weights, dtype=np.float64), scores))),
        tuple(combiner.named(combiner.values(column)) for column in scores),
    )


def combine_rankers(
    rankers: Sequence[System],
    data: Data,
    measure: AnyMeasure | str,
    *,
    method: Method = "exact",
    convex: bool = False,
    n_jobs: int | None = None,
    progress: RoundProgress | None = None,
) -> WeightedSum:
    """One ranker from several: their sum, with the weights of :func:`search_weights`.

    Parameters
    ----------
    rankers
        Two or more rankers, fitted learners, fitted models of LightGBM, XGBoost or scikit-learn (or anything else with
        ``predict``), or paths of model files. Scores alone cannot be part of a ranker: search_weights takes them.
    data, measure, method, convex, n_jobs, progress
        As :func:`search_weights` takes them.

    >>> from gradrank import FeatureRanker, RankingData, evaluate
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 3.0], [2.0, 2.0]], [0, 1, 2], qid=[1, 1, 1])
    >>> both = combine_rankers([FeatureRanker("f1"), FeatureRanker("f2")], data, "NDCG")
    >>> evaluate(data, {"both": both}, "NDCG").means()
    {'both': {'NDCG': 1.0}}
    """
    documents = Documents.of(data)
    parts = [as_ranker(ranker, documents) for ranker in rankers]
    found = search_weights(parts, documents, measure, method=method, convex=convex, n_jobs=n_jobs, progress=progress)
    return weighted_sum(parts, found, documents, {"combination": method, "measure": str(as_measure(measure))})


def weighted_sum(rankers: Sequence[Ranker], found: Weighting, data: Data, facts: Mapping[str, object]) -> WeightedSum:
    """The rankers' sum with the weights found, those of weight 0 left out; numbered features get the data's names."""
    kept = [(weight, ranker) for weight, ranker in zip(found.weights, rankers, strict=True) if weight != 0.0]
    documents = Documents.of(data)
    # All weights may be given as 0: then every document scores 0.
    parts = [
        (weight, under_names_of(ranker, documents.whole) if made_up(ranker.feature_names) else ranker)
        for weight, ranker in kept or [(0.0, rankers[0])]
    ]
    return WeightedSum(parts, training={**facts, "weights": list(found.weights), "values": found.values})


def _columns(systems: Sequence[System], data: Data, n_jobs: int | None) -> tuple[RankingData, list[FloatArray]]:
    documents = Documents.of(data, {str(number): system for number, system in enumerate(systems, 1)})
    return documents.data, [scores_of(system, documents, finite=True, n_jobs=n_jobs) for system in systems]


# ---------------------------------------------------------------------- the searches
def _by_coordinates(
    combiner: Combiner,
    scores: Sequence[FloatArray],
    weights: FloatArray,
    spreads: FloatArray,
    progress: RoundProgress | None,
) -> tuple[FloatArray, int]:
    best = combiner.values(added_up(weights, scores))
    searches = 0
    for number in range(1, _MOST_ROUNDS + 1):
        improved = False
        for k, column in enumerate(scores):
            others = np.where(np.arange(len(scores)) == k, 0.0, weights)
            if not others.any():
                continue  # a ranker alone has no weight to find
            found = combiner.search(added_up(others, scores), column / spreads[k], form="additive")
            first, second = found.weights
            trial = first * others
            trial[k] = second / spreads[k]
            now = combiner.values(added_up(trial, scores))
            if combiner.better(now, best):
                weights, best, improved = trial, now, True
            searches += 1
            if progress is not None:
                progress(searches, best[0])
        if not improved:
            return weights, number
    return weights, _MOST_ROUNDS


def _by_powell(
    combiner: Combiner,
    scores: Sequence[FloatArray],
    weights: FloatArray,
    spreads: FloatArray,
    progress: RoundProgress | None,
) -> FloatArray:
    from scipy.optimize import minimize

    tried = [(combiner.values(added_up(weights, scores)), weights)]

    def loss(shares: FloatArray) -> float:
        trial = np.clip(shares, 0.0, 1.0) / spreads
        values = combiner.values(added_up(trial, scores))
        # Powell may leave the best point behind; it is kept here.
        if combiner.better(values, tried[-1][0]):
            tried.append((values, trial))
        if progress is not None:
            progress(len(tried), tried[-1][0][0])
        return -values[0]

    # From equal shares: at a corner, such as a single ranker, its line searches find nothing.
    start = np.full(len(scores), 0.5)
    minimize(loss, start, method="Powell", bounds=[(0.0, 1.0)] * len(scores), options={"ftol": 1e-6})
    return tried[-1][1]


def _tidy(combiner: Combiner, scores: Sequence[FloatArray], weights: FloatArray, convex: bool) -> FloatArray:
    """The weights on the promised scale, unless rounding would make that worse."""
    scaled = weights / (weights.sum() if convex else weights[np.flatnonzero(weights)[0]])
    before, after = (combiner.values(added_up(trial, scores)) for trial in (weights, scaled))
    return weights if combiner.better(before, after) else scaled


def added_up(weights: FloatArray, scores: Sequence[FloatArray]) -> FloatArray:
    """Score columns added up as :class:`WeightedSum` does.

    >>> added_up(np.array([2.0, 0.0]), [np.array([1.0, 3.0]), np.array([5.0, 5.0])]).tolist()
    [2.0, 6.0]
    """
    total = np.zeros(len(scores[0]))
    for weight, column in zip(weights.tolist(), scores, strict=True):
        if weight != 0.0:
            total += weight * column
    return total


def spread_within_queries(column: FloatArray, data: RankingData) -> float:
    """Standard deviation of the scores around their query's mean; 1 for a column that orders nothing.

    >>> data = RankingData.from_arrays([[0.0]] * 4, qid=[1, 1, 2, 2])
    >>> spread_within_queries(np.array([0.0, 2.0, 10.0, 12.0]), data)
    1.0
    """
    means = np.add.reduceat(column, data.indptr[:-1]) / data.sizes
    spread = float(np.sqrt(np.mean((column - np.repeat(means, data.sizes)) ** 2)))
    return spread if spread > 0.0 and np.isfinite(spread) else 1.0
