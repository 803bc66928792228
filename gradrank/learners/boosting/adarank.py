"""AdaRank: weak rankers for a measure of the ranking.

The distribution D over queries is *fresh*, D ∝ exp(−E) (Xu & Li 2007), or *running*, D ← D·exp(−E) (as Niu et al. 2012
print it). The fresh one is so close to uniform that AdaRank chooses one strong feature forever: on MQ2007 (five folds,
LETOR's convention) it stays at the best single feature, NDCG@10 .422, where the running one reaches .435 and the
published results are .434, .437. So AdaRank's D is running; FocusedBoost, whose pairs bring in other features anyway,
does better with a fresh one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.loop import Callback
from gradrank.learners.base.parameters import parameter
from gradrank.learners.base.something_to_learn import check_orderable
from gradrank.learners.boosting.feature_boosting import FeatureBoosting, Lists, single_measure
from gradrank.learners.boosting.weak_rankers import ScaledFeatures
from gradrank.measures import Measure, as_measure
from gradrank.models.ranker import Ranker

if TYPE_CHECKING:
    from gradrank.measures import AnyMeasure


class AdaRank(FeatureBoosting):
    """Boosting of any measure of a ranking (Xu & Li 2007).

    Each round adds α·f for the feature f (in either direction) with the largest r = Σ_q D(q)·E(f, q), where E is
    the measure ``boosts``, averaged over ties. After each round D weighs most the queries that the ensemble orders
    worst: D ← D·exp(−E of the ensemble), or with ``running=False`` D ∝ exp(−E), as first published.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = AdaRank("MAP", n_estimators=100).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.7  # a random ranker has 0.35
    True
    """

    boosts: str | Measure = parameter(
        default="NDCG@10", kw_only=False, metavar="MEASURE", command_line=False, help="The measure that is boosted."
    )
    measure: str | AnyMeasure | None = parameter(
        default=None,
        help="Chooses the number of rounds on validation data, the one that is boosted unless given, and is what "
        "score() gives (NDCG@10 unless given).",
    )
    running: bool = parameter(
        default=True,
        command_line=False,
        help="Whether a round's weights of queries build on those of the round before.",
    )

    def _boosted(self) -> Measure:
        return single_measure("boosts", self.boosts)

    def _measure(self) -> AnyMeasure:
        return self._boosted() if self.measure is None else as_measure(self.measure)

    def _label_source(self) -> str | None:
        measure = self._boosted()
        return measure.source

    def _chosen(self) -> dict[str, Any]:
        return {**super()._chosen(), "boosts": str(self._boosted())}

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData], callbacks: Sequence[Callback]) -> Ranker:
        check_orderable(train, self._label_source())
        measure = self._boosted()
        rows = np.arange(train.n_docs)
        lists = Lists.of(rows, measure, train, running=self.running, above_chance=False, n_jobs=self.n_jobs)
        weak = ScaledFeatures(train, (lists.rows, lists.quality))
        return self._ranker(train, self._boost(train, valid, weak, None, lists, 1.0, callbacks))
