"""FocusedNet: ListNet for the order of the top k, RankNet for the top k against the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.label_source import label_of
from gradrank.learners.base.loop import Callback
from gradrank.learners.base.parameters import fitted
from gradrank.learners.base.something_to_learn import check_orderable
from gradrank.learners.focused.beta_path import (
    BETA_GRID,
    BetaPath,
    check_tuning,
    first_part,
    focused_measure,
    focused_score_measure,
    focused_truth,
)
from gradrank.learners.focused.parameters import FocusedParameters
from gradrank.learners.nets.learner import NetLearner
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.objectives import Objective
from gradrank.objectives.focused import Focused


class FocusedNet(FocusedParameters, NetLearner):
    """A net trained on β·ListNet(T) + (1 − β)·RankNet(T × F) (Niu et al. 2012).

    ListNet is exact, over all orders of T. Comparable range: each part is divided by its value for equal scores, so
    that every query's loss starts at 1. Labels that are no top-k truth are made one: a random order
    (``random_state``) that respects the grades, of which the top ``k`` are kept. With ``beta="auto"`` there is one
    training for each of 0, 0.05, …, 1.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> learner = FocusedNet(k=5, measure="NDCG@10", hidden_layer_sizes=8, epochs=60, batch_size=4)
    >>> learner.fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.9  # a random ranker has 0.35
    True
    """

    beta_: float = fitted()
    """The β that was chosen, with ``beta="auto"``."""

    def _objective(self) -> Objective:
        beta = 0.5 if self.beta == "auto" else float(self.beta)
        return Focused(self.k, beta, self._label_source())

    def _measure(self) -> AnyMeasure:
        return focused_measure(self.measure, self.k, self.label)

    def _score_measure(self) -> AnyMeasure:
        return focused_score_measure(self.measure, self.label)

    def _label_source(self) -> str | None:
        return label_of(self.label, self._measure())

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData], callbacks: Sequence[Callback]) -> Ranker:
        source = self._label_source()
        check_orderable(train, source)
        truth = train.with_label(
            source or train.label_names[0], focused_truth(train, self.k, self.random_state, source)
        )
        if self.beta != "auto":
            return super()._fit(truth, valid, callbacks)
        check_tuning(valid)
        name = str(first_part(self._measure()))
        path = BetaPath[FocusedNet](
            callbacks,
            self._settings().epochs,
            value=lambda one: one.record_.curves[next(iter(valid))][name][one.record_.best - 1],
            interrupted=lambda one: one.record_.interrupted,
        )

        def one(beta: float, told: Sequence[Callback]) -> FocusedNet:
            learner: FocusedNet = clone(self).set_params(beta=beta, checkpoint=None, callbacks=(), verbose=False)
            learner.ranker_ = learner._fit(truth, valid, told)
            return learner

        best, self.beta_ = path.best(one, BETA_GRID)
        self.record_, self.state_ = best.record_, best.state_
        self.record_.interrupted = path.interrupted
        facts: dict[str, Any] = {
            "chosen": {"beta": self.beta_},
            "paths": {"beta": {"beta": path.tried, name: path.values}},
            "interrupted": path.interrupted,
        }
        best.ranker_.remember(**facts)
        return best.ranker_
