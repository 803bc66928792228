"""FocusedNet: ListNet for the order of the top k, RankNet for the top k against the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sklearn.base import clone

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.checks import check_orderable, label_of
from gradrank.learners.focused.beta_path import (
    BETA_GRID,
    BetaPath,
    check_focus,
    check_tuning,
    focused_measure,
    focused_truth,
)
from gradrank.learners.nets.learner import NetLearner
from gradrank.learners.nets.settings import net_settings
from gradrank.learners.trees.boosting import Callback
from gradrank.measures import AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.objectives import Objective
from gradrank.objectives.focused import Focused

if TYPE_CHECKING:
    import torch

# What the constructor has beyond that of NetLearner.
_OWN = ("self", "k", "beta", "label", "__class__")


class FocusedNet(NetLearner):
    """A net trained on β·ListNet(T) + (1 − β)·RankNet(T × F) (Niu et al. 2012).

    ListNet is exact, over all orders of T. Comparable range: each part is divided by its value for equal scores, so
    that every query's loss starts at 1. Labels that are no top-k truth are made one: a random order
    (``random_state``) that respects the grades, of which the top ``k`` are kept. ``beta="auto"`` tries 0, 0.05, …, 1
    on the validation data, one training each. The other parameters are those of :class:`NetLearner`.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=12, n_features=5, random_state=1)
    >>> model = FocusedNet(k=5, hidden=4, epochs=30, batch=4).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.5
    True
    """

    default_objective: ClassVar[str] = "Focused"

    def __init__(
        self,
        *,
        k: int = 10,
        beta: float | Literal["auto"] = 0.5,
        measure: str | AnyMeasure | None = None,
        label: str | None = None,
        hidden: int | str | Sequence[int] = 10,
        activation: str = "relu",
        scaling: str = "standard",
        module: torch.nn.Module | Callable[[int], torch.nn.Module] | None = None,
        epochs: int | None = None,
        rate: float | None = None,
        rates: str | Sequence[float] | None = None,
        batch: int | str = 32,
        optimizer: str = "adam",
        weight_decay: float | None = None,
        restart: int | None = None,
        early_stopping: int | None = None,
        device: str = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
        train_measure: bool = False,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        given: dict[str, Any] = {name: value for name, value in locals().items() if name not in _OWN}
        super().__init__(**given)
        self.k = k
        self.beta = beta
        self.label = label

    def _objective(self) -> Objective:
        beta = 0.5 if self.beta == "auto" else float(self.beta)
        return Focused(self.k, beta, self._label_source())

    def _measure(self) -> AnyMeasure:
        return focused_measure(self.measure, self.k, self.label)

    def _label_source(self) -> str | None:
        return label_of(self.label, self._measure())

    def _chosen(self) -> dict[str, Any]:
        check_focus(self.k, self.beta)
        return super()._chosen()

    def _fit(self, train: RankingData, valid: Mapping[str, RankingData]) -> Ranker:
        check_focus(self.k, self.beta)
        source = self._label_source()
        check_orderable(train, source)
        truth = train.with_label(
            source or train.label_names[0], focused_truth(train, self.k, self.random_state, source)
        )
        if self.beta != "auto":
            return super()._fit(truth, valid)
        check_tuning(valid)
        measure = self._measure()
        name = str(measure.parts[0])
        path = BetaPath[FocusedNet](
            self.callbacks,
            net_settings(self).epochs,
            value=lambda one: one.trained_.state.curves[next(iter(valid))][name][one.trained_.state.best - 1],
            interrupted=lambda one: one.trained_.interrupted,
        )

        def one(beta: float, callbacks: Sequence[Callback]) -> FocusedNet:
            learner: FocusedNet = clone(self).set_params(beta=beta, checkpoint=None, callbacks=callbacks)
            return learner.fit(truth, valid=dict(valid))

        best, self.beta_ = path.best(one, BETA_GRID)
        self.trained_ = best.trained_
        best.ranker_.remember(
            chosen={"beta": self.beta_},
            paths={"beta": {"beta": path.tried, name: path.values}},
            interrupted=path.interrupted,
        )
        return best.ranker_
