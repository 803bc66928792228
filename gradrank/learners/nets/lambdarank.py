"""LambdaRank: a net on the λ-gradients of any measure."""

from __future__ import annotations

from gradrank.learners.nets.learner import ObjectiveNet


class LambdaRank(ObjectiveNet):
    """A net trained on the λ-gradients of any measure (Burges, Ragno, Le 2006; Donmez, Svore, Burges 2009).

    ``objective`` may also be tiers, a schedule over the epochs, or another construction of λ's.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = LambdaRank("NDCG@5", hidden_layer_sizes=8, epochs=60, batch_size=4)
    >>> model.fit(data["train"], valid=data["vali"]).score(data["test"]) > 0.9  # a random ranker has 0.35
    True
    """
