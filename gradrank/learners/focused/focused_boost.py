"""FocusedBoost: AdaRank for the order of the top k, RankBoost for the top k against the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.label_source import label_of
from gradrank.learners.base.loop import Callback
from gradrank.learners.base.parameters import fitted, parameter
from gradrank.learners.base.something_to_learn import check_orderable
from gradrank.learners.boosting.feature_boosting import Boosted, FeatureBoosting, Lists, single_measure, weak_rankers
from gradrank.learners.boosting.pair_weights import FactoredPairs
from gradrank.learners.boosting.parameters import WeakRankerParameters
from gradrank.learners.focused.beta_path import (
    BETA_GRID,
    BetaPath,
    check_tuning,
    focused_measure,
    focused_score_measure,
    focused_truth,
    top_and_rest,
)
from gradrank.learners.focused.label_differences import DifferencePairs
from gradrank.learners.focused.parameters import DifferenceParameters, FocusedParameters
from gradrank.measures import AnyMeasure, Measure
from gradrank.models.ranker import Ranker


class FocusedBoost(FocusedParameters, DifferenceParameters, WeakRankerParameters, FeatureBoosting):
    """Weak rankers for β·Σ_q D(q)·E(f, T_q) + (1 − β)·Σ D'(u, v)·(f(u) − f(v)) (Niu et al. 2012, Algorithm 2).

    E is the measure ``boosts`` (κ-NDCG at k) of the order that f gives to the documents of T, the pairs are T × F.
    Comparable range: D and D' add up to 1, and both parts of r are 0 for a ranker that knows nothing and 1 for a
    perfect one — for that, E is counted above chance: (E − E of a random order) / (best E − E of a random order). D'
    weighs pairs by exp(−(F(u) − F(v))), so that pairs in wrong order count more; the paper prints the opposite sign.
    Its factor (y_u − y_v) in the exponent is left out unless ``by_difference``.
    D ∝ exp(−E of the ensemble); ``running`` makes it D ← D·exp(−E), which helps AdaRank on its own but not here.
    Labels that are no top-k truth are made one by a random order (``random_state``) that respects the grades.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> learner = FocusedBoost(k=5, measure="NDCG@10", n_estimators=100)
    >>> learner.fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.7  # a random ranker has 0.35
    True
    """

    beta_: float = fitted()
    """The β that was chosen, with ``beta="auto"``."""

    boosts: str | Measure | None = parameter(
        default=None, metavar="MEASURE", command_line=False, help="The measure that is boosted; None is κ-NDCG at k."
    )
    running: bool = parameter(
        default=False,
        command_line=False,
        help="Whether a round's weights of queries build on those of the round before.",
    )
    uniform: str = parameter(default="query")

    def _measure(self) -> AnyMeasure:
        return focused_measure(self.measure, self.k, self.label)

    def _score_measure(self) -> AnyMeasure:
        return focused_score_measure(self.measure, self.label)

    def _label_source(self) -> str | None:
        return label_of(self.label, self._measure())

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData], callbacks: Sequence[Callback]) -> Ranker:
        check_orderable(train, self._label_source())
        labels = focused_truth(train, self.k, self.random_state, self._label_source())
        kind = DifferencePairs if self.by_difference else FactoredPairs
        of_pairs = labels if self.by_difference else top_and_rest(labels)
        pairs = kind(of_pairs, train.indptr, uniform=self.uniform, weight=train.weight, n_jobs=self.n_jobs)
        lists = top_lists(train, labels, focused_measure(self.boosts, self.k, None), self.running, self.n_jobs)
        betas = BETA_GRID if self.beta == "auto" else (float(self.beta),)
        if pairs.empty and lists is None:
            raise TrainingError("no query of the training data has documents of different places in its top-k truth")
        # A truth without rest has no pairs, one with a single document on top no order: the other part is all there is.
        if pairs.empty:
            betas = (1.0,)
        elif lists is None:
            betas = (0.0,)
        weak = weak_rankers(self.weak, train, lists, self.max_bin, self.n_jobs)

        def boost(beta: float, told: Sequence[Callback]) -> Boosted:
            return self._boost(train, valid, weak, pairs, lists, beta, told)

        if len(betas) == 1:
            return self._ranker(train, boost(betas[0], callbacks))
        check_tuning(valid)
        measure = str(single_measure("measure", self._measure()))
        path = BetaPath[Boosted](
            callbacks,
            self.n_estimators,
            value=lambda found: found.record.curves[next(iter(valid))][measure][found.record.best - 1],
            interrupted=lambda found: found.record.interrupted,
        )
        best, self.beta_ = path.best(boost, betas)
        best.record.interrupted = path.interrupted
        ranker = self._ranker(train, best)
        ranker.remember(chosen={"beta": self.beta_}, paths={"beta": {"beta": path.tried, measure: path.values}})
        return ranker


def top_lists(
    train: RankingData, labels: NDArray[np.float32], measure: AnyMeasure, running: bool, n_jobs: int | None
) -> Lists | None:
    """The documents of T as lists of their own, with their position labels; None if no T has two of them."""
    rows = np.flatnonzero(labels > 0)
    query = train.query_of_row()[rows]
    counts = np.bincount(query, minlength=train.n_queries)
    rows = rows[counts[query] > 1]
    if not len(rows):
        return None
    sizes = counts[counts > 1]
    documents = RankingData(
        X=np.empty((len(rows), 0), dtype=np.float32),
        indptr=np.concatenate(([0], np.cumsum(sizes))),
        labels={"label": labels[rows]},
        qid=train.qid[np.flatnonzero(counts > 1)],
        weight=None if train.weight is None else train.weight[counts > 1],
    )
    measure = replace(single_measure("boosts", measure), label=None)
    return Lists.of(rows, measure, documents, running=running, above_chance=True, n_jobs=n_jobs)
