"""LambdaSMART: LambdaMART started from a base ranker."""

from __future__ import annotations

from gradrank.errors import TrainingError
from gradrank.learners.trees.lambdamart import LambdaMART


class LambdaSMART(LambdaMART):
    """LambdaMART started from a base ranker: adapts any model to a new domain (Wu et al. 2009).

    The trained ranker contains the base: score(x) = base(x) + trees(x).

    >>> from gradrank import FeatureRanker, make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = LambdaSMART("NDCG@5", base="f1", n_estimators=30, learning_rate=0.2).fit(data["train"])
    >>> (weight, base), (_, trees) = model.ranker_.parts
    >>> weight, base.feature, len(trees.trees)
    (1.0, 'f1', 30)
    """

    def _check(self) -> None:
        super()._check()
        if self.base is None:
            raise TrainingError("LambdaSMART needs a base: a ranker, a model file, or the name of a feature")
