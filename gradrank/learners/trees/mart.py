"""MART: boosted regression trees as a ranker."""

from __future__ import annotations

from typing import ClassVar

from gradrank.errors import TrainingError
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.objectives import Objective, Regression


class MART(LambdaMART):
    """Boosted regression trees: least squares on the label (Friedman 2001), as a ranker.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = MART(n_estimators=60, learning_rate=0.2).fit(data["train"], valid=data["vali"])
    >>> model.score(data["test"]) > 0.9  # a random ranker has 0.35
    True
    """

    default_objective: ClassVar[str] = "Regression"

    def _objective(self) -> Objective:
        objective = super()._objective()
        if not isinstance(objective, Regression):
            raise TrainingError(f"MART learns by regression, not by {objective}; LambdaMART takes it")
        return objective
