"""Weights for the members of a portfolio, from scores of queries that no member has seen.

Greedy selection with replacement (Caruana, Niculescu-Mizil, Crew, Ksikes 2004): start from the best member, add the
one with which the sum is best, again and again. Done on bootstrap samples of the queries, each stopped where the sum is
best on the queries that the sample left out, and averaged: so 300 queries do not choose by chance. Equal weights of
the members that are level with the best one, the mean of both, exact weights and the best member alone are the
alternatives. Which rule pays is judged on queries that had no part in finding the weights. The mean of greedy and equal
weights, which is the least likely to have been led by chance, stays unless another rule is ahead by more than one
standard error of the difference per query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import Combiner
from gradrank.combine.ensemble import added_up
from gradrank.data.ranking_data import RankingData
from gradrank.measures import AnyMeasure, bind_measures, bound_values
from gradrank.selection.crossfit import parts_of

FloatArray = NDArray[np.float64]
_BAGS = 16
# Enough to see which members are never taken, and to judge the rule.
_FEW_BAGS = 5
_MOST_CANDIDATES = 16
_FEWEST_CANDIDATES = 6
_MOST_ADDED = 12
# Weights are judged on each part with those found on the others.
_PARTS = 5
# More documents than these tell no more about a few weights.
_MOST_DOCS = 300_000
# The exact search goes over pairs of documents, and over one weight after the other.
_MOST_PAIRS = 50_000_000
_MOST_EXACT = 12
# Sums that were evaluated are remembered: samples of the queries try much the same ones.
_MOST_REMEMBERED = 20_000
# Members further behind the best one than so many standard errors of the difference have no part in equal weights.
_BEHIND = 2.0
# The rule that stays unless another is ahead by more than a standard error.
_STEADY = "greedy + equal"


@dataclass(frozen=True, eq=False)
class Blend:
    """Weights of the members, and how they were found."""

    weights: FloatArray
    """Of scores divided by their spread; they add up to 1."""
    rule: str
    values: dict[str, float]
    """Mean of the measure (of each part of a graded one) of the weighted sum."""
    judged: dict[str, float]
    """The (first) measure by each rule, on queries that did not choose the weights."""
    values_of_members: tuple[float, ...]
    """The (first) measure of each member alone."""


class _Sums:
    """Values of weighted sums of score columns, query by query."""

    def __init__(self, columns: Sequence[FloatArray], data: RankingData, measure: AnyMeasure, n_jobs: int | None):
        self.columns = columns
        self.measure = measure
        self.n_queries = data.n_queries
        self._bound = bind_measures(measure.parts, data, n_jobs=n_jobs)
        self._known: dict[tuple[int, ...], FloatArray] = {}

    def values(self, weights: FloatArray) -> FloatArray:
        """One row for each part of the measure, one column for each query."""
        found = bound_values(self._bound, added_up(weights, self.columns))
        return np.array([found[part] for part in self.measure.parts])

    def of_counts(self, counts: Sequence[int]) -> FloatArray:
        """The same of a sum in which each member is counted so many times."""
        key = tuple(counts)
        if key not in self._known:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = self.values(np.array(key, dtype=np.float64))
        return self._known[key]


def means(values: FloatArray, weight: FloatArray) -> tuple[float, ...]:
    """Weighted means over the queries that have a value.

    >>> means(np.array([[0.0, 1.0, np.nan]]), np.array([1.0, 3.0, 5.0]))
    (0.75,)
    """
    there = ~np.isnan(values)
    total = np.where(there, weight, 0.0)
    sums = total.sum(axis=1)
    product = np.where(there, values * weight, 0.0).sum(axis=1)
    return tuple(np.where(sums > 0.0, product / np.where(sums > 0.0, sums, 1.0), np.nan).tolist())


def blend(
    columns: Sequence[FloatArray],
    data: RankingData,
    measure: AnyMeasure,
    *,
    random_state: int = 0,
    judge: bool = True,
    n_jobs: int | None = None,
) -> Blend:
    """Find weights for members; on ``data`` the sum is never worse than the best of them alone.

    Parameters
    ----------
    columns
        Scores of each member for documents of queries that it has not seen, of spread 1 within queries.
    data
        The documents with their labels.
    measure
        What the sum is to be good at.
    random_state
        Seed of the samples.
    judge
        Whether to find out which rule pays; otherwise weights are greedy.
    n_jobs
        Threads to use; all cores by default.

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0]] * 6, [1, 0, 0, 0, 1, 0], qid=[1, 1, 1, 2, 2, 2])
    >>> from gradrank.measures import MRR
    >>> good, bad = np.array([1.0, 0, 0, 0, 1, 0]), np.array([0.0, 1, 0, 1, 0, 0])
    >>> found = blend([bad, good], data, MRR())
    >>> found.weights.tolist(), found.values
    ([0.0, 1.0], {'MRR': 1.0})
    """
    if data.n_docs > _MOST_DOCS:
        share = np.random.default_rng(random_state).permutation(data.n_queries)
        chosen = np.zeros(data.n_queries, dtype=bool)
        chosen[share[: max(1, int(data.n_queries * _MOST_DOCS / data.n_docs))]] = True
        rows = np.repeat(chosen, data.sizes)
        columns, data = [column[rows] for column in columns], data.take_queries(chosen)
    everything = np.ones(data.n_queries, dtype=bool)
    n_members, there = len(columns), list(range(len(columns)))
    sums = _Sums(columns, data, measure, n_jobs)
    ones = np.ones(data.n_queries)
    alone = [means(sums.of_counts(row), ones) for row in np.eye(len(columns), dtype=int).tolist()]
    if n_members > _MOST_CANDIDATES:
        taken = bagged(sums, everything, random_state, _FEW_BAGS)
        first = sorted(range(n_members), key=lambda k: (-taken[k], -alone[k][0]))
        there = sorted(first[:_MOST_CANDIDATES])
        sums = _Sums([columns[k] for k in there], data, measure, n_jobs)
    rules = _rules(sums, data, measure, random_state, n_jobs)
    judged: dict[str, float] = {}
    rule = "greedy"
    if judge and len(columns) > 1 and data.n_queries >= 2 * _PARTS:
        per_query = {name: _judged(find, sums, random_state) for name, find in rules.items()}
        found = {name: means(values, ones) for name, values in per_query.items()}
        judged = {name: values[0] for name, values in found.items()}
        rule = list(found)[measure.best(list(found.values()))]
        if not _ahead(per_query[rule][0], per_query[_STEADY][0]):
            rule = _STEADY
    found_weights = rules[rule](everything)
    values = means(sums.values(found_weights), ones)
    weights = np.zeros(n_members)
    weights[there] = found_weights / found_weights.sum()
    single = measure.best(alone)
    if measure.best([values, alone[single]]) == 1:
        # However it was found: what is shown to be worse than a member is not taken.
        weights, values, rule = _only(n_members, single), alone[single], "single"
    names = [str(part) for part in measure.parts]
    return Blend(
        weights,
        rule,
        dict(zip(names, values, strict=True)),
        judged,
        tuple(value[0] for value in alone),
    )


def _only(n_members: int, number: int) -> FloatArray:
    """All weight on one member."""
    weights = np.zeros(n_members)
    weights[number] = 1.0
    return weights


Rule = Callable[[NDArray[np.bool_]], FloatArray]
"""Finds weights on some of the queries."""


def _rules(
    sums: _Sums, data: RankingData, measure: AnyMeasure, random_state: int, n_jobs: int | None
) -> Mapping[str, Rule]:
    """The simpler ones first: they win where there is no difference."""
    n_members = len(sums.columns)
    identity = np.eye(n_members, dtype=int).tolist()

    def single(queries: NDArray[np.bool_]) -> FloatArray:
        found = [means(sums.of_counts(row), queries.astype(np.float64)) for row in identity]
        return _only(n_members, measure.best(found))

    def equal(queries: NDArray[np.bool_]) -> FloatArray:
        """Of members that are not clearly behind the best one: others would only weaken the sum."""
        values = np.array([sums.of_counts(row)[0] for row in identity])
        level = _level(values[:, queries]).astype(np.float64)
        return np.asarray(level / level.sum())

    def greedy(queries: NDArray[np.bool_]) -> FloatArray:
        return bagged(sums, queries, random_state, _BAGS if queries.all() else _FEW_BAGS)

    def half(queries: NDArray[np.bool_]) -> FloatArray:
        """Greedy weights drawn towards equal ones, as few queries tell little about weights."""
        mean: FloatArray = (greedy(queries) + equal(queries)) / 2.0
        return mean

    rules: dict[str, Rule] = {"single": single, "equal": equal, "greedy": greedy, "greedy + equal": half}
    pairs = float((data.sizes.astype(np.float64) ** 2).sum())
    if pairs * n_members <= _MOST_PAIRS and n_members <= _MOST_EXACT:
        combiner = Combiner(data, measure, n_jobs=n_jobs)

        def exact(queries: NDArray[np.bool_]) -> FloatArray:
            return _exact(combiner.only(queries), sums.columns, greedy(queries))

        rules["exact"] = exact
    return rules


def _level(values: FloatArray) -> NDArray[np.bool_]:
    """Which rows are not below the one with the highest mean by more than two standard errors of the difference.

    >>> _level(np.array([[0.9, 0.8, 0.7, 0.9], [0.8, 0.9, 0.7, 0.6], [0.1, 0.2, 0.3, 0.1]])).tolist()
    [True, True, False]
    """
    there = values[:, ~np.isnan(values).any(axis=0)]
    if there.shape[1] < 2:
        return np.ones(len(values), dtype=bool)
    difference = there - there[int(np.argmax(there.mean(axis=1)))]
    errors = difference.std(axis=1, ddof=1) / np.sqrt(there.shape[1])
    return np.asarray(difference.mean(axis=1) >= -_BEHIND * errors)


def bagged(sums: _Sums, queries: NDArray[np.bool_], random_state: int, bags: int = _BAGS) -> FloatArray:
    """Mean weights of greedy selections on bootstrap samples of some of the queries."""
    rng = np.random.default_rng(random_state)
    inside = np.flatnonzero(queries)
    total = np.zeros(len(sums.columns))
    for _ in range(bags):
        drawn = np.bincount(rng.choice(inside, len(inside)), minlength=sums.n_queries).astype(np.float64)
        left = (queries & (drawn == 0)).astype(np.float64)
        counts = np.array(_greedy(sums, drawn, left if left.any() else drawn), dtype=np.float64)
        total += counts / counts.sum()
    return total / bags


def _greedy(sums: _Sums, drawn: FloatArray, left: FloatArray) -> tuple[int, ...]:
    """How often each member is taken: by the sample ``drawn``, until the queries that were left are best."""
    counts: tuple[int, ...] = (0,) * len(sums.columns)
    path: list[tuple[int, ...]] = []
    values: list[tuple[float, ...]] = []
    candidates = list(range(len(counts)))
    for _ in range(_MOST_ADDED):
        trials = [(*counts[:m], counts[m] + 1, *counts[m + 1 :]) for m in candidates]
        found = [means(sums.of_counts(trial), drawn) for trial in trials]
        counts = trials[sums.measure.best(found)]
        path.append(counts)
        values.append(means(sums.of_counts(counts), left))
        if len(path) > 1 and len(candidates) > _FEWEST_CANDIDATES:
            # Who helped least just now will not help most next.
            order = sorted(range(len(candidates)), key=lambda k: -found[k][0])
            kept = max(_FEWEST_CANDIDATES, len(candidates) // 2)
            candidates = sorted(candidates[k] for k in order[:kept])
    return path[sums.measure.best(values)]


def _exact(combiner: Combiner, columns: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """One round over the weights that are not 0, the largest first: each gets its exact best value."""
    best = combiner.values(added_up(weights, columns))
    for k in np.argsort(-weights, kind="stable").tolist():
        others = np.where(np.arange(len(columns)) == k, 0.0, weights)
        if weights[k] == 0.0 or not others.any():
            continue
        found = combiner.search(added_up(others, columns), columns[k], form="additive")
        trial = found.weights[0] * others
        trial[k] = found.weights[1]
        now = combiner.values(added_up(trial, columns))
        if combiner.better(now, best):
            weights, best = trial / trial.sum(), now
    return weights


def _judged(rule: Rule, sums: _Sums, random_state: int) -> FloatArray:
    """Values of all queries, each with weights that it had no part in finding; a row for each part of the measure."""
    part = parts_of(sums.n_queries, _PARTS, random_state)
    values = np.empty((len(sums.measure.parts), sums.n_queries))
    for number in range(_PARTS):
        values[:, part == number] = sums.values(rule(part != number))[:, part == number]
    return values


def _ahead(values: FloatArray, others: FloatArray) -> bool:
    """Whether the mean is higher by more than one standard error of the difference.

    >>> _ahead(np.array([0.9, 0.2, 0.5, 0.5]), np.array([0.1, 0.9, 0.5, 0.4]))
    False
    >>> _ahead(np.array([0.9, 0.8, 0.7, 0.9]), np.array([0.8, 0.7, 0.6, 0.7]))
    True
    """
    difference = values - others
    difference = difference[~np.isnan(difference)]
    if len(difference) < 2:
        return False
    return bool(difference.mean() > difference.std(ddof=1) / np.sqrt(len(difference)))
