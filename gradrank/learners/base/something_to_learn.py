"""Whether training data has anything to teach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.loop import Callback
from gradrank.objectives import BoundObjective, Objective
from gradrank.objectives.pair_facts import PairFacts

# The first few rows nearly always tell; a matrix that lies in a file is never held.
_BLOCK_BYTES = 1 << 18
_HEAVIEST = 1e30
"""Gradients are numbers in single precision, which ends at 3e38, and thousands of them are added."""
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


def check_gradients(lambdas: NDArray[np.float32], rhos: NDArray[np.float32], step: int, crew: Crew = ALONE) -> bool:
    """Whether any document is pushed; λ's that are no numbers, or none at all from the start, are errors.

    Parameters
    ----------
    lambdas, rhos
        The λ's and ρ's of all documents, before any sampling.
    step
        Number of the step, from 0.
    crew
        The processes that train together.

    Examples
    --------
    >>> check_gradients(np.array([0.5, -0.5]), np.array([1.0, 1.0]), 0), check_gradients(np.zeros(2), np.zeros(2), 7)
    (True, False)
    """
    # In double precision a sum of single numbers is finite if all of them are.
    finite = np.isfinite(lambdas.sum(dtype=np.float64)) and np.isfinite(rhos.sum(dtype=np.float64))
    broken, pushed = (
        crew.sum(np.array([not finite, bool(lambdas.any())], dtype=np.float64)) if crew.shared else
        (not finite, bool(lambdas.any()))
    )  # fmt: skip
    if broken:
        raise TrainingError(
            f"in step {step + 1} λ's are not finite numbers: labels or weights are too large for single precision; "
            "bring labels to a few grades such as 0 to 4, or take linear gains, and divide weights by the largest"
        )
    if not pushed and step == 0:
        raise TrainingError(
            "there is nothing to learn: every λ of the training data is 0; look at labels, weights and the base ranker"
        )
    return bool(pushed)


def check_varied_features(train: RankingData) -> None:
    """Training data whose documents all have the same features tells none from another."""
    first = train.X[0]
    known = ~np.isnan(first)
    rows = max(1, _BLOCK_BYTES // max(1, first.nbytes))
    for start in range(0, train.n_docs, rows):
        block = np.asarray(train.X[start : start + rows])
        if ((block != first) & (known | ~np.isnan(block))).any():
            return
    if known.any():
        raise TrainingError("all documents of the training data have the same features: nothing tells them apart")
    raise TrainingError("every feature of the training data is missing (NaN): there is nothing to learn from")


def check_weights(train: RankingData) -> None:
    """Weights that are all 0, or too large to be multiplied in single precision."""
    for name, weights in (("weights", train.weight), ("weights of documents", train.document_weight)):
        if weights is not None and not weights.any():
            raise TrainingError(f"all {name} are zero: there is nothing to learn from")
    if train.weight is not None or train.document_weight is not None:
        heaviest = float(train.row_weights().max())
        if heaviest > _HEAVIEST:
            raise TrainingError(
                f"weights go up to {heaviest:g}, expected at most {_HEAVIEST:g}: divide all of them by the largest"
            )


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
