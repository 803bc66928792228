"""ListMLE: a net on the likelihood of the true order."""

from __future__ import annotations

from typing import ClassVar

from gradrank.errors import TrainingError
from gradrank.learners.base.parameters import parameter
from gradrank.learners.nets.learner import ObjectiveNet
from gradrank.objectives import ListMLE as ListMLELoss
from gradrank.objectives import Objective


class ListMLE(ObjectiveNet):
    """A net trained on the likelihood of the first ``k`` places of the true order (Xia et al. 2008; Niu et al. 2012).

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = ListMLE(k=5, hidden_layer_sizes=8, epochs=60, batch_size=4).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.9  # a random ranker has 0.35
    True
    """

    default_objective: ClassVar[str] = "ListMLE"
    only: ClassVar[type[Objective]] = ListMLELoss

    k: int | None = parameter(default=None, low=1, metavar="N", help="Places that count; None is all of them.")

    def _objective(self) -> Objective:
        objective = super()._objective()
        if self.k is None:
            return objective
        if self.objective is not None and objective != ListMLELoss(self.k, getattr(objective, "label", None)):
            raise TrainingError(f"k is {self.k}, and the objective is {objective}: give one of the two")
        return ListMLELoss(self.k, getattr(objective, "label", None))
