"""AdaRank: weak rankers for a measure of the ranking.

The distribution D over queries is *fresh*, D ∝ exp(−E) (Xu & Li 2007), or *running*, D ← D·exp(−E) (as Niu et al. 2012
print it). The fresh one is so close to uniform that AdaRank chooses one strong feature forever: on MQ2007 (five folds,
LETOR's convention) it stays at the best single feature, NDCG@10 .422, where the running one reaches .435 and the
published results are .434, .437. So AdaRank's D is running; FocusedBoost, whose pairs bring in other features anyway,
does better with a fresh one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.checks import check_orderable
from gradrank.learners.base.estimator import as_measure
from gradrank.learners.boosting.feature_boosting import FeatureBoosting, Lists, single_measure
from gradrank.learners.boosting.weak_rankers import ScaledFeatures
from gradrank.learners.trees.boosting import Callback
from gradrank.measures import AnyMeasure, Measure
from gradrank.models.ranker import Ranker


class AdaRank(FeatureBoosting):
    """Boosting of any measure of a ranking (Xu & Li 2007).

    Each round adds α·f for the feature f (in either direction) with the largest r = Σ_q D(q)·E(f, q), where E is
    the measure ``boosts``, averaged over ties. After each round D weighs most the queries that the ensemble orders
    worst: D ← D·exp(−E of the ensemble), or with ``running=False`` D ∝ exp(−E), as first published.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> AdaRank("MAP", rounds=30).fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.4
    True
    """

    def __init__(
        self,
        boosts: str | Measure = "NDCG@10",
        *,
        rounds: int = 300,
        measure: str | AnyMeasure | None = None,
        running: bool = True,
        early_stopping: int | None = None,
        n_jobs: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.boosts = boosts
        self.rounds = rounds
        self.measure = measure
        self.running = running
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.callbacks = callbacks

    def _boosted(self) -> Measure:
        return single_measure("boosts", self.boosts)

    def _measure(self) -> AnyMeasure:
        return self._boosted() if self.measure is None else as_measure(self.measure)

    def _label_source(self) -> str | None:
        measure = self._boosted()
        return measure.source

    def _chosen(self) -> dict[str, Any]:
        return {**super()._chosen(), "boosts": str(self._boosted())}

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData]) -> Ranker:
        self._check()
        check_orderable(train, self._label_source())
        measure = self._boosted()
        rows = np.arange(train.n_docs)
        lists = Lists.of(rows, measure, train, running=self.running, above_chance=False, n_jobs=self.n_jobs)
        weak = ScaledFeatures(train, (lists.rows, lists.quality))
        self.ensemble_ = self._boost(train, valid, weak, None, lists, 1.0, self.callbacks)
        return self._ranker(train)
