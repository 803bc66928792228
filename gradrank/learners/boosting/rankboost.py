"""RankBoost: weak rankers for the exponential loss over pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.checks import check_orderable
from gradrank.learners.boosting.feature_boosting import FeatureBoosting, Weak, check_weak, weak_rankers
from gradrank.learners.boosting.pair_weights import FactoredPairs
from gradrank.learners.trees.boosting import Callback
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker


class RankBoost(FeatureBoosting):
    """Exponential loss over pairs of different labels (Freund, Iyer, Schapire, Singer 2003).

    Each round adds α·f for the weak ranker f (a feature above a threshold) with the largest
    r = Σ D(u, v)·(f(u) − f(v)), α = ½ log((1 + r)/(1 − r)). The exponential loss after T rounds, and so the share of
    pairs in wrong order, is at most Π √(1 − r_t²). Pair weights are kept as factors of documents, so long lists are no
    problem. ``uniform`` tells whether all pairs start with the same weight (the paper) or all queries do.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> RankBoost(rounds=30).fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.5
    True
    """

    def __init__(
        self,
        *,
        rounds: int = 300,
        measure: str | AnyMeasure = "NDCG@10",
        label: str | None = None,
        weak: Weak = "threshold",
        bins: int = 255,
        uniform: Literal["pair", "query"] = "pair",
        early_stopping: int | None = None,
        n_jobs: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.rounds = rounds
        self.measure = measure
        self.label = label
        self.weak = weak
        self.bins = bins
        self.uniform = uniform
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.callbacks = callbacks

    def _check(self) -> None:
        super()._check()
        check_weak(self.weak)
        if self.uniform not in ("pair", "query"):
            raise TrainingError(f"uniform is {self.uniform!r}, expected pair or query")

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData]) -> Ranker:
        self._check()
        source = self._label_source()
        check_orderable(train, source)
        pairs = FactoredPairs(
            train.label(source), train.indptr, uniform=self.uniform, weight=train.weight, n_jobs=self.n_jobs
        )
        weak = weak_rankers(self.weak, train, None, self.bins, self.n_jobs)
        self.ensemble_ = self._boost(train, valid, weak, pairs, None, 0.0, self.callbacks)
        return self._ranker(train)
