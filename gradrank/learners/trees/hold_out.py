"""Training queries that are held out to find the number of trees, where there is no validation data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.monitor import TRAINING, Curves, Monitor
from gradrank.measures import AnyMeasure, bind_measures, bound_values, single_measures
from gradrank.ranking import keyed_numbers

HELD_OUT = "held out"
"""Name of the held-out queries in learning curves."""
# Apart from the draws that are made for each step.
_STREAM = 0x40D0


def held_out_queries(data: RankingData, share: float, random_state: int) -> NDArray[np.bool_]:
    """Which queries are held out, at random.

    Where the data is part of a larger set, its keys draw: whether a query is held out does not depend on where it is
    kept, and the share is kept on average.

    >>> data = RankingData.from_arrays([[0.0]] * 10, [0] * 10, qid=range(10))
    >>> int(held_out_queries(data, 0.2, random_state=3).sum())
    2
    """
    rng = np.random.default_rng([random_state, _STREAM])
    if data.keys is not None:
        return np.asarray(keyed_numbers(data.keys, int(rng.integers(2**31))) < share)
    chosen = np.zeros(data.n_queries, dtype=bool)
    chosen[rng.permutation(data.n_queries)[: round(share * data.n_queries)]] = True
    return chosen


class HeldOutMonitor(Monitor):
    """Lets the training scores of held-out queries choose the number of trees; features are copied nowhere.

    Parameters
    ----------
    train
        The training data.
    held
        Which of its queries are held out.
    watched
        Data sets that are recorded besides.
    measure
        Chooses.
    n_jobs, crew
        As for :class:`Monitor`.
    """

    def __init__(
        self,
        train: RankingData,
        held: NDArray[np.bool_],
        watched: Mapping[str, RankingData],
        measure: AnyMeasure,
        *,
        n_jobs: int | None = None,
        crew: Crew = ALONE,
    ) -> None:
        super().__init__(watched, [measure], first=HELD_OUT, n_jobs=n_jobs, crew=crew)
        self._rows = np.flatnonzero(np.repeat(held, train.sizes))
        # A process of many may hold none of them.
        self._held = (
            bind_measures(single_measures([measure]), _without_features(train, held), n_jobs=n_jobs)
            if held.any()
            else None
        )

    def empty_curves(self) -> Curves:
        """See Monitor.empty_curves."""
        return {**super().empty_curves(), HELD_OUT: {name: [] for name in self._names}}

    def record(self, curves: Curves, scores: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
        """See Monitor.record."""
        now = super().record(curves, scores)
        nothing: NDArray[np.float64] = np.empty(0)
        found: Mapping[str, Any] = (
            dict.fromkeys(self._names, nothing)
            if self._held is None
            else {str(name): values for name, values in bound_values(self._held, scores[TRAINING][self._rows]).items()}
        )
        now[HELD_OUT] = {name: self._crew.mean(found[name]) for name in self._names}
        for name, value in now[HELD_OUT].items():
            curves[HELD_OUT][name].append(value)
        return now


def _without_features(train: RankingData, held: NDArray[np.bool_]) -> RankingData:
    """The labels of the held-out queries."""
    rows = np.repeat(held, train.sizes)
    return RankingData(
        X=np.empty((int(rows.sum()), 0), dtype=np.float32),
        indptr=np.concatenate(([0], np.cumsum(train.sizes[held]))),
        labels={name: np.asarray(column)[rows] for name, column in train.labels.items()},
        qid=train.qid[np.flatnonzero(held)],
        weight=None if train.weight is None else train.weight[held],
        keys=None if train.keys is None else train.keys[held],
    )
