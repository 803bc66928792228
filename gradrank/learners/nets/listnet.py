"""ListNet: a net on top-one probabilities."""

from __future__ import annotations

from typing import ClassVar

from gradrank.learners.nets.learner import ObjectiveNet
from gradrank.objectives import ListNet as ListNetLoss
from gradrank.objectives import Objective


class ListNet(ObjectiveNet):
    """A net trained on the cross-entropy of top-one probabilities (Cao et al. 2007).

    ``objective`` may be ``"ListNet(exact=true)"``: over all orders of lists of at most 12 documents.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = ListNet(hidden_layer_sizes=8, epochs=60, batch_size=4).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.9  # a random ranker has 0.35
    True
    """

    default_objective: ClassVar[str] = "ListNet"
    only: ClassVar[type[Objective]] = ListNetLoss
