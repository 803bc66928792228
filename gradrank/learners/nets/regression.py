"""RegressionNet: a net on the labels themselves."""

from __future__ import annotations

from typing import ClassVar

from gradrank.learners.nets.learner import ObjectiveNet
from gradrank.objectives import Objective, Regression


class RegressionNet(ObjectiveNet):
    """A net trained by least squares on the label, document by document.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = RegressionNet(hidden_layer_sizes=8, epochs=60, batch_size=4).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.9  # a random ranker has 0.35
    True
    """

    default_objective: ClassVar[str] = "Regression"
    only: ClassVar[type[Objective]] = Regression
