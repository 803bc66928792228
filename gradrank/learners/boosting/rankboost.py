"""RankBoost: weak rankers for the exponential loss over pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.label_source import label_of
from gradrank.learners.base.loop import Callback
from gradrank.learners.base.something_to_learn import check_orderable
from gradrank.learners.boosting.feature_boosting import FeatureBoosting, weak_rankers
from gradrank.learners.boosting.pair_weights import FactoredPairs
from gradrank.learners.boosting.parameters import WeakRankerParameters
from gradrank.models.ranker import Ranker


class RankBoost(WeakRankerParameters, FeatureBoosting):
    """Exponential loss over pairs of different labels (Freund, Iyer, Schapire, Singer 2003).

    Each round adds α·f for the weak ranker f (a feature above a threshold) with the largest
    r = Σ D(u, v)·(f(u) − f(v)), α = ½ log((1 + r)/(1 − r)). The exponential loss after T rounds, and so the share of
    pairs in wrong order, is at most Π √(1 − r_t²). If documents have weights, D starts with that of u. Pair weights are
    kept as factors of documents, so long lists are no problem.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = RankBoost(n_estimators=100).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.7  # a random ranker has 0.35
    True
    """

    weighs_documents: ClassVar[bool] = True

    def _label_source(self) -> str | None:
        return label_of(self.label, self._measure())

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData], callbacks: Sequence[Callback]) -> Ranker:
        source = self._label_source()
        check_orderable(train, source)
        pairs = FactoredPairs(
            train.label(source), train.indptr, uniform=self.uniform, weight=train.weight,
            document_weight=train.document_weight, n_jobs=self.n_jobs,
        )  # fmt: skip
        weak = weak_rankers(self.weak, train, None, self.max_bin, self.n_jobs)
        return self._ranker(train, self._boost(train, valid, weak, pairs, None, 0.0, callbacks))
