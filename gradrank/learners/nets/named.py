"""The nets by the names that their papers gave them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gradrank.errors import TrainingError
from gradrank.learners.nets.learner import NetLearner
from gradrank.learners.trees.boosting import Callback
from gradrank.measures import AnyMeasure
from gradrank.objectives import ListMLE as ListMLELoss
from gradrank.objectives import ListNet as ListNetLoss
from gradrank.objectives import Objective, RankNetPairs, Regression

if TYPE_CHECKING:
    import torch


class LambdaRank(NetLearner):
    """A net trained on the λ-gradients of any measure (Burges, Ragno, Le 2006; Donmez, Svore, Burges 2009).

    ``objective`` is an objective or its name: a measure (``"NDCG@10"``, the default), ``"Lambda(MAP, cost=sigmoid)"``,
    tiers, a schedule over the epochs, another construction. The other parameters are those of :class:`NetLearner`.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> model = LambdaRank("NDCG@5", hidden=4, epochs=30, batch=4).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.5
    True
    """


class _FixedLoss(NetLearner):
    """A net whose objective is of one kind."""

    kind: ClassVar[type[Objective]]

    def _objective(self) -> Objective:
        objective = super()._objective()
        if not isinstance(objective, self.kind):
            name = type(self).__name__
            raise TrainingError(f"{name} learns by {self.default_objective}, not by {objective}; LambdaRank takes it")
        return objective


class RankNet(_FixedLoss):
    """A net trained on the cross-entropy of all pairs (Burges et al. 2005).

    Parameters are those of :class:`NetLearner`; ``objective`` may be ``"RankNet(sigma=2)"``.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> RankNet(hidden=4, epochs=30, batch=4).fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.5
    True
    """

    default_objective: ClassVar[str] = "RankNet"
    kind = RankNetPairs


class ListNet(_FixedLoss):
    """A net trained on the cross-entropy of top-one probabilities (Cao et al. 2007).

    Parameters are those of :class:`NetLearner`; ``objective`` may be ``"ListNet(exact=true)"``: over all orders of
    lists of at most 12 documents.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> ListNet(hidden=4, epochs=30, batch=4).fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.5
    True
    """

    default_objective: ClassVar[str] = "ListNet"
    kind = ListNetLoss


class RegressionNet(_FixedLoss):
    """A net trained by least squares on the label, document by document.

    Parameters are those of :class:`NetLearner`.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> RegressionNet(hidden=4, epochs=30, batch=4).fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.5
    True
    """

    default_objective: ClassVar[str] = "Regression"
    kind = Regression


class ListMLE(_FixedLoss):
    """A net trained on the likelihood of the first ``k`` places of the true order (Xia et al. 2008; Niu et al. 2012).

    All places count unless ``k`` is given. The other parameters are those of :class:`NetLearner`.

    >>> from gradrank.data.artificial import make_splits
    >>> data = make_splits(40, n_docs=10, n_features=5, random_state=1)
    >>> ListMLE(k=5, hidden=4, epochs=30, batch=4).fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.5
    True
    """

    default_objective: ClassVar[str] = "ListMLE"
    kind = ListMLELoss

    def __init__(
        self,
        objective: str | Objective | None = None,
        *,
        k: int | None = None,
        measure: str | AnyMeasure | None = None,
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
        given: dict[str, Any] = {
            name: value for name, value in locals().items() if name not in ("self", "k", "__class__")
        }
        super().__init__(**given)
        self.k = k

    def _objective(self) -> Objective:
        objective = super()._objective()
        if self.k is None:
            return objective
        if self.objective is not None and objective != ListMLELoss(self.k, getattr(objective, "label", None)):
            raise TrainingError(f"k is {self.k}, and the objective is {objective}: give one of the two")
        return ListMLELoss(self.k, getattr(objective, "label", None))
