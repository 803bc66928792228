"""What happens inside a training, step by step, on a sample of the queries (Svore et al. 2011, figures 2 to 4)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.cluster.travel import joined, pack, unpack
from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.trees.gradient_shares import GradientShares, Levels, graded_parts
from gradrank.measures import AnyMeasure, bind_measures, bound_values, mean_value, single_measures
from gradrank.objectives import Objective, Tiered
from gradrank.objectives.tiers import bound_tiers
from gradrank.ranking import keyed_numbers, order_within_queries, rank_from

Curve = list[float]


@dataclass(frozen=True)
class Diagnostics:
    """What is recorded, and how often.

    ``queries`` are drawn once; every ``every`` steps their λ's and ranks are looked at. ``top`` is the depth of the top
    of the list, ``high`` the lowest label of a highly relevant document (unless given: the two highest labels of four
    or more, else the highest one).

    >>> from gradrank.data.artificial import make_data
    >>> from gradrank.learners import LambdaMART
    >>> data = make_data(30, n_docs=10, n_features=5, random_state=1)
    >>> learner = LambdaMART("Lambda(NDCG)", n_estimators=10, min_child_samples=5, diagnostics=5).fit(data)
    >>> found = learner.ranker_.training["diagnostics"]
    >>> found["steps"], sorted(found)[-3:]
    ([0, 5, 10], ['steps', 'top', 'top_labels'])
    """

    queries: int = 200
    every: int = 10
    top: int = 3
    high: float | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        for name in ("queries", "every", "top"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise TrainingError(f"diagnostics: {name} is {value!r}, expected a whole number of 1 or more")


class Recorder:
    """Looks at the scores of a training whenever it is due; :meth:`record` gives what was found as plain values."""

    def __init__(
        self,
        settings: Diagnostics,
        objective: Objective,
        train: RankingData,
        measures: Sequence[AnyMeasure] = (),
        crew: Crew = ALONE,
    ) -> None:
        began = time.perf_counter()
        self._settings = settings
        self._crew = crew
        sample, self._rows, self._arrival = shared_sample(train, settings.queries, settings.random_state, crew)
        self._sample = sample
        self._shuffle = order_within_queries(
            np.random.default_rng(settings.random_state).random(sample.n_docs), sample.indptr
        )
        self._place = np.arange(sample.n_docs) - np.repeat(sample.indptr[:-1], sample.sizes)
        # The sample is too small for threads to be worth their while.
        self._measures = bind_measures(single_measures(measures), sample, n_jobs=1)
        graded = graded_parts(objective)
        self._levels = Levels.of(sample.label(_source(objective)), settings.high)
        self._shares = {str(part): GradientShares(part, sample, self._levels) for part in graded}
        self._agreements = (
            {str(tier): Agreement(objective, number, sample)
             for number, tier in enumerate(objective.tiers) if number > 0}
            if isinstance(objective, Tiered) else {}
        )  # fmt: skip
        self._steps: list[int] = []
        self._found: dict[str, Any] = {}
        self._order: NDArray[np.int64] | None = None
        self._seconds = time.perf_counter() - began

    def observe(self, step: int, scores: NDArray[np.float64]) -> None:
        """Be told the scores of the training documents after ``step`` steps; to be called after every step."""
        every = self._settings.every
        if step % every != 0 and (step - 1) % every != 0:
            return
        began = time.perf_counter()
        own = np.concatenate(self._crew.gather(scores[self._rows]))
        if self._arrival is not None:
            own = own[self._arrival]
        order = rank_from(own, self._sample.indptr, self._shuffle, n_jobs=1).order
        if self._order is not None:
            # The step just made is the one that was looked at before it.
            whole, top = rank_changes(self._order, order, self._sample.indptr, self._settings.top)
            self._add("rank_changes", {"all": whole, "top": top})
            self._order = None
        if step % every == 0:
            self._steps.append(step)
            self._order = order
            self._look(own, order)
        self._seconds += time.perf_counter() - began

    def _look(self, scores: NDArray[np.float64], order: NDArray[np.int64]) -> None:
        in_top = order[self._place < self._settings.top]
        self._add("top_labels", self._levels.shares(in_top, self._sample))
        values = bound_values(self._measures, scores)
        self._add("measures", {str(measure): mean_value(value) for measure, value in values.items()})
        for name, shares in self._shares.items():
            self._add("gradient_shares", {name: shares.at(scores)})
        for name, agreement in self._agreements.items():
            self._add("agreement", {name: agreement.at(scores)})

    def _add(self, kind: str, values: Mapping[str, Any]) -> None:
        _append(self._found.setdefault(kind, {}), values)

    def record(self) -> dict[str, Any]:
        """What was found: curves with one value for each of ``steps``; the last rank change may not be known yet."""
        return {
            **asdict(self._settings),
            "queries": self._sample.n_queries,
            "documents": self._sample.n_docs,
            "high": self._levels.high,
            "steps": list(self._steps),
            **self._found,
            "seconds": round(self._seconds, 3),
        }


def _append(curves: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Add numbers, or trees of them, to curves of the same shape."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            _append(curves.setdefault(name, {}), value)
        else:
            curves.setdefault(name, []).append(float(value))


def sampled_queries(train: RankingData, count: int, random_state: int) -> tuple[RankingData, NDArray[np.int64]]:
    """Some queries of two or more documents (all if there are fewer), without features, and their rows."""
    able = np.flatnonzero(train.sizes > 1)
    if len(able) == 0:
        able = np.arange(train.n_queries)
    if len(able) > count:
        able = np.sort(np.random.default_rng(random_state).choice(able, count, replace=False))
    bare = replace(train, X=np.empty((train.n_docs, 0), dtype=np.float32), feature_names=(), docid=None, rows=None)
    sizes = train.sizes[able]
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    rows = np.arange(int(sizes.sum())) + np.repeat(train.indptr[able] - starts, sizes)
    return bare.take_queries(able), rows


def shared_sample(
    train: RankingData, count: int, random_state: int, crew: Crew
) -> tuple[RankingData, NDArray[np.int64], NDArray[np.int64] | None]:
    """Some queries of all processes: their data, the rows of this process, and the order for rows that arrive."""
    if train.keys is None:
        return *sampled_queries(train, count, random_state), None
    chance = keyed_numbers(train.keys, random_state)
    # Queries of one document come last: there is nothing to see in them.
    chance = np.where(train.sizes > 1, chance, chance + 1.0)
    everywhere = np.sort(np.concatenate(crew.gather(np.sort(chance)[:count])))
    chosen = np.flatnonzero(chance <= everywhere[:count][-1])
    rows = np.flatnonzero(np.isin(train.query_of_row(), chosen))
    empty = np.empty((train.n_docs, 0), dtype=np.float32)
    bare = replace(train, X=empty, feature_names=(), docid=None).take_queries(chosen)
    parts = [unpack(part) for part in crew.gather(pack(bare))]
    order = np.argsort(np.concatenate(crew.gather(chance[chosen])), kind="stable")
    whole = joined(parts)
    assert whole is not None
    number = np.repeat(np.argsort(order, kind="stable"), whole.sizes)
    return whole.take_queries(order), rows, np.argsort(number, kind="stable")


def _source(objective: Objective) -> str | None:
    return objective.sources[0]


# ---------------------------------------------------------------------- figure 4
def rank_changes(
    before: NDArray[np.int64], after: NDArray[np.int64], indptr: NDArray[np.int64], top: int
) -> tuple[float, float]:
    """Share of a query's ranks, and of its top ranks, that hold another document than before; means over queries.

    >>> rank_changes(np.array([0, 1, 2, 3]), np.array([0, 1, 3, 2]), np.array([0, 4]), top=3)
    (0.5, 0.3333333333333333)
    """
    sizes = np.diff(indptr)
    changed = before != after
    in_top = np.arange(len(before)) - np.repeat(indptr[:-1], sizes) < top
    whole = np.add.reduceat(changed.astype(np.int64), indptr[:-1]) / sizes
    upper = np.add.reduceat((changed & in_top).astype(np.int64), indptr[:-1]) / np.minimum(sizes, top)
    return float(whole.mean()), float(upper.mean())


# ---------------------------------------------------------------------- figure 2
class Agreement:
    """Whether a lower tier pushes documents where the first tier pushes them (Svore et al. 2011, figure 2).

    ``agree`` is the share of documents whose λ's have the same sign in both tiers or that the lower tier leaves alone
    (the paper's agreement), ``opposed`` the share that the tiers push in opposite directions. Both are given for the
    pairs that are the tier's to decide (``tied pairs``) and for all pairs that its labels order (``all pairs``);
    documents without a label in either source do not count.
    """

    def __init__(self, objective: Tiered, number: int, data: RankingData) -> None:
        parts = bound_tiers(objective, data, n_jobs=1)
        self._first = parts[0]
        self._lower = {
            "tied pairs": parts[number],
            "all pairs": objective.tiers[number].bind(data, n_jobs=1),
        }
        labels = [data.label(objective.sources[tier]) for tier in (0, number)]
        self._judged = ~np.isnan(labels[0]) & ~np.isnan(labels[1])

    def at(self, scores: NDArray[np.float64]) -> dict[str, dict[str, float]]:
        """The shares for both kinds of pairs."""
        first = np.sign(self._first.gradients(scores).lambdas[self._judged])
        found = {}
        for kind, bound in self._lower.items():
            own = np.sign(bound.gradients(scores).lambdas[self._judged])
            agree = (own == first) | (own == 0)
            known = len(own) > 0
            found[kind] = {
                "agree": float(agree.mean()) if known else float("nan"),
                "opposed": float((own * first < 0).mean()) if known else float("nan"),
            }
        return found
