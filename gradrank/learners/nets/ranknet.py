"""RankNet: a net on all pairs alike."""

from __future__ import annotations

from typing import ClassVar

from gradrank.learners.nets.learner import ObjectiveNet
from gradrank.objectives import Objective, RankNetPairs


class RankNet(ObjectiveNet):
    """A net trained on the cross-entropy of all pairs (Burges et al. 2005).

    ``objective`` may be ``"RankNet(sigma=2)"``.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = RankNet(hidden_layer_sizes=8, epochs=60, batch_size=4).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.9  # a random ranker has 0.35
    True
    """

    default_objective: ClassVar[str] = "RankNet"
    only: ClassVar[type[Objective]] = RankNetPairs
