"""Whether training data has anything to teach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.loop import Callback
from gradrank.objectives import BoundObjective, Objective
from gradrank.objectives.pair_facts import PairFacts

_COUNTS = ("pairs", "queries", "of_queries", "unlabeled_documents", "unlabeled_queries")


def check_orderable(train: RankingData, source: str | None, crew: Crew = ALONE) -> None:
    """Training data whose queries have one label each has nothing to teach."""
    labels = train.label(source)
    if not crew.any(not np.isnan(labels).all()):
        raise TrainingError("no document of the training data is judged")
    highest = np.fmax.reduceat(labels, train.indptr[:-1])
    if not crew.any(bool((highest > np.fmin.reduceat(labels, train.indptr[:-1])).any())):
        raise TrainingError("every query of the training data has one label only: there is nothing to order")


def check_varied(train: RankingData, source: str | None, crew: Crew = ALONE) -> None:
    """Training data whose documents all have one label has nothing to teach, not even to least squares."""
    labels = train.label(source)
    own = labels[~np.isnan(labels)]
    judged = np.concatenate(crew.gather(np.array([own.min(), own.max()]) if len(own) else own))
    if not len(judged):
        raise TrainingError("no document of the training data is judged")
    if judged.min() == judged.max():
        raise TrainingError(f"every document of the training data has label {judged[0]:g}: there is nothing to learn")


def check_labels(train: RankingData, objective: Objective, crew: Crew = ALONE) -> None:
    """The labels that an objective reads have something to teach; graded measures tell of their pairs."""
    measure = objective.measure
    # The pairs of several sources are looked at together.
    if measure is not None and len(measure.sources) == 1:
        check_orderable(train, measure.sources[0], crew)
    elif measure is None:
        check_varied(train, getattr(objective, "label", None), crew)


def announced_pairs(
    bound: BoundObjective, train: RankingData, callbacks: Sequence[Callback], crew: Crew = ALONE
) -> tuple[PairFacts, ...]:
    """The pairs of each label source, told to the callbacks that ask for them; none at all is an error."""
    pairs = _of_all(bound.pair_facts(train), crew)
    if pairs and not any(fact.pairs for fact in pairs if fact.weight > 0):
        raise TrainingError(
            f"there is nothing to order in the training data: {pairs[0].sentence()}"
            + "".join(f"; {fact.sentence()}" for fact in pairs[1:])
        )
    # Losses over lists count no pairs: where all their lists are settled, nothing pulls at equal scores.
    if not pairs and not crew.any(bool(bound.gradients(np.zeros(train.n_docs)).lambdas.any())):
        raise TrainingError("every query of the training data has one label only: there is nothing to order")
    for callback in callbacks:
        if hasattr(callback, "begin"):
            callback.begin(pairs)
    return pairs


def _of_all(own: Sequence[PairFacts], crew: Crew) -> tuple[PairFacts, ...]:
    """The facts of all processes: their counts are summed."""
    counts = np.array([[getattr(fact, name) for name in _COUNTS] for fact in own], dtype=np.float64)
    summed = crew.sum(counts.reshape(len(own), len(_COUNTS))).astype(np.int64).tolist()
    return tuple(replace(fact, **dict(zip(_COUNTS, row, strict=True))) for fact, row in zip(own, summed, strict=True))
