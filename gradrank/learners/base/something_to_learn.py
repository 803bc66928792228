"""Whether training data has anything to teach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.loop import Callback
from gradrank.objectives import BoundObjective, Objective
from gradrank.objectives.pair_facts import PairFacts


def check_orderable(train: RankingData, source: str | None) -> None:
    """Training data whose queries have one label each has nothing to teach."""
    labels = train.label(source)
    if np.isnan(labels).all():
        raise TrainingError("no document of the training data is judged")
    highest = np.fmax.reduceat(labels, train.indptr[:-1])
    if not (highest > np.fmin.reduceat(labels, train.indptr[:-1])).any():
        raise TrainingError("every query of the training data has one label only: there is nothing to order")


def check_varied(train: RankingData, source: str | None) -> None:
    """Training data whose documents all have one label has nothing to teach, not even to least squares."""
    labels = train.label(source)
    judged = labels[~np.isnan(labels)]
    if not len(judged):
        raise TrainingError("no document of the training data is judged")
    if judged.min() == judged.max():
        raise TrainingError(f"every document of the training data has label {judged[0]:g}: there is nothing to learn")


def check_labels(train: RankingData, objective: Objective) -> None:
    """The labels that an objective reads have something to teach; graded measures tell of their pairs."""
    measure = objective.measure
    # The pairs of several sources are looked at together.
    if measure is not None and len(measure.sources) == 1:
        check_orderable(train, measure.sources[0])
    elif measure is None:
        check_varied(train, getattr(objective, "label", None))


def announced_pairs(bound: BoundObjective, train: RankingData, callbacks: Sequence[Callback]) -> tuple[PairFacts, ...]:
    """The pairs of each label source, told to the callbacks that ask for them; none at all is an error."""
    pairs = tuple(bound.pair_facts(train))
    if pairs and not any(fact.pairs for fact in pairs if fact.weight > 0):
        raise TrainingError(
            f"there is nothing to order in the training data: {pairs[0].sentence()}"
            + "".join(f"; {fact.sentence()}" for fact in pairs[1:])
        )
    # Losses over lists count no pairs: where all their lists are settled, nothing pulls at equal scores.
    if not pairs and not bound.gradients(np.zeros(train.n_docs)).lambdas.any():
        raise TrainingError("every query of the training data has one label only: there is nothing to order")
    for callback in callbacks:
        if hasattr(callback, "begin"):
            callback.begin(pairs)
    return pairs
